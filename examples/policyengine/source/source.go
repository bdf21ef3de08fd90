package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

//go:embed sample
var sample embed.FS

// Options say what graphs are made of. The zero value means the sample.
type Options struct {
	// Tree is a directory, or an archive: a tar compressed with gzip. Empty: the
	// sample, whose releases are built in too.
	Tree string
	// Releases are places of releases: a file of JSON, one a line; a graph as the
	// builder of an update service stores it (.json); an OCI layout, a directory or
	// a .tar; or a directory of payloads. The repository that images of a layout
	// are pulled from follows it, as in layout=registry.example/ocp/release.
	Releases []string
	// Signatures are more places of signatures: directories, or addresses of stores.
	// Those in directories of Releases are found without.
	Signatures []string
	// Arch is the architecture of payloads and of releases that are made up; empty
	// means amd64.
	Arch string
	// Approximate makes up the releases that only channels name, with the updates
	// that the tree's build suggestions ask for. Where a tree is all that there is,
	// this is always done.
	Approximate bool
	// Compat reads and builds as the existing update service does.
	Compat bool
}

// DeclareReleases declares the flags of releases.
func (o *Options) DeclareReleases(f *flag.FlagSet) {
	f.Var((*program.List)(&o.Releases), "releases",
		"`place` of releases: an OCI layout (LAYOUT=REPOSITORY), a directory of payloads, JSON lines or a stored graph; may be repeated")
	f.StringVar(&o.Arch, "arch", "amd64", "`architecture` of payloads and of releases that are made up")
}

// Source makes graphs. It is safe for concurrent use. Make one with [New].
type Source struct {
	o Options

	mu      sync.Mutex
	seen    [sha256.Size]byte // what the last good load was made of
	last    Last
	archive []byte // of the tree that the snapshot is of
	changed time.Time
	// components are the component images of the releases read so far, by digest.
	components map[string]map[string]string
}

// New returns a source that has loaded nothing yet.
func New(o Options) *Source {
	return &Source{o: o, components: map[string]map[string]string{}}
}

// Last is the result of the last load.
type Last struct {
	Snapshot *graphdata.Snapshot // of the last load that was good; nil if absent
	Revision string              // of the snapshot
	Loaded   time.Time           // when that was
	Problems []graphdata.Problem // of the last load
	Err      error               // why it failed
	Findings []graphdata.Problem // what maintain.Lint found in the tree of the snapshot
}

// Last returns the result of the last load.
func (s *Source) Last() Last {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Load makes a graph, or returns the last one while no file has another size or time
// than then. The error is about a file, a [*graphdata.LoadError], or from
// [graphdata.Build].
func (s *Source) Load(ctx context.Context) (*graphdata.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.fingerprint(ctx)
	if err == nil && s.last.Err == nil && s.last.Snapshot != nil && now == s.seen {
		s.last.Loaded = time.Now()
		return s.last.Snapshot, nil
	}
	if err == nil {
		err = s.build(ctx)
	}
	s.last.Err = err
	if err != nil {
		var bad *graphdata.LoadError
		s.last.Problems = nil
		if errors.As(err, &bad) {
			s.last.Problems = bad.Problems
		}
		return nil, err
	}
	s.seen = now
	s.last.Loaded = time.Now()
	return s.last.Snapshot, nil
}

// build reads everything, and keeps what it finds odd.
func (s *Source) build(ctx context.Context) error {
	fsys, err := s.o.OpenTree()
	if err != nil {
		return err
	}
	tree, err := graphdata.Load(ctx, fsys, graphdata.LoadOptions{Compat: s.o.Compat})
	if err != nil {
		return err
	}
	snapshot, releases, problems, err := s.o.Build(ctx, fsys, tree)
	if err != nil {
		return err
	}
	signatures, err := s.o.OpenSignatures()
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := graphdata.WriteArchive(&archive, fsys); err != nil {
		return err
	}
	if !bytes.Equal(s.archive, archive.Bytes()) {
		s.archive, s.changed = archive.Bytes(), time.Now()
	}
	clean := *tree
	clean.Problems = nil // they are shown already
	incomplete, err := s.incomplete(ctx, releases)
	if err != nil {
		return err
	}
	s.last.Snapshot, s.last.Revision = snapshot, snapshot.Revision()
	s.last.Findings = maintain.Lint(&clean, snapshot, maintain.LintOptions{})
	s.last.Problems = slices.Concat(problems, snapshot.Report().Problems, unsigned(signatures, releases), incomplete)
	return nil
}

// GraphData opens the archive of the tree that the last good load read. The error
// reports that there was none.
func (s *Source) GraphData() (io.ReadSeeker, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.archive == nil {
		return nil, time.Time{}, errors.New("no tree has been read yet")
	}
	return bytes.NewReader(s.archive), s.changed, nil
}

// Build reads the releases and builds the graph of a tree with them. The error is
// about a file, or from [graphdata.Build].
func (o Options) Build(ctx context.Context, fsys fs.FS, tree *graphdata.Tree) (*graphdata.Snapshot, []graphdata.Release, []graphdata.Problem, error) {
	o.Arch = cmp.Or(o.Arch, "amd64")
	sources, closeAll, err := o.sources(fsys)
	if err != nil {
		return nil, nil, nil, err
	}
	defer closeAll()
	releases, problems, err := graphdata.Collect(ctx, sources...)
	if err != nil {
		return nil, nil, nil, err
	}
	if o.Approximate || o.Tree != "" && len(o.Releases) == 0 {
		made, problem := approximate(tree, releases, o.Arch)
		releases = append(releases, made...)
		problems = append(problems, problem...)
	}
	partial := len(o.Releases) > 0 || o.Tree != ""
	snapshot, err := graphdata.Build(tree, releases, graphdata.BuildOptions{Compat: o.Compat, Partial: partial})
	return snapshot, releases, append(problems, tree.Problems...), err
}

// Refused returns err as an answer of no, see [program.No], if it is that a tree is
// wrong. It returns other errors, and that of a tree whose files are absent, as they are.
func Refused(err error) error {
	if errors.As(err, new(*graphdata.LoadError)) && !errors.As(err, new(*fs.PathError)) {
		return program.No(err)
	}
	return err
}

// OpenTree opens the tree: a directory, an archive, or the sample. The error is
// about the file, or from [graphdata.OpenArchive].
func (o Options) OpenTree() (fs.FS, error) {
	if o.Tree == "" {
		return fs.Sub(sample, "sample")
	}
	info, err := os.Stat(o.Tree)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return os.DirFS(o.Tree), nil
	}
	f, err := os.Open(o.Tree)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fsys, err := graphdata.OpenArchive(f, graphdata.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Tree, err)
	}
	return fsys, nil
}

// fingerprint shows whether files have changed, by their names, sizes and times.
func (s *Source) fingerprint(ctx context.Context) (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	places := append([]string{s.o.Tree}, s.o.Releases...)
	for i, place := range places {
		option := "-tree"
		if i > 0 {
			option = "-releases"
			place, _ = cutRepository(place)
		}
		if place == "" {
			continue
		}
		err := filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == ".git" && name != place {
				return filepath.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(hash, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			return nil
		})
		if err != nil {
			return sum, fmt.Errorf("%s: %w", option, err)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
