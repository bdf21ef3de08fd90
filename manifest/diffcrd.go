package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// schemasOf are the schemas of the payloads' custom resources whose types are not
// known otherwise, from the first payload that has them.
func schemasOf(sides ...*side) map[schema.GroupVersionKind]map[string]any {
	groups := make(map[string]bool)
	for _, s := range sides {
		for id, manifests := range s.applied {
			if _, known := objects.TypeOf(manifests[0].GVK()); !known {
				groups[id.Group] = true
			}
		}
	}
	out := make(map[schema.GroupVersionKind]map[string]any)
	for _, s := range sides {
		for _, id := range s.order {
			// The name of a definition consists of the names of its resource and
			// its group.
			_, group, _ := strings.Cut(id.Name, ".")
			if (schema.GroupKind{Group: id.Group, Kind: id.Kind}) != crdKind || !groups[group] {
				continue
			}
			for _, m := range s.applied[id] {
				gk := apiserver.Kind(m.Object().Object)
				for _, v := range fieldchange.Versions(m.Object()) {
					name, _ := v["name"].(string)
					tree, _, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema")
					if t, ok := tree.(map[string]any); ok && out[gk.WithVersion(name)] == nil {
						out[gk.WithVersion(name)] = t
					}
				}
			}
		}
	}
	return out
}
