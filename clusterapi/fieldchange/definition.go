package fieldchange

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// crdDefinition determines which lists of a CustomResourceDefinition have keys, and
// which have no order. A schema holds schemas, and so does its description.
var crdDefinition = sync.OnceValue(func() map[string]any {
	list := func(kind string, keys ...any) map[string]any {
		return map[string]any{"x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys}
	}
	properties := func(fields map[string]any) map[string]any { return map[string]any{"properties": fields} }
	set := list("set")
	jsonSchema := map[string]any{}
	named := map[string]any{"additionalProperties": jsonSchema}
	jsonSchema["properties"] = map[string]any{
		"properties": named, "patternProperties": named,
		"items": jsonSchema, "additionalProperties": jsonSchema, "not": jsonSchema,
		"required": set, "enum": set, "x-kubernetes-list-map-keys": set,
		"x-kubernetes-validations": list("map", "rule"),
	}
	versions := list("map", "name")
	versions["items"] = properties(map[string]any{
		"schema":                   properties(map[string]any{"openAPIV3Schema": jsonSchema}),
		"additionalPrinterColumns": list("map", "name"),
	})
	return properties(map[string]any{"spec": properties(map[string]any{
		"versions": versions, "names": properties(map[string]any{"categories": set, "shortNames": set}),
	})})
})

// SchemaChange is how the schema of a version of a CustomResourceDefinition
// differs between two states of that. It is plain data.
type SchemaChange struct {
	Version string `json:"version"`
	// Served reports that the new state serves it.
	Served bool `json:"served"`
	// Fields are those of the schema; their paths start at it. Descriptions are
	// among them only where they were asked for.
	Fields []clusterapi.FieldChange `json:"fields,omitempty"`
	// Descriptions counts the descriptions that differ.
	Descriptions int `json:"descriptions,omitempty"`
}

// Definitions compares two states of a CustomResourceDefinition: the fields that
// differ outside of the schemas, and those of the schemas of versions that both
// have. Descriptions are among the latter if that is asked for. Credentials are
// hidden.
func (h Hider) Definitions(old, new *unstructured.Unstructured, descriptions bool) (fields []clusterapi.FieldChange, schemas []SchemaChange) {
	served := ServedVersions(new)
	for _, change := range clusterapi.Compare(old, new, crdDefinition()) {
		version, path, ok := inSchema(change.Path)
		if !ok {
			fields = append(fields, h.Shown(definitionKind, []clusterapi.FieldChange{change})...)
			continue
		}
		at := slices.IndexFunc(schemas, func(s SchemaChange) bool { return s.Version == version })
		if at < 0 {
			at = len(schemas)
			schemas = append(schemas, SchemaChange{Version: version, Served: served[version]})
		}
		s := &schemas[at]
		if isDescription(path) {
			if s.Descriptions++; !descriptions {
				continue
			}
		}
		shown := clusterapi.FieldChange{}
		shown.Path, shown.Old = h.r.SchemaField(path, change.Old)
		_, shown.New = h.r.SchemaField(path, change.New)
		s.Fields = append(s.Fields, shown)
	}
	return fields, schemas
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// inSchema splits the path of a field of a version's schema.
func inSchema(path string) (version, below string, ok bool) {
	rest, ok := strings.CutPrefix(path, "spec.versions[name=")
	if !ok {
		return "", "", false
	}
	version, below, ok = strings.Cut(rest, "].schema.openAPIV3Schema.")
	return version, below, ok && !strings.ContainsAny(version, `]"`)
}

// isDescription reports whether the path within a schema leads to a
// description, and not to a property of that name.
func isDescription(path string) bool {
	property := false // the step is the name of a property
	var name string
	for _, step := range redact.Split(path) {
		name = redact.Name(step)
		if property {
			name, property = "", false
			continue
		}
		property = name == "properties" || name == "patternProperties"
	}
	return name == "description"
}

// ServedVersions are the versions that a CustomResourceDefinition serves.
func ServedVersions(crd *unstructured.Unstructured) map[string]bool {
	if crd == nil {
		return nil
	}
	out := make(map[string]bool)
	for _, v := range apiserver.Versions(crd.Object) {
		name, _ := v["name"].(string)
		served, _ := v["served"].(bool)
		out[name] = out[name] || served
	}
	return out
}
