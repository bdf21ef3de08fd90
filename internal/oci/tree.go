package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// node is a file, directory or symbolic link.
type node struct {
	mode     fs.FileMode
	modTime  time.Time
	data     []byte
	target   string           // of a symbolic link
	children map[string]*node // of a directory
	layer    int              // that made it, or something in it
	cleared  int              // layer that removed what lower ones had in it
}

// tree is the file system of several layers, as far as it lies at or below some
// paths, or on the way to them.
type tree struct {
	root    *node
	paths   []string
	limits  Limits
	entries *int  // of all layers
	layer   int   // that is applied
	kept    int64 // bytes
}

func newTree(paths []string, b *Budget) *tree {
	return &tree{root: newDir(), paths: paths, limits: b.limits, entries: &b.entries}
}

func newDir() *node {
	return &node{mode: fs.ModeDir | 0o755, children: map[string]*node{}}
}

// apply reads a layer.
func (t *tree) apply(ctx context.Context, r io.Reader) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if err == io.EOF { // as the reader documents it
			return nil
		}
		if err != nil {
			return fmt.Errorf("tar: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue // it describes the archive
		}
		if *t.entries++; *t.entries > t.limits.Entries {
			return entriesError(t.limits, "all layers")
		}
		if err := t.entry(header, archive); err != nil {
			return fmt.Errorf("%s: %w", bounded.Quote(header.Name), err)
		}
	}
}

// entry applies one entry of a layer.
func (t *tree) entry(h *tar.Header, content io.Reader) error {
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if removed, ok := strings.CutPrefix(base, whiteout); ok {
		return t.whiteout(dir, removed)
	}
	if name == "." || !t.wants(name) {
		return nil
	}
	if !utf8.ValidString(name) {
		return errors.New("the name is not UTF-8")
	}
	n := &node{mode: h.FileInfo().Mode().Perm(), modTime: h.ModTime, layer: t.layer}
	switch h.Typeflag {
	case tar.TypeDir:
		_, err := t.dir(name, n)
		return err
	case tar.TypeReg:
		n.data, err = t.content(h, content)
	case tar.TypeSymlink:
		n.mode, n.target = fs.ModeSymlink|0o777, strings.Clone(h.Linkname)
		err = checkLink(dir, h.Linkname)
	case tar.TypeLink:
		err = t.hardLink(n, h.Linkname)
	default:
		err = errors.New("neither a file nor a directory nor a link")
	}
	if err != nil {
		return err
	}
	if err := t.keep(int64(len(base) + len(n.target))); err != nil {
		return err
	}
	parent, err := t.dir(dir, nil)
	if err != nil {
		return err
	}
	parent.children[strings.Clone(base)] = n // not what it was cut from
	return nil
}

// wants reports whether a name lies at or below one of the paths, or on the way
// to one.
func (t *tree) wants(name string) bool {
	for _, p := range t.paths {
		if p == "." || within(name, p) || within(p, name) {
			return true
		}
	}
	return false
}

func within(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// get returns what has a clean name, without following links; nil for nothing.
func (t *tree) get(name string) *node {
	n := t.root
	if name == "." {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		if n = n.children[part]; n == nil {
			return nil
		}
	}
	return n
}

// dir returns the directory with a clean name, made where it is missing. With
// info, it is an entry of the layer: it takes the place of what is none.
func (t *tree) dir(name string, info *node) (*node, error) {
	n := t.root
	if name == "." {
		return n, nil
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		next := n.children[part]
		last := info != nil && i == len(parts)-1
		switch {
		case next == nil || last && !next.mode.IsDir():
			if err := t.keep(int64(len(part))); err != nil {
				return nil, err
			}
			next = newDir()
			n.children[strings.Clone(part)] = next
		case !next.mode.IsDir():
			return nil, fmt.Errorf("it lies below %s, which is not a directory", bounded.Quote(path.Join(parts[:i+1]...)))
		}
		next.layer = t.layer // it has something of this layer
		if last {
			next.mode, next.modTime = fs.ModeDir|info.mode, info.modTime
		}
		n = next
	}
	return n, nil
}
