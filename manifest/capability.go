package manifest

import (
	"cmp"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// The feature gates that some capabilities hang on.
const (
	gateCRDCompatibility = "CRDCompatibilityRequirementOperator"
	gateClusterAPI       = "ClusterAPIMachineManagement"
)

// Capabilities are a cluster's optional parts. They are read-only once made.
type Capabilities struct {
	// Known are those that exist at all.
	Known sets.Set[string]
	// Enabled are those that are on, for whichever cause. It may hold names
	// that are not known.
	Enabled sets.Set[string]
	// Implicit are the enabled ones that the specification does not ask for,
	// and that stay because a capability is never switched off again.
	Implicit sets.Set[string]
}

// ResolveCapabilities returns the capabilities that a ClusterVersion's
// specification asks for, with those of mustStay: what was enabled before (at
// first status.capabilities.enabledCapabilities) and what is always enabled.
//
// known are those that the cluster's releases have (see [Payload.Capabilities]) and
// its status names. They are the set vCurrent. Without any, they are those that
// github.com/openshift/api has.
//
// The baseline defaults to vCurrent; a set with an unknown name is empty.
// Capabilities that hang on a feature gate are removed everywhere unless their
// gate is among gates. A nil spec asks for the default.
func ResolveCapabilities(spec *configv1.ClusterVersionCapabilitiesSpec, mustStay []string, gates sets.Set[string], known ...string) Capabilities {
	if spec == nil {
		spec = &configv1.ClusterVersionCapabilitiesSpec{}
	}
	baseline := cmp.Or(spec.BaselineCapabilitySet, configv1.ClusterVersionCapabilitySetCurrent)
	if len(known) == 0 {
		known = sets.List(names(configv1.KnownClusterVersionCapabilities))
	}
	asked := names(configv1.ClusterVersionCapabilitySets[baseline])
	if baseline == configv1.ClusterVersionCapabilitySetCurrent {
		asked = sets.New(known...)
	}
	asked = asked.Union(names(spec.AdditionalEnabledCapabilities))
	c := Capabilities{
		Known:    sets.New(known...),
		Enabled:  asked.Clone().Insert(mustStay...),
		Implicit: sets.New(mustStay...).Difference(asked),
	}
	gated := func(name configv1.ClusterVersionCapability, byAny ...string) {
		if !gates.HasAny(byAny...) {
			c.Known.Delete(string(name))
			c.Enabled.Delete(string(name))
			c.Implicit.Delete(string(name))
		}
	}
	gated(configv1.ClusterVersionCapabilityCompatibilityRequirements, gateCRDCompatibility, gateClusterAPI)
	gated(configv1.ClusterVersionCapabilityClusterAPI, gateClusterAPI)
	return c
}

// Capabilities returns, sorted, the capabilities that the release has: those that its
// manifests name, included or not, and those of the set that its minor version brought,
// of which some have no manifest. A release without a version, or of before 4.11, has
// only the former.
func (p *Payload) Capabilities() []string {
	all := setOf(p.Release.Version)
	for _, m := range p.Manifests {
		all.Insert(requiredCapabilities(m.Annotations())...)
	}
	for _, e := range p.Excluded {
		all.Insert(requiredCapabilities(e.Manifest.Annotations())...)
	}
	return sets.List(all.Delete(""))
}

// setOf returns the newest set of capabilities that a version of OpenShift has, apart
// from vCurrent.
func setOf(version string) sets.Set[string] {
	v, err := openshift.ParseVersion(version)
	if err != nil {
		return sets.New[string]()
	}
	var newest *semver.Version
	set := configv1.ClusterVersionCapabilitySetNone
	for name := range configv1.ClusterVersionCapabilitySets {
		minor, err := semver.NewVersion(string(name)) // v4.11; None and vCurrent are not versions
		if err != nil || minor.Major() > v.Major() || minor.Major() == v.Major() && minor.Minor() > v.Minor() {
			continue
		}
		if newest == nil || minor.GreaterThan(newest) {
			newest, set = minor, name
		}
	}
	return names(configv1.ClusterVersionCapabilitySets[set])
}

// Equal reports whether the same capabilities are enabled; what is known and
// what is implicit do not count.
func (c Capabilities) Equal(other Capabilities) bool { return c.Enabled.Equal(other.Enabled) }

// Status returns the capabilities as status.capabilities of a ClusterVersion
// holds them: sorted.
func (c Capabilities) Status() configv1.ClusterVersionCapabilitiesStatus {
	return configv1.ClusterVersionCapabilitiesStatus{
		EnabledCapabilities: sorted(c.Enabled),
		KnownCapabilities:   sorted(c.Known),
	}
}

// ImplicitlyEnabled returns, sorted, the capabilities that an update from
// payload current to payload update enables implicitly, with those that are
// implicit already. So a resource that is managed now stays managed when the
// new release moves it into a capability that is disabled.
//
// Gates and capabilities of f are the present configuration; its other inputs do
// not count, and the major version is the current payload's. Of each resource that
// a manifest of current manages, the capabilities are added that a manifest of update
// needs and that are not enabled, whatever else excludes that manifest. They include
// none that the resource needs now, since those are enabled. The result may name
// capabilities that this library does not know. A nil payload leaves the implicit
// capabilities as they are; without Capabilities in f the result is nil. The cost grows
// with the sum of both payloads.
func ImplicitlyEnabled(current, update *Payload, f Filter) []string {
	if f.Capabilities == nil {
		return nil
	}
	implicit := f.Capabilities.Implicit.Clone()
	if current == nil || update == nil {
		return sets.List(implicit)
	}
	load := &LoadFilter{Gates: f.Gates, MajorVersion: current.majorVersion()}
	pass := &Filter{Capabilities: f.Capabilities, AllowUnknownCapabilities: true}
	managed := sets.New[Identity]()
	for _, m := range current.Manifests {
		if judge(m, load, pass).Included {
			managed.Insert(m.Identity())
		}
	}
	for _, m := range update.Manifests {
		if !managed.Has(m.Identity()) {
			continue
		}
		for _, name := range requiredCapabilities(m.Annotations()) {
			if !f.Capabilities.Enabled.Has(name) {
				implicit.Insert(name)
			}
		}
	}
	return sets.List(implicit)
}

// majorVersion returns the major version of the payload's release, nil if it
// has none.
func (p *Payload) majorVersion() *uint64 {
	v, err := openshift.ParseVersion(p.Release.Version)
	if err != nil {
		return nil
	}
	major := v.Major()
	return &major
}

func names(list []configv1.ClusterVersionCapability) sets.Set[string] {
	set := sets.New[string]()
	for _, c := range list {
		set.Insert(string(c))
	}
	return set
}

func sorted(set sets.Set[string]) []configv1.ClusterVersionCapability {
	list := make([]configv1.ClusterVersionCapability, 0, len(set))
	for _, name := range sets.List(set) {
		list = append(list, configv1.ClusterVersionCapability(name))
	}
	return list
}
