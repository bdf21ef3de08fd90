package oci

import (
	"bytes"
	"context"
	"io"
	"io/fs"
)

// Overlay adds manifests that are had elsewhere to a source, which may be nil. The
// entries that are returned name those among them that have the digest which is
// wanted: with them, [Find] looks no further for it.
func Overlay(below Source, manifests [][]byte, digest string) (Source, []Descriptor) {
	o := &overlay{below: below, blobs: map[string][]byte{}}
	var entries []Descriptor
	for _, data := range manifests {
		// Indexes name manifests by an algorithm of their own choice.
		for _, algorithm := range []string{"sha256", "sha384", "sha512"} {
			o.blobs[digestOf(data, algorithm+":")] = data
		}
	}
	if data, ok := o.blobs[digest]; ok {
		entries = append(entries, Descriptor{Digest: digest, Size: int64(len(data))})
	}
	return o, entries
}

type overlay struct {
	below Source
	blobs map[string][]byte
}

func (o *overlay) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	if data, ok := o.blobs[d.Digest]; ok {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	if o.below == nil {
		return nil, &fs.PathError{Op: "open", Path: d.Digest, Err: fs.ErrNotExist}
	}
	return o.below.Open(ctx, d)
}
