package manifest

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ReleaseGates returns what inclusion takes from the FeatureGate named
// "cluster": the feature set, "" for Default, and the gates that are enabled
// for a version, that of the running release (also while another one is
// loaded). A nil object, or one without an entry for the version, means no
// gates: an empty set, never nil.
func ReleaseGates(fg *configv1.FeatureGate, version string) (featureSet string, gates sets.Set[string]) {
	gates = sets.New[string]()
	if fg == nil {
		return "", gates
	}
	for _, details := range fg.Status.FeatureGates {
		if details.Version != version {
			continue
		}
		for _, gate := range details.Enabled {
			gates.Insert(string(gate.Name))
		}
		break
	}
	return string(fg.Spec.FeatureSet), gates
}
