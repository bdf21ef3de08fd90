package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// BenchmarkLoad loads a real payload: 930 documents in 656 files, 11 MB.
func BenchmarkLoad(b *testing.B) {
	fsys := os.DirFS(filepath.Join(testdata.Dir(b), "payload-4.18.15"))
	b.ReportAllocs()
	for b.Loop() {
		p := checktest.Get(manifest.Load(b.Context(), fsys,
			manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(b)
		if len(p.Manifests) != 806 {
			b.Fatalf("%d manifests", len(p.Manifests))
		}
	}
}

// BenchmarkLoadObjects loads the same payload and decodes all its objects, also
// those that are excluded.
func BenchmarkLoadObjects(b *testing.B) {
	fsys := os.DirFS(filepath.Join(testdata.Dir(b), "payload-4.18.15"))
	b.ReportAllocs()
	for b.Loop() {
		p := checktest.Get(manifest.Load(b.Context(), fsys,
			manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(b)
		for _, m := range p.Manifests {
			m.Object()
		}
		for _, e := range p.Excluded {
			e.Manifest.Object()
		}
	}
}

// BenchmarkLoadYAML is what BenchmarkLoad compares with: the documents of the
// same files, decoded one after another by sigs.k8s.io/yaml.
func BenchmarkLoadYAML(b *testing.B) {
	docs := realDocuments(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, doc := range docs {
			raw := checktest.Get(yaml.YAMLToJSON(doc))(b)
			checktest.OK(b, new(unstructured.Unstructured).UnmarshalJSON(raw))
		}
	}
}

// BenchmarkLoadRatio alternates a load, the documents through sigs.k8s.io/yaml,
// and their JSON form through apimachinery, so that all see the machine in the
// same state. It reports how many times as long as a load the documents take,
// and which part of their decoding from JSON a load takes: the fastest of each.
// Run it with -cpu 1, since a load uses all processors.
func BenchmarkLoadRatio(b *testing.B) {
	fsys := os.DirFS(filepath.Join(testdata.Dir(b), "payload-4.18.15"))
	docs := realDocuments(b)
	fastest := func(best *time.Duration, f func() error) {
		start := time.Now()
		checktest.OK(b, f())
		if d := time.Since(start); *best == 0 || d < *best {
			*best = d
		}
	}
	raws := realJSON(b)
	var load, plain, fromJSON time.Duration
	for b.Loop() {
		for range 3 {
			fastest(&load, func() error {
				_, err := manifest.Load(b.Context(), fsys, manifest.LoadOptions{Filter: manifest.DefaultFilter()})
				return err
			})
		}
		fastest(&plain, func() error {
			for _, doc := range docs {
				raw, err := yaml.YAMLToJSON(doc)
				if err != nil {
					return err
				}
				if err := new(unstructured.Unstructured).UnmarshalJSON(raw); err != nil {
					return err
				}
			}
			return nil
		})
		for range 3 {
			fastest(&fromJSON, func() error {
				for _, raw := range raws {
					if err := new(unstructured.Unstructured).UnmarshalJSON(raw); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	b.ReportMetric(float64(plain)/float64(load), "yaml/load")
	b.ReportMetric(float64(load)/float64(fromJSON), "load/json")
	b.ReportMetric(float64(load)/1e6, "ms/load")
}

// BenchmarkLoadJSON is the floor: the same objects, decoded from their JSON
// form.
func BenchmarkLoadJSON(b *testing.B) {
	raws := realJSON(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, raw := range raws {
			checktest.OK(b, new(unstructured.Unstructured).UnmarshalJSON(raw))
		}
	}
}

// realJSON is the JSON form of the real documents.
func realJSON(b *testing.B) (raws [][]byte) {
	for _, doc := range realDocuments(b) {
		raw := checktest.Get(yaml.YAMLToJSON(doc))(b)
		raws = append(raws, raw)
	}
	return raws
}

// realDocuments are the documents of the real payload's release-manifests.
func realDocuments(b *testing.B) (docs [][]byte) {
	b.Helper()
	files := checktest.Get(filepath.Glob(filepath.Join(testdata.Dir(b), "payload-4.18.15", "release-manifests",
		"*.y*ml")))(b)
	for _, file := range files {
		data := checktest.Get(os.ReadFile(file))(b)
		for doc := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
			if raw, err := yaml.YAMLToJSON(doc); err == nil && len(raw) > len("null") {
				docs = append(docs, doc)
			}
		}
	}
	return docs
}
