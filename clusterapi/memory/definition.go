package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definition is a stored CustomResourceDefinition.
type definition struct {
	gk          schema.GroupKind
	obj         *unstructured.Unstructured
	established bool
	due         time.Time // when it becomes so, if it is not
	prepared    *prepared
}

// prepared is what was made of the versions of a definition. It is kept as
// long as the definition's spec, and shared by clusters that share that.
type prepared struct {
	mu    sync.Mutex
	kinds map[string]*kind // by version, once used
}

// readDefinition returns nil for a definition that does not say what it
// defines.
func readDefinition(obj *unstructured.Unstructured) *definition {
	gk := apiserver.Kind(obj.Object)
	if gk.Group == "" || gk.Kind == "" {
		return nil
	}
	return &definition{
		gk:          gk,
		obj:         obj,
		established: hasCondition(obj, "Established"),
		prepared:    preparedOf(obj),
	}
}

func hasCondition(obj *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m["status"] == "True"
		}
	}
	return false
}

// indexDefinition follows a change of a definition; e is nil when it was
// deleted. The lock is held.
func (c *Cluster) indexDefinition(old, e *entry) {
	var before, after *definition
	if old != nil {
		if d := readDefinition(old.obj); d != nil {
			before = c.crds[d.gk]
		}
	}
	if e != nil {
		after = readDefinition(e.obj)
	}
	if before != nil {
		if after != nil && after.gk == before.gk && objects.Equal(before.obj.Object["spec"], after.obj.Object["spec"]) {
			// Only its state changed: what was made of its schema stays.
			after.prepared, after.due = before.prepared, before.due
		}
		delete(c.crds, before.gk)
		c.forgetKinds(before.gk)
	}
	if after != nil {
		c.crds[after.gk] = after
		c.forgetKinds(after.gk)
		if !after.established && after.due.IsZero() {
			after.due = c.clock.Now().Add(c.o.EstablishAfter)
			c.waiting.Add(1)
			if timed, ok := c.clock.(clock.WithDelayedExecution); ok {
				timed.AfterFunc(c.o.EstablishAfter, c.establish)
			}
		}
	}
}

func (c *Cluster) forgetKinds(gk schema.GroupKind) {
	maps.DeleteFunc(c.kinds, func(gvk schema.GroupVersionKind, _ *kind) bool { return gvk.GroupKind() == gk })
}

// establish marks the definitions as Established whose time has come.
func (c *Cluster) establish() {
	if c.waiting.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	waiting := int64(0)
	for _, gk := range slices.SortedFunc(maps.Keys(c.crds), compareKinds) {
		d := c.crds[gk]
		switch {
		case d.established:
		case now.Before(d.due):
			waiting++
		default:
			r := ref{definitionKind, types.NamespacedName{Name: d.obj.GetName()}}
			old := c.find(r)
			if old == nil || old.obj != d.obj {
				continue
			}
			obj := withMetadata(old.obj, func(m map[string]any) { m["resourceVersion"] = c.nextRevision() })
			obj.Object["status"] = definitionStatus(obj, now, true)
			c.put(r, old, old.with(obj))
		}
	}
	c.waiting.Store(waiting)
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
}

// definitionStatus is the status that an API server gives a definition. It
// leaves conditions that say the same already.
func definitionStatus(obj *unstructured.Unstructured, now time.Time, established bool) map[string]any {
	status, _ := obj.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = make(map[string]any)
	}
	names, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "names")
	status["acceptedNames"] = names
	stored, _ := status["storedVersions"].([]any)
	for _, v := range apiserver.Versions(obj.Object) {
		if v["storage"] == true && !slices.Contains(stored, v["name"]) {
			stored = append(slices.Clip(stored), v["name"])
		}
	}
	status["storedVersions"] = stored
	if _, decided := status["conditions"].([]any); decided && hasCondition(obj, "Established") == established {
		return status
	}
	state, reason, message := "True", "InitialNamesAccepted", "the initial names have been accepted"
	if !established {
		state, reason, message = "False", "Installing", "not yet served"
	}
	since := now.UTC().Format(time.RFC3339)
	status["conditions"] = []any{
		map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": since},
		map[string]any{"type": "Established", "status": state, "reason": reason, "message": message, "lastTransitionTime": since},
	}
	return status
}

// kind prepares a version of the defined kind at its first use.
func (d *definition) kind(gvk schema.GroupVersionKind) (*kind, error) {
	p := d.prepared
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kinds[gvk.Version]; k != nil {
		return k, nil
	}
	for _, v := range apiserver.Versions(d.obj.Object) {
		if v["name"] != gvk.Version || v["served"] == false {
			continue
		}
		k := &kind{gvk: gvk, scope: scopeNamespaced, counts: true}
		if s, _, _ := unstructured.NestedString(d.obj.Object, "spec", "scope"); s == "Cluster" {
			k.scope = scopeCluster
		}
		k.plural, _, _ = unstructured.NestedString(d.obj.Object, "spec", "names", "plural")
		if sub, ok := v["subresources"].(map[string]any); ok {
			_, k.status = sub["status"]
		}
		if tree := apiserver.Of(d.obj.Object, gvk.Version); tree != nil {
			types, err := definedType(tree)
			if err != nil {
				return nil, apierrors.NewInternalError(fmt.Errorf("schema of %s in %s: %w", gvk.Version, d.obj.GetName(), err))
			}
			k.types, k.openAPI, k.defaults = types, tree, apiserver.ReadDefaults(withoutMetadata(tree))
			k.custom, err = newCustomRules(tree)
			if err != nil {
				return nil, apierrors.NewInternalError(fmt.Errorf("schema of %s in %s: %w", gvk.Version, d.obj.GetName(), err))
			}
		}
		k.prepare()
		p.kinds[gvk.Version] = k
		return k, nil
	}
	return nil, noMatch(gvk)
}

// withoutMetadata leaves out the field that gets no defaults.
func withoutMetadata(tree map[string]any) map[string]any {
	properties, _ := tree["properties"].(map[string]any)
	tree, properties = maps.Clone(tree), maps.Clone(properties)
	delete(properties, "metadata")
	tree["properties"] = properties
	return tree
}

// metaTypes are the types of metadata, which every object has whatever its
// definition says.
const (
	metaPackage = "io.k8s.apimachinery.pkg.apis.meta.v1."
	metaType    = metaPackage + "ObjectMeta"
)

// definedType converts an OpenAPI schema of a definition.
func definedType(tree map[string]any) (*typed.ParseableType, error) {
	data, err := json.Marshal(withObjectFields(tree, true))
	if err != nil {
		return nil, err
	}
	var openAPI spec.Schema
	if err := json.Unmarshal(data, &openAPI); err != nil {
		return nil, err
	}
	const root = "object"
	converted, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{root: &openAPI}, false)
	if err != nil {
		return nil, err
	}
	types := converted.Types
	for _, name := range []string{"ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "FieldsV1", "Time"} {
		t, ok := builtin().schema.FindNamedType(metaPackage + name)
		if !ok {
			return nil, fmt.Errorf("the embedded schema lacks %s", metaPackage+name)
		}
		types = append(types, t)
	}
	return schemaType(&smd.Schema{Types: types}, root), nil
}

// withObjectFields adds apiVersion, kind and metadata to a schema that is of a
// whole object: the root, and embedded resources.
func withObjectFields(tree map[string]any, root bool) map[string]any {
	out := maps.Clone(tree)
	properties, _ := tree["properties"].(map[string]any)
	if len(properties) > 0 || root {
		changed := make(map[string]any, len(properties))
		for name, p := range properties {
			changed[name] = withObjectFieldsValue(p)
		}
		properties = changed
		out["properties"] = properties
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if sub, ok := tree[name]; ok {
			out[name] = withObjectFieldsValue(sub)
		}
	}
	if root || tree["x-kubernetes-embedded-resource"] == true {
		if properties == nil {
			properties = make(map[string]any)
			out["properties"] = properties
		}
		properties["apiVersion"] = map[string]any{"type": "string"}
		properties["kind"] = map[string]any{"type": "string"}
		properties["metadata"] = map[string]any{"$ref": "#/definitions/" + metaType}
	}
	return out
}

func withObjectFieldsValue(v any) any {
	if m, ok := v.(map[string]any); ok {
		return withObjectFields(m, false)
	}
	return v
}
