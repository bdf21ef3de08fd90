package clusterupdate

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Types of conditions of a ClusterVersion that github.com/openshift/api does
// not name.
const (
	// ConditionFailing says that an update or the upkeep of a release is in trouble.
	ConditionFailing                       configv1.ClusterStatusConditionType = "Failing"
	ConditionInvalid                       configv1.ClusterStatusConditionType = "Invalid"
	ConditionReleaseAccepted               configv1.ClusterStatusConditionType = "ReleaseAccepted"
	ConditionImplicitlyEnabledCapabilities configv1.ClusterStatusConditionType = "ImplicitlyEnabledCapabilities"
)

// obsoleteConditions were set by older releases and are removed on sight.
var obsoleteConditions = []configv1.ClusterStatusConditionType{
	"UpgradeableAdminAckRequired", "UpgradeableDeletesInProgress", "UpgradeableClusterOperators",
	"UpgradeableClusterVersionOverrides", "UpgradeableUpgradeInProgress", "ImplicitlyEnabled",
}

// findCondition returns the condition of a type, or nil.
func findCondition(conds []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conds {
		if conds[i].Type == t {
			return &conds[i]
		}
	}
	return nil
}

func conditionTrue(conds []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) bool {
	c := findCondition(conds, t)
	return c != nil && c.Status == configv1.ConditionTrue
}

// maxMessage is the most bytes of a message in the status, which tells what
// servers, objects and releases say.
const maxMessage = 32 << 10

// setCondition sets a condition in place, or appends it. The transition time
// moves with the status only. A message that is too long is cut and says so.
func setCondition(conds *[]configv1.ClusterOperatorStatusCondition, c configv1.ClusterOperatorStatusCondition, now metav1.Time) {
	c.Message = bounded.Text(c.Message, maxMessage)
	old := findCondition(*conds, c.Type)
	if old == nil {
		c.LastTransitionTime = now
		*conds = append(*conds, c)
		return
	}
	if old.Status != c.Status {
		old.LastTransitionTime = now
	}
	old.Status, old.Reason, old.Message = c.Status, c.Reason, c.Message
}

func removeCondition(conds *[]configv1.ClusterOperatorStatusCondition, types ...configv1.ClusterStatusConditionType) {
	*conds = slices.DeleteFunc(*conds, func(c configv1.ClusterOperatorStatusCondition) bool {
		return slices.Contains(types, c.Type)
	})
}
