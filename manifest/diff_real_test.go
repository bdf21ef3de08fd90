package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

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

// drawPayload makes a payload of few identities, so that two of them have much
// in common: with doubles, deletions, exclusions, Secrets and moved files. Each
// hidden text is "hunter" with a number.
func drawPayload(t *rapid.T, version string) *manifest.Payload {
	p := &manifest.Payload{Images: map[string]string{}}
	p.Release.Version = version
	for i := range rapid.IntRange(0, 8).Draw(t, "manifests") {
		kind := rapid.SampledFrom([]string{"ConfigMap", "Secret", "Service"}).Draw(t, "kind")
		annotations := map[string]any{"a": "b"}
		fate := rapid.SampledFrom([]string{"", "", "", "delete", "capability", "excluded"}).Draw(t, "fate")
		switch fate {
		case "delete":
			annotations["release.openshift.io/delete"] = "true"
		case "capability":
			annotations["capability.openshift.io/name"] = "Console"
		}
		object := map[string]any{
			"apiVersion": "v1", "kind": kind,
			"metadata": map[string]any{"name": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), "annotations": annotations},
			"data":     map[string]any{"password": fmt.Sprint("hunter", rapid.IntRange(1, 2).Draw(t, "password"))},
		}
		if kind == "Secret" {
			object["stringData"] = map[string]any{"ca": fmt.Sprint("hunter", rapid.IntRange(1, 2).Draw(t, "ca"))}
		} else {
			object["spec"] = map[string]any{"list": []any{fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "x"))}}
		}
		file := rapid.SampledFrom([]string{"0000_10_a_x.yaml", "0000_10_b_x.yaml", "0000_20_a_x.yaml", "x.yaml"}).Draw(t, "file")
		m := checktest.Get(manifest.New(file, &unstructured.Unstructured{Object: object}))(t)
		m.Document = i + 1
		if fate == "excluded" {
			p.Excluded = append(p.Excluded, manifest.Exclusion{Manifest: m, Verdict: manifest.Verdict{Rule: "Profile", Reason: "not this one"}})
		} else {
			p.Manifests = append(p.Manifests, m)
		}
	}
	for _, name := range []string{"x", "y"} {
		if pull := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, name); pull != "" {
			p.Images[name] = pull
		}
	}
	return p
}

var capabilityFilter = manifest.Filter{Capabilities: &manifest.Capabilities{}, AllowUnknownCapabilities: true}

// applied are the manifests that a release applies and the objects that it
// deletes, by the definition.
func applied(p *manifest.Payload) (manifests []*manifest.Manifest, deletes map[manifest.Identity]bool) {
	deletes = map[manifest.Identity]bool{}
	for _, m := range p.Manifests {
		_, deleted := m.Annotations()["release.openshift.io/delete"]
		switch {
		case m.Annotations()["capability.openshift.io/name"] != "":
		case deleted:
			deletes[m.Identity()] = true
		default:
			manifests = append(manifests, m)
		}
	}
	return manifests, deletes
}

// multiset counts files with their texts.
func multiset(manifests []*manifest.Manifest) map[string]int {
	out := map[string]int{}
	for _, m := range manifests {
		out[m.Filename+" "+string(m.Raw)]++
	}
	return out
}

// applyDiff is what the docs of PayloadDiff say: the old manifests as the new
// release has them.
func applyDiff(old []*manifest.Manifest, d *manifest.PayloadDiff) []*manifest.Manifest {
	gone, now := map[*manifest.Manifest]bool{}, map[*manifest.Manifest]*manifest.Manifest{}
	var out []*manifest.Manifest
	for _, r := range d.Removed {
		gone[r.Manifest] = true
	}
	for _, e := range d.Excluded {
		gone[e.Manifest] = true
	}
	for _, m := range d.Moved {
		now[m.From.Manifest] = m.To.Manifest
	}
	for _, c := range d.Changed {
		now[c.Old] = c.Manifest
	}
	for _, m := range old {
		switch {
		case gone[m]:
		case now[m] != nil:
			out = append(out, now[m])
		default:
			out = append(out, m)
		}
	}
	for _, a := range d.Added {
		out = append(out, a.Manifest)
	}
	for _, i := range d.Included {
		out = append(out, i.Manifest)
	}
	return out
}

// TestDiffApplies: a diff of equal releases is empty; applied to the old
// release it gives the new one, whatever is doubled, deleted or excluded; the
// way back is its mirror image; and it shows no credential.
func TestDiffApplies(t *testing.T) {
	o := manifest.DiffOptions{Filter: capabilityFilter}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPayload(t, "1.0.0"), drawPayload(t, "2.0.0")
		was, deleted := applied(a)
		is, deletes := applied(b)

		if d := manifest.Diff(a, a, o); !d.Empty() || d.Unchanged != len(was) {
			t.Errorf("a release and itself differ: %+v", d)
		}
		d := manifest.Diff(a, b, o)
		checktest.SameIn(t, "applied", multiset(is), multiset(applyDiff(was, d)))
		for _, r := range d.DeletesRemoved {
			delete(deleted, r.Identity)
		}
		for _, r := range d.DeletesAdded {
			deleted[r.Identity] = true
		}
		checktest.SameIn(t, "deletes", deletes, deleted)
		if got := len(d.Changed) + d.Unchanged; got > len(is) || d.Empty() != (len(d.Images) == 0 && cmp.Equal(multiset(was), multiset(is)) && len(d.DeletesAdded)+len(d.DeletesRemoved) == 0) {
			t.Errorf("%d pairs of %d, empty: %v", got, len(is), d.Empty())
		}

		back := manifest.Diff(b, a, o)
		if len(back.Added)+len(back.Included) != len(d.Removed)+len(d.Excluded) || len(back.Changed) != len(d.Changed) ||
			len(back.Moved) != len(d.Moved) || back.Unchanged != d.Unchanged || len(back.Images) != len(d.Images) {
			t.Errorf("there: %+v, back: %+v", d, back)
		}

		data := checktest.Get(json.Marshal(d))(t)
		var text strings.Builder
		checktest.OK(t, d.WriteText(&text, manifest.DiffTextOptions{}))
		if strings.Contains(string(data)+text.String(), "hunter") {
			t.Errorf("shown: %s\n%s", data, text.String())
		}
		var again manifest.PayloadDiff
		checktest.OK(t, json.Unmarshal(data, &again))
		if second, err := json.Marshal(again); err != nil || string(second) != string(data) {
			t.Errorf("%s\nread and written: %s %v", data, second, err)
		}
	})
}
