package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// Layout is images in files: an OCI image layout, or a mirror on disk. It is a
// [Store], and safe for concurrent use if its file system is. Make one with
// [OpenLayout].
type Layout struct {
	fsys   fs.FS
	name   string
	limits Limits
	form   form
}

var _ Store = (*Layout)(nil)

// form is how images lie in files.
type form interface {
	// entries returns what the layout names.
	entries(l *Layout) ([]Descriptor, error)
	// paths returns where a manifest or blob can be: the first that is there counts.
	// kind is "manifests" or "blobs".
	paths(repository, kind, digest string) []string
}

// OpenLayout opens images that lie in a file system in a form of this list:
//
//   - an OCI image layout: oci-layout, index.json and blobs,
//   - v2/<repository>/{manifests,blobs}/<digest>, from oc adm release mirror --to-dir
//     and oc image mirror file://,
//   - docker/registry/v2, the cache of oc-mirror and the storage of registries,
//   - mirror_NNNNNN.tar, archives of oc-mirror, which belong together.
//
// name is what errors call it. Errors are those from reading, [*limit.LimitError],
// and one if there are no images of any form.
func OpenLayout(fsys fs.FS, name string, limits Limits) (*Layout, error) {
	limits, err := limits.complete()
	if err != nil {
		return nil, err
	}
	l := &Layout{fsys: fsys, name: name, limits: limits}
	if !has(fsys, "oci-layout") && !has(fsys, mirrorRoot) && !has(fsys, storageRoot) {
		l.fsys, err = openArchives(fsys, limits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case has(l.fsys, "oci-layout"):
		l.form = index{}
	case has(l.fsys, mirrorRoot):
		repositories, err := l.repositories(mirrorRoot, "manifests")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l.form = mirror{repositories}
	case has(l.fsys, storageRoot):
		l.form = storage{}
	default:
		return nil, fmt.Errorf("%s holds no images: neither oci-layout nor %s, %s or %s",
			name, mirrorRoot, storageRoot, archives)
	}
	return l, nil
}

func has(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// Entries returns the indexes and images that the layout names. The annotation
// [RefName] of one in a mirror is its repository, and its tag if it has one. Errors are
// those of reading and [*limit.LimitError].
func (l *Layout) Entries() ([]Descriptor, error) {
	entries, err := l.form.entries(l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	return entries, nil
}

// Tagged returns the entries whose reference name is a tag, or ends in one.
func (l *Layout) Tagged(tag string) ([]Descriptor, error) {
	entries, err := l.Entries()
	return slices.DeleteFunc(entries, func(d Descriptor) bool {
		name := d.Annotations[RefName]
		return name != tag && !strings.HasSuffix(name, ":"+tag)
	}), err
}

// Manifest implements [Store]. The repository hints at where to look first.
func (l *Layout) Manifest(_ context.Context, repository, reference string) (io.ReadCloser, error) {
	if CheckDigest(reference) == nil {
		return l.open(repository, "manifests", reference)
	}
	digest, err := l.tag(repository, reference)
	if err != nil {
		return nil, err
	}
	return l.open(repository, "manifests", digest)
}

// tag returns the digest that a tag has in a repository, or in the only place that has
// the tag: the names of a mirror's repositories may be others.
func (l *Layout) tag(repository, tag string) (string, error) {
	tagged, err := l.Tagged(tag)
	if err != nil {
		return "", err
	}
	digests := map[string]bool{}
	for _, d := range tagged {
		name := strings.TrimSuffix(d.Annotations[RefName], ":"+tag)
		if name == repository || strings.HasSuffix(repository, "/"+name) {
			return d.Digest, nil
		}
		digests[d.Digest] = true
	}
	switch len(digests) {
	case 0:
		return "", &fs.PathError{Op: "open", Path: bounded.Quote(tag), Err: fs.ErrNotExist}
	case 1:
		return tagged[0].Digest, nil
	}
	return "", fmt.Errorf("%d images have the tag %s, none in repository %s",
		len(digests), bounded.Quote(tag), bounded.Quote(repository))
}

// Blob implements [Store].
func (l *Layout) Blob(_ context.Context, repository, digest string) (io.ReadCloser, error) {
	return l.open(repository, "blobs", digest)
}

func (l *Layout) open(repository, kind, digest string) (io.ReadCloser, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	paths := l.form.paths(repository, kind, digest)
	missing := error(&fs.PathError{Op: "open", Path: digest, Err: fs.ErrNotExist})
	for _, name := range paths {
		f, err := regular.Open(l.fsys, name)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = err
	}
	if _, ok := l.form.(storage); ok {
		return nil, fmt.Errorf("%s is not here: archives of oc-mirror are incremental, an earlier one may hold it: %w",
			digest, missing)
	}
	return nil, missing
}

// repositories returns the folders below root that have a folder with a name, by
// their names.
func (l *Layout) repositories(root, marker string) ([]string, error) {
	var found []string
	count := int64(0)
	err := fs.WalkDir(l.fsys, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		count++
		if err := l.limits.entries("the folders of the mirror").Check(count); err != nil {
			return err
		}
		switch base := d.Name(); {
		case !d.IsDir():
			return nil
		case base == marker && name != root:
			found = append(found, strings.TrimPrefix(path.Dir(name), root+"/"))
			return fs.SkipDir
		case base == "blobs" || strings.HasPrefix(base, "_"):
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// names returns what is in a folder, by name; nothing if it is not there.
func (l *Layout) names(dir string, count *int64) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(l.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	*count += int64(len(entries))
	return entries, errors.Join(err, l.limits.entries("the folders of the mirror").Check(*count))
}

// index is the form of OCI image layouts.
type index struct{}

func (index) entries(l *Layout) ([]Descriptor, error) {
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := l.decode("oci-layout", &version); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return nil, fmt.Errorf("an OCI layout of unknown version %s", bounded.Quote(version.Version))
	}
	var m Manifest
	if err := l.decode("index.json", &m); err != nil {
		return nil, err
	}
	return m.Manifests, nil
}

func (l *Layout) decode(name string, to any) error {
	f, err := regular.Open(l.fsys, name)
	if err != nil {
		return err
	}
	defer f.Close()
	size := l.limits.manifestSize()
	data, err := Read(context.Background(), f, size, &limit.Meter{Budget: limit.Budget{Bytes: limit.Limit{Max: noLimit}}})
	if err == nil {
		err = Decode(data, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (index) paths(_, _, digest string) []string { return []string{BlobPath(digest)} }

const (
	// mirrorRoot is the folder that oc adm release mirror and oc image mirror write to.
	mirrorRoot = "v2"
	// storageRoot is the folder in which registries keep what they hold.
	storageRoot = "docker/registry/v2"
)

// mirror is the form of oc image mirror: v2/<repository>/manifests/<digest>, to which tags
// are symbolic links, and v2/<repository>/blobs/<digest>. The colon of a digest
// is a hyphen on Windows.
type mirror struct{ repositories []string }

func (m mirror) entries(l *Layout) ([]Descriptor, error) {
	var out []Descriptor
	var count int64
	for _, repository := range m.repositories {
		dir := path.Join(mirrorRoot, repository, "manifests")
		files, err := l.names(dir, &count)
		if err != nil {
			return nil, err
		}
		in := newEntries(repository)
		for _, f := range files {
			if digest := digestOfName(f.Name()); digest != "" {
				in.add(digest, "")
			} else if target, err := fs.ReadLink(l.fsys, path.Join(dir, f.Name())); err == nil {
				in.add(digestOfName(path.Base(strings.ReplaceAll(target, `\`, "/"))), f.Name())
			}
		}
		out = append(out, in.sorted()...)
	}
	return out, nil
}

// digestOfName returns the digest that names a file; "" if none does.
func digestOfName(name string) string {
	if !strings.Contains(name, ":") {
		name = strings.Replace(name, "-", ":", 1)
	}
	if CheckDigest(name) != nil {
		return ""
	}
	return name
}

func (m mirror) paths(repository, kind, digest string) []string {
	var out []string
	add := func(repository string) {
		for _, kind := range slices.Compact([]string{kind, "blobs"}) { // manifests are blobs, too
			dir := path.Join(mirrorRoot, repository, kind)
			out = append(out, path.Join(dir, digest), path.Join(dir, strings.Replace(digest, ":", "-", 1)))
		}
	}
	if slices.Contains(m.repositories, repository) {
		add(repository)
	}
	for _, other := range m.repositories {
		if other != repository {
			add(other)
		}
	}
	return out
}

// storage is the form in which registries store images: repositories hold links to
// blobs, which they share.
type storage struct{}

func (storage) entries(l *Layout) ([]Descriptor, error) {
	root := path.Join(storageRoot, "repositories")
	if !has(l.fsys, root) {
		return nil, nil
	}
	repositories, err := l.repositories(root, "_manifests")
	if err != nil {
		return nil, err
	}
	var out []Descriptor
	var count int64
	for _, repository := range repositories {
		dir := path.Join(root, repository, "_manifests")
		in := newEntries(repository)
		algorithms, err := l.names(path.Join(dir, "revisions"), &count)
		if err != nil {
			return nil, err
		}
		for _, algorithm := range algorithms {
			revisions, err := l.names(path.Join(dir, "revisions", algorithm.Name()), &count)
			if err != nil {
				return nil, err
			}
			for _, r := range revisions {
				in.add(l.link(path.Join(dir, "revisions", algorithm.Name(), r.Name(), "link")), "")
			}
		}
		tags, err := l.names(path.Join(dir, "tags"), &count)
		if err != nil {
			return nil, err
		}
		for _, tag := range tags {
			in.add(l.link(path.Join(dir, "tags", tag.Name(), "current", "link")), tag.Name())
		}
		out = append(out, in.sorted()...)
	}
	return out, nil
}

// link returns the digest in a file; "" if absent.
func (l *Layout) link(name string) string {
	f, err := regular.Open(l.fsys, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if digest := strings.TrimSpace(string(text)); err == nil && CheckDigest(digest) == nil {
		return digest
	}
	return ""
}

func (storage) paths(_, _, digest string) []string {
	algorithm, sum, _ := strings.Cut(digest, ":")
	return []string{path.Join(storageRoot, "blobs", algorithm, sum[:2], sum, "data")}
}

// entries are those of one repository.
type entries struct {
	repository string
	tags       map[string][]string // by digest
}

func newEntries(repository string) *entries {
	return &entries{repository: repository, tags: map[string][]string{}}
}

// add adds a digest, under a tag if there is one.
func (e *entries) add(digest, tag string) {
	switch {
	case digest == "":
	case tag != "":
		e.tags[digest] = append(e.tags[digest], tag)
	case e.tags[digest] == nil:
		e.tags[digest] = []string{}
	}
}

// sorted returns the entries by tag, then those without a tag by digest.
func (e *entries) sorted() []Descriptor {
	var out []Descriptor
	add := func(digest, name string) {
		d := Unsized(digest)
		d.Annotations = map[string]string{RefName: name}
		out = append(out, d)
	}
	for digest, tags := range e.tags {
		for _, tag := range tags {
			add(digest, e.repository+":"+tag)
		}
		if len(tags) == 0 {
			add(digest, e.repository)
		}
	}
	slices.SortFunc(out, func(a, b Descriptor) int {
		x, y := a.Annotations[RefName], b.Annotations[RefName]
		tagged := cmp.Compare(strings.Count(y, ":"), strings.Count(x, ":"))
		return cmp.Or(tagged, cmp.Compare(x, y), cmp.Compare(a.Digest, b.Digest))
	})
	return out
}
