package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/internal/regular"
	"github.com/clusterupdate/clusterupdate/olm"
)

// Options say how to read a catalog. The zero value reads leniently, with
// the default limits.
type Options struct {
	// Strict makes the first problem the error, a [*Problem]. Otherwise problems
	// are part of the contents, and hide nothing else.
	Strict bool

	// DropContent replaces the values of the properties olm.bundle.object and
	// olm.csv.metadata by null. Large catalogs consist of little else, and a
	// resolution needs them only for cel constraints that look at them and for
	// the steps of bundles without an image.
	DropContent bool

	// MaxFileBytes is the largest file or stream; 0: 1 GiB.
	MaxFileBytes int64
	// MaxDocumentBytes is the largest object, also after the expansion of its
	// YAML aliases; 0: 64 MiB.
	MaxDocumentBytes int64
	// MaxMemory is about the most bytes that decoding all objects makes; 0: 4 GiB.
	// A single object makes 256 MiB at most.
	MaxMemory int64
	// MaxFiles is the largest number of files; 0: 100,000.
	MaxFiles int
	// MaxDocuments is the largest number of objects in all files; 0: 1,000,000.
	MaxDocuments int
	// MaxDepth is how deep objects and lists may be nested; 0: 200.
	MaxDepth int
	// MaxAliases is the largest number of YAML aliases in an object; 0: 1,000.
	MaxAliases int
	// MaxProblems is the largest number of problems: what has more is not a
	// catalog. 0: 10,000.
	MaxProblems int
}

// withDefaults refuses negative limits.
func (o Options) withDefaults() (Options, error) {
	if err := options.NonNegative(o); err != nil {
		return o, err
	}
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, 1<<30)
	o.MaxDocumentBytes = cmp.Or(o.MaxDocumentBytes, 64<<20)
	o.MaxMemory = cmp.Or(o.MaxMemory, 4<<30)
	o.MaxFiles = cmp.Or(o.MaxFiles, 100_000)
	o.MaxDocuments = cmp.Or(o.MaxDocuments, 1_000_000)
	o.MaxDepth = cmp.Or(o.MaxDepth, 200)
	o.MaxAliases = cmp.Or(o.MaxAliases, 1000)
	o.MaxProblems = cmp.Or(o.MaxProblems, 10_000)
	return o, nil
}

// LimitError reports which limit of [Options] a catalog passes. Where is the
// file, empty for the catalog as a whole.
type LimitError = limit.LimitError

// Load reads the file-based catalog in a tree of files: every file that no
// .indexignore excludes, whatever it is called, JSON and YAML. The order of
// files and objects means nothing.
//
// Faults of the catalog are among the problems of the contents (but see
// [Options].Strict). The error is about files that cannot be read, a limit
// ([*LimitError]), or the context.
func Load(ctx context.Context, fsys fs.FS, o Options) (*Catalog, error) {
	if fsys == nil {
		return nil, errors.New("catalog: no file system")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := catalogFiles(ctx, fsys, o.MaxFiles)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	return load(ctx, o, func(ctx context.Context, l *loader) error {
		for _, name := range files {
			if err := l.open(ctx, fsys, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Read reads a file-based catalog from one stream of JSON objects or YAML
// documents. name stands for the file in problems. Otherwise it does as [Load].
func Read(ctx context.Context, r io.Reader, name string, o Options) (*Catalog, error) {
	if r == nil {
		return nil, errors.New("catalog: no reader")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return load(ctx, o, func(ctx context.Context, l *loader) error { return l.read(ctx, r, name) })
}

func load(ctx context.Context, o Options, produce func(context.Context, *loader) error) (*Catalog, error) {
	objects, problems, err := decodeAll(ctx, o, produce)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	c := build(objects, problems)
	if max(len(c.problems), len(c.warnings)) > o.MaxProblems {
		return nil, fmt.Errorf("catalog: %w", o.tooManyProblems())
	}
	if o.Strict && len(c.problems) > 0 {
		return nil, &c.problems[0]
	}
	return c, nil
}

func (o Options) tooManyProblems() error {
	return &LimitError{Limit: "MaxProblems", Max: int64(o.MaxProblems), What: "problems"}
}

// loader cuts files into documents and hands these on in batches.
type loader struct {
	options Options
	queue   chan *batch
	batches []*batch // all, in order
	count   int      // documents
}

// batch is a share of the documents and what became of them.
type batch struct {
	documents []document
	objects   []object
	problems  []Problem
}

const batchBytes = 256 << 10

// decodeAll decodes the documents on all processors, while produce continues
// reading. The results are in the order of the documents.
func decodeAll(
	ctx context.Context, o Options, produce func(context.Context, *loader) error,
) ([]object, []Problem, error) {
	workers := runtime.GOMAXPROCS(0)
	l := &loader{options: o, queue: make(chan *batch, 2*workers)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(l.queue)
		return panics.Isolate(func() error { return produce(ctx, l) }) // the files are the caller's
	})
	var found atomic.Int64 // problems
	total := &limit.Meter{Budget: limit.Budget{Bytes: o.memory()}}
	for range workers {
		group.Go(func() error {
			d := &decoder{options: o, properties: new(olm.BundleReader), total: total}
			for b := range l.queue {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := b.decode(d, &found); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	objects := make([]object, 0, l.count)
	var problems []Problem
	for _, b := range l.batches {
		objects = append(objects, b.objects...)
		problems = append(problems, b.problems...)
	}
	return objects, problems, nil
}

func (l *loader) open(ctx context.Context, fsys fs.FS, name string) error {
	f, err := regular.Open(fsys, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return l.read(ctx, f, name)
}

func (l *loader) read(ctx context.Context, r io.Reader, name string) error {
	s := newSplitter(r, name, l.options)
	b, size := new(batch), 0
	for {
		doc, err := s.next()
		if errors.Is(err, io.EOF) {
			return l.send(ctx, b)
		}
		if err != nil {
			if past := (*LimitError)(nil); errors.As(err, &past) {
				past.Where = name
				return past
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		l.count++
		if l.count > l.options.MaxDocuments {
			return &LimitError{Limit: "MaxDocuments", Max: int64(l.options.MaxDocuments), What: "objects"}
		}
		b.documents = append(b.documents, doc)
		size += len(doc.text)
		if size >= batchBytes {
			if err := l.send(ctx, b); err != nil {
				return err
			}
			b, size = new(batch), 0
		}
	}
}

func (l *loader) send(ctx context.Context, b *batch) error {
	l.batches = append(l.batches, b)
	select {
	case l.queue <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decode decodes the documents of a batch. found counts the problems of all
// batches.
func (b *batch) decode(d *decoder, found *atomic.Int64) error {
	b.objects = make([]object, 0, len(b.documents))
	for _, doc := range b.documents {
		o, err := d.decode(doc)
		if bad := (*fault)(nil); errors.As(err, &bad) {
			if found.Add(1) > int64(d.options.MaxProblems) {
				return d.options.tooManyProblems()
			}
			pos := doc.pos
			if bad.line > 0 {
				// The YAML library may name the line behind the last one.
				pos.line += min(bad.line-1, bytes.Count(doc.text, []byte("\n")))
			}
			p := pos.problem(bad.rule, "%v", bad.err)
			if bad.column > 0 {
				p.Message += fmt.Sprintf(" (column %d)", bad.column)
			}
			b.problems = append(b.problems, p)
			continue
		} else if past := (*LimitError)(nil); errors.As(err, &past) {
			past.Where = fmt.Sprintf("%s:%d", doc.pos.file, doc.pos.line)
			return past
		} else if err != nil {
			return err
		}
		o.pos = doc.pos
		b.objects = append(b.objects, o)
	}
	b.documents = nil
	return nil
}

// catalogFiles returns the files of a tree that are part of the catalog, in
// the order of their paths.
func catalogFiles(ctx context.Context, fsys fs.FS, most int) ([]string, error) {
	var files []string
	var ignored ignoreRules
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if d.IsDir() {
			return ignored.readDir(fsys, name)
		}
		if d.Name() == indexIgnore || ignored.match(name) {
			return nil
		}
		if !d.Type().IsRegular() {
			// A directory behind a link, as in a mounted ConfigMap, is not walked.
			mode, err := regular.Mode(fsys, name)
			if err != nil {
				return err
			}
			if !mode.IsRegular() {
				return nil
			}
		}
		files = append(files, name)
		if len(files) > most {
			return &LimitError{Limit: "MaxFiles", Max: int64(most), What: "files"}
		}
		return nil
	})
	return files, err
}
