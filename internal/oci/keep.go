package oci

import (
	"archive/tar"
	"io"
)

// keep counts what is held in memory.
func (t *tree) keep(n int64) error {
	if t.kept += nodeSize + n; t.kept > t.limits.KeptSize {
		return &LimitError{Limit: "KeptSize", Max: t.limits.KeptSize, What: "bytes in what is kept"}
	}
	return nil
}

// content reads a file that is kept.
func (t *tree) content(h *tar.Header, r io.Reader) ([]byte, error) {
	if h.Size > t.limits.FileSize {
		return nil, &LimitError{Limit: "FileSize", Max: t.limits.FileSize, What: "bytes in the file"}
	}
	if err := t.keep(h.Size); err != nil {
		return nil, err
	}
	data := make([]byte, min(h.Size, 1<<20)) // a size is a claim
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(r)
	return append(data, rest...), err
}
