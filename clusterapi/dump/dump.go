package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Recording is what was recorded of a cluster. It is immutable and safe for
// concurrent use: a [clusterapi.Reader] and [clusterapi.Shared] that only reads.
// Open one with [Open] or [OpenArchive].
type Recording struct {
	kinds    map[schema.GroupKind]*kind
	served   *served
	claims   claims
	spaces   namespaces
	skip     map[schema.GroupKind]bool
	problems []Problem
	alerts   []clusterapi.Alert // nil: not recorded
	now      time.Time
}

var _ interface {
	clusterapi.Reader
	clusterapi.Shared
} = (*Recording)(nil)

// Open reads a recording: a tree that oc adm must-gather, oc adm inspect, the Insights
// operator or [Record] wrote, or else every YAML and JSON file of a heap of manifests,
// or else the only archive that is in the tree, as [OpenArchive] does. Links are
// followed as long as they stay in the tree.
//
// What cannot be used is among the problems of the recording. The error is ctx's, a
// [*clusterapi.LimitError], a [*ClustersError], or one that reports a negative option, a
// panic of fsys, several archives, an archive in another format, or that nothing could be
// read as an object.
func Open(ctx context.Context, fsys fs.FS, o Options) (*Recording, error) {
	return open(ctx, o, func(c *collection) error { return c.walk(fsys) })
}

// OpenFile opens a folder as [Open] does, or an archive as [OpenArchive] does. Its errors
// start with the name.
func OpenFile(ctx context.Context, name string, o Options) (*Recording, error) {
	r, err := openFile(ctx, name, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func openFile(ctx context.Context, name string, o Options) (*Recording, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return Open(ctx, os.DirFS(name), o)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return OpenArchive(ctx, f, o)
}

// OpenArchive is [Open] for a .tar or .tar.gz stream, which it recognises by its
// content. It reads the stream once, to its end, and keeps what Open would read of the
// files in it. Of an archive that is cut off it has what comes before the cut. What it
// passes over, such as logs, has to be decompressed: an archive that has more than
// MaxBytes and 64 times its compressed size is refused, and so is another format, such
// as .zip or .tar.xz. Other errors are those of Open; those of the stream are problems.
func OpenArchive(ctx context.Context, r io.Reader, o Options) (*Recording, error) {
	return open(ctx, o, func(c *collection) error { return c.archive(r) })
}

func open(ctx context.Context, o Options, find func(*collection) error) (*Recording, error) {
	whole := o.Whole != nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newCollection(ctx, o)
	err = panics.Catch(func() error { return find(c) }) // what is read is the caller's
	if wait := c.wait(); err == nil {
		err = wait
	}
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	if o.Root != "" {
		err = c.only(o.Root)
	}
	if err == nil {
		err = c.oneCluster()
	}
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	r, err := assemble(c, whole)
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	return r, nil
}

// Problem is a file or document that could not be used, or something about them
// that does not fit. It is plain data.
type Problem struct {
	// Path is the file's path; empty for the recording as a whole.
	Path string
	// Document is the number of the document in the file, and Line where it, or its
	// fault, starts. Both count from 1; 0 stands for the file as a whole.
	Document, Line int
	Err            error
}

// String says where and what.
func (p Problem) String() string {
	var where []string
	if p.Path != "" {
		where = append(where, p.Path)
	}
	if p.Document > 0 {
		where = append(where, fmt.Sprintf("document %d", p.Document))
	}
	if p.Line > 0 {
		where = append(where, fmt.Sprintf("line %d", p.Line))
	}
	if len(where) == 0 {
		return p.Err.Error()
	}
	return strings.Join(where, ", ") + ": " + p.Err.Error()
}

// Problems returns what could not be used, by path, document and line. The
// result belongs to the caller.
func (r *Recording) Problems() []Problem { return append([]Problem(nil), r.problems...) }

// Firing returns the alerts that the recording has, pending ones too: those of its
// Prometheus or, in an Insights archive, of its Alertmanager. The error is
// [clusterapi.ErrNotCollected] if none were recorded, or ctx's. The alerts are shared
// and must not be changed.
func (r *Recording) Firing(ctx context.Context) ([]clusterapi.Alert, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.alerts == nil {
		return nil, fmt.Errorf("alerts: %w", clusterapi.ErrNotCollected)
	}
	return slices.Clone(r.alerts), nil
}

// Time returns the time at which the recording was made, the present of everything
// reported about it: [Options].Now; else the latest of its timestamps; else the
// latest transition of a condition of the ClusterVersion or a ClusterOperator; else
// the latest time in managedFields, conditions and creationTimestamps. It is zero
// if the recording has no time at all.
func (r *Recording) Time() time.Time { return r.now }

// Age returns how long before [Recording.Time] t was, in nanoseconds as every
// Duration; zero for what is later, and where the time is not known.
func (r *Recording) Age(t time.Time) time.Duration { return max(r.now.Sub(t), 0) }

// errNothing is the error for a tree without objects.
func errNothing(problems []Problem) error {
	err := errors.New("no object could be read")
	if len(problems) == 0 {
		return err
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more problems)", n)
	}
	first := problems[0]
	return fmt.Errorf("%w: %s%s", err, first, more)
}
