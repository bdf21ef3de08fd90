package oci

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Store holds manifests and blobs by their digests, as a registry does. What it
// returns is verified, so that an implementation need not do so. It must be safe for
// concurrent use.
//
// repository is the name in the pull spec of the wanted image, such as
// quay.io/openshift-release-dev/ocp-release; a store may look elsewhere, such as in
// a mirror. Errors say why something cannot be read, and wrap fs.ErrNotExist if it
// is not there; the readers are closed, and may be closed before their end. When ctx
// ends, calls and reads return its error soon.
type Store interface {
	// Manifest opens the index or manifest with a digest or a tag. Errors are
	// those of Store.
	Manifest(ctx context.Context, repository, reference string) (io.ReadCloser, error)
	// Blob opens the layer or configuration with a digest. Errors are those of
	// Store.
	Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error)
}

// Repository is one repository of a store.
type Repository struct {
	Store Store
	Name  string
}

// Manifest returns the index or manifest that d names, at most size bytes; meter
// counts its bytes. Errors are [*DigestError], [*limit.LimitError] and those of the
// store.
func (r Repository) Manifest(ctx context.Context, d Descriptor, size limit.Limit, meter *limit.Meter) ([]byte, error) {
	return verified(ctx, d, size, meter, func() (io.ReadCloser, error) { return r.Store.Manifest(ctx, r.Name, d.Digest) })
}

// Blob is Manifest for a blob.
func (r Repository) Blob(ctx context.Context, d Descriptor, size limit.Limit, meter *limit.Meter) ([]byte, error) {
	return verified(ctx, d, size, meter, func() (io.ReadCloser, error) { return r.Store.Blob(ctx, r.Name, d.Digest) })
}

// Tagged is Manifest for a tag, which nothing verifies.
func (r Repository) Tagged(ctx context.Context, tag string, size limit.Limit, meter *limit.Meter) ([]byte, error) {
	f, err := r.Store.Manifest(ctx, r.Name, tag)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(ctx, f, size, meter)
}

// Read reads to the end of r, at most size bytes. meter counts the bytes also if
// reading fails; one byte more than is allowed shows that there are more.
func Read(ctx context.Context, r io.Reader, size limit.Limit, meter *limit.Meter) ([]byte, error) {
	left := max(meter.Budget.Bytes.Max-meter.Used().Bytes, 0)
	data, err := io.ReadAll(io.LimitReader(contextReader{ctx, r}, min(size.Max, left)+1))
	if over := meter.Spend(limit.Usage{Bytes: int64(len(data))}); over != nil {
		return nil, over
	}
	return data, errors.Join(err, size.Check(int64(len(data))))
}

// verified returns what open opens if it is what d names.
func verified(
	ctx context.Context, d Descriptor, size limit.Limit, meter *limit.Meter, open func() (io.ReadCloser, error),
) ([]byte, error) {
	if err := d.validate(size); err != nil {
		return nil, err
	}
	if err := meter.Budget.Bytes.Check(meter.Used().Bytes + d.Size); err != nil {
		_ = meter.Spend(limit.Usage{Bytes: d.Size}) // nothing further fits
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := io.Reader(f)
	if !d.unsized {
		from = io.LimitReader(f, d.Size+1)
		size.Max = d.Size + 1
	}
	data, err := Read(ctx, from, size, meter)
	if err != nil {
		return nil, err
	}
	check := newVerifier(d)
	check.Write(data)
	return data, check.check()
}

// validate reports whether a blob may be asked for at all.
func (d Descriptor) validate(size limit.Limit) error {
	if err := CheckDigest(d.Digest); err != nil {
		return err
	}
	if d.Size < 0 {
		return fmt.Errorf("blob of %d bytes", d.Size)
	}
	return size.Check(d.Size)
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
