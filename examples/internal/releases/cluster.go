package releases

import (
	"context"
	"errors"
	"fmt"
	"io"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// Cluster decides which manifests of a release are included.
type Cluster struct {
	clusterapi.Reader // nil where flags describe it

	load                        manifest.LoadFilter
	version                     *configv1.ClusterVersion
	anyCapability, allowUnknown bool
	platform                    image.Platform
}

// live describes a cluster that can be read: its feature set, its gates and its
// ClusterVersion. What the cluster does not say is printed to problems.
func (f *Flags) live(ctx context.Context, r clusterapi.Reader, problems io.Writer) (*Cluster, error) {
	c := &Cluster{Reader: r, load: f.loadFilter(), platform: f.platform}
	var err error
	c.version, err = clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("the ClusterVersion: %w", err)
	}
	versions := []string{c.version.Status.Desired.Version}
	for _, h := range c.version.Status.History {
		versions = append(versions, h.Version)
	}
	featureSet, gates, err := manifest.ReadGates(ctx, r, versions...)
	if errors.Is(err, clusterapi.ErrNotCollected) {
		fmt.Fprintln(problems, "the FeatureGate was not collected: the feature set is taken to be Default, without further gates")
	} else if err != nil {
		return nil, err
	}
	c.load.FeatureSet, c.load.Gates = &featureSet, gates
	return c, nil
}

// Owner is the owner of the objects that the cluster applies.
func (c *Cluster) Owner() *metav1.OwnerReference {
	return &metav1.OwnerReference{Name: c.version.Name, UID: c.version.UID}
}

// Filter decides which manifests of a loaded release apply after an update from
// another, which may be nil.
func (c *Cluster) Filter(from, to *manifest.Payload) manifest.Filter {
	f := manifest.ClusterFilter(c.version, c.load.Gates, from, to)
	f.AllowUnknownCapabilities = c.allowUnknown
	if c.anyCapability {
		f.Capabilities = nil
	}
	return f
}

// Read opens and loads the release in a place: see [Open]. Of one that was not found
// by its digest, the cluster may know the image.
func (c *Cluster) Read(ctx context.Context, place string) (*manifest.Payload, error) {
	r, err := Open(ctx, place, c.platform)
	if err != nil {
		return nil, err
	}
	o := manifest.LoadOptions{Image: r.Image, Filter: c.load, Dir: place}
	p, err := manifest.Load(ctx, r.FS, o)
	if err == nil && !r.Verified {
		o.Image = c.image(p.Release.Version)
		if o.Image != "" {
			p, err = manifest.Load(ctx, r.FS, o) // templates have it in them
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return p, nil
}

// image is the pull spec that the cluster knows for a version, or empty.
func (c *Cluster) image(version string) string {
	known := append([]configv1.Release{c.version.Status.Desired}, c.version.Status.AvailableUpdates...)
	for _, u := range c.version.Status.ConditionalUpdates {
		known = append(known, u.Release)
	}
	for _, h := range c.version.Status.History {
		known = append(known, configv1.Release{Version: h.Version, Image: h.Image})
	}
	for _, r := range known {
		if r.Version == version {
			return r.Image
		}
	}
	return ""
}

// Release reads the release that args name, or a built-in one, and reports which of
// its manifests the cluster applies in a pass. Errors are those of reading it.
func (f *Flags) Release(ctx context.Context, args []string, problems io.Writer) (*manifest.Payload, manifest.Filter, error) {
	_, p, filter, err := f.Releases(ctx, append([]string{""}, append(args, To)[0]), problems)
	return p, filter, err
}

// Releases reads two releases that args name, or the built-in ones, and reports
// which of their manifests the cluster applies in a pass. The first is nil if its
// name is empty. Errors are those of reading them.
func (f *Flags) Releases(ctx context.Context, args []string, problems io.Writer) (from, to *manifest.Payload, filter manifest.Filter, err error) {
	c, err := f.Cluster(ctx, problems)
	if err != nil {
		return nil, nil, filter, err
	}
	args = append(args, From, To)
	if args[0] != "" {
		from, err = c.Read(ctx, args[0])
		if err != nil {
			return nil, nil, filter, err
		}
	}
	to, err = c.Read(ctx, args[1])
	if err != nil {
		return nil, nil, filter, err
	}
	return from, to, c.Filter(from, to), nil
}
