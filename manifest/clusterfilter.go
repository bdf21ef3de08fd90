package manifest

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

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
