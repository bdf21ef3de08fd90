package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// Layout is an OCI image layout: a file system with oci-layout, index.json and
// blobs. It is a [Source], and safe for concurrent use if FS is.
type Layout struct {
	FS   fs.FS
	Name string // what errors call it
}

// Open implements [Source].
func (l *Layout) Open(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	return regular.Open(l.FS, BlobPath(d.Digest))
}

// Entries returns the entries of the layout's index.
func (l *Layout) Entries(limits Limits) ([]Descriptor, error) {
	limits, err := limits.complete()
	if err != nil {
		return nil, err
	}
	limit := limits.ManifestSize
	return Index(l.Name, func(name string, to any) error {
		data, err := ReadFile(l.FS, name, limit)
		if errors.Is(err, ErrTooLarge) {
			err = fmt.Errorf("%s: %w", name, manifestSizeError(limit))
		}
		if err != nil {
			return err
		}
		if err := Decode(data, to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Index returns the entries of the index of the layout that errors call name.
// decode reads its files.
func Index(name string, decode func(file string, to any) error) ([]Descriptor, error) {
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := decode("oci-layout", &version); err != nil {
		return nil, fmt.Errorf("%s is no OCI layout: %w", name, err)
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return nil, fmt.Errorf("%s is an OCI layout of unknown version %s", name, bounded.Quote(version.Version))
	}
	var m Manifest
	if err := decode("index.json", &m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m.Manifests, nil
}

// ErrTooLarge is that of [ReadFile] for a file that is larger than its limit.
var ErrTooLarge = errors.New("file too large")

// ReadFile returns a regular file of at most limit bytes. Of a larger one it
// returns limit+1 bytes, and an error that wraps [ErrTooLarge]; of one that
// fails, what was read until then.
func ReadFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := regular.Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err = io.Copy(&b, io.LimitReader(f, limit+1)); err != nil {
		return b.Bytes(), err
	}
	if int64(b.Len()) > limit {
		return b.Bytes(), fmt.Errorf("%s is larger than %d bytes: %w", name, limit, ErrTooLarge)
	}
	return b.Bytes(), nil
}
