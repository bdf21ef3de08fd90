package manifest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	configv1 "github.com/openshift/api/config/v1"
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
	// Filter decides which manifests are included. The zero value includes all that
	// have annotations: see [DefaultFilter]. An unset MajorVersion means the
	// payload's own; an unset Profile is [DefaultProfile] where templates refer to
	// it. Capabilities and overrides come later: see [Payload.Included].
	Filter LoadFilter
	// Limits bound what is read. The zero value has defaults.
	Limits Limits
	// Workers is how many files are decoded at once. 0: one per processor that
	// Go uses (GOMAXPROCS); a negative number is an error.
	Workers int
	// Dir is what errors call the payload. Empty: Image, or else "payload".
	Dir string
}

// Load reads a payload: all files of manifests/, which are templates, then
// those of release-manifests/, in the byte order of their names. Files whose
// names do not end in .yaml, .yml or .json are not read.
//
// A directory without one of the four parts of a payload is an error that
// errors.Is recognises as [fs.ErrNotExist]. Faults in manifests are all
// collected, and returned as one [*Error]: any fault fails the load. A template
// that does not parse or execute is skipped with a warning, since an older
// program must be able to load a newer payload; one that might not end, or
// that passes a limit, is a fault: see [TemplateError] and [Limits].
//
// Load returns soon after ctx has ended, with its error and cause. A panic in
// fsys becomes an error, as clusterapi.PanicError has it. A negative option is
// an error that names the field.
func Load(ctx context.Context, fsys fs.FS, o LoadOptions) (*Payload, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.complete()
	var p *Payload
	err := panics.Isolate(func() error {
		var err error
		p, err = load(ctx, fsys, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func load(ctx context.Context, fsys fs.FS, o LoadOptions) (*Payload, error) {
	for _, name := range []string{ownDir, releaseDir, metadataFile, imagesFile} {
		if ctx.Err() != nil {
			return nil, contextError(ctx)
		}
		if _, err := fs.Stat(fsys, name); err != nil {
			return nil, err
		}
	}
	p, err := loadRelease(ctx, fsys, o)
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
		errs := make([]error, len(l.faults))
		for i, f := range l.faults {
			errs[i] = f
		}
		dir := cmp.Or(o.Dir, o.Image, "payload")
		return nil, &Error{
			Reason: ReasonPayloadIntegrity,
			Err:    fmt.Errorf("Error loading manifests from %s: %w", dir, bounded.Aggregate(errs)), // a text that users search for
			Faults: l.faults,
		}
	}
	return p, nil
}

// loadRelease reads what the payload says about itself and its images.
func loadRelease(ctx context.Context, fsys fs.FS, o LoadOptions) (*Payload, error) {
	data, err := readFile(ctx, fsys, metadataFile, nil, o.Limits.fileSize())
	if err != nil {
		return nil, err
	}
	m, err := openshift.DecodeMetadata(data)
	if err != nil {
		return nil, short(err)
	}
	data, err = readFile(ctx, fsys, imagesFile, nil, o.Limits.fileSize())
	if err != nil {
		return nil, err
	}
	images, err := decodeImages(data, m.Version, o.Limits)
	if err != nil {
		return nil, short(err)
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
		p.Warnings = append(p.Warnings, newWarning("", metadataFile, 0, w))
	}
	return p, nil
}
