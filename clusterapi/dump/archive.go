package dump

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/tarball"
)

// archive reads a tar stream. A file whose place is not known yet, since a folder that
// comes later may make its parent a recording, is held until the end. Its errors are
// limits, and the one for a format that is not read.
func (c *collection) archive(stream io.Reader) error {
	stored := &countingReader{r: &contextReader{c.ctx, stream}}
	buffered := bufio.NewReaderSize(stored, 1<<16)
	var r io.Reader = buffered
	magic, _ := buffered.Peek(10)
	for _, format := range otherFormats {
		if strings.HasPrefix(string(magic), format.magic) {
			return fmt.Errorf("it is a %s archive, which is not read: only .tar and .tar.gz are", format.name)
		}
	}
	if bytes.HasPrefix(magic, []byte{0x1f, 0x8b}) {
		zip, err := gzip.NewReader(buffered)
		if err != nil {
			c.cut(fmt.Errorf("decompressing: %w", err))
			return nil
		}
		r = &inflated{r: zip, most: c.o.MaxBytes, consumed: func() int64 { return stored.n - int64(buffered.Buffered()) }}
	}
	a := &archiveReader{c: c, files: make(map[string]*file), held: make(map[string]held), shown: make(map[string]bool)}
	for entries := tar.NewReader(r); ; {
		header, err := entries.Next()
		if err == io.EOF {
			// What is behind the last entry has the checksum of all.
			err = tarball.End(r)
			if err != nil && !isLimit(err) && c.ctx.Err() == nil {
				c.cut(err)
			}
			if isLimit(err) {
				return err
			}
			break
		}
		if err == nil {
			err = a.entry(header, entries)
		}
		if c.ctx.Err() != nil {
			break // wait explains why
		}
		if isLimit(err) {
			return err
		}
		if err != nil {
			c.cut(err)
			break
		}
	}
	return a.settle()
}

// otherFormats are those of archives that are not read, by how they start.
var otherFormats = []struct{ name, magic string }{
	{".zip", "PK\x03\x04"},
	{".zip", "PK\x05\x06"}, // an empty one
	{".tar.xz", "\xfd7zXZ\x00"},
	{".tar.bz2", "BZh91AY&SY"},
	{".tar.zst", "\x28\xb5\x2f\xfd"},
	{".7z", "7z\xbc\xaf\x27\x1c"},
}

// isArchive reports whether a file is an archive by its name.
func isArchive(name string) bool {
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".zip", ".tar.xz", ".txz", ".tar.bz2", ".tar.zst", ".7z"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// cut notes that the rest of an archive cannot be read.
func (c *collection) cut(err error) {
	c.ignore("", fmt.Errorf("the archive cannot be read to its end: %w", err))
	c.incomplete["."] = true
}

// maxRatio is how many times its size, on top of MaxBytes, an archive may have
// decompressed. For logs the ratio is below 30.
const maxRatio = 64

// inflated reads what is in a compressed archive. What is passed over has to be
// decompressed, too, so its size is limited.
type inflated struct {
	r        io.Reader
	read     int64
	most     int64
	consumed func() int64 // of the compressed bytes
}

func (i *inflated) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	i.read += int64(n)
	if i.read > i.most && (i.read-i.most)/maxRatio > i.consumed() {
		return 0, &clusterapi.LimitError{Limit: "MaxBytes", Max: i.most, What: fmt.Sprintf("bytes in an archive, and %d for each of its own", maxRatio)}
	}
	return n, err
}

// countingReader counts what is read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type archiveReader struct {
	c       *collection
	files   map[string]*file // by path: those that are read for certain
	held    map[string]held  // by path: those whose place shows at the end
	shown   map[string]bool  // folders that some path shows to be recordings
	entries int
	count   int   // files, also of paths that come twice
	bytes   int64 // of those that are held
	dropped bool  // some were too many to be held
}

// held is the content of a file, or why it has none.
type held struct {
	data []byte
	err  error
}

// entriesPerFile is how many entries an archive may have for each file that may be
// read: most entries of a must-gather are logs.
const entriesPerFile = 10

// entry reads one entry. Its error is a limit, or the stream's.
func (a *archiveReader) entry(header *tar.Header, content io.Reader) error {
	if a.entries++; a.entries/entriesPerFile > a.c.o.MaxFiles {
		return &clusterapi.LimitError{Limit: "MaxFiles", Max: entriesPerFile * int64(a.c.o.MaxFiles), What: "entries in an archive"}
	}
	if c := a.c; len(a.shown)+len(c.spaces)+len(c.gathered)+len(c.logged)+len(c.incomplete) > c.o.MaxFiles {
		return &clusterapi.LimitError{Limit: "MaxFiles", Max: int64(c.o.MaxFiles), What: "folders"}
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil // which describes the archive
	}
	if err := tarball.CheckName(header.Name); err != nil {
		a.c.ignore(bounded.Text(header.Name, bounded.MaxQuoted), err)
		return nil
	}
	name := strings.Clone(header.Name) // which would hold the whole header in memory
	switch {
	case path.IsAbs(name):
		a.c.ignore(name, errors.New("an absolute path"))
		return nil
	case slices.Contains(strings.Split(name, "/"), ".."):
		a.c.ignore(name, errors.New("a path with .."))
		return nil
	}
	name = path.Clean(name)
	dir := path.Dir(name)
	switch header.Typeflag {
	case tar.TypeDir:
		dir = name
	case tar.TypeReg:
	default:
		a.c.ignore(name, errors.New("not a regular file"))
		a.c.incomplete[name] = true
		return nil
	}
	root, inside := rootOf(dir)
	if inside {
		a.shown[root] = true
		rel, _ := below(root, dir)
		a.c.noteSpace(rel)
	} else { // the names that count are beside, or above
		a.noteNames(name)
	}
	switch {
	case header.Typeflag == tar.TypeDir:
		return nil
	case inside:
		return a.take(root, name, header, content)
	case a.mayHavePlace(name):
		return a.hold(name, header, content)
	}
	return nil
}

// take reads a file of a recording.
func (a *archiveReader) take(root, name string, header *tar.Header, content io.Reader) error {
	rel, _ := below(root, name)
	f := &file{path: name, place: placeOf(root, rel)}
	a.files[name] = f // of two entries, the later one is the file
	if f.place.role == roleNone {
		return nil
	}
	if a.count++; a.count > a.c.o.MaxFiles {
		return a.tooMany()
	}
	data, err := a.read(name, header, content)
	if isLimit(err) {
		return err
	}
	a.c.add(f, func() ([]byte, error) { return data, err })
	return a.broken(name, err)
}

// hold keeps a file until its place is known. The limits that it passes count then.
func (a *archiveReader) hold(name string, header *tar.Header, content io.Reader) error {
	old, again := a.held[name]
	if !again && len(a.held) == a.c.o.MaxFiles {
		a.dropped = true
		return nil
	}
	a.bytes -= int64(len(old.data))
	if a.bytes > a.c.o.MaxBytes { // nothing more is decompressed
		a.held[name] = held{err: a.c.tooMuch()}
		return nil
	}
	data, err := a.read(name, header, content)
	a.bytes += int64(len(data))
	if isLimit(err) {
		data = nil
	}
	a.held[name] = held{data, err}
	return a.broken(name, err)
}

func (a *archiveReader) read(name string, header *tar.Header, content io.Reader) ([]byte, error) {
	return a.c.readAll(name, header.Size, io.LimitReader(content, a.c.o.MaxFileBytes+1))
}

// broken returns the error of a file if it is the stream's.
func (a *archiveReader) broken(name string, err error) error {
	if isLimit(err) || strings.HasSuffix(name, ".gz") {
		return nil
	}
	return err
}

func (a *archiveReader) tooMany() error {
	return &clusterapi.LimitError{Limit: "MaxFiles", Max: int64(a.c.o.MaxFiles), What: "files"}
}

// noteNames remembers what the names in a path say about who wrote its folders.
func (a *archiveReader) noteNames(name string) {
	dir := "."
	for at := 0; at <= len(name); {
		step, _, _ := strings.Cut(name[at:], "/")
		a.c.note(dir, step)
		at += len(step)
		dir = name[:at]
		at++
	}
}

// mayHavePlace reports whether a file outside of the folders that make a recording may
// be one that is read.
func (a *archiveReader) mayHavePlace(name string) bool {
	for rel := range rolesByPath {
		if strings.HasSuffix("/"+name, "/"+rel) {
			return true
		}
	}
	return mayBeInsights(name) || inHeap(name).role == roleHeap && len(a.shown) == 0
}

// place returns the place of a file that was held, now that the recordings are known.
func (a *archiveReader) place(name string) place {
	dir := path.Dir(name)
	p := inHeap(name)
	p.root = dir
	if len(a.c.roots) == 0 {
		return p
	}
	for root := dir; ; root = path.Dir(root) {
		if a.c.roots[root] {
			rel, _ := below(root, name)
			return a.c.placeIn(root, rel)
		}
		if root == "." {
			break
		}
	}
	if p.role == roleTime { // of the recordings below
		return p
	}
	return place{}
}

// settle finds the recordings, now that all folders are known, and reads the files
// that have a place.
func (a *archiveReader) settle() error {
	c := a.c
	for root := range a.shown {
		outermost := true
		for above := root; above != "." && outermost; {
			above = path.Dir(above)
			outermost = !a.shown[above]
		}
		if outermost {
			c.roots[root] = true
		}
	}
	names := slices.Sorted(maps.Keys(a.held))
	for _, root := range insightsRoots(names) {
		if !c.roots[root] && !c.inside(root) {
			c.roots[root], c.insights[root] = true, true
		}
	}
	if a.dropped && (len(c.roots) == 0 || len(c.insights) > 0) {
		return a.tooMany()
	}
	c.files = slices.DeleteFunc(c.files, func(f *file) bool { return a.files[f.path] != f || !c.roots[f.place.root] })
	for _, name := range names {
		f := &file{path: name, place: a.place(name)}
		if f.place.role == roleNone {
			continue
		}
		if len(c.files) == c.o.MaxFiles {
			return a.tooMany()
		}
		content := a.held[name]
		delete(a.held, name)
		if isLimit(content.err) {
			return content.err
		}
		c.add(f, func() ([]byte, error) { return content.data, content.err })
	}
	return nil
}
