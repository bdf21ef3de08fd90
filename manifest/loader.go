package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/internal/regular"
	"golang.org/x/sync/errgroup"
)

// file is one file of a payload, and what became of it.
type file struct {
	dir, name string

	manifests []*Manifest
	verdicts  []Verdict // one for each manifest
	warnings  []Warning
	fault     *Error
	used      limit.Usage
}

func (f *file) path() string { return f.dir + "/" + f.name }

// listFiles returns the manifest files of both directories in their order.
func listFiles(fsys fs.FS) ([]*file, error) {
	var files []*file
	for _, dir := range []string{ownDir, releaseDir} {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if !e.IsDir() && isManifestFile(e.Name()) {
				files = append(files, &file{dir: dir, name: e.Name()})
			}
		}
	}
	return files, nil
}

func isManifestFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}

// loader reads the files of a payload with several workers.
type loader struct {
	fsys     fs.FS
	payload  *Payload
	limits   Limits
	workers  int
	filter   LoadFilter
	renderer *renderer
	faults   []*Error
	// meter counts what the files take that have been read. Each is read to its end even
	// if they pass a limit, so that which one passes it does not depend on timing; but no
	// further file is begun.
	meter limit.Meter
}

// newLoader returns a loader, o.Limits being complete.
func newLoader(fsys fs.FS, o LoadOptions, p *Payload) *loader {
	l := &loader{fsys: fsys, payload: p, limits: o.Limits, workers: o.Workers, filter: o.Filter}
	l.meter.Budget = o.Limits.budget()
	if l.workers == 0 {
		l.workers = runtime.GOMAXPROCS(0)
	}
	if l.filter.MajorVersion == nil {
		l.filter.MajorVersion = p.majorVersion()
	}
	data := templateData{ReleaseImage: o.Image, ClusterProfile: DefaultProfile, Images: p.Images}
	if l.filter.Profile != nil {
		data.ClusterProfile = *l.filter.Profile
	}
	l.renderer = newRenderer(data, l.limits)
	return l
}

// load reads all files and puts together the result of them, in their order. The
// error is the context's, or that a file system ended its goroutine; faults of
// files are collected.
func (l *loader) load(ctx context.Context, files []*file) error {
	if err := l.limits.files().Check(int64(len(files))); err != nil {
		l.faults = []*Error{{Err: err}}
		return nil
	}
	var group errgroup.Group
	var next atomic.Int64
	for range min(l.workers, len(files)) {
		group.Go(func() error {
			var current *file
			d := newDecoder(l.limits)
			err := panics.Isolate(func() error {
				for {
					if l.meter.Spend(limit.Usage{}) != nil {
						return nil
					}
					i := int(next.Add(1)) - 1 // a file that is taken is read
					if i >= len(files) {
						return nil
					}
					current = files[i]
					if err := l.read(ctx, d, current); err != nil {
						return err
					}
				}
			})
			if errors.As(err, new(*panics.Error)) {
				return fmt.Errorf("%s: %w", current.path(), err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	l.collect(files)
	return nil
}

// collect puts together the result of the files. A limit of the payload that they
// pass is its only fault, and reports which file was one too much.
func (l *loader) collect(files []*file) {
	passing := limit.Meter{Budget: l.meter.Budget}
	for _, f := range files {
		if err := passing.Spend(f.used); err != nil {
			place := &Error{File: f.path()}
			if f.fault != nil && errors.As(f.fault, new(*LimitError)) {
				place.Document = f.fault.Document
			}
			l.faults = []*Error{{Err: fmt.Errorf("%s: %w", place.Position(), err)}}
			return
		}
	}
	p := l.payload
	for _, f := range files {
		if f.fault != nil {
			l.faults = append(l.faults, f.fault)
		}
		p.Warnings = append(p.Warnings, f.warnings...)
		for i, m := range f.manifests {
			if f.verdicts[i].Included {
				p.Manifests = append(p.Manifests, m)
			} else {
				p.Excluded = append(p.Excluded, Exclusion{Manifest: m, Verdict: f.verdicts[i]})
			}
		}
	}
	p.Hash = hashOf(p.Manifests)
}

// read reads one file into f. The error is the context's; a panic in the file
// system is a fault of the file.
func (l *loader) read(ctx context.Context, d *decoder, f *file) error {
	document := 0
	err := panics.Catch(func() error {
		var err error
		document, err = l.readInto(ctx, d, f)
		return err
	})
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	if panicked, ok := err.(*panics.Error); ok { // not one of the file system, which is wrapped
		err = namePanic(f.path(), panicked)
	}
	if err != nil {
		f.fault = &Error{File: f.path(), Document: document, Err: short(err)}
	}
	_ = l.meter.Spend(f.used) // whether it is passed is asked before the next file
	return nil
}

// readInto reads one file into f. On an error, document is the place of the
// object that caused it, 0 if none did.
func (l *loader) readInto(ctx context.Context, d *decoder, f *file) (document int, err error) {
	data, err := readFile(ctx, l.fsys, f.path(), d.buf, l.limits.fileSize())
	f.used.Bytes = int64(len(data)) // what cannot be used counts
	if err != nil {
		return 0, err
	}
	d.buf = data[:0]
	if f.dir == ownDir {
		data, err = l.render(ctx, f, data)
		if data == nil {
			return 0, err
		}
	}
	read := f.used.Bytes
	manifests, document, err := d.file(ctx, f.name, data)
	f.used = d.used
	f.used.Bytes += max(read-int64(len(data)), 0) // the larger of source and result counts
	if err != nil {
		return document, fmt.Errorf("parse %s: %w", f.name, err)
	}
	f.manifests = manifests
	f.verdicts = make([]Verdict, len(manifests))
	for i, m := range manifests {
		f.verdicts[i] = l.filter.Judge(m)
		if !f.verdicts[i].Included && m.meta.unreadable {
			f.warnings = append(f.warnings, newWarning("annotations", f.path(), m.Document,
				fmt.Sprintf("%s: an annotation is not a string, so all its annotations count as absent", m.Identity())))
		}
	}
	return 0, nil
}

// namePanic determines which file a panic is about; other errors say so themselves.
func namePanic(path string, err error) error {
	if errors.As(err, new(*panics.Error)) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// noValue is what a template makes of a reference to nothing.
const noValue = "<no value>"

// render executes a template. It returns nil for one that is skipped, and for
// one that is an error.
func (l *loader) render(ctx context.Context, f *file, source []byte) ([]byte, error) {
	data, missing, err := l.renderer.render(ctx, f.dir, f.name, source)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.As(err, new(*TemplateError)):
		return nil, err
	case errors.As(err, new(*LimitError)):
		return nil, fmt.Errorf("%s: %w", f.path(), err)
	default:
		f.warnings = append(f.warnings, newWarning(lintTemplate, f.path(), 0, "skipped, not a template that this version understands: "+err.Error()))
		return nil, nil
	}
	if bytes.Contains(data, []byte(noValue)) && !bytes.Contains(source, []byte(noValue)) {
		f.warnings = append(f.warnings, newWarning(lintNoValue, f.path(), 0, "the template refers to an image that the payload does not have: it stands as "+noValue))
	}
	if len(missing) > 0 {
		f.warnings = append(f.warnings, newWarning(lintMissingImage, f.path(), 0, "the template looks up images that the payload does not have, which stand as nothing: "+bounded.Join(missing, ", ", maxWarningText)))
	}
	return data, nil
}

func newWarning(rule, file string, document int, message string) Warning {
	return Warning{Rule: rule, File: file, Document: document, Message: bounded.Text(message, maxWarningText)}
}

// readFile reads a file of at most some bytes, into buf if that is large
// enough. With an error it returns what was read until then.
func readFile(ctx context.Context, fsys fs.FS, name string, buf []byte, size limit.Limit) (data []byte, err error) {
	err = panics.Catch(func() error {
		data, err = readAll(ctx, fsys, name, buf, size)
		return err
	})
	return data, namePanic(name, err)
}

func readAll(ctx context.Context, fsys fs.FS, name string, buf []byte, size limit.Limit) ([]byte, error) {
	f, err := regular.Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := size.Check(info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data := slices.Grow(buf[:0], int(info.Size())+1) // so that the end shows without growing
	r := contextReader{ctx: ctx, r: f}
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err := size.Check(int64(len(data))); err != nil {
			return data, fmt.Errorf("%s: %w", name, err)
		}
		if err == io.EOF { // as io.Reader documents it
			return data, nil
		}
		if err != nil {
			return data, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 1)
		}
	}
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
	r.empty++
	if n > 0 {
		r.empty = 0
	}
	if err == nil && r.empty > 100 {
		err = io.ErrNoProgress
	}
	return n, err
}
