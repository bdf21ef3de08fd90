package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// BenchmarkLoad loads a real payload: 930 documents in 656 files, 11 MB.
func BenchmarkLoad(b *testing.B) {
	fsys := os.DirFS(filepath.Join(testdata.Dir(b), "payload-4.18.15"))
	b.ReportAllocs()
	for b.Loop() {
		p, err := manifest.Load(b.Context(), fsys, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()})
		if err != nil {
			b.Fatal(err)
		}
		if len(p.Manifests) != 806 {
			b.Fatalf("%d manifests", len(p.Manifests))
		}
	}
}
