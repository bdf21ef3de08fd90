package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// archives are the names of oc-mirror's archives.
const archives = "mirror_*.tar"

// archive is a tar file. open opens it each time that something in it is read.
type archive struct {
	name string
	open func() (archiveReader, error)
	size int64
}

type archiveReader interface {
	io.ReaderAt
	io.Closer
}

// section is the content of a file in an archive.
type section struct {
	archive *archive
	offset  int64
}

// OpenTar returns the files in a tar file of a size in bytes as a file system. They
// are read from r: only their names are held in memory. Of two entries with one name
// the later one counts. Refused are names and links that lead out of the file, sparse
// files and compressed tar files. Further errors are those of reading, and
// [*limit.LimitError].
func OpenTar(r io.ReaderAt, size int64, l Limits) (fs.FS, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	open := func() (archiveReader, error) { return unclosed{r}, nil }
	return readArchives([]*archive{{open: open, size: size}}, l)
}

type unclosed struct{ io.ReaderAt }

func (unclosed) Close() error { return nil }

// openArchives returns the files in the archives of oc-mirror in a folder, together;
// the folder itself if there are none.
func openArchives(fsys fs.FS, l Limits) (fs.FS, error) {
	names, err := fs.Glob(fsys, archives)
	if err != nil || len(names) == 0 {
		return fsys, err
	}
	var all []*archive
	for _, name := range names {
		a := &archive{name: name, open: func() (archiveReader, error) {
			f, err := regular.Open(fsys, name)
			if err != nil {
				return nil, err
			}
			r, ok := f.(archiveReader)
			if !ok {
				return nil, errors.Join(fmt.Errorf("%s: %w", name, errors.ErrUnsupported), f.Close())
			}
			return r, nil
		}}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return nil, err
		}
		a.size = info.Size()
		all = append(all, a)
	}
	return readArchives(all, l)
}

// readArchives reads the names in archives.
func readArchives(all []*archive, l Limits) (fs.FS, error) {
	b, err := NewBudget(l)
	if err != nil {
		return nil, err
	}
	b.layers.Budget.Entries = l.entries("the archive")
	t := newTree([]string{"."}, b)
	for _, a := range all {
		if err := t.readArchive(a); err != nil {
			if a.name != "" {
				err = fmt.Errorf("%s: %w", a.name, err)
			}
			return nil, err
		}
	}
	return &memFS{t.root}, nil
}

func (t *tree) readArchive(a *archive) error {
	r, err := a.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := checkPlain(r); err != nil {
		return err
	}
	in := io.NewSectionReader(r, 0, a.size)
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if err == io.EOF { // as the reader documents it
			return nil
		}
		if err != nil {
			return fmt.Errorf("tar: %w", err)
		}
		if err := t.budget.layers.Spend(limit.Usage{Entries: 1}); err != nil {
			return err
		}
		offset, err := in.Seek(0, io.SeekCurrent) // the reader has read the header, and no more
		if err != nil {
			return err
		}
		if err := t.archived(header, section{a, offset}); err != nil {
			return fmt.Errorf("%s: %w", bounded.Quote(header.Name), err)
		}
	}
}

// archived adds an entry of an archive.
func (t *tree) archived(h *tar.Header, content section) error {
	name, err := cleanName(h.Name)
	if err != nil || name == "." || h.Typeflag == tar.TypeXGlobalHeader {
		return err
	}
	n := &node{mode: h.FileInfo().Mode().Perm(), modTime: h.ModTime}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return errors.New("a sparse file")
			}
		}
		n.section, n.size = &content, h.Size
	case tar.TypeDir, tar.TypeLink, tar.TypeSymlink:
		return t.add(name, n, h)
	default: // it is never asked for
		n.mode |= fs.ModeIrregular
	}
	return t.put(name, n)
}

// open returns a reader of a section.
func (s *section) open(size int64) (io.ReadCloser, error) {
	r, err := s.archive.open()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(r, s.offset, size), r}, nil
}

// checkPlain refuses a file that is compressed, in which nothing can be found
// without reading all of it.
func checkPlain(r io.ReaderAt) error {
	begin := make([]byte, 6)
	n, err := r.ReadAt(begin, 0)
	if err != nil && err != io.EOF {
		return err
	}
	for _, c := range []struct{ magic, name string }{
		{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"},
	} {
		if strings.HasPrefix(string(begin[:n]), c.magic) {
			return fmt.Errorf("the archive is compressed with %s: decompress it first", c.name)
		}
	}
	return nil
}
