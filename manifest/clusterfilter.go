package manifest

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ClusterFilter is what decides in each pass which manifests of a release apply to a
// cluster, by its ClusterVersion and the feature gates that are enabled: the
// capabilities that it asks for, those that it has, and those that the release
// enables implicitly; and its overrides. With nil gates, which are unset, the
// capabilities that hang on one are left out. current and target may be nil: then
// nothing is enabled implicitly.
func ClusterFilter(cv *configv1.ClusterVersion, gates sets.Set[string], current, target *Payload) Filter {
	var stay []string
	for _, c := range cv.Status.Capabilities.EnabledCapabilities {
		stay = append(stay, string(c))
	}
	capabilities := ResolveCapabilities(cv.Spec.Capabilities, stay, gates)
	implicit := ImplicitlyEnabled(current, target, Filter{Gates: gates, Capabilities: &capabilities})
	capabilities = ResolveCapabilities(cv.Spec.Capabilities, append(stay, implicit...), gates)
	return Filter{Gates: gates, Capabilities: &capabilities, Overrides: cv.Spec.Overrides}
}
