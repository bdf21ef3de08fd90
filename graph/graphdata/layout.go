package graphdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Layout is a source of releases whose images are in files, as mirrors write them to
// disk: an OCI image layout, or a mirror of oc adm release mirror, oc image mirror or
// oc-mirror. Each image and index that it names is looked at, by its digest, once; in a
// mirror with the repository openshift/release or openshift/release-images, those
// there whose tag ends in an architecture of releases. Layers are read from the topmost
// down to the first one that holds release metadata; an image without any is not a release,
// and passed over.
//
// The architecture is the one in the image's configuration. An index of one image
// is a release for that one's platform, an index of several is one for "multi",
// whose metadata are those of the last image.
type Layout struct {
	// FS is the layout's directory, or a tar file by [OpenLayout].
	FS fs.FS
	// Name is how errors and sources of releases call the layout.
	Name string
	// Repository is what images are pulled from, e.g.
	// "registry.example.com/ocp/release": the pull spec of a release is that and
	// its digest. Empty: releases have no pull spec, see BuildOptions.Image.
	Repository string
	// MaxBytes is how many bytes the layers that are read of all images may have
	// together, uncompressed; the default is 64 GiB.
	MaxBytes int64
}

// OpenLayout reads the names in a tar file, not compressed, of a size in bytes, for
// Layout.FS. Its files are read where they lie, so r stays in use. The error is
// r's, or reports what is wrong with the tar file.
func OpenLayout(r io.ReaderAt, size int64) (fs.FS, error) {
	return oci.OpenTar(r, size, oci.Limits{})
}

// Releases implements [ReleaseSource]. An image that cannot be read, does not have
// the digest by which it is named, or has metadata that are wrong, is an error of it
// alone. The error of an image with which a limit on all images is passed is the
// last.
func (l Layout) Releases(ctx context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		fail := func(err error) { yield(Release{Source: l.Name}, err) }
		layout, err := oci.OpenLayout(l.FS, cmp.Or(l.Name, "the layout"), oci.Limits{})
		if err != nil {
			fail(err)
			return
		}
		entries, err := layout.Entries()
		if err != nil {
			fail(err)
			return
		}
		budget, err := oci.NewBudget(oci.Limits{
			TotalSize: cmp.Or(l.MaxBytes, 64<<30), Entries: 16_000_000, ManifestsSize: 512 << 20, Manifests: 2 * maxReleases,
		})
		if err != nil {
			fail(err)
			return
		}
		in := images{oci.Repository{Store: layout, Name: "openshift/release"}, budget}
		seen := map[string]bool{}
		for _, d := range inReleases(entries) {
			if ctx.Err() != nil {
				return
			}
			if seen[d.Digest] || !d.MayBeManifest() || artifact(d) {
				continue
			}
			seen[d.Digest] = true
			r, err := in.release(ctx, d)
			if errors.Is(err, errNoRelease) {
				continue
			}
			if err != nil {
				r = Release{}
			} else {
				r.Digest = d.Digest
				if l.Repository != "" {
					r.Image = l.Repository + "@" + d.Digest
				}
			}
			r.Source = strings.TrimPrefix(l.Name+"@"+d.Digest, "@")
			if !yield(r, err) || budget.Exhausted() {
				return
			}
		}
	}
}

// images reads releases within one budget.
type images struct {
	from   oci.Repository
	budget *oci.Budget
}

// inReleases returns the entries of the repositories in which mirror tools put
// releases that have the tag of one, such as 4.21.1-x86_64; all entries if there are
// none.
func inReleases(entries []oci.Descriptor) []oci.Descriptor {
	var out []oci.Descriptor
	for _, d := range entries {
		repository, tag, _ := strings.Cut(d.Annotations[oci.RefName], ":")
		arch := tag[strings.LastIndexByte(tag, '-')+1:]
		known := slices.Contains([]string{"x86_64", "aarch64", "ppc64le", "s390x", "multi"}, arch)
		if known && (repository == "openshift/release" || repository == "openshift/release-images") {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return entries
	}
	return out
}

var errNoRelease = errors.New("is no release image")

// artifact reports whether an entry is about another, such as an attestation.
func artifact(d oci.Descriptor) bool {
	return d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}

// release reads what a release says about itself.
func (in images) release(ctx context.Context, d oci.Descriptor) (Release, error) {
	m, err := in.budget.Manifest(ctx, in.from, d)
	if err != nil {
		return Release{}, err
	}
	if !m.IsIndex() {
		return in.one(ctx, m, "")
	}
	var images []oci.Descriptor
	for _, m := range m.Manifests {
		if m.IsManifest() && !artifact(m) {
			images = append(images, m)
		}
	}
	if len(images) == 0 {
		return Release{}, errors.New("an index without images")
	}
	last := images[len(images)-1]
	arch := "multi"
	if len(images) == 1 {
		arch = ""
		if last.Platform != nil {
			arch = last.Platform.Architecture
		}
	}
	m, err = in.budget.Manifest(ctx, in.from, last)
	if err == nil && m.IsIndex() {
		err = errors.New("an index within an index")
	}
	if err != nil {
		return Release{}, err
	}
	return in.one(ctx, m, arch)
}

// one reads an image. An architecture that is not known yet is the one in its
// configuration.
func (in images) one(ctx context.Context, image oci.Manifest, arch string) (Release, error) {
	r, err := in.layers(ctx, image.Layers)
	r.Arch = arch
	if err != nil || arch != "" {
		return r, err
	}
	var config struct {
		Architecture string `json:"architecture"`
	}
	if image.Config != nil {
		err = in.budget.Config(ctx, in.from, *image.Config, &config)
	}
	r.Arch = config.Architecture
	if err == nil && r.Arch == "" {
		err = errors.New("the image's configuration names no architecture")
	}
	return r, err
}

// layers reads the topmost layer with metadata that are understood.
func (in images) layers(ctx context.Context, layers []oci.Descriptor) (Release, error) {
	fault := errNoRelease
	for n := len(layers) - 1; n >= 0; n-- {
		if !strings.Contains(layers[n].MediaType, "tar") {
			continue // an artifact's
		}
		files, err := in.budget.Unpack(ctx, in.from, layers[n:n+1], []string{metadataFile})
		if err == nil {
			r, err := readPayload(files)
			if err == nil {
				err = checkVersions(&r)
			}
			if err == nil {
				return r, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				fault = err
			}
			continue
		}
		// What is not as it was named, or cannot be read, might have been the
		// metadata that count. A layer that is not a tar file has none.
		missing := errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*fs.PathError))
		if ctx.Err() != nil || missing || errors.As(err, new(*oci.DigestError)) || errors.As(err, new(*limit.LimitError)) {
			return Release{}, err
		}
	}
	return Release{}, fault
}

// checkVersions returns an error for an invalid version among those that a release
// names.
func checkVersions(r *Release) error {
	for _, list := range [][]string{r.Previous, r.Next} {
		for _, v := range list {
			if _, err := graph.ParseVersion(v); err != nil {
				return fmt.Errorf("release-metadata: %s is not a valid semver", bounded.Quote(v))
			}
		}
	}
	return nil
}
