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
)

// Layer is one layer of an image.
type Layer struct {
	// Descriptor names it as it is stored. Its digest may be missing if DiffID
	// is not.
	Descriptor
	// DiffID is the digest of the layer uncompressed; may be empty.
	DiffID string
}

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

// layerTypes are the media types of layers that have none, by their compression.
var layerTypes = map[string]string{
	"":     "application/vnd.oci.image.layer.v1.tar",
	"gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
}

// layers returns those of an image.
func (i *Image) layers() []Layer {
	out := make([]Layer, len(i.Layers))
	for n, d := range i.Layers {
		out[n].Descriptor = d
	}
	return out
}

// Unpack returns the file system that the layers of an image make, as far as it
// lies at or below one of some paths, such as "manifests". It is held in memory,
// and safe for concurrent use. All layers are read to their end and verified. What
// a layer refuses is named with the layer's number, from 1; passed limits are a
// [*LimitError].
func Unpack(ctx context.Context, src Source, i *Image, paths []string, l Limits) (fs.FS, error) {
	b, err := NewBudget(l)
	if err != nil {
		return nil, err
	}
	return b.Unpack(ctx, src, i, paths)
}

func unpack(ctx context.Context, src Source, layers []Layer, paths []string, b *Budget) (fs.FS, error) {
	l := b.limits
	if len(layers) > l.Layers {
		return nil, layersError(l)
	}
	for n, layer := range layers { // before anything large is read
		if err := layer.validate(l); err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	u := &unpacker{ctx: ctx, src: src, budget: b, tree: newTree(paths, b)}
	for n, layer := range layers {
		u.tree.layer = n + 1
		if err := u.apply(layer); err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	return &memFS{u.tree.root}, nil
}

// validate reports whether a layer may be read.
func (l Layer) validate(limits Limits) error {
	if _, known := compressions[l.MediaType]; !known {
		return fmt.Errorf("the media type %s is not supported", bounded.Quote(l.MediaType))
	}
	if l.Size > limits.LayerSize {
		return &LimitError{Limit: "LayerSize", Max: limits.LayerSize, What: "bytes in a layer"}
	}
	if l.Digest == "" && l.DiffID == "" {
		return errors.New("it has no digest")
	}
	if l.Digest != "" {
		if err := l.Validate(limits.LayerSize); err != nil {
			return err
		}
	}
	if l.DiffID != "" {
		return CheckDigest(l.DiffID)
	}
	return nil
}

type unpacker struct {
	ctx    context.Context
	src    Source
	budget *Budget
	tree   *tree
}

// apply lays a layer on the tree. A fault in a layer that is not the one which
// was named is told as that.
func (u *unpacker) apply(l Layer) error {
	r, err := u.src.Open(u.ctx, l.Descriptor)
	if err != nil {
		return err
	}
	defer r.Close()
	stored := io.LimitReader(contextReader{u.ctx, r}, l.Size+1)
	var check *verifier
	if l.Digest != "" {
		check = newVerifier(l.Descriptor)
		stored = io.TeeReader(stored, check)
	}
	plain := &counter{u: u}
	fault := u.read(stored, plain, l)
	limit := (*LimitError)(nil)
	if errors.As(fault, &limit) || u.ctx.Err() != nil {
		return fault
	}
	if check != nil {
		if _, err := io.Copy(io.Discard, stored); err != nil {
			return errors.Join(fault, err)
		}
		if err := check.check(); err != nil {
			return errors.Join(err, fault)
		}
	}
	if plain.verifier == nil {
		return fault
	}
	if fault != nil { // the rest tells whether this is the layer that was named
		if _, err := io.Copy(io.Discard, plain); err != nil {
			return fault
		}
	}
	return errors.Join(plain.check(), fault)
}

// read applies what stored holds to the tree, to its end.
func (u *unpacker) read(stored io.Reader, plain *counter, l Layer) error {
	plain.r = bufio.NewReaderSize(stored, 64<<10)
	if compressions[l.MediaType] == "gzip" {
		z, err := gzip.NewReader(plain.r)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		defer z.Close()
		plain.r = z
	}
	if l.DiffID != "" {
		plain.verifier = newVerifier(Descriptor{Digest: l.DiffID})
	}
	if err := u.tree.apply(u.ctx, plain); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, plain) // what follows the end of the tar counts
	return err
}

// counter counts the bytes of all layers, and compares a layer with its DiffID.
type counter struct {
	u        *unpacker
	r        io.Reader
	verifier *verifier
}

func (c *counter) Read(p []byte) (int, error) {
	b := c.u.budget
	left := max(b.limits.TotalSize-b.layers, 0)
	if int64(len(p)) > left+1 {
		p = p[:left+1]
	}
	n, err := c.r.Read(p)
	if b.layers += int64(n); b.layers > b.limits.TotalSize {
		return 0, &LimitError{Limit: "TotalSize", Max: b.limits.TotalSize, What: "bytes in all layers"}
	}
	if c.verifier != nil {
		c.verifier.Write(p[:n])
	}
	return n, err
}

func (c *counter) check() error {
	c.verifier.want.Size = c.verifier.size
	return c.verifier.check()
}
