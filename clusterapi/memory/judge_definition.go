package memory

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validDefinition judges a CustomResourceDefinition.
func validDefinition(n node) {
	if n.get("kind").text() != definitionKind.Kind {
		return
	}
	s := n.get("spec")
	group, names := s.get("group"), s.get("names")
	if group.filled() {
		group.subdomain()
		if !strings.Contains(group.text(), ".") {
			group.invalid("should be a domain with at least one dot")
		}
	}
	for _, name := range []string{"plural", "kind"} {
		if f := names.get(name); f.filled() {
			f.each(validation.IsDNS1035Label(strings.ToLower(f.text())))
		}
	}
	if f := names.get("listKind"); f.text() != "" && f.text() == names.get("kind").text() {
		f.invalid("kind and listKind may not be the same")
	}
	name := n.get("metadata", "name")
	if name.text() != names.get("plural").text()+"."+group.text() {
		name.invalid("must be spec.names.plural+\".\"+spec.group")
	}
	if scope := s.get("scope"); scope.filled() {
		scope.oneOf("Cluster", "Namespaced")
	}
	versions := s.get("versions")
	stored := 0
	for _, v := range versions.items() {
		if f := v.get("name"); f.filled() {
			f.each(validation.IsDNS1035Label(f.text()))
		}
		if v.get("storage").yes() {
			stored++
		}
		tree := v.get("schema", "openAPIV3Schema")
		if !tree.set() {
			if !s.get("preserveUnknownFields").yes() {
				tree.required("schemas are required")
			}
			continue
		}
		if t := tree.get("type"); t.text() != "object" {
			if t.text() == "" {
				t.required("must not be empty at the root")
			} else {
				t.invalid("must be object at the root")
			}
		}
		tree.structural(0)
	}
	versions.unique("name")
	if stored != 1 {
		versions.invalid("must have exactly one version marked as storage version")
	}
	for _, v := range n.get("status", "storedVersions").items() {
		if !slices.ContainsFunc(versions.items(), func(e node) bool { return e.get("name").text() == v.text() }) {
			v.invalid(fmt.Sprintf("missing from spec.versions; %s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %s and removes %s from status.storedVersions", v.text(), v.text(), v.text()))
		}
	}
}

// maxSchemaDepth bounds the depth of a definition's schema.
const maxSchemaDepth = 500

// structural demands that a schema says the type of each field.
func (n node) structural(depth int) {
	if depth > maxSchemaDepth {
		n.invalid("is nested too deeply")
		return
	}
	below := func(f node, what string) {
		t := f.get("type")
		free := f.get("x-kubernetes-int-or-string").yes() || f.get("x-kubernetes-preserve-unknown-fields").yes()
		switch {
		case t.text() == "" && !free:
			t.required("must not be empty for specified " + what)
		case t.text() != "":
			t.oneOf("array", "boolean", "integer", "number", "object", "string")
		}
		f.structural(depth + 1)
	}
	properties := n.get("properties")
	for _, name := range properties.keys() {
		f := properties.get(name)
		f.above, f.few = properties.path().Key(name), 0
		below(f, "object fields")
	}
	if f := n.get("additionalProperties"); f.size() > 0 {
		below(f, "object fields")
	}
	items := n.get("items")
	switch {
	case items.set():
		below(items, "array items")
	case n.get("type").text() == "array":
		items.required("must be specified")
	}
	if n.get("x-kubernetes-list-type").text() == "map" && n.get("x-kubernetes-list-map-keys").size() == 0 {
		n.get("x-kubernetes-list-map-keys").required("must not be empty if x-kubernetes-list-type is map")
	}
}

func updatedDefinition(old, n node) {
	established := false
	for _, c := range old.get("status", "conditions").items() {
		established = established || c.get("type").text() == "Established" && c.get("status").text() == "True"
	}
	if established {
		immutable(old.get("spec"), n.get("spec"), "scope")
		immutable(old.get("spec", "names"), n.get("spec", "names"), "kind", "plural")
	}
	if a, b := old.get("spec", "group").text(), n.get("spec", "group"); a != b.text() {
		n.fail(field.Invalid(b.path(), b.text(), "field is immutable"))
	}
}
