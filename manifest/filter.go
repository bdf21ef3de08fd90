package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// DefaultProfile is the cluster profile of a self-managed OpenShift cluster.
const DefaultProfile = "self-managed-high-availability"

// The annotations that decide whether a manifest applies to a cluster.
const (
	// annotationExcludePrefix is followed by an exclude identifier.
	annotationExcludePrefix = "exclude.release.openshift.io/"
	// annotationIncludePrefix is followed by a cluster profile.
	annotationIncludePrefix = "include.release.openshift.io/"
	annotationFeatureSet    = "release.openshift.io/feature-set"
	annotationFeatureGate   = "release.openshift.io/feature-gate"
	annotationMajorVersion  = "release.openshift.io/major-version"
	annotationCapability    = "capability.openshift.io/name"
)

// LoadFilter holds what inclusion depends on when a payload is loaded: what
// only another load changes. Each input may be unset; then its check is
// skipped, so the zero LoadFilter excludes only what has no annotations. It is
// safe for concurrent use as long as nobody changes it.
type LoadFilter struct {
	// ExcludeIdentifier excludes manifests with the annotation
	// exclude.release.openshift.io/<identifier> = true. Empty means unset.
	// Hosted control planes use internal-openshift-hosted.
	ExcludeIdentifier string
	// FeatureSet is the cluster's feature set; "" is the set called Default.
	// nil means unset.
	FeatureSet *string
	// Gates are the enabled feature gates. nil means unset, which differs from
	// an empty set.
	Gates sets.Set[string]
	// MajorVersion is the major version of the release. nil means unset.
	MajorVersion *uint64
	// Profile is the cluster profile. nil means unset.
	Profile *string
}

// DefaultFilter returns the filter of a cluster as installed without further
// choices: the default profile, the feature set Default, no feature gates. The
// other inputs are unset.
func DefaultFilter() LoadFilter {
	profile, featureSet := DefaultProfile, ""
	return LoadFilter{Profile: &profile, FeatureSet: &featureSet, Gates: sets.New[string]()}
}

// Judge reports whether a manifest applies to the cluster as far as a load decides.
// The checks and their texts are those of the cluster-version operator; the first
// that fails decides.
func (f LoadFilter) Judge(m *Manifest) Verdict { return judge(m, &f, &Filter{}) }

// Filter holds what inclusion depends on in each pass over a loaded payload:
// what may change without another load. Each input may be unset; then its
// check is skipped. It is safe for concurrent use as long as nobody changes it.
type Filter struct {
	// Gates are the enabled feature gates. nil means unset, which differs from
	// an empty set.
	Gates sets.Set[string]
	// Capabilities are the cluster's capabilities. nil means unset.
	Capabilities *Capabilities
	// AllowUnknownCapabilities treats capabilities that are not known as known
	// ones; they still have to be enabled.
	AllowUnknownCapabilities bool
	// Overrides are the ClusterVersion's spec.overrides.
	Overrides []configv1.ComponentOverride
}

// Judge reports whether a manifest that a load has included applies to the cluster
// now. The checks and their texts are those of the cluster-version operator; the
// first that fails decides.
func (f Filter) Judge(m *Manifest) Verdict { return judge(m, &LoadFilter{Gates: f.Gates}, &f) }

// Rule is a check that excludes a manifest: Annotations (it has none),
// ExcludeIdentifier (it excludes itself for the identifier), Features (it names a
// feature set and feature gates, of which one is allowed), FeatureSet, FeatureGate,
// MajorVersion, Profile, Capability or Override. They are checked in this order.
type Rule string

const (
	ruleAnnotations       Rule = "Annotations"
	ruleExcludeIdentifier Rule = "ExcludeIdentifier"
	ruleFeatures          Rule = "Features"
	ruleFeatureSet        Rule = "FeatureSet"
	ruleFeatureGate       Rule = "FeatureGate"
	ruleMajorVersion      Rule = "MajorVersion"
	ruleProfile           Rule = "Profile"
	ruleCapability        Rule = "Capability"

	// RuleOverride excludes what the cluster's owner has taken over.
	RuleOverride Rule = "Override"
)

// Verdict reports whether a manifest applies to a cluster. The zero value reports
// that it does not, and gives no reason.
type Verdict struct {
	Included bool
	// Rule is the check that excludes the manifest; empty if it is included.
	Rule Rule
	// Reason is why, in the words of the cluster-version operator; empty if it
	// is included.
	Reason string
}

// String returns "included", or rule and reason.
func (v Verdict) String() string {
	if v.Included {
		return "included"
	}
	return string(v.Rule) + ": " + v.Reason
}

func excluded(rule Rule, reason string) Verdict { return Verdict{Rule: rule, Reason: reason} }

// judge makes all checks. The gates are those of load.
func judge(m *Manifest, load *LoadFilter, pass *Filter) Verdict {
	annotations := m.Annotations()
	if annotations == nil {
		return excluded(ruleAnnotations, "no annotations")
	}
	if load.ExcludeIdentifier != "" {
		if key := annotationExcludePrefix + load.ExcludeIdentifier; annotations[key] == "true" {
			return excluded(ruleExcludeIdentifier, key+"=true")
		}
	}
	if v := load.judgeFeatures(annotations); !v.Included {
		return v
	}
	if load.MajorVersion != nil {
		if value, ok := annotations[annotationMajorVersion]; ok {
			if reason := excludedByMajorVersion(m.GVK().GroupKind(), value, *load.MajorVersion); reason != "" {
				return excluded(ruleMajorVersion, reason)
			}
		}
	}
	if load.Profile != nil {
		key := annotationIncludePrefix + *load.Profile
		if value, ok := annotations[key]; !ok {
			return excluded(ruleProfile, key+" unset")
		} else if value != "true" {
			return excluded(ruleProfile, "unrecognized value "+key+"="+value)
		}
	}
	if pass.Capabilities != nil {
		if reason := pass.excludedByCapabilities(annotations); reason != "" {
			return excluded(ruleCapability, reason)
		}
	}
	if pass.overridden(m.Identity()) {
		return excluded(RuleOverride, "overridden")
	}
	return Verdict{Included: true}
}

func (f *LoadFilter) judgeFeatures(annotations map[string]string) Verdict {
	set, hasSet := annotations[annotationFeatureSet]
	gates, hasGates := annotations[annotationFeatureGate]
	if hasSet && hasGates && f.FeatureSet != nil && f.Gates != nil {
		return excluded(ruleFeatures, "both feature set and feature gate annotations are present: manifests may specify either a feature set or a feature gate, but not both")
	}
	if hasSet && f.FeatureSet != nil {
		if reason := excludedByFeatureSet(set, *f.FeatureSet); reason != "" {
			return excluded(ruleFeatureSet, reason)
		}
	}
	if hasGates && f.Gates != nil {
		if reason := excludedByGates(gates, f.Gates); reason != "" {
			return excluded(ruleFeatureGate, reason)
		}
	}
	return Verdict{Included: true}
}

// knownFeatureSets are sorted, as the text about an unknown one lists them.
var knownFeatureSets = [...]string{"CustomNoUpgrade", "Default", "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade"}

// excludedByFeatureSet judges a list whose items are not trimmed: an empty one
// or one with a blank is an unknown feature set.
func excludedByFeatureSet(value, cluster string) string {
	items := strings.Split(value, ",")
	for _, item := range items {
		if !slices.Contains(knownFeatureSets[:], item) {
			return fmt.Sprintf("unrecognized value %q in %s=%s; known values are: %s",
				item, annotationFeatureSet, value, strings.Join(knownFeatureSets[:], ","))
		}
	}
	cluster = cmp.Or(cluster, "Default")
	if slices.Contains(items, cluster) {
		return ""
	}
	return fmt.Sprintf("%q is required, and %s=%s", cluster, annotationFeatureSet, strings.Join(sets.List(sets.New(items...)), ","))
}

func excludedByGates(value string, enabled sets.Set[string]) string {
	for item := range trimmedItems(value) {
		if gate, not := strings.CutPrefix(item, "-"); not {
			if enabled.Has(gate) {
				return "feature gate " + gate + " is enabled but manifest requires it to be disabled"
			}
		} else if !enabled.Has(gate) {
			return "feature gate " + gate + " is required but not enabled"
		}
	}
	return ""
}

func excludedByMajorVersion(kind schema.GroupKind, value string, major uint64) string {
	switch kind {
	case schema.GroupKind{Group: "config.openshift.io", Kind: "FeatureGate"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
	default:
		return "major version filtering is only supported for feature gates and custom resources"
	}
	included, excluded := sets.New[uint64](), sets.New[uint64]()
	for item := range trimmedItems(value) {
		set, what := included, "included"
		if rest, not := strings.CutPrefix(item, "-"); not {
			set, what, item = excluded, "excluded", rest
		}
		n, err := strconv.ParseUint(item, 10, 64)
		if err != nil {
			return fmt.Sprintf("invalid %s major version %q in annotation: %v", what, item, err)
		}
		set.Insert(n)
	}
	if both := sets.List(included.Intersection(excluded)); len(both) > 0 {
		return fmt.Sprintf("inclusion and exclusion requirements overlap: %v", both)
	}
	switch {
	case included.Has(major):
		return ""
	case excluded.Has(major):
		return fmt.Sprintf("major version %d matches excluded version %d", major, major)
	case len(included) > 0:
		return fmt.Sprintf("major version %d does not match any required versions", major)
	}
	return ""
}

func (f *Filter) excludedByCapabilities(annotations map[string]string) string {
	var unknown, disabled []string
	for _, name := range requiredCapabilities(annotations) {
		if !f.AllowUnknownCapabilities && !f.Capabilities.Known.Has(name) {
			unknown = append(unknown, name)
		}
		if !f.Capabilities.Enabled.Has(name) {
			disabled = append(disabled, name)
		}
	}
	switch {
	case len(unknown) > 0:
		return "unrecognized capability names: " + strings.Join(unknown, ", ")
	case len(disabled) > 0:
		return "disabled capabilities: " + strings.Join(disabled, ", ")
	}
	return ""
}

// overridden reports whether the first override that matches reports that the
// resource is not managed.
func (f *Filter) overridden(id Identity) bool {
	for i := range f.Overrides {
		o := &f.Overrides[i]
		if o.Group == id.Group && o.Kind == id.Kind && o.Name == id.Name &&
			(id.Namespace == "" || o.Namespace == id.Namespace) {
			return o.Unmanaged
		}
	}
	return false
}

// requiredCapabilities returns the capabilities that an object needs, in the
// order of its annotation. Items are not trimmed.
func requiredCapabilities(annotations map[string]string) []string {
	value := annotations[annotationCapability]
	if value == "" {
		return nil
	}
	return strings.Split(value, "+")
}

// trimmedItems yields the items of a comma-separated list without the blanks
// around them and without empty ones.
func trimmedItems(value string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if item != "" && !yield(item) {
				return
			}
		}
	}
}

// ClusterFilter is what decides in each pass which manifests of a release apply to a
// cluster, by its ClusterVersion and the feature gates that are enabled: the
// capabilities that it asks for, those that it has, and those that the release
// enables implicitly; and its overrides. Those that both releases and the status name
// are known. With nil gates, which are unset, the
// capabilities that hang on one are left out. current and target may be nil: then
// nothing is enabled implicitly.
func ClusterFilter(cv *configv1.ClusterVersion, gates sets.Set[string], current, target *Payload) Filter {
	stay := sets.List(names(cv.Status.Capabilities.EnabledCapabilities))
	known := sets.List(names(cv.Status.Capabilities.KnownCapabilities))
	if current != nil {
		known = append(known, current.Capabilities()...)
	}
	capabilities := ResolveCapabilities(cv.Spec.Capabilities, stay, gates, known...)
	implicit := ImplicitlyEnabled(current, target, Filter{Gates: gates, Capabilities: &capabilities})
	if target != nil {
		known = append(known, target.Capabilities()...)
	}
	capabilities = ResolveCapabilities(cv.Spec.Capabilities, append(stay, implicit...), gates, known...)
	return Filter{Gates: gates, Capabilities: &capabilities, Overrides: cv.Spec.Overrides}
}
