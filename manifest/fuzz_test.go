package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
)

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
