package releases

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/examples/internal/recording"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// Flags say where releases are from and which cluster they are looked at for.
type Flags struct {
	// Dump is a recording of the cluster; empty: flags describe it.
	Dump string

	platform                       image.Platform
	profile, featureSet, baseline  string
	identifier                     string
	gates, capabilities, overrides program.List
	major                          *uint64
	allowUnknown                   bool
}

// anything leaves a check out.
const anything = "any"

// Excludes has the flags that do not go with a recording, which has what they say: see
// [program.Command].
func Excludes() map[string][]string {
	return map[string][]string{"dump": {"feature-set", "gate", "baseline", "capability", "override"}}
}

// DeclareRecorded declares the flags that go with a recorded cluster.
func (f *Flags) DeclareRecorded(set *flag.FlagSet) {
	set.StringVar(&f.Dump, "dump", "", "recording of a cluster: a `directory or archive`")
	set.StringVar(&f.profile, "profile", manifest.DefaultProfile, "cluster `profile`, or any for the manifests of all")
	set.StringVar(&f.identifier, "exclude", "", "`identifier` by which manifests exclude themselves, such as internal-openshift-hosted")
	set.Var(&f.platform, "platform", "`os/architecture` to choose from an index of images")
}

// Declare declares all flags.
func (f *Flags) Declare(set *flag.FlagSet) {
	f.DeclareRecorded(set)
	program.Choice(set, &f.featureSet, "feature-set", "`feature set` of the cluster, or any for the manifests of all",
		"Default", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade", "OKD", anything)
	set.Var(&f.gates, "gate", "`names` of feature gates that are enabled; may be repeated")
	set.Func("major", "major `version` of the release (default: its own)", func(value string) error {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return errors.New("not a number")
		}
		f.major = &n
		return nil
	})
	set.StringVar(&f.baseline, "baseline", "", "`set` of capabilities, such as None, v4.18 or vCurrent (default: manifests of all capabilities)")
	set.Var(&f.capabilities, "capability", "`names` of capabilities besides the set; may be repeated")
	set.BoolVar(&f.allowUnknown, "allow-unknown", false, "let -capability name those that this library does not know")
	set.Var(&f.overrides, "override", "object that is unmanaged: `KIND[.GROUP]/[NAMESPACE/]NAME`; may be repeated")
}

// Cluster describes the cluster: the recorded one, or the one that the flags
// describe. It prints problems of a recording.
func (f *Flags) Cluster(ctx context.Context, problems io.Writer) (*Cluster, error) {
	if f.Dump == "" {
		return f.described()
	}
	recorded, err := recording.Open(ctx, f.Dump, problems, "")
	if err != nil {
		return nil, err
	}
	return f.live(ctx, recorded, problems)
}

// described makes the cluster of the flags.
func (f *Flags) described() (*Cluster, error) {
	c := &Cluster{load: f.loadFilter(), platform: f.platform, allowUnknown: f.allowUnknown, version: &configv1.ClusterVersion{}}
	c.load.Gates = sets.New(f.gates...)
	if f.featureSet != anything {
		c.load.FeatureSet = &f.featureSet
	}
	c.anyCapability = f.baseline == "" && len(f.capabilities) == 0
	spec := &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(f.baseline)}
	if _, ok := configv1.ClusterVersionCapabilitySets[spec.BaselineCapabilitySet]; f.baseline != "" && !ok {
		return nil, program.Usagef("-baseline %s: no set of capabilities, such as None, v4.18 or vCurrent", f.baseline)
	}
	for _, name := range f.capabilities {
		capability := configv1.ClusterVersionCapability(name)
		if !f.allowUnknown && !slices.Contains(configv1.KnownClusterVersionCapabilities, capability) {
			return nil, program.Usagef("-capability %s: not known; -allow-unknown lets it pass", name)
		}
		spec.AdditionalEnabledCapabilities = append(spec.AdditionalEnabledCapabilities, capability)
	}
	c.version.Spec.Capabilities = spec
	for _, text := range f.overrides {
		o, err := parseOverride(text)
		if err != nil {
			return nil, err
		}
		c.version.Spec.Overrides = append(c.version.Spec.Overrides, o)
	}
	return c, nil
}

func (f *Flags) loadFilter() manifest.LoadFilter {
	l := manifest.LoadFilter{ExcludeIdentifier: f.identifier, MajorVersion: f.major}
	if f.profile != anything {
		l.Profile = &f.profile
	}
	return l
}

func parseOverride(text string) (o configv1.ComponentOverride, err error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return o, program.Usagef("-override %s: not KIND[.GROUP]/[NAMESPACE/]NAME", text)
	}
	o.Kind, o.Group, _ = strings.Cut(parts[0], ".")
	o.Name, o.Unmanaged = parts[len(parts)-1], true
	if len(parts) == 3 {
		o.Namespace = parts[1]
	}
	return o, nil
}
