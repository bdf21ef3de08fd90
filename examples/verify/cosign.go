package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// productRepository is where releases are published.
const productRepository = "quay.io/openshift-release-dev/ocp-release"

// cosign verifies by a public key. The layouts are asked one after the other.
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
		if strings.Contains(store, "://") {
			return fmt.Errorf("store %s: cosign signatures are read from a directory with an OCI image layout", store)
		}
		result, err := policy.Verify(ctx, image, sigstore.DirLayout(store))
		if err == nil {
			show(stdout, result)
			return nil
		}
		last = err
	}
	return last
}
