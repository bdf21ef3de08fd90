package dump

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/tarball"
)

// archive reads a tar stream. What has no place yet, since a folder that comes
// later may make its parent a recording, is kept until the end. Its errors are
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
	a := &archiveReader{c: c, byPath: make(map[string]*file), shown: make(map[string]bool)}
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
	byPath  map[string]*file
	shown   map[string]bool // folders that some path shows to be recordings
	entries int
	count   int // files that are read for certain
	held    int // files that are perhaps read
	dropped int // files that are perhaps read, and too many to be held
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
	if header.Typeflag == tar.TypeDir {
		return nil
	}
	if old := a.byPath[name]; old != nil { // of two entries, the later one is the file
		old.replaced = true
	}
	f := &file{path: name}
	if inside {
		rel, _ := below(root, name)
		f.place = placeOf(root, rel)
	} else {
		f.place, f.tentative = a.tentative(name), true
	}
	if f.place.role == roleNone {
		return nil
	}
	if !f.tentative {
		if a.count++; a.count > a.c.o.MaxFiles {
			return a.tooMany()
		}
	} else if a.held == a.c.o.MaxFiles {
		a.dropped++ // settle reports whether it counts
		return nil
	} else {
		a.held++
	}
	if f.tentative && a.c.held.bytes.Load() > a.c.o.MaxBytes { // nothing more is decompressed
		f.limit = a.c.tooMuch()
		a.byPath[name] = f
		a.c.files = append(a.c.files, f)
		return nil
	}
	data, err := a.c.readAll(name, header.Size, io.LimitReader(content, a.c.o.MaxFileBytes+1))
	var limit *clusterapi.LimitError
	if errors.As(err, &limit) && !f.tentative {
		return err
	}
	a.byPath[name] = f
	a.c.add(f, func() ([]byte, error) { return data, err })
	if limit == nil && err != nil && !strings.HasSuffix(name, ".gz") {
		return err // the stream is broken
	}
	return nil
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

// tentative returns the place of a file outside of the folders that make a
// recording. What it is for is known at the end: see settle.
func (a *archiveReader) tentative(name string) place {
	if mayBeInsights(name) {
		return place{role: rolePending, root: "."}
	}
	for rel, role := range rolesByPath {
		if name == rel || strings.HasSuffix(name, "/"+rel) {
			root := path.Clean(strings.TrimSuffix(name, rel))
			if p := placeOf(root, rel); role != roleTime {
				return p
			}
		}
	}
	if p := inHeap(name); p.role != roleHeap || len(a.shown) == 0 {
		p.root = path.Dir(name)
		return p
	}
	return place{}
}

// final returns the place of a file whose place was tentative, now that the
// recordings are known.
func (a *archiveReader) final(f *file) place {
	p := f.place
	switch {
	case p.role == roleTime:
		if a.c.inside(p.root) {
			return place{}
		}
		return p
	case len(a.c.roots) == 0:
		if p.role != roleHeap {
			p = inHeap(f.path)
			p.root = path.Dir(f.path)
		}
		return p
	case p.role != rolePending:
		if p.role == roleHeap || !a.c.roots[p.root] {
			return place{}
		}
		return p
	}
	for root := path.Dir(f.path); ; root = path.Dir(root) {
		if a.c.roots[root] {
			rel, _ := below(root, f.path)
			return a.c.placeIn(root, rel)
		}
		if root == "." {
			return place{}
		}
	}
}

// settle finds the recordings, now that all folders are known, and leaves out
// the files that have no place.
func (a *archiveReader) settle() error {
	c := a.c
	if err := c.group.Wait(); err != nil {
		return err
	}
	c.start()
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
	for _, root := range insightsRoots(a.byPath) {
		if !c.roots[root] && !c.inside(root) {
			c.roots[root], c.insights[root] = true, true
		}
	}
	if a.dropped > 0 && (len(c.roots) == 0 || len(c.insights) > 0) {
		return a.tooMany()
	}
	count := 0
	var raw []*file // whose documents are not decoded yet
	all := c.files
	c.files = nil
	for _, f := range all {
		if f.replaced {
			continue
		}
		if f.tentative {
			f.place = a.final(f)
		}
		switch {
		case f.place.role == roleNone || !f.tentative && !c.roots[f.place.root]:
		case f.place.role.holdsObjects() && f.raw != nil:
			raw = append(raw, f)
		default:
			c.files = append(c.files, f)
		}
	}
	bytes, objects := c.sure.bytes.Load(), c.sure.objects.Load()
	for _, f := range c.files {
		if f.limit != nil {
			return f.limit
		}
		if f.tentative {
			bytes, objects = bytes+f.bytes, objects+int64(len(f.objects))
		}
		if count++; count > c.o.MaxFiles {
			return a.tooMany()
		}
	}
	for _, f := range raw {
		data := f.raw
		f.raw, f.tentative = nil, false
		c.add(f, func() ([]byte, error) { return data, nil })
	}
	return c.check(bytes, objects)
}
