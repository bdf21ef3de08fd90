package image_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// A mirror of one release for two architectures, as skopeo copy --all writes it.
func mirror() (layout fstest.MapFS, release oci.Descriptor) {
	l := ocitest.NewLayout()
	files := l.Layer(ocitest.Files(testdata.Release("4.21.1", configMap("a")))...)
	release = l.Index(l.Image("linux/amd64", files), l.Image("linux/arm64", files, l.Layer()))
	return l.Write(ocitest.Named(release, "4.21.1-multi")), release
}

func Example() {
	ctx := context.Background()
	layout, release := mirror() // os.DirFS("mirror"); see also Open
	src, err := image.FromFS(layout, image.Options{Name: "mirror", Platform: image.Platform{Architecture: "arm64"}})
	if err != nil {
		log.Fatal(err)
	}
	entries, err := src.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Printf("index %v, name %q, platform %q\n", e.Index, e.Name, e.Platform)
	}

	// The digest is that of the release that is wanted, such as a graph or a
	// signature names it.
	spec := "quay.io/openshift-release-dev/ocp-release@" + release.Digest
	fsys, err := src.Payload(ctx, configv1.Release{Image: spec})
	if err != nil {
		log.Fatal(err)
	}
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: spec, Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Release.Version, p.Manifests[0])
	// Output:
	// index true, name "4.21.1-multi", platform ""
	// index false, name "", platform "linux/amd64"
	// index false, name "", platform "linux/arm64"
	// 4.21.1 Filename: "0000_50_x_00.yaml" Group: "" Kind: "ConfigMap" Name: "a"
}
