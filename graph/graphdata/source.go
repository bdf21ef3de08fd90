package graphdata

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// ReleaseSource knows releases. It need not be safe for concurrent use; those of
// this package are where their file systems are.
type ReleaseSource interface {
	// Releases yields each release, or why one is not known: such an error does
	// not end the sequence. The end of ctx does.
	Releases(ctx context.Context) iter.Seq2[Release, error]
}

// The limits on what sources read.
const (
	maxReleases = 200_000
	maxLine     = 1 << 20
)

// Collect returns the releases of all sources, in their order, and a problem for
// each that could not be read. The error is ctx's, or a [*LimitError].
func Collect(ctx context.Context, sources ...ReleaseSource) ([]Release, []Problem, error) {
	var releases []Release
	var problems []Problem
	for _, s := range sources {
		for r, err := range s.Releases(ctx) {
			if ended := ctx.Err(); ended != nil {
				return nil, nil, ended
			}
			if len(releases)+len(problems) == maxReleases {
				return nil, nil, &LimitError{What: limitReleases, Max: maxReleases}
			}
			if err != nil {
				problems = append(problems, Problem{File: r.Source, Rule: ruleRelease, Message: err.Error(), Err: err})
				continue
			}
			releases = append(releases, r)
		}
	}
	return releases, problems, ctx.Err()
}

// List is a source of releases in memory.
type List []Release

// Releases implements [ReleaseSource], without errors.
func (l List) Releases(context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		for _, r := range l {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Lines is a source of releases in a file of JSON, one a line. Empty lines do not count.
type Lines struct {
	FS   fs.FS
	Name string
}

// Releases implements [ReleaseSource]. A release without a source gets the file
// and its line. A line with an error is passed over, one that is too long ends the
// reading.
func (l Lines) Releases(ctx context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		f, err := regular.Open(l.FS, l.Name)
		if err != nil {
			yield(Release{Source: l.Name}, err)
			return
		}
		defer f.Close()
		scanner := bufio.NewScanner(f)
		scanner.Buffer(nil, maxLine)
		number := 0
		for scanner.Scan() && ctx.Err() == nil {
			number++
			if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
				continue
			}
			source := fmt.Sprintf("%s:%d", l.Name, number)
			r, err := decodeLine(scanner.Bytes())
			r.Source = cmp.Or(r.Source, source)
			if err != nil {
				r = Release{Source: source}
			}
			if !yield(r, err) {
				return
			}
		}
		err = scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = &LimitError{What: limitLine, Max: maxLine}
		}
		if err != nil {
			yield(Release{Source: fmt.Sprintf("%s:%d", l.Name, number+1)}, err)
		}
	}
}

func decodeLine(line []byte) (r Release, err error) {
	unknown, err := json.UnmarshalStrict(line, &r)
	err = cmp.Or(err, errors.Join(unknown...))
	if err != nil {
		err = errors.New(bounded.Text(err.Error(), bounded.MaxQuoted))
	}
	return r, err
}

// Payloads is a source of releases whose images were extracted, each into a
// directory of its own.
type Payloads struct {
	FS fs.FS
	// Describe completes the release in a directory by what its files do not say:
	// architecture, image and digest. An error leaves the release out. Nil: they
	// stay empty, and a release without an architecture is in no graph that is
	// served.
	Describe func(dir string, r *Release) error
}

// Releases implements [ReleaseSource]. It yields the directories by name; one that
// is not a payload is an error for it alone.
func (p Payloads) Releases(ctx context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		entries, err := fs.ReadDir(p.FS, ".")
		if err != nil {
			yield(Release{}, err)
			return
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				return
			}
			if !e.IsDir() {
				continue
			}
			r, err := p.read(e.Name())
			if err != nil {
				r = Release{Source: e.Name()}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (p Payloads) read(dir string) (Release, error) {
	sub, err := fs.Sub(p.FS, dir)
	if err != nil {
		return Release{}, err
	}
	r, err := readPayload(sub)
	if err != nil {
		return Release{}, err
	}
	r.Source = dir
	if p.Describe != nil {
		err = p.Describe(dir, &r)
	}
	return r, err
}

const metadataFile = "release-manifests/release-metadata"

// readPayload reads what an extracted release image says about itself: its version,
// the versions before and after it, and its metadata. Errors are about the file
// release-manifests/release-metadata, or name a value of the metadata that is not a
// string.
func readPayload(payload fs.FS) (Release, error) {
	f, err := regular.Open(payload, metadataFile)
	if err != nil {
		return Release{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, openshift.MaxMetadataSize+1))
	if err != nil {
		return Release{}, err
	}
	m, err := openshift.DecodeMetadata(text)
	if err != nil {
		return Release{}, fmt.Errorf("%s: %w", path.Base(metadataFile), err)
	}
	r := Release{Version: m.Version, Previous: m.Previous, Next: m.Next, Metadata: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		value, ok := m.Metadata[key].(string)
		if !ok {
			return Release{}, fmt.Errorf("%s: metadata.%s is not a text", path.Base(metadataFile), bounded.Text(key, bounded.MaxQuoted))
		}
		r.Metadata[key] = value
	}
	return r, nil
}

// Release is a release image, or a node of a stored graph: the input of a graph
// beside the tree. Its identity is the digest, never a tag.
type Release struct {
	// Version is the release's version. Where Arch is set, its build does not
	// matter.
	Version string `json:"version"`
	// Arch is a Go architecture, or "multi". Empty: version and metadata stay as
	// they are.
	Arch string `json:"arch,omitempty"`
	// Image is the pull spec, Digest the image's; empty if it is not known.
	Image  string `json:"image,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Previous and Next are the versions that may update to the release, and that
	// it may update to.
	Previous []string `json:"previous,omitempty"`
	Next     []string `json:"next,omitempty"`
	// Metadata go into the graph.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Source says where the release was read, for errors and problems.
	Source string `json:"source,omitempty"`
}
