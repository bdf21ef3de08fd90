package graphdata

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// LoadOptions change how a tree is read. The zero value is strict.
type LoadOptions struct {
	// Compat does what an update service does: it ignores a file that it does not
	// understand, so that a channel vanishes and blocked updates stay open, and
	// accepts what it does not look at. compat.go lists the points. Each is a
	// problem of the tree.
	Compat bool
	// InternalChannels reads the directory internal-channels too. It is not in
	// published archives, and no graph is built from it: only package maintain looks at it.
	InternalChannels bool
	// Limits bound what is read.
	Limits Limits
}

// Load reads a tree: the directory of a checkout as os.DirFS gives it, an archive
// as [OpenArchive] does, or files in memory. Files are read one after another, in
// the order of their names.
//
// The error is a [*LoadError] with every problem that was found, or ctx's. Under
// Compat only what keeps an update service from building a graph is one: a
// directory, version or raw/metadata.json that is missing or cannot be read.
func Load(ctx context.Context, fsys fs.FS, opts LoadOptions) (*Tree, error) {
	if err := options.NonNegative(opts); err != nil {
		return nil, err
	}
	l := &loader{ctx: ctx, fsys: fsys, opts: opts, limits: opts.Limits.withDefaults(), tree: &Tree{}, expressions: map[string]error{}}
	err := l.load()
	slices.SortFunc(l.problems, compareProblems)
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		// The rest of the tree is not read: nothing reports what it holds.
		l.problems = append(l.problems, Problem{Rule: ruleLimit, Message: limit.Error(), Err: limit})
		return nil, &LoadError{Problems: l.problems}
	case err != nil:
		return nil, err
	}
	l.tree.Problems = l.problems
	if l.fatal || l.failed && !opts.Compat {
		return nil, &LoadError{Problems: l.problems, Tree: l.tree}
	}
	return l.tree, nil
}

// loader is one call of Load.
type loader struct {
	ctx    context.Context
	fsys   fs.FS
	opts   LoadOptions
	limits Limits
	tree   *Tree

	newer  bool // the schema is of a newer minor: unknown keys are warnings
	failed bool // there is an error, which a strict Load returns
	fatal  bool // there is an error that Compat returns too

	problems    []Problem
	files       int
	bytes       int64
	entries     int
	expressions map[string]error // what CompileFrom says
}

// load reads the parts of the tree. It returns an error where reading ends: of
// the context, or a limit of the whole tree.
func (l *loader) load() error {
	steps := []func() error{
		l.loadVersion,
		l.loadRaw,
		func() error { return l.directory("channels", true, l.loadChannel(&l.tree.Channels)) },
		func() error { return l.directory("blocked-edges", true, l.loadBlockedEdge) },
		func() error { return l.directory("build-suggestions", false, l.loadSuggestions) },
	}
	if l.opts.InternalChannels {
		steps = append(steps, func() error {
			return l.directory("internal-channels", false, l.loadChannel(&l.tree.Internal))
		})
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// directory reads the files of a directory, not of directories below it. In a
// required one, an entry that is not read is an error: a blocked edge that nobody
// reads leaves its updates open.
func (l *loader) directory(dir string, required bool, load func(name string) error) error {
	entries, err := fs.ReadDir(l.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil
	}
	if err != nil {
		l.fatal = true
		l.add(Problem{File: dir, Rule: ruleRead, Message: err.Error(), Err: err})
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := l.count(); err != nil {
			return err
		}
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			if err := l.below(name, !required); err != nil {
				return err
			}
			continue
		}
		if l.chosen(name, !required) {
			if err := load(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// below reports a directory if there should be none, and the files in it that look
// as if they counted. The maintainers' scripts read them, a service does not. A
// hidden directory is at most a warning.
func (l *loader) below(dir string, warn bool) error {
	if p := unreadEntry(dir, true); p != nil {
		p.Warning = warn
		l.add(*p)
	} else {
		warn = true
	}
	return fs.WalkDir(l.fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			l.add(Problem{File: name, Rule: ruleRead, Message: err.Error(), Warning: warn, Err: err})
			return nil
		}
		if err := l.count(); err != nil {
			return err
		}
		if !d.IsDir() && path.Ext(name) == ".yaml" {
			l.add(Problem{File: name, Rule: ruleBelow, Message: "is not read, since it lies in a directory below", Warning: warn})
		}
		return nil
	})
}

// count counts a file or directory that is looked at.
func (l *loader) count() error {
	l.files++
	if l.files > l.limits.MaxFiles {
		return &LimitError{What: limitFiles, Max: int64(l.limits.MaxFiles)}
	}
	return l.ctx.Err()
}

// read returns the content of a file. The error is a limit of the file, or the file
// system's. It is fatal if it is the context's or a limit of the tree.
func (l *loader) read(name string) (text []byte, fatal, err error) {
	if err := l.ctx.Err(); err != nil {
		return nil, err, nil
	}
	f, err := regular.Open(l.fsys, name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var buffer bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() > 0 && info.Size() <= l.limits.MaxFileBytes {
		buffer.Grow(int(info.Size()) + bytes.MinRead) // most files are read in one piece
	}
	_, err = buffer.ReadFrom(io.LimitReader(f, l.limits.MaxFileBytes+1))
	text = buffer.Bytes()
	l.bytes += int64(len(text))
	if l.bytes > l.limits.MaxTreeBytes { // what cannot be used counts
		return nil, &LimitError{What: limitTreeBytes, Max: l.limits.MaxTreeBytes}, nil
	}
	if err == nil && int64(len(text)) > l.limits.MaxFileBytes {
		err = &LimitError{What: limitFileBytes, Max: l.limits.MaxFileBytes}
	}
	if err != nil {
		return nil, nil, err
	}
	return text, nil, nil
}

// unread reports a file that cannot be read.
func (l *loader) unread(name string, err error) {
	rule := ruleRead
	if errors.As(err, new(*LimitError)) {
		rule = ruleLimit
	}
	l.add(Problem{File: name, Rule: rule, Message: err.Error(), Err: err})
}

// add keeps a problem.
func (l *loader) add(p Problem) {
	if !p.Warning {
		l.failed = true
	}
	switch n := len(l.problems); {
	case n < l.limits.MaxProblems:
		l.problems = append(l.problems, p)
	case n == l.limits.MaxProblems:
		l.problems = append(l.problems, Problem{Rule: ruleLimit, Message: "there are more problems than are listed", Warning: true,
			Err: &LimitError{What: limitProblems, Max: int64(l.limits.MaxProblems)}})
	}
}

// compatExtension is what the update service asks of extensions: anywhere in it.
var compatExtension = regexp.MustCompile(`ya+ml`)

// chosen reports whether a file of a directory is one to read. The others are
// problems of a severity, unless they are expected.
func (l *loader) chosen(name string, warn bool) bool {
	extension, has := extensionOf(path.Base(name))
	if l.opts.Compat && has && compatExtension.MatchString(extension) {
		return true
	}
	p := unreadEntry(name, false)
	if p == nil {
		return has && extension == "yaml"
	}
	p.Warning = warn
	l.add(*p)
	return false
}

// unreadEntry returns the problem of an entry that neither is read nor may be
// there; nil if it is read or expected.
func unreadEntry(name string, directory bool) *Problem {
	base := path.Base(name)
	extension, has := extensionOf(base)
	p := &Problem{File: name}
	switch {
	case directory && strings.HasPrefix(base, "."), !directory && expected(base), !directory && has && extension == "yaml":
		return nil
	case directory:
		p.Rule, p.Message = ruleDirectory, "is a directory, whose files are not read"
	case has:
		p.Rule, p.Message = ruleInvalidExtension, fmt.Sprintf("has an invalid extension %q", extension)
	default:
		p.Rule, p.Message = ruleMissingExtension, "is missing an extension"
	}
	return p
}

// expected reports whether a file that is not read is as it should be.
func expected(base string) bool {
	return base == "README.md" || base == "OWNERS" || strings.HasPrefix(base, ".")
}

// extensionOf returns what follows the last dot of a name. A dot at the beginning
// does not count.
func extensionOf(base string) (extension string, has bool) {
	i := strings.LastIndexByte(base, '.')
	if i <= 0 {
		return "", false
	}
	return base[i+1:], true
}

// newestSchema is the newest schema version of trees that [Load] knows. Those
// with the same major are read, newer ones with warnings.
const newestSchema = "1.2.0"

var schemaVersion = semver.MustParse(newestSchema)

// loadVersion reads the file version, without which there is no tree.
func (l *loader) loadVersion() error {
	const name = "version"
	fatal := func(rule string, err error) {
		l.fatal = true
		l.add(Problem{File: name, Rule: rule, Message: err.Error(), Err: err})
	}
	text, stop, err := l.read(name)
	if stop != nil {
		return stop
	}
	if err != nil {
		fatal(ruleRead, fmt.Errorf("Reading %q: %w", name, err)) //nolint:staticcheck // in the words of the update service
		return nil
	}
	version := strings.TrimSpace(string(text))
	l.tree.SchemaVersion = version
	read := version
	if l.opts.Compat {
		read = compatNumbers(version)
	}
	v, err := graph.ParseVersion(read)
	switch {
	case err != nil:
		fatal(ruleSchema, &SchemaError{Version: bounded.Text(version, bounded.MaxQuoted), Malformed: true})
	case v.Major() != schemaVersion.Major():
		fatal(ruleSchema, &SchemaError{Version: bounded.Text(version, bounded.MaxQuoted)})
	case v.Minor() > schemaVersion.Minor():
		l.newer = true
		l.add(Problem{File: name, Rule: ruleSchemaNewer, Warning: true,
			Message: fmt.Sprintf("%s is newer than %s: what it adds is not understood", bounded.Text(version, bounded.MaxQuoted), newestSchema)})
	}
	return nil
}
