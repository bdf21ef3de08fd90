package dump

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// file is what a file holds.
type file struct {
	path  string
	place place

	objects []*object
	lists   []*listed
	skipped int    // objects of kinds that are not kept
	raw     []byte // of a file that does not hold objects
	faults  []fault
	more    int // faults that are not kept
}

// collection is what was found in a tree or an archive.
type collection struct {
	o    Options
	skip map[schema.GroupKind]bool

	parent   context.Context
	group    *errgroup.Group // reads files
	ctx      context.Context // of the group
	decoders sync.Pool
	bytes    atomic.Int64 // of all files
	objects  atomic.Int64

	roots map[string]bool // folders that are recordings; none in a heap
	// insights are those roots that are Insights archives.
	insights map[string]bool
	files    []*file
	// ignored are paths that were passed over, and more how many are not kept.
	ignored []Problem
	more    int
	// gathered are folders with a file that only the scripts of must-gather
	// write, logged those with the log of oc adm must-gather.
	gathered, logged map[string]bool
	// spaces are the names of folders of namespaces.
	spaces map[string]bool
	// incomplete are folders, or the archive, of which not everything could be
	// read: "." for all of it.
	incomplete map[string]bool
}

func newCollection(ctx context.Context, o Options) *collection {
	c := &collection{
		parent:     ctx,
		o:          o,
		skip:       make(map[schema.GroupKind]bool),
		roots:      make(map[string]bool),
		insights:   make(map[string]bool),
		gathered:   make(map[string]bool),
		logged:     make(map[string]bool),
		spaces:     make(map[string]bool),
		incomplete: make(map[string]bool),
	}
	for _, kind := range append([]schema.GroupKind{{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}}, o.Skip...) {
		c.skip[kind] = true
	}
	c.decoders.New = func() any { return newDecoder(&c.o) }
	c.group, c.ctx = errgroup.WithContext(ctx)
	c.group.SetLimit(o.Workers)
	return c
}

// add notes a file and has another goroutine read it. open returns its content,
// decompressed.
func (c *collection) add(f *file, read func() ([]byte, error)) {
	c.files = append(c.files, f)
	c.group.Go(func() error {
		err := panics.Catch(func() error { return c.fill(f, read) })
		var limit *clusterapi.LimitError
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case errors.As(err, &limit):
			return limit
		case err != nil:
			c.fault(f, fault{err: err, lost: true})
		}
		return nil
	})
}

func (c *collection) fill(f *file, read func() ([]byte, error)) error {
	data, err := read()
	if err != nil {
		if over := c.count(len(data), 0); over != nil { // what cannot be used counts
			return over
		}
		if c.ctx.Err() == nil && !isLimit(err) {
			c.fault(f, fault{err: err, lost: true, kinds: namedKinds(data)})
			return nil
		}
		return err
	}
	if err := c.count(len(data), 0); err != nil {
		return err
	}
	if !f.place.role.holdsObjects() {
		f.raw = data
		return nil
	}
	d := c.decoders.Get().(*decoder)
	defer c.decoders.Put(d)
	found := false
	err = d.stream(c.ctx, data, func(doc document) error {
		found = true
		return c.document(f, doc)
	}, func(bad fault) {
		found = true
		c.fault(f, bad)
	})
	if err == nil && !found {
		c.fault(f, fault{err: errors.New("it has no document"), lost: len(bytes.TrimSpace(data)) == 0})
	}
	return err
}

// count adds to what is limited, and returns the error of a limit that is passed.
func (c *collection) count(bytes, objects int) error {
	switch {
	case c.bytes.Add(int64(bytes)) > c.o.MaxBytes:
		return c.tooMuch()
	case c.objects.Add(int64(objects)) > int64(c.o.MaxObjects):
		return &clusterapi.LimitError{Limit: "MaxObjects", Max: int64(c.o.MaxObjects), What: "objects"}
	}
	return nil
}

// document takes the objects of one.
func (c *collection) document(f *file, doc document) error {
	// Aliases can make a text longer than what it was read from.
	if longer := len(doc.text) - doc.size; longer > 0 {
		if err := c.count(longer, 0); err != nil {
			return err
		}
	}
	if f.place.role == roleInsights && isFragment(doc) {
		f.skipped++
		return nil
	}
	l, err := objects(doc, f.place.kind, func(o *object) error {
		if c.skip[o.gvk.GroupKind()] {
			f.skipped++
			return nil
		}
		if err := c.count(0, 1); err != nil {
			return err
		}
		if err := checkInsightsName(o, f.place); err != nil {
			c.fault(f, fault{document: doc.number, err: err, lost: true})
		}
		o.path = f.path
		f.objects = append(f.objects, o)
		return nil
	}, func(bad fault) { c.fault(f, bad) })
	if l != nil {
		f.lists = append(f.lists, l)
	}
	return err
}

func (c *collection) fault(f *file, bad fault) {
	if len(f.faults) < c.o.MaxProblems {
		f.faults = append(f.faults, bad)
	} else {
		f.more++
	}
}

// ignore notes a path that is passed over, which says nothing about the cluster.
func (c *collection) ignore(name string, err error) {
	if len(c.ignored) == c.o.MaxProblems {
		c.more++
		return
	}
	c.ignored = append(c.ignored, Problem{Path: name, Err: err})
}

// noteSpace remembers a folder of a namespace. rel is its path, or the path of
// something in it, below its recording.
func (c *collection) noteSpace(rel string) {
	if parts := strings.Split(rel, "/"); len(parts) > 1 && parts[0] == namespaceFolder {
		c.spaces[parts[1]] = true
	}
}

// inside reports whether a folder is below a recording's folder.
func (c *collection) inside(folder string) bool {
	for folder != "." {
		folder = path.Dir(folder)
		if c.roots[folder] {
			return true
		}
	}
	return false
}

// wait waits until all files have been read. Its errors are limits, and the
// context's.
func (c *collection) wait() error {
	if err := c.group.Wait(); err != nil {
		return err
	}
	return c.parent.Err()
}

// readAll reads a file, which is decompressed if its name says so. size is what it
// should have. With an error it returns what was read until then.
func (c *collection) readAll(name string, size int64, r io.Reader) ([]byte, error) {
	if strings.HasSuffix(name, ".gz") {
		zip, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		r = zip
	}
	var buf bytes.Buffer
	const trusted = 1 << 20 // a size may be wrong
	buf.Grow(int(min(max(size, 0), c.o.MaxFileBytes, trusted)) + bytes.MinRead)
	n, err := io.Copy(&buf, io.LimitReader(&contextReader{c.ctx, r}, c.o.MaxFileBytes+1))
	if n > c.o.MaxFileBytes {
		return buf.Bytes(), c.tooLarge(name)
	}
	return buf.Bytes(), err
}

func (c *collection) tooMuch() *clusterapi.LimitError {
	return &clusterapi.LimitError{Limit: "MaxBytes", Max: c.o.MaxBytes, What: "bytes in all"}
}

func (c *collection) tooLarge(name string) error {
	return &clusterapi.LimitError{Where: name, Limit: "MaxFileBytes", Max: c.o.MaxFileBytes, What: "bytes in a file"}
}

func isLimit(err error) bool {
	var limit *clusterapi.LimitError
	return errors.As(err, &limit)
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
