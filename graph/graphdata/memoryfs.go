package graphdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// memoryFS holds the files of an archive. It does not change.
type memoryFS struct {
	files map[string][]byte
	dirs  map[string][]fs.DirEntry // by name
}

// newMemoryFS returns an error where a file has the name of a directory, or the
// files lie in too many directories.
func newMemoryFS(files map[string][]byte, most int) (*memoryFS, error) {
	m := &memoryFS{files: files, dirs: map[string][]fs.DirEntry{".": nil}}
	for name, text := range files {
		m.enter(name, memoryInfo{name: path.Base(name), size: int64(len(text))})
		if len(m.dirs) > most {
			return nil, &LimitError{limitArchiveEntries, int64(most)}
		}
	}
	for dir, entries := range m.dirs {
		if _, ok := files[dir]; ok {
			return nil, fmt.Errorf("%s: is a file and a directory", bounded.Quote(dir))
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	}
	return m, nil
}

// enter lists an entry in its directory, and that in its own.
func (m *memoryFS) enter(name string, info memoryInfo) {
	dir := path.Dir(name)
	_, known := m.dirs[dir]
	m.dirs[dir] = append(m.dirs[dir], fs.FileInfoToDirEntry(info))
	if !known {
		m.enter(dir, memoryInfo{name: path.Base(dir), dir: true})
	}
}

func (m *memoryFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if text, ok := m.files[name]; ok {
		return &memoryFile{memoryInfo{name: path.Base(name), size: int64(len(text))}, bytes.NewReader(text)}, nil
	}
	if entries, ok := m.dirs[name]; ok {
		return &memoryDir{memoryInfo{name: path.Base(name), dir: true}, entries}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

type memoryInfo struct {
	name string
	size int64
	dir  bool
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.dir }
func (i memoryInfo) Sys() any           { return nil }

func (i memoryInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type memoryFile struct {
	info memoryInfo
	*bytes.Reader
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }

type memoryDir struct {
	info    memoryInfo
	entries []fs.DirEntry // those not read yet
}

func (d *memoryDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *memoryDir) Close() error               { return nil }

func (d *memoryDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

func (d *memoryDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	read := slices.Clone(d.entries[:n])
	d.entries = d.entries[n:]
	return read, nil
}
