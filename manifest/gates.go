package manifest

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ReadGates returns what inclusion takes from the FeatureGate of a cluster: the feature
// set, "" for Default, and the gates that are enabled for the first of the versions that it
// has gates for. An operator of a new release goes by the gates of its own version or,
// until they exist, by the gates of the running release. A cluster without the object, or
// without an entry for any of the versions, has no gates: an empty set, never nil. Errors
// are those of reading the object, among them [clusterapi.ErrNotCollected]; the set is
// empty then.
func ReadGates(
	ctx context.Context, r clusterapi.Reader, versions ...string,
) (featureSet string, gates sets.Set[string], err error) {
	gates = sets.New[string]()
	fg, err := clusterapi.Read[configv1.FeatureGate](ctx, r, clusterapi.Key("", "cluster"))
	if clusterapi.IsMissing(err) {
		return "", gates, nil
	}
	if err != nil {
		return "", gates, fmt.Errorf("feature gates: %w", err)
	}
	for _, version := range versions {
		for _, details := range fg.Status.FeatureGates {
			if details.Version != version {
				continue
			}
			for _, gate := range details.Enabled {
				gates.Insert(string(gate.Name))
			}
			return string(fg.Spec.FeatureSet), gates, nil
		}
	}
	return string(fg.Spec.FeatureSet), gates, nil
}
