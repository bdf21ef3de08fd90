package manifest

import configv1 "github.com/openshift/api/config/v1"

// ClusterFilter is what decides which manifests of a release apply to a cluster, by
// its ClusterVersion: the capabilities that it asks for, those that it has, and those
// that the release enables implicitly. Capabilities that hang on a feature gate are
// left out. current and target may be nil: then nothing is enabled implicitly.
func ClusterFilter(cv *configv1.ClusterVersion, current, target *Payload) Filter {
	var stay []string
	for _, c := range cv.Status.Capabilities.EnabledCapabilities {
		stay = append(stay, string(c))
	}
	capabilities := ResolveCapabilities(cv.Spec.Capabilities, stay, nil)
	implicit := ImplicitlyEnabled(current, target, Filter{Capabilities: &capabilities})
	capabilities = ResolveCapabilities(cv.Spec.Capabilities, append(stay, implicit...), nil)
	return Filter{Capabilities: &capabilities}
}
