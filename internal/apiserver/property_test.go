package apiserver_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// replaced are the fields that a server sets anew, whatever they were.
var replaced = []string{"kubernetes.io/metadata.name", "serviceAccount", "sessionAffinityConfig"}

// Whatever is taken from an object, or put in the place of a field: what has been
// filled in once has all its defaults, and what was said stays.
func TestFillProperty(t *testing.T) {
	var seeds []*unstructured.Unstructured
	for _, tt := range objects {
		for _, fields := range []string{tt.in, tt.want} {
			seeds = append(seeds, parse(t, "{apiVersion: "+tt.version+", kind: "+tt.kind+", "+fields+"}"))
		}
	}
	for _, tt := range templates {
		seeds = append(seeds, parse(t, "{apiVersion: v1, kind: Pod, spec: {"+tt.want+"}}"),
			parse(t, "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {"+tt.want+"}}}}"))
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SampledFrom(seeds).Draw(t, "seed")
		object := map[string]any{"apiVersion": seed.GetAPIVersion(), "kind": seed.GetKind()}
		for _, name := range slices.Sorted(maps.Keys(seed.Object)) {
			if object[name] == nil {
				object[name] = change(t, seed.Object[name])
			}
		}
		once := apiserver.Fill(&unstructured.Unstructured{Object: object})
		checktest.SameIn(t, "another time", once.Object, apiserver.Fill(once).Object)
		lost := missing("", object, once.Object)
		checktest.FailIf(t, lost != "", "%s has changed: %v became %v", lost, object, once.Object)
	})
}

// change returns a value, parts of which are left out or are others.
func change(t *rapid.T, value any) any {
	switch rapid.IntRange(0, 11).Draw(t, "change") {
	case 0:
		return nil
	case 1:
		return rapid.SampledFrom([]any{"x", "", int64(7), int64(0), false, map[string]any{}, []any{}, []any{"x"}}).Draw(t, "other")
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if rapid.IntRange(0, 4).Draw(t, name) > 0 {
				out[name] = change(t, v[name])
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, change(t, e))
		}
		return out
	}
	return value
}

// missing returns the path of a value that is not in another one any more; "" if
// there is none. What is null, 0 or empty was not said.
func missing(path string, was, is any) string {
	switch v := was.(type) {
	case map[string]any:
		out, _ := is.(map[string]any)
		for name, e := range v {
			if lost := missing(path+"/"+name, e, out[name]); lost != "" && !slices.Contains(replaced, name) {
				return lost
			}
		}
		return ""
	case []any:
		out, _ := is.([]any)
		if len(v) > 0 && len(out) != len(v) {
			return path
		}
		for i, e := range v {
			if lost := missing(fmt.Sprint(path, "/", i), e, out[i]); lost != "" {
				return lost
			}
		}
		return ""
	case nil:
		return ""
	}
	if was != "" && was != int64(0) && !cmp.Equal(was, is) {
		return path
	}
	return ""
}
