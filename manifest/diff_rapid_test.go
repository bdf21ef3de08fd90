package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

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
