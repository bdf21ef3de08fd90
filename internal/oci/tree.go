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
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// node is a file, directory or symbolic link.
type node struct {
	mode     fs.FileMode
	modTime  time.Time
	size     int64
	data     []byte           // of a file
	section  *section         // of a file in an archive, instead of data
	target   string           // of a symbolic link
	children map[string]*node // of a directory
	layer    int              // that made it, or something in it
	cleared  int              // layer that removed what lower ones had in it
}

// tree is the file system of several layers, as far as it lies at or below some
// paths, or on the way to them.
type tree struct {
	root   *node
	paths  []string
	budget *Budget
	layer  int   // that is applied
	kept   int64 // bytes
}

func newTree(paths []string, b *Budget) *tree {
	return &tree{root: newDir(), paths: paths, budget: b}
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
		if err := t.budget.layers.Spend(limit.Usage{Entries: 1}); err != nil {
			return err
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
	if h.Typeflag == tar.TypeReg {
		n.data, err = t.content(h, content)
		if err != nil {
			return err
		}
		n.size = h.Size
		return t.put(name, n)
	}
	return t.add(name, n, h)
}

// add adds n, which is not a file with content.
func (t *tree) add(name string, n *node, h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeDir:
		_, err := t.dir(name, n)
		return err
	case tar.TypeSymlink:
		if err := checkLink(path.Dir(name), h.Linkname); err != nil {
			return err
		}
		n.mode = fs.ModeSymlink | 0o777
		n.target = strings.Clone(h.Linkname)
	case tar.TypeLink:
		if err := t.hardLink(n, h.Linkname); err != nil {
			return err
		}
	default:
		return errors.New("neither a file nor a directory nor a link")
	}
	return t.put(name, n)
}

// put puts n in the place of the entry with its name.
func (t *tree) put(name string, n *node) error {
	dir, base := path.Split(name)
	if err := t.keep(int64(len(base) + len(n.target))); err != nil {
		return err
	}
	parent, err := t.dir(path.Clean(dir), nil)
	if err != nil {
		return err
	}
	parent.children[strings.Clone(base)] = n // not what it was cut from
	return nil
}

// keep counts what is held in memory.
func (t *tree) keep(n int64) error {
	t.kept += nodeSize + n
	return limit.Limit{Max: t.budget.limits.KeptSize, Name: "KeptSize", What: "bytes in what is kept"}.Check(t.kept)
}

// content reads a file that is kept.
func (t *tree) content(h *tar.Header, r io.Reader) ([]byte, error) {
	size := limit.Limit{Max: t.budget.limits.FileSize, Name: "FileSize", What: "bytes in the file"}
	if err := size.Check(h.Size); err != nil {
		return nil, err
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
		n = n.children[part]
		if n == nil {
			return nil
		}
	}
	return n
}

// dir returns the directory with a clean name, made if it is missing. With info, it
// is an entry of the layer: it replaces anything that is not a directory.
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
