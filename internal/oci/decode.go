package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// maxReason bounds, in bytes, what of a cause gets into texts.
const maxReason = 1 << 10

// Decode reads JSON whose keys are spelt exactly and occur once. Keys that are
// not known are ignored, as OCI demands. Too many items are a [*LimitError].
func Decode(data []byte, to any) error {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{','}) > maxItems {
		return &LimitError{Limit: "Items", Max: maxItems, What: "items in JSON"}
	}
	strict, err := json.UnmarshalStrict(data, to, json.DisallowDuplicateFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return errors.New(bounded.Text(err.Error(), maxReason))
	}
	return nil
}

// Source is where images are: it opens what a descriptor with a valid digest
// names. Whoever reads it compares it with the descriptor, and reads no more
// than its size and one byte.
type Source interface {
	Open(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// readBlob returns a blob of at most limit bytes that is the one which d names,
// and how many bytes were read, with an error, too.
func readBlob(ctx context.Context, src Source, d Descriptor, limit int64) (data []byte, read int64, err error) {
	if err := d.Validate(limit); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	r, err := src.Open(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	var b bytes.Buffer
	if read, err = io.Copy(&b, io.LimitReader(contextReader{ctx, r}, d.Size+1)); err != nil {
		return nil, read, err
	}
	if err := d.Check(b.Bytes()); err != nil {
		return nil, read, err
	}
	return b.Bytes(), read, nil
}

// ReadManifest returns an index or manifest of which only the digest is known.
// Errors are [*DigestError], [*LimitError] and those of reading.
func ReadManifest(ctx context.Context, r io.Reader, digest string, l Limits) ([]byte, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(contextReader{ctx, r}, l.ManifestSize+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > l.ManifestSize {
		return nil, manifestSizeError(l.ManifestSize)
	}
	return data, Descriptor{Digest: digest, Size: int64(len(data))}.Check(data)
}

// parseManifest reads an index or manifest, which must be what its descriptor
// calls it: one that could be read as either is neither.
func parseManifest(data []byte, d Descriptor) (Manifest, error) {
	var m Manifest
	if err := Decode(data, &m); err != nil {
		return m, err
	}
	if m.Manifests != nil && (m.Layers != nil || m.Config != nil) {
		return m, errors.New("it could be read as an index and as a manifest")
	}
	if m.MediaType != "" && d.MediaType != "" && m.MediaType != d.MediaType {
		return m, fmt.Errorf("its type is %s, but its descriptor says %s", bounded.Quote(m.MediaType), bounded.Quote(d.MediaType))
	}
	if m.MediaType == "" {
		m.MediaType = d.MediaType
	}
	switch m.MediaType {
	case "":
		m.MediaType = TypeManifest
		if m.Manifests != nil {
			m.MediaType = TypeIndex
		}
	case TypeIndex, TypeDockerIndex:
		if m.Layers != nil || m.Config != nil {
			return m, errors.New("it is called an index, but has layers")
		}
	case TypeManifest, TypeDockerManifest:
		if m.Manifests != nil {
			return m, errors.New("it is called a manifest, but has manifests")
		}
	default:
		return m, fmt.Errorf("the type %s is that of no image", bounded.Quote(m.MediaType))
	}
	return m, nil
}

func (m Manifest) isIndex() bool { return isIndex(m.MediaType) }

// IsIndex and IsManifest report what a descriptor says that it names: an index, an
// index or the manifest of an image.
func (d Descriptor) IsIndex() bool { return isIndex(d.MediaType) }

func (d Descriptor) IsManifest() bool { return isIndex(d.MediaType) || isImage(d.MediaType) }

func isIndex(mediaType string) bool { return mediaType == TypeIndex || mediaType == TypeDockerIndex }

func isImage(mediaType string) bool {
	return mediaType == TypeManifest || mediaType == TypeDockerManifest
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
