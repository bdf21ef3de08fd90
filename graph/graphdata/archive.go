package graphdata

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/regular"
	"github.com/clusterupdate/clusterupdate/internal/tarball"
)

// OpenArchive reads a tree from a tar compressed with gzip: what an update service
// serves as graph-data, or an archive of the repository, whose one leading
// directory is left out. It keeps all files in memory.
//
// An entry that is not a regular file, lies outside of the archive or is there
// twice is an error, and so is anything behind the archive's end; a [*LimitError]
// reports that a limit was passed. Other errors are those of r, [compress/gzip] and
// [archive/tar].
func OpenArchive(r io.Reader, limits Limits) (fs.FS, error) {
	if err := options.NonNegative(limits); err != nil {
		return nil, err
	}
	limits = limits.withDefaults()
	compressed := &io.LimitedReader{R: r, N: limits.MaxCompressed + 1}
	expanded := &io.LimitedReader{N: limits.MaxExpanded + 1}
	files, err := readArchive(compressed, expanded, limits)
	switch {
	case compressed.N == 0:
		return nil, &LimitError{What: limitCompressed, Max: limits.MaxCompressed}
	case expanded.N == 0:
		return nil, &LimitError{What: limitExpanded, Max: limits.MaxExpanded}
	case err != nil:
		return nil, err
	}
	files = withoutLeading(files)
	if err := checkDirectories(files, limits.MaxArchiveEntries); err != nil {
		return nil, err
	}
	return files, nil
}

// readArchive reads the files of an archive, through expanded what it holds.
func readArchive(compressed io.Reader, expanded *io.LimitedReader, limits Limits) (fstest.MapFS, error) {
	var err error
	expanded.R, err = gzip.NewReader(compressed)
	if errors.Is(err, gzip.ErrHeader) {
		return nil, fmt.Errorf("not a .tar.gz: %w", err)
	}
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(expanded)
	files := fstest.MapFS{}
	for n := 0; ; n++ {
		header, err := archive.Next()
		if err == io.EOF {
			return files, tarball.End(expanded) // the checksum is behind it
		}
		if err != nil {
			return nil, err
		}
		if n == limits.MaxArchiveEntries {
			return nil, &LimitError{What: limitArchiveEntries, Max: int64(n)}
		}
		if err := addEntry(files, header, archive, limits.MaxFileBytes); err != nil {
			return nil, fmt.Errorf("%s: %w", bounded.Quote(header.Name), err)
		}
	}
}

// addEntry keeps an entry of an archive.
func addEntry(files fstest.MapFS, header *tar.Header, content io.Reader, most int64) error {
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
		return &LimitError{What: limitFileBytes, Max: most}
	}
	if _, twice := files[name]; twice {
		return errors.New("is there twice")
	}
	text := make([]byte, header.Size)
	if _, err := io.ReadFull(content, text); err != nil { // a size that is not true ends the archive
		return err
	}
	files[name] = &fstest.MapFile{Data: text, Mode: 0o444}
	return nil
}

// withoutLeading leaves out the one directory that holds all files, where version
// is in it.
func withoutLeading(files fstest.MapFS) fstest.MapFS {
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
	stripped := make(fstest.MapFS, len(files))
	for name, file := range files {
		stripped[strings.TrimPrefix(name, leading+"/")] = file
	}
	return stripped
}

// checkDirectories returns an error where a file has the name of a directory, or
// the files lie in too many directories.
func checkDirectories(files fstest.MapFS, most int) error {
	known := map[string]bool{".": true}
	for name := range files {
		for dir := path.Dir(name); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			if files[dir] != nil {
				return fmt.Errorf("%s: is a file and a directory", bounded.Quote(dir))
			}
			if len(known) > most {
				return &LimitError{What: limitArchiveEntries, Max: int64(most)}
			}
		}
	}
	return nil
}

// WriteArchive writes what is published of a tree, as a tar compressed with gzip:
// the schema version, the licence if there is one, channels, blocked edges and the
// raw metadata. Equal trees give equal bytes: names are in byte order, times and
// modes fixed. Errors are those of tree and w, or a [*LoadError] that names entries
// of channels and blocked-edges which [Load] refuses: an archive without them would
// hide what they block.
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
