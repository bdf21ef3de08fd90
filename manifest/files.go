package manifest

import (
	"context"
	"fmt"
	"io"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// FilesOptions are the options of [LoadFiles].
type FilesOptions struct {
	// Open opens a file by its path. nil: os.Open.
	Open func(path string) (io.ReadCloser, error)
	// Limits bound what is read. The zero value has defaults.
	Limits Limits
}

// LoadFiles reads the objects of a list of files, in its order, as they are:
// no templates, nothing filtered. Unlike the files of a payload, no two of
// them may hold the same resource. All faults are collected: each says which
// file it is in, by the path as given.
func LoadFiles(ctx context.Context, paths []string, o FilesOptions) ([]*Manifest, error) {
	l := filesLoader{open: o.Open, decoder: newDecoder(o.Limits.withDefaults()), seen: make(map[Identity]bool)}
	if l.open == nil {
		l.open = func(path string) (io.ReadCloser, error) { return os.Open(path) }
	}
	limits := l.decoder.limits
	if len(paths) > limits.Files {
		return nil, fmt.Errorf("error loading manifests: %w", &LimitError{Limit: "Files", Max: int64(limits.Files), What: "manifest files"})
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.load(path)
		if l.size > limits.TotalSize {
			l.fail(path, 0, &LimitError{Limit: "TotalSize", Max: limits.TotalSize, What: "bytes in all manifest files"})
			break
		}
		if len(l.manifests) > limits.Documents {
			l.fail(path, 0, &LimitError{Limit: "Documents", Max: int64(limits.Documents), What: "documents in all manifest files"})
			break
		}
	}
	if len(l.faults) > 0 {
		return nil, &Error{Err: fmt.Errorf("error loading manifests: %w", aggregate(l.faults)), Faults: l.faults}
	}
	return l.manifests, nil
}

type filesLoader struct {
	open      func(path string) (io.ReadCloser, error)
	decoder   *decoder
	seen      map[Identity]bool
	size      int64
	manifests []*Manifest
	faults    []*Error
}

func (l *filesLoader) fail(path string, document int, err error) {
	l.faults = append(l.faults, &Error{File: path, Document: document, Err: err})
}

func (l *filesLoader) load(path string) {
	data, err := l.read(path)
	if err != nil {
		l.fail(path, 0, fmt.Errorf("error opening %s: %w", path, err))
		return
	}
	l.size += int64(len(data))
	manifests, document, err := l.decoder.file(baseName(path), data)
	if err != nil {
		l.fail(path, document, fmt.Errorf("error parsing %s: %w", path, err))
		return
	}
	for _, m := range manifests {
		id := m.Identity()
		if l.seen[id] {
			l.fail(path, m.Document, fmt.Errorf("File %s contains: duplicate resource: (%s)", path, id)) // a text that users search for
			continue
		}
		l.seen[id] = true
		l.manifests = append(l.manifests, m)
	}
}

func (l *filesLoader) read(path string) (data []byte, err error) {
	f, err := l.open(path)
	if err != nil {
		return nil, err
	}
	limit := l.decoder.limits.FileSize
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err := utilerrors.NewAggregate([]error{err, f.Close()}); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fileSizeError(limit)
	}
	return data, nil
}

// baseName returns the last part of a path, with slashes of either kind.
func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' || path[i] == os.PathSeparator {
			return path[i+1:]
		}
	}
	return path
}
