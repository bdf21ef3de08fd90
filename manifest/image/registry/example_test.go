package registry_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	local "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
)

func Example() {
	// A mirror that holds a release for two architectures, in the place of
	// mirror.example.
	mirror := httptest.NewServer(local.New(local.Logger(log.New(io.Discard, "", 0))))
	defer mirror.Close()
	host, index := strings.TrimPrefix(mirror.URL, "http://"), release()
	if err := remote.WriteIndex(must(name.ParseReference(host+"/ocp/release:1")), index); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	src, err := registry.New(registry.Options{
		Mirrors:   []string{host + "/ocp/release"},
		PlainHTTP: true, // as little as possible: this mirror speaks nothing else
		Image:     image.Options{Platform: image.Platform{Architecture: "arm64"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	// The release is known by the name that it has in a graph, and by its digest.
	spec := "quay.io/openshift-release-dev/ocp-release@" + digestOf(index)
	fsys, err := src.Payload(ctx, configv1.Release{Image: spec})
	if err != nil {
		log.Fatal(err)
	}
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: spec})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Release.Version)
	// Output: 1.0.1
}
