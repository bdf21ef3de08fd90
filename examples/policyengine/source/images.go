package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// shownImages is how many missing images a problem names.
const shownImages = 3

// mirrors are the places of releases that hold images.
type mirrors struct {
	sources []*image.Source
	layouts []*oci.Layout // the same places
	closers []io.Closer
}

// openMirrors opens those of the places of releases that hold images.
func (o Options) openMirrors() (*mirrors, error) {
	m := &mirrors{}
	for _, place := range o.Releases {
		if err := m.add(place); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// add opens a place if it holds images.
func (m *mirrors) add(place string) error {
	name, _ := cutRepository(place)
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if filepath.Ext(name) != ".tar" && !(info.IsDir() && isMirror(os.DirFS(name))) {
		return nil
	}
	// The release image of any architecture names the same images.
	src, err := image.Open(name, image.Options{Platform: image.Platform{Architecture: "amd64"}})
	if err != nil {
		return err
	}
	m.sources = append(m.sources, src)
	m.closers = append(m.closers, src)
	layout, closer, err := oci.Open(name, name, oci.Limits{})
	if err != nil {
		return err
	}
	m.layouts = append(m.layouts, layout)
	m.closers = append(m.closers, closer)
	return nil
}

// Close closes the places.
func (m *mirrors) Close() {
	for _, c := range m.closers {
		c.Close()
	}
}

// holds reports whether one of the places has the manifest of an image: an index may name
// images that none has.
func (m *mirrors) holds(ctx context.Context, digest string) (bool, error) {
	for _, l := range m.layouts {
		r, err := l.Manifest(ctx, "", digest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		return true, r.Close()
	}
	return false, nil
}

// payload loads the payload of a release from the place that has its image. It is nil
// if none of them has.
func (m *mirrors) payload(ctx context.Context, r graphdata.Release) (*manifest.Payload, error) {
	for _, src := range m.sources {
		fsys, err := src.Payload(ctx, configv1.Release{Image: "mirror@" + r.Digest})
		if errors.As(err, new(*image.NotFoundError)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return manifest.Load(ctx, fsys, manifest.LoadOptions{Image: r.Image})
	}
	return nil, nil
}

// missing names the component images of a release that no place holds. It is empty if
// none of them is there: then the places keep release images alone, and components are
// elsewhere.
func (m *mirrors) missing(ctx context.Context, components map[string]string) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(components)) {
		_, digest, _ := strings.Cut(components[name], "@")
		held, err := m.holds(ctx, digest)
		if err != nil {
			return nil, err
		}
		if !held {
			names = append(names, name)
		}
	}
	if len(names) == len(components) {
		return nil, nil
	}
	return names, nil
}

// incomplete are warnings about releases that a mirror holds in part: an update to
// them would stop at the first image that is missing.
func (s *Source) incomplete(ctx context.Context, releases []graphdata.Release) ([]graphdata.Problem, error) {
	m, err := s.o.openMirrors()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.sources) == 0 {
		return nil, nil
	}
	var problems []graphdata.Problem
	warn := func(r graphdata.Release, message string) {
		text := fmt.Sprintf("release %s for %s %s", r.Version, r.Arch, message)
		problems = append(problems, graphdata.Problem{File: r.Source, Message: text, Warning: true})
	}
	for _, r := range releases {
		if r.Digest == "" {
			continue
		}
		components, known := s.components[r.Digest]
		if !known {
			p, err := m.payload(ctx, r)
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				warn(r, fmt.Sprintf("cannot be loaded: %v", err))
				continue
			}
			if p == nil {
				continue
			}
			components = p.Images
			s.components[r.Digest] = components
		}
		names, err := m.missing(ctx, components)
		if err != nil {
			return nil, err
		}
		if n := len(names); n > 0 {
			shown := strings.Join(names[:min(n, shownImages)], ", ")
			if n > shownImages {
				shown += fmt.Sprintf(" and %d more", n-shownImages)
			}
			warn(r, fmt.Sprintf("lacks %d of %d component images here (%s): clusters cannot pull them", n, len(components), shown))
		}
	}
	return problems, nil
}
