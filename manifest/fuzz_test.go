package manifest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// fileName is the pattern of file names that the version operator documents.
var fileName = regexp.MustCompile(`^0000_(\d+)_([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*?)_`)

// FuzzParseName: runlevel and component are what the documented pattern finds.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"0000_50_dns_x.yaml", "0000_50_a-b_", "0000_50_a--b_x", "0000_5_-a_x", "0000__a_x", "0001_50_a_x", "0000_50_a", "0000_٣_a_x", "0000_50_a\n_x", "x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		level, component, ok := manifest.ParseName(name)
		match := fileName.FindStringSubmatch(name)
		if ok != (match != nil) {
			t.Fatalf("%q: %v, by the pattern %q", name, ok, match)
		}
		if ok && (level != match[1] || component != match[2]) || !ok && level+component != "" {
			t.Errorf("%q: level %q, component %q, by the pattern %q", name, level, component, match)
		}
	})
}

// FuzzImageReferences: whatever the file is, it is an error or it names images;
// these, written as an ImageStream, read as the same.
func FuzzImageReferences(f *testing.F) {
	for _, data := range []string{
		`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.1"},"spec":{"tags":[{"name":"a","from":{"kind":"DockerImage","name":"b"}}]}}`,
		"kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 4.20.1}\nspec:\n  tags:\n  - {name: y, from: &f {kind: DockerImage, name: b}}\n  - {name: z, from: *f}\n",
		`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.1"},"spec":{"tags":null}}`,
		`{"kind":"ImageStream","apiVersion":"v1"}`, "[]", "- a", "",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		load := func(data []byte) (*manifest.Payload, error) {
			return manifest.Load(t.Context(), payload(map[string]string{"release-manifests/image-references": string(data)}), manifest.LoadOptions{})
		}
		p, err := load(data)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without a text")
			}
			return
		}
		stream := imagev1.ImageStream{TypeMeta: metav1.TypeMeta{APIVersion: "image.openshift.io/v1", Kind: "ImageStream"}, ObjectMeta: metav1.ObjectMeta{Name: "4.20.1"}}
		for name, pull := range p.Images {
			stream.Spec.Tags = append(stream.Spec.Tags, imagev1.TagReference{Name: name, From: &corev1.ObjectReference{Kind: "DockerImage", Name: pull}})
		}
		written, err := json.Marshal(stream)
		if err != nil {
			t.Fatal(err)
		}
		again, err := load(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if diff := cmp.Diff(p.Images, again.Images); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzDiff: whatever two releases hold that can be loaded, they can be compared,
// shown and checked; a release does not differ from itself; and the way back
// finds as much.
func FuzzDiff(f *testing.F) {
	crd := func(schema string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: b.a, annotations: {}}, spec: {group: a, names: {kind: B}, versions: [{name: v1, schema: {openAPIV3Schema: ` + schema + `}}]}}`
	}
	f.Add(configMap1("a", "", "data: {x: y}"), configMap1("a", "", "data: {x: z, y: null}"))
	f.Add(crd("{properties: {properties: {description: x}}}"), crd("{properties: {properties: {description: {description: z}}}, required: [a, a], items: 1}"))
	f.Add("{kind: Secret, metadata: {name: a, annotations: {}}, data: {a: 1}}", "{kind: Secret, metadata: {name: a, annotations: {}}, data: [1, b: c]}")
	f.Add("{kind: ImageStream, apiVersion: image.openshift.io/v1, metadata: {name: a, annotations: {}}, spec: {tags: [{name: a}, {name: a}]}}", "{kind: ImageStream, apiVersion: image.openshift.io/v1, metadata: {name: a, annotations: {}}, spec: {tags: 5}}")
	f.Add("{kind: A, metadata: {name: a, annotations: {}}, image: 'a@b', x: 1.0}", "{kind: A, metadata: {name: a, annotations: {}}, image: [], x: 1}")
	f.Fuzz(func(t *testing.T, old, new string) {
		load := func(data string) *manifest.Payload {
			p, err := manifest.Load(t.Context(), payload(map[string]string{"manifests/0000_50_a_x.yaml": data}), manifest.LoadOptions{})
			if err != nil {
				return nil
			}
			return p
		}
		a, b := load(old), load(new)
		if a == nil || b == nil {
			return
		}
		if d := manifest.Diff(a, a, manifest.DiffOptions{}); !d.Empty() {
			t.Errorf("a release and itself differ: %+v", d)
		}
		there, back := manifest.Diff(a, b, manifest.DiffOptions{Descriptions: true}), manifest.Diff(b, a, manifest.DiffOptions{})
		if len(there.Changed) != len(back.Changed) || len(there.Added)+len(there.Included) != len(back.Removed)+len(back.Excluded) {
			t.Errorf("there %+v, back %+v", there, back)
		}
		if _, err := json.Marshal(there); err != nil {
			t.Error(err)
		}
		var text strings.Builder
		if err := there.WriteText(&text, manifest.DiffTextOptions{Schemas: true}); err != nil {
			t.Error(err)
		}
		if i := strings.IndexFunc(text.String(), func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("a control character in %q", text.String())
		}
		for _, f := range manifest.Lint(b, manifest.Filter{}) {
			if f.Rule == "" || f.Severity == "" || f.Message == "" || f.File == "" {
				t.Errorf("%+v", f)
			}
		}
	})
}
