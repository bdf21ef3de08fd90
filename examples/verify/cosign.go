package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// cosign verifies by a public key. The stores are asked one after the other.
func (o *options) cosign(ctx context.Context, stdout, _ io.Writer) error {
	f, err := os.Open(o.key)
	if err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	key, err := sigstore.ParseKey(text)
	if err != nil {
		return fmt.Errorf("-key: %s: %w", o.key, err)
	}
	image := o.image
	if image == o.digest() {
		image = productRepository + "@" + image
	}
	var sources serial
	for _, place := range o.stores {
		source, err := sigstore.OpenSource(place, sigstore.Limits{})
		if err != nil {
			return fmt.Errorf("-store: %w", err)
		}
		sources = append(sources, source)
	}
	policy := &sigstore.Policy{Name: o.key, Keys: []*sigstore.Key{key}}
	result, err := policy.Verify(ctx, image, sources)
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, result.Text())
	return nil
}

// serial is the signatures of several sources, one source after the other.
type serial []sigstore.Source

// Attachments implements [sigstore.Source].
func (s serial) Attachments(ctx context.Context, digest string) iter.Seq2[sigstore.Attachment, error] {
	return func(yield func(sigstore.Attachment, error) bool) {
		for _, source := range s {
			for a, err := range source.Attachments(ctx, digest) {
				if !yield(a, err) {
					return
				}
			}
		}
	}
}

// String implements [sigstore.Source].
func (s serial) String() string {
	names := make([]string, len(s))
	for i, source := range s {
		names[i] = source.String()
	}
	return strings.Join(names, ", ")
}
