package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// folder is a folder of a tree.
type folder struct {
	path string // as the walk got there
	real string // without links
	// above are the real paths of the folders that lead here.
	above []string
}

// walk finds the recordings of a tree, or else its manifests, and has them read.
// Its errors are limits, and those of the only archive in a tree.
func (c *collection) walk(fsys fs.FS) error {
	w := &walk{c: c, fsys: fsys}
	w.search(folder{path: ".", real: "."})
	if w.err != nil {
		return w.err
	}
	isManifest := func(f foundFile) bool { return f.place.role == roleHeap }
	if len(c.roots) == 0 && len(w.archives) > 0 && !slices.ContainsFunc(w.found, isManifest) {
		return w.archive()
	}
	for _, f := range w.found {
		if f.outside && f.place.role != roleTime && len(c.roots) > 0 {
			continue
		}
		if w.count++; w.count > c.o.MaxFiles {
			return &clusterapi.LimitError{Limit: "MaxFiles", Max: int64(c.o.MaxFiles), What: "files"}
		}
		if f.place.role == roleFragment {
			c.files = append(c.files, &file{path: f.path, place: f.place})
			continue
		}
		c.add(&file{path: f.path, place: f.place}, func() ([]byte, error) { return w.read(f.real) })
		if c.ctx.Err() != nil {
			break
		}
	}
	return w.err
}

type walk struct {
	c       *collection
	fsys    fs.FS
	folders int
	count   int
	found   []foundFile
	// archives are files outside of recordings whose name is an archive's.
	archives []foundFile
	err      error
}

type foundFile struct {
	path, real string
	place      place
	outside    bool // of recordings
}

// archive reads the only archive of a tree that has nothing else.
func (w *walk) archive() error {
	if len(w.archives) > 1 {
		var names []string
		for _, f := range w.archives {
			names = append(names, f.path)
		}
		return fmt.Errorf("%d archives, of which one is to be opened: %s", len(names), bounded.Join(names, ", ", 1<<10))
	}
	only := w.archives[0]
	f, err := regular.Open(w.fsys, only.real)
	if err != nil {
		return fmt.Errorf("%s: %w", only.path, err)
	}
	defer f.Close()
	if err := w.c.archive(f); err != nil {
		return fmt.Errorf("%s: %w", only.path, err)
	}
	return nil
}

func (w *walk) read(name string) ([]byte, error) {
	f, err := regular.Open(w.fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var size int64
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	return w.c.readAll(name, size, f)
}

// search looks for recordings below a folder.
func (w *walk) search(at folder) {
	entries := w.list(at)
	for _, e := range entries {
		w.c.note(at.path, e.name)
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.folder != nil && slices.Contains(folders, e.name) }) {
		w.c.roots[at.path] = true
		w.recording(at.path, entries)
		return
	}
	if w.has(entries, insightsVersion) && w.has(entries, insightsGathers) {
		w.c.roots[at.path], w.c.insights[at.path] = true, true
		w.recording(at.path, entries)
		return
	}
	for _, e := range entries {
		if e.folder != nil {
			w.search(*e.folder)
			continue
		}
		name := path.Join(at.path, e.name)
		if p := inHeap(name); p.role != roleNone {
			p.root = at.path
			w.found = append(w.found, foundFile{path: name, real: e.real, place: p, outside: true})
		}
		if isArchive(e.name) {
			w.archives = append(w.archives, foundFile{path: name, real: e.real})
		}
	}
}

// has reports whether a file exists in a folder with the given entries.
func (w *walk) has(entries []entry, name string) bool {
	dir, base := path.Split(name)
	for _, e := range entries {
		if e.folder != nil && e.name == path.Clean(dir) {
			return slices.ContainsFunc(w.list(*e.folder), func(e entry) bool { return e.folder == nil && e.name == base })
		}
	}
	return false
}

// note remembers what the name of an entry says about who wrote its folder.
func (c *collection) note(folder, name string) {
	if slices.Contains(gathered, name) {
		c.gathered[folder] = true
	}
	if name == "must-gather.logs" {
		c.logged[folder] = true
	}
}

// recording takes the files of a recording that have a place in it.
func (w *walk) recording(root string, entries []entry) {
	for _, e := range entries {
		if e.folder == nil {
			name := path.Join(e.parent, e.name)
			rel, _ := below(root, name)
			if p := w.c.placeIn(root, rel); p.role != roleNone {
				w.found = append(w.found, foundFile{path: name, real: e.real, place: p})
			}
			continue
		}
		if rel, _ := below(root, e.folder.path); w.c.mayHold(root, rel) {
			w.c.noteSpace(rel)
			w.recording(root, w.list(*e.folder))
		}
	}
}

// entry is a file or folder.
type entry struct {
	parent, name string
	real         string
	folder       *folder // nil for a file
}

// list returns the entries of a folder in byte order. Links are followed as long
// as they stay in the tree.
func (w *walk) list(at folder) []entry {
	if w.err == nil {
		w.err = w.c.ctx.Err()
	}
	if w.err != nil {
		return nil
	}
	if w.folders++; w.folders > w.c.o.MaxFiles {
		w.err = &clusterapi.LimitError{Limit: "MaxFiles", Max: int64(w.c.o.MaxFiles), What: "folders"}
		return nil
	}
	found, err := fs.ReadDir(w.fsys, at.real)
	if err != nil {
		w.c.ignore(at.path, err)
		w.c.incomplete[at.path] = true
	}
	var out []entry
	for _, d := range found {
		e := entry{parent: at.path, name: d.Name(), real: path.Join(at.real, d.Name())}
		name := path.Join(at.path, d.Name())
		mode := d.Type()
		if mode&fs.ModeSymlink != 0 {
			e.real, mode, err = regular.Resolve(w.fsys, e.real)
			if err != nil {
				w.c.ignore(name, err)
				w.c.incomplete[name] = true
				continue
			}
		}
		switch {
		case mode.IsDir():
			above := append(slices.Clone(at.above), at.real)
			if slices.Contains(above, e.real) {
				w.c.ignore(name, errors.New("a link to a folder that it is in"))
				continue
			}
			e.folder = &folder{name, e.real, above}
		case !mode.IsRegular():
			w.c.ignore(name, errors.New("neither a file nor a folder"))
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out
}
