package graphdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Layout is a source of releases whose images are in an OCI image layout, as
// mirrors write them to disk. Each image and index that index.json names is looked
// at, by its digest, once. Layers are read from the topmost down to the first one
// that holds release metadata; an image without any is no release, and passed over.
//
// The architecture is that of the image's configuration. An index of one image is a
// release for that one's platform, an index of several is one for "multi", whose
// metadata are those of the last image.
type Layout struct {
	// FS is the layout's directory, or a tar file by [OpenLayout].
	FS fs.FS
	// Name is how errors and sources of releases call the layout.
	Name string
	// Repository is what images are pulled from, e.g.
	// "registry.example.com/ocp/release": the pull spec of a release is that and
	// its digest. Empty: there are no pull specs, see BuildOptions.Image.
	Repository string
	// MaxBytes is how many bytes the layers that are read of all images may have
	// together, uncompressed; the default is 64 GiB.
	MaxBytes int64
}

// OpenLayout reads the names in a tar file, not compressed, of a size in bytes, for
// Layout.FS. Its files are read where they lie, so r stays in use. The error is
// that of r, or says what is wrong with the tar file.
func OpenLayout(r io.ReaderAt, size int64) (fs.FS, error) {
	return oci.OpenTar(r, size, oci.Limits{})
}

// Releases implements [ReleaseSource]. An image that cannot be read, does not have
// the digest by which it is named, or has metadata that are wrong, is an error of
// it alone. That of an image with which a limit on all images is passed is the last.
func (l Layout) Releases(ctx context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		src := &oci.Layout{FS: l.FS, Name: cmp.Or(l.Name, "the layout")}
		entries, err := src.Entries(oci.Limits{})
		if err != nil {
			yield(Release{Source: l.Name}, err)
			return
		}
		budget, err := oci.NewBudget(oci.Limits{
			TotalSize: cmp.Or(l.MaxBytes, 64<<30), Entries: 16_000_000, ManifestsSize: 512 << 20, Manifests: 2 * maxReleases,
		})
		if err != nil {
			yield(Release{Source: l.Name}, err)
			return
		}
		in := images{src, budget}
		seen := map[string]bool{}
		for _, d := range entries {
			if ctx.Err() != nil {
				return
			}
			if seen[d.Digest] || !d.IsManifest() || artifact(d) {
				continue
			}
			seen[d.Digest] = true
			r, err := in.release(ctx, d)
			if errors.Is(err, errNoRelease) {
				continue
			}
			source := strings.TrimPrefix(l.Name+"@"+d.Digest, "@")
			if err != nil {
				r = Release{}
			} else if r.Digest = d.Digest; l.Repository != "" {
				r.Image = l.Repository + "@" + d.Digest
			}
			r.Source = source
			if !yield(r, err) || budget.Exhausted() {
				return
			}
		}
	}
}

// images reads releases within one budget.
type images struct {
	src    oci.Source
	budget *oci.Budget
}

var errNoRelease = errors.New("is no release image")

// artifact reports whether an entry is about another one, such as an attestation.
func artifact(d oci.Descriptor) bool {
	return d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}

// release reads what a release says about itself.
func (in images) release(ctx context.Context, d oci.Descriptor) (Release, error) {
	if !d.IsIndex() {
		return in.one(ctx, d, "")
	}
	var index oci.Manifest
	if err := in.budget.ReadJSON(ctx, in.src, d, &index); err != nil {
		return Release{}, err
	}
	var images []oci.Descriptor
	for _, m := range index.Manifests {
		if m.IsManifest() && !artifact(m) {
			images = append(images, m)
		}
	}
	if len(images) == 0 {
		return Release{}, errors.New("an index without images")
	}
	last := images[len(images)-1]
	if last.IsIndex() {
		return Release{}, errors.New("an index within an index")
	}
	arch := "multi"
	if len(images) == 1 {
		arch = ""
		if last.Platform != nil {
			arch = last.Platform.Architecture
		}
	}
	return in.one(ctx, last, arch)
}

// one reads an image. An architecture that is not known yet is that of its
// configuration.
func (in images) one(ctx context.Context, d oci.Descriptor, arch string) (Release, error) {
	image, err := in.budget.Find(ctx, in.src, []oci.Descriptor{d}, oci.Want{Digest: d.Digest})
	if err != nil {
		return Release{}, err
	}
	r, err := in.layers(ctx, image.Layers)
	r.Arch = arch
	if err != nil || arch != "" {
		return r, err
	}
	var config struct {
		Architecture string `json:"architecture"`
	}
	if image.Config != nil {
		err = in.budget.ReadJSON(ctx, in.src, *image.Config, &config)
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
		files, err := in.budget.Unpack(ctx, in.src, &oci.Image{Layers: layers[n : n+1]}, []string{metadataFile})
		if err == nil {
			var r Release
			r, err = readPayload(files)
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
		// metadata that count. What is no tar file has none.
		if ctx.Err() != nil || errors.As(err, new(*oci.DigestError)) || errors.As(err, new(*oci.LimitError)) || errors.As(err, new(*fs.PathError)) {
			return Release{}, err
		}
	}
	return Release{}, fault
}

// checkVersions returns an error for a version that is none, among those that a
// release names.
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
