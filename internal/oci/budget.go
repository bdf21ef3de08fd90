package oci

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Budget is what several searches and images together may take of [Limits]: bytes
// and entries of indexes and manifests, bytes and entries of layers. What is read
// counts, whether it proves good or not. It is not safe for concurrent use.
type Budget struct {
	limits    Limits
	manifests limit.Meter // bytes of manifests and configurations, and entries of indexes
	layers    limit.Meter // bytes of layers, uncompressed, and their entries
	failed    map[string]error
}

// NewBudget returns an unused budget. The error names a limit that is negative.
func NewBudget(l Limits) (*Budget, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	b := &Budget{limits: l, failed: map[string]error{}}
	b.manifests.Budget = limit.Budget{
		Bytes:   limit.Limit{Max: l.ManifestsSize, Name: "ManifestsSize"},
		Entries: limit.Limit{Max: int64(l.Manifests), Name: "Manifests", What: "entries of indexes"},
	}
	b.manifests.Budget.Bytes.What = "bytes in all indexes, manifests and configurations"
	b.layers.Budget = limit.Budget{
		Bytes:   limit.Limit{Max: l.TotalSize, Name: "TotalSize", What: "bytes in all layers"},
		Entries: l.entries("all layers"),
	}
	return b, nil
}

// Manifest returns the index or manifest that d names. Errors are [*DigestError],
// [*limit.LimitError] and those of reading. What has failed once is not read again.
func (b *Budget) Manifest(ctx context.Context, r Repository, d Descriptor) (Manifest, error) {
	if err := b.failed[d.Digest]; err != nil {
		return Manifest{}, err
	}
	m, err := b.manifest(ctx, r, d)
	if err != nil {
		err = fmt.Errorf("unable to read manifest %s: %w", printable(d.Digest), err)
		if ctx.Err() == nil {
			b.failed[d.Digest] = err
		}
	}
	return m, err
}

func (b *Budget) manifest(ctx context.Context, r Repository, d Descriptor) (Manifest, error) {
	data, err := r.Manifest(ctx, d, b.limits.manifestSize(), &b.manifests)
	if err != nil {
		return Manifest{}, err
	}
	m, err := parseManifest(data, d)
	if err != nil {
		return Manifest{}, err
	}
	m.Digest = d.Digest
	return m, b.limits.layers().Check(int64(len(m.Layers)))
}

// Config decodes the configuration that d names, as [Decode] does. Errors are
// those of Manifest.
func (b *Budget) Config(ctx context.Context, r Repository, d Descriptor, to any) error {
	data, err := r.Blob(ctx, d, b.limits.manifestSize(), &b.manifests)
	if err != nil {
		return err
	}
	return Decode(data, to)
}

// Resolve returns the digest that a tag refers to, which nothing verifies. Errors
// are those of Manifest.
func (b *Budget) Resolve(ctx context.Context, r Repository, tag string) (string, error) {
	data, err := r.Tagged(ctx, tag, b.limits.manifestSize(), &b.manifests)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), nil
}

// Exhausted reports whether nothing is left: further images cannot be read either.
func (b *Budget) Exhausted() bool {
	return b.manifests.Spend(limit.Usage{}) != nil || b.layers.Spend(limit.Usage{}) != nil
}

// see counts the entries of an index.
func (b *Budget) see(entries []Descriptor, depth int) error {
	levels := limit.Limit{Max: int64(b.limits.Depth), Name: "Depth", What: "levels of indexes"}
	if err := levels.Check(int64(depth)); err != nil {
		return err
	}
	return b.manifests.Spend(limit.Usage{Entries: int64(len(entries))})
}

func (l Limits) layers() limit.Limit {
	return limit.Limit{Max: int64(l.Layers), Name: "Layers", What: "layers in the image"}
}

// ends reports whether an error ends a search: a limit is passed.
func ends(err error) bool { return errors.As(err, new(*limit.LimitError)) }
