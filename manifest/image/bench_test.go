package image_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

func benchmark(b *testing.B, entries []ocitest.Entry) {
	l := ocitest.NewLayout()
	d := l.Image("linux/amd64", l.Layer(entries...))
	src, size := inTar(b, l.Write(d), image.Options{})
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		checktest.OK(b, checktest.Err(src.Payload(b.Context(), configv1.Release{Image: repository + "@" + d.Digest})))
	}
}

// BenchmarkPayload reads an image whose base, which is not kept, grows.
func BenchmarkPayload(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%dMB", size), func(b *testing.B) {
			random := rand.NewChaCha8([32]byte{})
			data := make([]byte, 1<<20)
			_, _ = random.Read(data[:len(data)/2]) // half of it compresses
			var base []ocitest.Entry
			for i := range size {
				base = append(base, ocitest.File(fmt.Sprintf("usr/lib/%d", i), string(data)))
			}
			benchmark(b, append(base, ocitest.Files(testdata.Release("1.0.0", configMap("a")))...))
		})
	}
}

// BenchmarkRealPayload reads a real payload, of 11 MB.
func BenchmarkRealPayload(b *testing.B) {
	benchmark(b, ocitest.Files(os.DirFS(filepath.Join(testdata.Dir(b), "payload-4.18.15"))))
}
