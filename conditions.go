package clusterupdate

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// obsoleteConditions were set by older releases and are removed on sight.
var obsoleteConditions = []configv1.ClusterStatusConditionType{
	"UpgradeableAdminAckRequired", "UpgradeableDeletesInProgress", "UpgradeableClusterOperators",
	"UpgradeableClusterVersionOverrides", "UpgradeableUpgradeInProgress", "ImplicitlyEnabled",
}

// setCondition sets a condition in place, or appends it. The transition time
// moves with the status only. A message that is too long is cut and says so.
func setCondition(conds *[]configv1.ClusterOperatorStatusCondition, c configv1.ClusterOperatorStatusCondition, now metav1.Time) {
	c.Message = bounded.Text(c.Message, clusterversion.MaxMessage)
	old := clusterapi.FindCondition(*conds, c.Type)
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
