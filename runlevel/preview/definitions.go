package preview

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// versionsOf are the versions of a definition by name.
func versionsOf(definition *unstructured.Unstructured) map[string]map[string]any {
	out := make(map[string]map[string]any)
	for _, v := range apiserver.Versions(definition.Object) {
		if name, _ := v["name"].(string); name != "" {
			out[name] = v
		}
	}
	return out
}

// droppedVersions are those in which objects may be stored and that the release
// does not have any more.
func droppedVersions(old *unstructured.Unstructured, m *manifest.Manifest) []string {
	if old == nil || m.Deletes() {
		return nil
	}
	stored, _, _ := unstructured.NestedStringSlice(old.Object, "status", "storedVersions")
	have := versionsOf(m.Object())
	return slices.DeleteFunc(slices.Sorted(slices.Values(stored)), func(name string) bool { return have[name] != nil })
}

// unservedVersions are those that are served and that the release does not serve
// any more.
func unservedVersions(old *unstructured.Unstructured, m *manifest.Manifest) []string {
	if old == nil {
		return nil
	}
	have := versionsOf(m.Object())
	if m.Deletes() {
		have = nil
	}
	var out []string
	for name, v := range versionsOf(old) {
		if v["served"] == true && have[name]["served"] != true {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
