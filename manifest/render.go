package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// bootstrapDir holds templates for the bootstrap node, in an image that has it.
const bootstrapDir = "bootstrap"

// notRendered are the files of manifests/ that need a running cluster.
var notRendered = []string{
	"0000_90_cluster-version-operator_00_prometheusrole.yaml",
	"0000_90_cluster-version-operator_01_prometheusrolebinding.yaml",
	"0000_90_cluster-version-operator_02_servicemonitor.yaml",
}

// RenderOptions are the options of [Render].
type RenderOptions struct {
	// Image is the release image's pull spec.
	Image string
	// Filter decides which manifests are written. An unset MajorVersion means
	// that of the payload. Bootstrapping has no exclude identifier: one is an
	// error.
	Filter LoadFilter
	// Overrides are those of the cluster that is to be. What they take over is
	// not written.
	Overrides []configv1.ComponentOverride
	// Limits bound what is read. The zero value has defaults.
	Limits Limits
}

// File is a file that [Render] makes.
type File struct {
	// Path is manifests/NAME or bootstrap/NAME.
	Path string
	// Data are the file's documents in JSON, with lines "---" between them.
	Data []byte
}

// Render makes the manifests that bootstrap a cluster: those of manifests/ and
// of bootstrap/, if there is one, as templates, and of release-manifests/ the
// image policies. It is stricter than [Load]: a template that fails is an
// error. Files without an included document are left out. All faults come back
// together. Render returns soon after ctx has ended, with its error and cause;
// a panic in fsys becomes an error.
func Render(ctx context.Context, fsys fs.FS, o RenderOptions) ([]File, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.complete()
	if o.Filter.ExcludeIdentifier != "" {
		return nil, errors.New("manifest.RenderOptions: Filter.ExcludeIdentifier is set, which rendering does not know")
	}
	var files []File
	err := panics.Catch(func() error {
		var err error
		files, err = renderAll(ctx, fsys, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

func renderAll(ctx context.Context, fsys fs.FS, o RenderOptions) ([]File, error) {
	p, err := loadRelease(ctx, fsys, LoadOptions{Image: o.Image, Limits: o.Limits})
	if err != nil {
		return nil, err
	}
	l := newLoader(fsys, LoadOptions{Image: o.Image, Filter: o.Filter, Limits: o.Limits}, p)
	l.filter.overrides = o.Overrides
	tasks := []struct {
		from, to string
		skip     func(name string) bool
		only     func(m *Manifest) bool
		template bool
	}{
		{ownDir, ownDir, func(name string) bool { return slices.Contains(notRendered, name) }, everything, true},
		{releaseDir, ownDir, func(string) bool { return false }, isImagePolicy, false},
		{bootstrapDir, bootstrapDir, func(string) bool { return false }, everything, true},
	}
	var files []File
	var errs []error
	read := 0
	for _, t := range tasks {
		entries, err := fs.ReadDir(fsys, t.from)
		if err != nil {
			if t.from != bootstrapDir || !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		var faults []error
		for _, e := range entries {
			if ctx.Err() != nil {
				return nil, contextError(ctx)
			}
			if e.IsDir() || !isManifestFile(e.Name()) || t.skip(e.Name()) {
				continue
			}
			if read++; read > o.Limits.Files {
				return nil, filesError(o.Limits.Files)
			}
			data, err := l.renderFile(ctx, t.from, e.Name(), t.template, t.only)
			if ctx.Err() != nil {
				return nil, contextError(ctx)
			}
			if limit := l.used.check(&l.limits); limit != nil {
				return nil, fmt.Errorf("error rendering manifests: %s/%s: %w", t.from, e.Name(), limit)
			}
			if err != nil {
				faults = append(faults, short(err))
			} else if data != nil {
				files = append(files, File{Path: t.to + "/" + e.Name(), Data: data})
			}
		}
		if err := aggregate(faults); err != nil {
			errs = append(errs, fmt.Errorf("error rendering manifests: %w", err))
		}
	}
	if err := aggregate(errs); err != nil {
		return nil, fmt.Errorf("error rendering manifests: %w", err)
	}
	return files, nil
}

// renderFile returns the included documents of a file, nil if there are none.
func (l *loader) renderFile(ctx context.Context, dir, name string, template bool, only func(*Manifest) bool) ([]byte, error) {
	data, err := readFile(ctx, l.fsys, dir+"/"+name, nil, l.limits.FileSize)
	if err != nil {
		l.used.add(usage{size: int64(len(data))}) // what cannot be used counts
		return nil, err
	}
	if template {
		if data, _, err = l.renderer.render(ctx, dir, name, data); err != nil {
			return nil, fmt.Errorf("render template %s from %s: %w", name, dir, err)
		}
	}
	d := newDecoder(l.limits)
	manifests, _, err := d.file(ctx, name, data)
	l.used.add(d.used)
	if err != nil {
		return nil, fmt.Errorf("parse manifest %s from %s: %w", name, dir, err)
	}
	var documents [][]byte
	for _, m := range manifests {
		if only(m) && l.filter.judge(m).Included {
			documents = append(documents, m.Raw)
		}
	}
	if len(documents) == 0 {
		return nil, nil
	}
	return bytes.Join(documents, []byte("\n---\n")), nil
}

func everything(*Manifest) bool { return true }

func isImagePolicy(m *Manifest) bool {
	gvk := m.GVK()
	return gvk.Group == "config.openshift.io" && strings.TrimPrefix(gvk.Kind, "Cluster") == "ImagePolicy"
}

// RenderGates returns what inclusion takes from a FeatureGate while a cluster
// is rendered, when it is about one version only: more than one entry in
// status.featureGates is an error. A nil object, or one without an entry,
// means an empty set, never nil.
func RenderGates(fg *configv1.FeatureGate) (featureSet string, gates sets.Set[string], err error) {
	if fg == nil || len(fg.Status.FeatureGates) == 0 {
		featureSet, gates = ReleaseGates(fg, "")
		return featureSet, gates, nil
	}
	if n := len(fg.Status.FeatureGates); n > 1 {
		return "", nil, fmt.Errorf("FeatureGate %s: %d entries in status.featureGates, expected one", fg.Name, n)
	}
	featureSet, gates = ReleaseGates(fg, fg.Status.FeatureGates[0].Version)
	return featureSet, gates, nil
}
