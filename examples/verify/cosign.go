package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// productRepository is where releases are published.
const productRepository = "quay.io/openshift-release-dev/ocp-release"

// cosign verifies by a public key. The stores are asked one after the other.
func cosign(ctx context.Context, o options, stdout, _ io.Writer) error {
	text, err := os.ReadFile(o.key)
	if err != nil {
		return err
	}
	key, err := sigstore.ParseKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", o.key, err)
	}
	image := o.image
	if signature.Digest(image) == "" && !strings.Contains(image, "/") {
		image = productRepository + "@" + image
	}
	policy := &sigstore.Policy{Name: o.key, Keys: []*sigstore.Key{key}}
	var last error
	for _, store := range o.stores {
		source, err := openSource(store, o.plainHTTP)
		if err != nil {
			return err
		}
		result, err := policy.Verify(ctx, image, source)
		if err == nil {
			show(stdout, result)
			return nil
		}
		last = err
	}
	return last
}

// openSource opens a repository in a registry, or an OCI layout in a directory.
func openSource(store string, plainHTTP bool) (sigstore.Source, error) {
	if repository, ok := strings.CutPrefix(store, "docker://"); ok {
		return sigstore.NewRegistry(repository, sigstore.RegistryOptions{Proxy: http.ProxyFromEnvironment, PlainHTTP: plainHTTP})
	}
	if strings.Contains(store, "://") {
		return nil, fmt.Errorf("store %s: cosign signatures are read from a repository, docker://host/path, or from a directory with an OCI image layout", store)
	}
	return sigstore.DirLayout(store), nil
}
