package oci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// memFS is a file system in memory that does not change. It has symbolic links.
type memFS struct{ root *node }

var (
	_ fs.ReadFileFS = (*memFS)(nil)
	_ fs.ReadDirFS  = (*memFS)(nil)
	_ fs.StatFS     = (*memFS)(nil)
	_ fs.ReadLinkFS = (*memFS)(nil)
)

// find returns what a name stands for. A link at its end is followed if follow
// says so.
func (m *memFS) find(op, name string, follow bool) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	var at []*node // directories on the way, without the root
	current := m.root
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return nil, &fs.PathError{Op: op, Path: name, Err: errors.New("a link leads out of the tree")}
			}
			at = at[:len(at)-1]
		default:
			n := current.children[part]
			if n == nil {
				err := fs.ErrNotExist
				if links > 0 {
					err = fmt.Errorf("a link leads to %s, which is not here: %w", bounded.Quote(part), err)
				}
				return nil, &fs.PathError{Op: op, Path: name, Err: err}
			}
			if n.mode&fs.ModeSymlink == 0 {
				at = append(at, n)
				break
			}
			if len(rest) == 0 && !follow {
				return n, nil
			}
			links++
			if links > maxLinks {
				return nil, &fs.PathError{Op: op, Path: name, Err: errors.New("too many links")}
			}
			if path.IsAbs(n.target) {
				at = nil
			}
			rest = append(strings.Split(n.target, "/"), rest...)
		}
		current = m.root
		if len(at) > 0 {
			current = at[len(at)-1]
		}
	}
	return current, nil
}

func (m *memFS) Open(name string) (fs.File, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	info := info{n, path.Base(name)}
	if n.mode.IsDir() {
		return &openDir{info: info, name: name, entries: n.entries()}, nil
	}
	if n.section != nil {
		r, err := n.section.open(n.size)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openFile{info, r}, nil
	}
	return &openFile{info, io.NopCloser(bytes.NewReader(n.data))}, nil
}

func (m *memFS) ReadFile(name string) ([]byte, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	switch {
	case n.mode.IsDir():
		return nil, isDir("read", name)
	case n.section != nil:
		f, err := m.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	}
	return bytes.Clone(n.data), nil
}

func (m *memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := m.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return n.entries(), nil
}

func (m *memFS) Stat(name string) (fs.FileInfo, error) {
	n, err := m.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{n, path.Base(name)}, nil
}

func (m *memFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := m.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{n, path.Base(name)}, nil
}

func (m *memFS) ReadLink(name string) (string, error) {
	n, err := m.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.mode&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return n.target, nil
}

func isDir(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errors.New("is a directory")}
}

// entries returns what is in a directory, by name.
func (n *node) entries() []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(n.children))
	for name, child := range n.children {
		out = append(out, fs.FileInfoToDirEntry(info{child, name}))
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// info is about a node under the name by which it was asked for.
type info struct {
	n    *node
	name string
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.n.size }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return i.n.modTime }
func (i info) IsDir() bool        { return i.n.mode.IsDir() }
func (i info) Sys() any           { return nil }

type openFile struct {
	info info
	io.ReadCloser
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

type openDir struct {
	info    info
	name    string
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error)   { return 0, isDir("read", d.name) }

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}
