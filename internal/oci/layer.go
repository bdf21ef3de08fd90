package oci

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// compressions are the media types of layers with how they are compressed.
var compressions = map[string]string{
	"application/vnd.oci.image.layer.v1.tar":                       "",
	"application/vnd.oci.image.layer.v1.tar+gzip":                  "gzip",
	"application/vnd.oci.image.layer.nondistributable.v1.tar":      "",
	"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip": "gzip",
	"application/vnd.docker.image.rootfs.diff.tar":                 "",
	"application/vnd.docker.image.rootfs.diff.tar.gzip":            "gzip",
	"application/vnd.docker.image.rootfs.foreign.diff.tar":         "",
	"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip":    "gzip",
}

// Unpack returns the file system that the layers of an image make, as far as it
// lies at or below one of some paths, such as "manifests". It is held in memory,
// and safe for concurrent use. All layers are read to their end and verified. What
// a layer refuses is named with the layer's number, from 1; passed limits are a
// [*limit.LimitError].
func Unpack(ctx context.Context, r Repository, layers []Descriptor, paths []string, l Limits) (fs.FS, error) {
	b, err := NewBudget(l)
	if err != nil {
		return nil, err
	}
	return b.Unpack(ctx, r, layers, paths)
}

// Unpack is the function [Unpack] within the budget.
func (b *Budget) Unpack(ctx context.Context, r Repository, layers []Descriptor, paths []string) (fs.FS, error) {
	if err := b.limits.layers().Check(int64(len(layers))); err != nil {
		return nil, err
	}
	size := limit.Limit{Max: b.limits.LayerSize, Name: "LayerSize", What: "bytes in a layer"}
	for n, layer := range layers { // before anything large is read
		err := layer.validate(size)
		if _, known := compressions[layer.MediaType]; !known {
			err = fmt.Errorf("the media type %s is not supported", bounded.Quote(layer.MediaType))
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	t := newTree(paths, b)
	for n, layer := range layers {
		t.layer = n + 1
		if err := t.unpack(ctx, r, layer); err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	return &memFS{t.root}, nil
}

// unpack lays a layer on the tree. Its error says first if the layer is not the one
// which was named.
func (t *tree) unpack(ctx context.Context, r Repository, d Descriptor) error {
	f, err := r.Store.Blob(ctx, r.Name, d.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	check := newVerifier(d)
	stored := io.TeeReader(io.LimitReader(contextReader{ctx, f}, d.Size+1), check)
	fault := t.read(ctx, stored, d)
	if fault != nil && ends(fault) || ctx.Err() != nil {
		return fault
	}
	if _, err := io.Copy(io.Discard, stored); err != nil {
		return errors.Join(fault, err)
	}
	return errors.Join(check.check(), fault)
}

// read applies what stored holds to the tree, to its end.
func (t *tree) read(ctx context.Context, stored io.Reader, d Descriptor) error {
	plain := &counter{meter: &t.budget.layers, r: bufio.NewReaderSize(stored, 64<<10)}
	if compressions[d.MediaType] == "gzip" {
		z, err := gzip.NewReader(plain.r)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		defer z.Close()
		plain.r = z
	}
	if err := t.apply(ctx, plain); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, plain) // what follows the end of the tar counts
	return err
}

// counter counts the bytes of all layers.
type counter struct {
	meter *limit.Meter
	r     io.Reader
}

func (c *counter) Read(p []byte) (int, error) {
	left := max(c.meter.Budget.Bytes.Max-c.meter.Used().Bytes, 0)
	if int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	n, err := c.r.Read(p)
	if over := c.meter.Spend(limit.Usage{Bytes: int64(n)}); over != nil {
		return 0, over
	}
	return n, err
}
