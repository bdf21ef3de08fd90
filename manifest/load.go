package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/clusterupdate/clusterupdate/internal/release"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
)

// The places of things within a payload.
const (
	ownDir       = "manifests"         // templates of the version operator's own manifests
	releaseDir   = "release-manifests" // manifests of all other components
	imagesFile   = releaseDir + "/image-references"
	metadataFile = releaseDir + "/release-metadata"
)

// LoadOptions are the options of [Load].
type LoadOptions struct {
	// Image is the release image's pull spec. It becomes Release.Image, and
	// templates can refer to it.
	Image string
	// Architecture is the release's architecture if its metadata does not say
	// that it is Multi. Empty: none.
	Architecture configv1.ClusterVersionArchitecture
	// Filter decides which manifests are included; only the inputs of
	// [Filter.ForLoad] count. The zero value includes whatever has
	// annotations: see [DefaultFilter]. An unset MajorVersion means that of
	// the payload's own version; an unset Profile is [DefaultProfile] where
	// templates refer to it.
	Filter Filter
	// Limits bound what is read. The zero value has defaults.
	Limits Limits
	// Workers is how many files are decoded at once. 0: one per processor that
	// Go uses (GOMAXPROCS).
	Workers int
	// Dir is what errors call the payload. Empty: Image, or else "payload".
	Dir string
}

// Load reads a payload: all files of manifests/, which are templates, then
// those of release-manifests/, in the byte order of their names. Names that do
// not end in .yaml, .yml or .json are no manifests.
//
// A directory without one of the four parts of a payload is an error that
// errors.Is recognises as [fs.ErrNotExist]. Faults in manifests are all
// collected, and returned as one [*Error]: any fault fails the load. A template
// that does not parse or execute is skipped with a warning, since an older
// program must be able to load a newer payload.
func Load(ctx context.Context, fsys fs.FS, o LoadOptions) (*Payload, error) {
	for _, name := range []string{ownDir, releaseDir, metadataFile, imagesFile} {
		if _, err := fs.Stat(fsys, name); err != nil {
			return nil, err
		}
	}
	o.Limits = o.Limits.withDefaults()
	p, err := loadRelease(fsys, o)
	if err != nil {
		return nil, err
	}
	files, err := listFiles(fsys)
	if err != nil {
		return nil, err
	}
	l := newLoader(fsys, o, p)
	if err := l.load(ctx, files); err != nil {
		return nil, err
	}
	if len(l.faults) > 0 {
		dir := o.Dir
		if dir == "" {
			dir = o.Image
		}
		if dir == "" {
			dir = "payload"
		}
		return nil, &Error{
			Reason: ReasonPayloadIntegrity,
			Err:    fmt.Errorf("Error loading manifests from %s: %w", dir, aggregate(l.faults)), // a text that users search for
			Faults: l.faults,
		}
	}
	return p, nil
}

// loadRelease reads what the payload says about itself and its images.
func loadRelease(fsys fs.FS, o LoadOptions) (*Payload, error) {
	data, err := readFile(fsys, metadataFile, nil, o.Limits.FileSize)
	if err != nil {
		return nil, err
	}
	m, err := release.Decode(data)
	if err != nil {
		return nil, err
	}
	if data, err = readFile(fsys, imagesFile, nil, o.Limits.FileSize); err != nil {
		return nil, err
	}
	images, err := decodeImages(data, m.Version, o.Limits.ExpandedSize)
	if err != nil {
		return nil, err
	}
	known := m.Known()
	p := &Payload{
		Release: configv1.Release{
			Version:      m.Version,
			Image:        o.Image,
			URL:          configv1.URL(known.URL),
			Channels:     known.Channels,
			Architecture: o.Architecture,
		},
		Previous: m.Previous, Next: m.Next, Metadata: m.Metadata, Images: images,
	}
	if known.Multi {
		p.Release.Architecture = configv1.ClusterVersionArchitectureMulti
	}
	for _, w := range known.Warnings {
		p.Warnings = append(p.Warnings, Warning{File: metadataFile, Message: w})
	}
	return p, nil
}

// file is one file of a payload, and what became of it.
type file struct {
	dir, name string

	manifests []*Manifest
	reasons   []string // per manifest: why it is excluded
	warnings  []Warning
	fault     *Error
}

func (f *file) path() string { return f.dir + "/" + f.name }

// listFiles returns the manifest files of both directories in their order.
func listFiles(fsys fs.FS) ([]*file, error) {
	var files []*file
	for _, dir := range []string{ownDir, releaseDir} {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if !e.IsDir() && isManifestFile(e.Name()) {
				files = append(files, &file{dir: dir, name: e.Name()})
			}
		}
	}
	return files, nil
}

func isManifestFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}

// loader reads the files of a payload with several workers.
type loader struct {
	fsys    fs.FS
	payload *Payload
	limits  Limits
	workers int
	filter  Filter
	data    templateData
	faults  []*Error

	// Of all files so far. What is beyond a limit is dropped; that the limit was
	// passed shows at the end, so that the workers' order does not.
	size, documents atomic.Int64
}

func newLoader(fsys fs.FS, o LoadOptions, p *Payload) *loader {
	l := &loader{fsys: fsys, payload: p, limits: o.Limits, workers: o.Workers, filter: o.Filter.ForLoad()}
	if l.workers < 1 {
		l.workers = goruntime.GOMAXPROCS(0)
	}
	if l.filter.MajorVersion == nil {
		l.filter.MajorVersion = p.majorVersion()
	}
	l.data = templateData{ReleaseImage: o.Image, ClusterProfile: DefaultProfile, Images: p.Images}
	if l.filter.Profile != nil {
		l.data.ClusterProfile = *l.filter.Profile
	}
	return l
}

// load reads all files and puts together what came of them, in their order.
// The error is the context's; faults of files are collected.
func (l *loader) load(ctx context.Context, files []*file) error {
	if len(files) > l.limits.Files {
		l.exceeded("Files", int64(l.limits.Files), "manifest files")
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(l.workers, len(files)) {
		group.Go(func() error {
			d := newDecoder(l.limits)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				l.read(d, files[i])
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	switch {
	case l.size.Load() > l.limits.TotalSize:
		l.exceeded("TotalSize", l.limits.TotalSize, "bytes in all manifest files")
	case l.documents.Load() > int64(l.limits.Documents):
		l.exceeded("Documents", int64(l.limits.Documents), "documents in all manifest files")
	default:
		l.collect(files)
	}
	return nil
}

// exceeded makes passing a limit of the whole payload its only fault.
func (l *loader) exceeded(limit string, max int64, what string) {
	l.faults = []*Error{{Err: &LimitError{Limit: limit, Max: max, What: what}}}
}

func (l *loader) collect(files []*file) {
	p := l.payload
	for _, f := range files {
		if f.fault != nil {
			l.faults = append(l.faults, f.fault)
		}
		p.Warnings = append(p.Warnings, f.warnings...)
		for i, m := range f.manifests {
			if f.reasons[i] == "" {
				p.Manifests = append(p.Manifests, m)
			} else {
				p.Excluded = append(p.Excluded, Exclusion{Manifest: m, Reason: f.reasons[i]})
			}
		}
	}
	p.Hash = Hash(p.Manifests)
}

// read reads one file into f.
func (l *loader) read(d *decoder, f *file) {
	if l.size.Load() > l.limits.TotalSize {
		return
	}
	data, err := readFile(l.fsys, f.path(), d.buf, l.limits.FileSize)
	if err != nil {
		f.fault = &Error{File: f.path(), Err: err}
		return
	}
	d.buf = data[:0]
	if l.size.Add(int64(len(data))) > l.limits.TotalSize {
		return
	}
	if f.dir == ownDir {
		if data = l.render(f, data); data == nil {
			return
		}
	}
	manifests, doc, err := d.file(f.name, data)
	if err != nil {
		f.fault = &Error{File: f.path(), Document: doc, Err: fmt.Errorf("parse %s: %w", f.name, err)}
		return
	}
	if l.documents.Add(int64(len(manifests))) > int64(l.limits.Documents) {
		return
	}
	f.manifests = manifests
	f.reasons = make([]string, len(manifests))
	for i, m := range manifests {
		f.reasons[i] = l.filter.Excluded(m)
		if f.reasons[i] != "" && m.hasUnreadableAnnotations() {
			f.warnings = append(f.warnings, Warning{
				File: f.path(), Document: m.Document,
				Message: fmt.Sprintf("%s: an annotation is not a string, so all its annotations count as absent", m.Identity()),
			})
		}
	}
}

// noValue is what a template makes of a reference to nothing.
const noValue = "<no value>"

// render executes a template. It returns nil for one that is skipped.
func (l *loader) render(f *file, source []byte) []byte {
	data, err := render(f.name, source, l.data, l.limits.FileSize)
	if limit := (*LimitError)(nil); errors.As(err, &limit) {
		f.fault = &Error{File: f.path(), Err: fmt.Errorf("%s: %w", f.path(), limit)}
		return nil
	}
	if err != nil {
		f.warnings = append(f.warnings, Warning{File: f.path(), Message: "skipped, not a template that this version understands: " + err.Error()})
		return nil
	}
	if bytes.Contains(data, []byte(noValue)) && !bytes.Contains(source, []byte(noValue)) {
		f.warnings = append(f.warnings, Warning{File: f.path(), Message: "the template refers to an image that the payload does not have: it stands as " + noValue})
	}
	return data
}

// readFile reads a file of at most limit bytes, into buf if that is large
// enough.
func readFile(fsys fs.FS, name string, buf []byte, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %w", name, fileSizeError(limit))
	}
	data := slices.Grow(buf[:0], int(info.Size())+1) // so that the end shows without growing
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, fmt.Errorf("%s: %w", name, fileSizeError(limit))
		}
		if err == io.EOF { // as io.Reader documents it
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 1)
		}
	}
}
