package manifest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
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
		checktest.Equal(t, match != nil, ok, "%q: %v, by the pattern %q", name, ok, match)
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
		written := checktest.Get(json.Marshal(stream))(t)
		again, err := load(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		checktest.Same(t, p.Images, again.Images)
	})
}
