package manifest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func realPayload(tb testing.TB, name string) *manifest.Payload {
	tb.Helper()
	p := checktest.Get(manifest.Load(tb.Context(), os.DirFS(filepath.Join(testdata.Dir(tb), name)),
		manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(tb)
	return p
}

// TestDiffOfRealPayloads holds the figures of the update from 4.17.30 to
// 4.18.15 against a computation that knows nothing of keys, files and verdicts:
// what is applied as a map from identity to JSON.
func TestDiffOfRealPayloads(t *testing.T) {
	t.Parallel()
	old, new := realPayload(t, "payload-4.17.30"), realPayload(t, "payload-4.18.15")
	d := manifest.Diff(old, new, manifest.DiffOptions{})

	// 26 objects come: 16 are new, of which ten are definitions and one is an
	// alert that 4.17.30 deleted; the eight of OLM's next generation and two
	// definitions of machine-config were previews. One goes, and nobody deletes
	// it: the definition of ServiceCA. The other deletions that are gone are of
	// twelve old dashboards.
	schemaFields, descriptions, schemas := 0, 0, 0
	kinds := map[string]int{}
	for _, c := range d.Changed {
		kinds[c.Identity.Kind]++
		for _, s := range c.Schemas {
			schemas++
			schemaFields += len(s.Fields)
			descriptions += s.Descriptions
		}
	}
	got := map[string]int{
		"added": len(d.Added), "included": len(d.Included), "removed": len(d.Removed), "orphans": len(d.Orphans()), "excluded": len(d.Excluded),
		"changed": len(d.Changed), "moved": len(d.Moved), "unchanged": d.Unchanged, "deletes": len(d.DeletesAdded), "no deletes": len(d.DeletesRemoved),
		"images": len(d.Images), "schemas": schemas, "fields of schemas": schemaFields, "descriptions": descriptions,
	}
	want := map[string]int{
		"added": 16, "included": 10, "removed": 1, "orphans": 1, "excluded": 0, "changed": 163, "moved": 0, "unchanged": 598,
		"deletes": 0, "no deletes": 13, "images": 157, "schemas": 69, "fields of schemas": 648, "descriptions": 2479,
	}
	checktest.Same(t, want, got)
	wantKinds := map[string]int{
		"ClusterOperator": 33, "ClusterRole": 7, "ConfigMap": 11, "Console": 1, "CredentialsRequest": 1, "CustomResourceDefinition": 64,
		"Deployment": 34, "ImageStream": 9, "PrometheusRule": 1, "Role": 1, "Service": 1,
	}
	checktest.SameIn(t, "changed", wantKinds, kinds)
	if o := d.Orphans(); len(o) == 1 && o[0].Identity.Name != "servicecas.operator.openshift.io" {
		t.Errorf("orphan %v", o[0].Identity)
	}

	was, is := naive(t, old), naive(t, new)
	counts := map[string]int{}
	for id, object := range is {
		before, ok := was[id]
		switch {
		case !ok:
			counts["come"]++
		case !reflect.DeepEqual(pruned(before), pruned(object)):
			counts["differ"]++
			if strings.HasPrefix(id, "CustomResourceDefinition.") {
				counts["descriptions"] += countDescriptions(before, object)
			}
		default:
			counts["same"]++
		}
	}
	for id := range was {
		if _, ok := is[id]; !ok {
			counts["go"]++
		}
	}
	wantNaive := map[string]int{
		"come": 26, "go": 1, "same": 598, "differ": 163, "descriptions": 2479,
	}
	checktest.SameIn(t, "naive", wantNaive, counts)
}

// naive are the objects that a release applies, by kind, group, namespace and
// name.
func naive(t *testing.T, p *manifest.Payload) map[string]any {
	out := map[string]any{}
	for _, m := range p.Manifests {
		var object map[string]any
		checktest.OK(t, json.Unmarshal(m.Raw, &object))
		metadata := object["metadata"].(map[string]any)
		if _, deleted := metadata["annotations"].(map[string]any)["release.openshift.io/delete"]; deleted {
			continue
		}
		group, _, grouped := strings.Cut(object["apiVersion"].(string), "/")
		if !grouped {
			group = ""
		}
		namespace, _ := metadata["namespace"].(string)
		id := object["kind"].(string) + "." + group + "/" + namespace + "/" + metadata["name"].(string)
		if _, twice := out[id]; twice {
			t.Errorf("%s is applied twice", id)
		}
		out[id] = object
	}
	return out
}

// pruned is a value without what is empty.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if e = pruned(e); e != nil {
				out[key] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = pruned(v[i])
		}
		return out
	}
	return v
}

// countDescriptions counts the texts called description that differ where both
// sides have the same way to them, by the names of versions and fields. Only
// definitions are counted, so that a property of that name, which is a map, is
// none.
func countDescriptions(a, b any) int {
	n := 0
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return 0
		}
		for key := range b {
			before, had := a[key]
			text, isText := b[key].(string)
			if key == "description" && isText && before != any(text) {
				n++
			}
			if had {
				n += countDescriptions(before, b[key])
			}
		}
		if before, ok := a["description"].(string); ok && before != "" && b["description"] == nil {
			n++
		}
	case []any:
		b, ok := b.([]any)
		if !ok {
			return 0
		}
		for _, x := range a {
			named, ok := x.(map[string]any)
			for _, y := range b {
				if other, also := y.(map[string]any); ok && also && named["name"] != nil && named["name"] == other["name"] && named["schema"] != nil {
					n += countDescriptions(x, y)
				}
			}
		}
	}
	return n
}

// BenchmarkDiff compares the real payloads, whose objects are decoded already.
func BenchmarkDiff(b *testing.B) {
	old, new := realPayload(b, "payload-4.17.30"), realPayload(b, "payload-4.18.15")
	b.ReportAllocs()
	for b.Loop() {
		if d := manifest.Diff(old, new, manifest.DiffOptions{}); len(d.Changed) == 0 {
			b.Fatal("nothing changed")
		}
	}
}
