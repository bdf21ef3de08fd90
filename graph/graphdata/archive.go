package graphdata

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/regular"
	"github.com/clusterupdate/clusterupdate/internal/tarball"
)

// ArchiveLimits bound what is read of an archive. A field that is zero means its
// default.
type ArchiveLimits struct {
	// MaxCompressed is how many bytes the archive may have; the default is 64 MiB.
	MaxCompressed int64
	// MaxExpanded is how many bytes its files and headers may have together; the
	// default is 512 MiB.
	MaxExpanded int64
	// MaxArchiveEntries is how many entries it may have, and how many files and
	// directories these may make; the default is 100,000.
	MaxArchiveEntries int
	// MaxFileBytes is how many bytes a file may have; the default is 1 MiB.
	MaxFileBytes int64
}

const (
	limitCompressed     = "bytes of an archive"
	limitExpanded       = "bytes of an archive, expanded"
	limitArchiveEntries = "entries of an archive"
)

func (l ArchiveLimits) withDefaults() ArchiveLimits {
	l.MaxCompressed = cmp.Or(l.MaxCompressed, 64<<20)
	l.MaxExpanded = cmp.Or(l.MaxExpanded, 512<<20)
	l.MaxArchiveEntries = cmp.Or(l.MaxArchiveEntries, 100_000)
	l.MaxFileBytes = cmp.Or(l.MaxFileBytes, 1<<20)
	return l
}

// OpenArchive reads a tree from a tar compressed with gzip: what an update service
// serves as graph-data, or an archive of the repository, whose one leading
// directory is left out. It keeps all files in memory.
//
// An entry that is no regular file, that lies outside of the archive or is there
// twice is an error, and so is anything behind the archive's end; a [*LimitError]
// says that a limit was passed. Other errors are those of r, [compress/gzip] and
// [archive/tar].
func OpenArchive(r io.Reader, limits ArchiveLimits) (fs.FS, error) {
	if err := options.NonNegative(limits); err != nil {
		return nil, err
	}
	limits = limits.withDefaults()
	unzipped, err := gzip.NewReader(&limitedReader{r: r, left: limits.MaxCompressed, err: &LimitError{limitCompressed, limits.MaxCompressed}})
	if err != nil {
		return nil, err
	}
	expanded := &limitedReader{r: unzipped, left: limits.MaxExpanded, err: &LimitError{limitExpanded, limits.MaxExpanded}}
	archive := tar.NewReader(expanded)
	files := map[string][]byte{}
	for n := 0; ; n++ {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n == limits.MaxArchiveEntries {
			return nil, &LimitError{limitArchiveEntries, int64(limits.MaxArchiveEntries)}
		}
		if err := addEntry(files, header, archive, limits.MaxFileBytes); err != nil {
			return nil, fmt.Errorf("%s: %w", bounded.Quote(header.Name), err)
		}
	}
	if err := tarball.End(expanded); err != nil { // the checksum is behind it
		return nil, err
	}
	return newMemoryFS(withoutLeading(files), limits.MaxArchiveEntries)
}

// addEntry keeps an entry of an archive.
func addEntry(files map[string][]byte, header *tar.Header, content io.Reader, most int64) error {
	if err := tarball.CheckName(header.Name); err != nil {
		return err
	}
	name := path.Clean(header.Name)
	switch {
	case header.Typeflag == tar.TypeXGlobalHeader: // git names the commit there
		return nil
	case path.IsAbs(name) || !fs.ValidPath(name) || slices.Contains(strings.Split(header.Name, "/"), ".."):
		return errors.New("lies outside of the archive")
	case header.Typeflag == tar.TypeDir:
		return nil
	case header.Typeflag != tar.TypeReg:
		return errors.New("is neither a regular file nor a directory")
	case header.Size > most:
		return &LimitError{limitFileBytes, most}
	}
	if _, twice := files[name]; twice {
		return errors.New("is there twice")
	}
	text, err := appendAll(make([]byte, 0, header.Size+1), content) // a size that is not true ends the archive
	if err != nil {
		return err
	}
	files[name] = text
	return nil
}

// withoutLeading leaves out the one directory that holds all files, where version
// is in it.
func withoutLeading(files map[string][]byte) map[string][]byte {
	leading := ""
	for name := range files {
		first, _, below := strings.Cut(name, "/")
		if !below || leading != "" && first != leading {
			return files
		}
		leading = first
	}
	if _, ok := files[leading+"/version"]; !ok {
		return files
	}
	stripped := make(map[string][]byte, len(files))
	for name, text := range files {
		stripped[strings.TrimPrefix(name, leading+"/")] = text
	}
	return stripped
}

// limitedReader returns err where more than left bytes come.
type limitedReader struct {
	r    io.Reader
	left int64
	err  error
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.err
	}
	return n, err
}

// WriteArchive writes what is published of a tree, as a tar compressed with gzip:
// the schema version, the licence where there is one, channels, blocked edges and
// the raw metadata. Equal trees give equal bytes: names are in byte order, times
// and modes fixed. Errors are those of tree and w, or a [*LoadError] that names
// entries of channels and blocked-edges which [Load] refuses: an archive without
// them would hide what they block.
func WriteArchive(w io.Writer, tree fs.FS) error {
	names := []string{"version", rawFile}
	if _, err := fs.Stat(tree, "LICENSE"); err == nil {
		names = append(names, "LICENSE")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var unread []Problem
	for _, dir := range []string{"channels", "blocked-edges"} {
		entries, err := fs.ReadDir(tree, dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if p := unreadEntry(name, e.IsDir()); p != nil {
				unread = append(unread, *p)
			} else if extension, _ := extensionOf(e.Name()); extension == "yaml" && !e.IsDir() {
				names = append(names, name)
			}
		}
	}
	if len(unread) > 0 {
		slices.SortFunc(unread, compareProblems)
		return &LoadError{Problems: unread}
	}
	slices.Sort(names)
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, name := range names {
		text, err := readRegular(tree, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Size: int64(len(text)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func readRegular(fsys fs.FS, name string) ([]byte, error) {
	f, err := regular.Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
