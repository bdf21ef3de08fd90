package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// TarFile is a tar file as a file system of its regular files, which are read
// where they lie in it: only their names are held in memory. Hard and symbolic
// links to files within it are followed; directories cannot be read, and links to
// them lead nowhere. It is safe for concurrent use if its reader is.
type TarFile struct {
	r       io.ReaderAt
	entries map[string]tarEntry
}

type tarEntry struct {
	offset, size int64
	mode         fs.FileMode
	modTime      time.Time
	target       string // clean name that a link leads to; "" for a file
}

// OpenTar reads the names in a tar file of a size in bytes. Of two entries with
// one name the later one counts. A name or link that leads out of the file is
// refused, and so is a file that is compressed.
func OpenTar(r io.ReaderAt, size int64, l Limits) (*TarFile, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	if err := checkPlain(r); err != nil {
		return nil, err
	}
	t := &TarFile{r: r, entries: map[string]tarEntry{}}
	section := io.NewSectionReader(r, 0, size)
	archive := tar.NewReader(section)
	var held int64
	for count := 1; ; count++ {
		header, err := archive.Next()
		if err == io.EOF { // as the reader documents it
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("tar: %w", err)
		}
		if count > l.Entries {
			return nil, entriesError(l, "the archive")
		}
		if held += nodeSize + int64(len(header.Name)+len(header.Linkname)); held > l.KeptSize {
			return nil, &LimitError{Limit: "KeptSize", Max: l.KeptSize, What: "bytes in the names of the archive"}
		}
		offset, err := section.Seek(0, io.SeekCurrent) // the reader has read the header, and no more
		if err != nil {
			return nil, err
		}
		if err := t.add(header, offset); err != nil {
			return nil, fmt.Errorf("%s: %w", bounded.Quote(header.Name), err)
		}
	}
}

// checkPlain refuses a file that is compressed, in which nothing can be found
// without reading all of it.
func checkPlain(r io.ReaderAt) error {
	begin := make([]byte, maxMagic)
	n, err := r.ReadAt(begin, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if packed := compression(begin[:n]); packed != "" {
		return fmt.Errorf("the archive is compressed with %s: decompress it first", packed)
	}
	return nil
}

func (t *TarFile) add(h *tar.Header, offset int64) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	info := h.FileInfo()
	e := tarEntry{offset: offset, size: h.Size, mode: info.Mode().Perm(), modTime: info.ModTime()}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return errors.New("a sparse file")
			}
		}
	case tar.TypeLink:
		e.target, err = cleanName(h.Linkname)
	case tar.TypeSymlink:
		dir := path.Dir(name)
		if err = checkLink(dir, h.Linkname); err == nil {
			e.target = path.Join(dir, h.Linkname)
			if path.IsAbs(h.Linkname) {
				e.target = strings.Clone(path.Clean(strings.TrimLeft(h.Linkname, "/")))
			}
		}
	default: // directories need no entry; the rest is never asked for
		delete(t.entries, name)
		return nil
	}
	if err != nil {
		return err
	}
	t.entries[name] = e
	return nil
}

// Open implements [fs.FS].
func (t *TarFile) Open(name string) (fs.File, error) {
	e, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	return &tarOpen{tarInfo{e, path.Base(name)}, io.NewSectionReader(t.r, e.offset, e.size)}, nil
}

// Stat implements [fs.StatFS].
func (t *TarFile) Stat(name string) (fs.FileInfo, error) {
	e, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return tarInfo{e, path.Base(name)}, nil
}

func (t *TarFile) find(op, name string) (tarEntry, error) {
	if !fs.ValidPath(name) {
		return tarEntry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := name
	for range maxLinks {
		e, ok := t.entries[at]
		switch {
		case !ok && at != name:
			return e, &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("a link leads to %s, which is not here: %w", bounded.Quote(at), fs.ErrNotExist)}
		case !ok:
			return e, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		case e.target == "":
			return e, nil
		}
		at = e.target
	}
	return tarEntry{}, &fs.PathError{Op: op, Path: name, Err: errors.New("too many links")}
}

type tarInfo struct {
	e    tarEntry
	name string
}

func (i tarInfo) Name() string       { return i.name }
func (i tarInfo) Size() int64        { return i.e.size }
func (i tarInfo) Mode() fs.FileMode  { return i.e.mode }
func (i tarInfo) ModTime() time.Time { return i.e.modTime }
func (i tarInfo) IsDir() bool        { return false }
func (i tarInfo) Sys() any           { return nil }

type tarOpen struct {
	tarInfo
	*io.SectionReader
}

func (f *tarOpen) Size() int64                { return f.e.size }
func (f *tarOpen) Stat() (fs.FileInfo, error) { return f.tarInfo, nil }
func (f *tarOpen) Close() error               { return nil }
