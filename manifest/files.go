package manifest

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
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
// them may hold the same resource. All faults are collected in one [*Error]:
// each says which file it is in, by the path as given. A negative option is an
// error that names the field, and a context that ends gives its error and cause.
func LoadFiles(ctx context.Context, paths []string, o FilesOptions) ([]*Manifest, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	limits := o.Limits.complete()
	l := filesLoader{open: o.Open, decoder: newDecoder(limits), seen: make(map[Identity]bool)}
	if l.open == nil {
		l.open = func(path string) (io.ReadCloser, error) { return os.Open(path) }
	}
	if len(paths) > limits.Files {
		return nil, fmt.Errorf("error loading manifests: %w", filesError(limits.Files))
	}
	for _, path := range paths {
		l.load(ctx, path)
		if ctx.Err() != nil {
			return nil, contextError(ctx)
		}
		if err := l.used.check(&limits); err != nil {
			if n := len(l.faults); n == 0 || l.faults[n-1].File != path { // else it says so itself
				l.fail(path, 0, fmt.Errorf("%s: %w", path, err))
			}
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
	used      usage
	manifests []*Manifest
	faults    []*Error
}

func (l *filesLoader) fail(path string, document int, err error) {
	l.faults = append(l.faults, &Error{File: path, Document: document, Err: short(err)})
}

func (l *filesLoader) load(ctx context.Context, path string) {
	var data []byte
	err := panics.Catch(func() error {
		var err error
		data, err = l.read(ctx, path)
		return err
	})
	if err != nil {
		l.fail(path, 0, fmt.Errorf("error opening %s: %w", path, err))
		return
	}
	manifests, document, err := l.decoder.file(ctx, baseName(path), data)
	l.used.add(l.decoder.used)
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

func (l *filesLoader) read(ctx context.Context, path string) (data []byte, err error) {
	f, err := l.open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	limit := l.decoder.limits.FileSize
	data, err = io.ReadAll(io.LimitReader(&contextReader{ctx: ctx, r: f}, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fileSizeError(limit)
	}
	return data, nil
}

// contextReader reads until ctx ends, or until nothing comes any more.
type contextReader struct {
	ctx   context.Context
	r     io.Reader
	empty int
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, contextError(r.ctx)
	}
	n, err := r.r.Read(p)
	if r.empty++; n > 0 {
		r.empty = 0
	}
	if err == nil && r.empty > 100 {
		err = io.ErrNoProgress
	}
	return n, err
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
