package forecast

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// Cluster is one of a fleet.
type Cluster struct {
	// Name is what reports call it.
	Name   string
	Reader clusterapi.Reader
}

// FleetForecast is what an update would do to each cluster of a fleet.
type FleetForecast struct {
	// To is the version wanted.
	To string `json:"to"`
	// Rows are in the order of the clusters.
	Rows []Row `json:"rows"`
	// Mirror is what a mirror must hold for all paths; nil without graphs, or if no
	// cluster has a path.
	Mirror *path.MirrorPlan `json:"mirror,omitempty"`
}

// Row is one cluster of a fleet. Err is why it has no forecast.
type Row struct {
	Name     string    `json:"name"`
	Forecast *Forecast `json:"forecast,omitempty"`
	Err      error     `json:"-"`
	Error    string    `json:"error,omitempty"`
}

// Verdict is the forecast's, and Unknown without one.
func (r Row) Verdict() Verdict {
	if r.Forecast == nil {
		return Unknown
	}
	return r.Forecast.Verdict()
}

// Verdict is the first one that a cluster has of Blocked, Unknown, Warnings and Ready.
func (f *FleetForecast) Verdict() Verdict {
	verdicts := []Verdict{Blocked, Unknown, Warnings, Ready}
	worst := len(verdicts) - 1
	for _, row := range f.Rows {
		worst = min(worst, slices.Index(verdicts, row.Verdict()))
	}
	return verdicts[worst]
}

// Fleet forecasts an update of many clusters. Releases are downloaded, loaded and verified
// once for all of them; previews are counted and not kept. Errors are those of the
// options, and that ctx ended; a cluster that cannot be read is a row with an error.
func Fleet(ctx context.Context, clusters []Cluster, o Options) (*FleetForecast, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := newShared(o)
	out := &FleetForecast{To: o.To, Rows: make([]Row, len(clusters))}
	err := reconcile.Each(ctx, runtime.GOMAXPROCS(0), len(clusters), func(ctx context.Context, i int) error {
		row := &out.Rows[i]
		row.Name = clusters[i].Name
		row.Forecast, row.Err = s.update(ctx, clusters[i].Reader)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if row.Err != nil {
			row.Error = row.Err.Error()
			return nil
		}
		row.Forecast.Changes = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	var wants []path.Want
	for _, row := range out.Rows {
		if f := row.Forecast; f != nil && f.Path != nil {
			wants = append(wants, path.Want{Cluster: row.Name, From: f.From, To: f.To, Policy: f.policy})
		}
	}
	if len(wants) > 0 {
		out.Mirror, err = path.Mirror(ctx, o.Networks, wants)
	}
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return out, nil
}

// shared is what forecasts of one call share: releases that were opened and loaded, and
// signatures that were verified.
type shared struct {
	options Options

	mu       sync.Mutex
	images   map[string]func() (*payload.Image, error)    // by pull spec
	payloads map[string]func() (*manifest.Payload, error) // by image and what includes manifests
	verified map[string]func() (struct{}, error)          // by digest
}

func newShared(o Options) *shared {
	return &shared{
		options:  o,
		images:   map[string]func() (*payload.Image, error){},
		payloads: map[string]func() (*manifest.Payload, error){},
		verified: map[string]func() (struct{}, error){},
	}
}

// get makes the value of a key once; an error stays too.
func get[T any](s *shared, all map[string]func() (T, error), key string, make func() (T, error)) (T, error) {
	s.mu.Lock()
	value := all[key]
	if value == nil {
		value = sync.OnceValues(make)
		all[key] = value
	}
	s.mu.Unlock()
	return value()
}

// verify asks the verifier about a digest.
func (s *shared) verify(ctx context.Context, digest string) error {
	_, err := get(s, s.verified, digest, func() (struct{}, error) {
		_, err := s.options.Verifier.Verify(ctx, digest)
		return struct{}{}, err
	})
	return err
}

// release returns the contents of a release; nil if absent.
func (s *shared) release(ctx context.Context, want configv1.Release, f *Forecast) *payload.Image {
	i := slices.IndexFunc(s.options.Releases, func(image *payload.Image) bool { return image.Version() == want.Version })
	if i >= 0 {
		return s.options.Releases[i]
	}
	if s.options.Payloads == nil || want.Image == "" {
		return nil
	}
	image, err := get(s, s.images, want.Image, func() (*payload.Image, error) {
		fsys, err := s.options.Payloads.Payload(ctx, want)
		if err != nil {
			return nil, err
		}
		return payload.Open(ctx, want.Image, fsys)
	})
	if err != nil {
		f.notLoaded(want.Version, err)
		return nil
	}
	return image
}

// payload returns what a cluster with these gates loads of a release.
func (s *shared) payload(ctx context.Context, image *payload.Image, g gates, f *Forecast) *manifest.Payload {
	if image == nil {
		return nil
	}
	o := s.options.Preflight
	if g.featureSet == "" && len(g.enabled) == 0 && o.Profile == "" {
		return image.Payload
	}
	key := strings.Join([]string{image.PullSpec, g.featureSet, strings.Join(sets.List(g.enabled), ",")}, " ")
	p, err := get(s, s.payloads, key, func() (*manifest.Payload, error) {
		filter := manifest.DefaultFilter()
		filter.FeatureSet, filter.Gates = &g.featureSet, g.enabled
		if o.Profile != "" {
			filter.Profile = &o.Profile
		}
		return manifest.Load(ctx, image.FS, manifest.LoadOptions{Image: image.PullSpec, Filter: filter})
	})
	if err != nil {
		f.notLoaded(image.Version(), err)
		return nil
	}
	return p
}

// notLoaded reports a release that cannot be read, once.
func (f *Forecast) notLoaded(version string, err error) {
	found := preconditions.Finding{Severity: preconditions.Warning, Reason: reasonNotLoaded,
		Message: fmt.Sprintf("the contents of release %s: %v", version, err)}
	for _, other := range f.Findings {
		if other.Message == found.Message {
			return
		}
	}
	f.addUnknown(partRelease, "Payload", found)
}
