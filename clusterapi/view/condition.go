package view

import (
	"errors"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Condition is a condition of an object, as views show it. It is plain data.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of its status
}

// The statuses of conditions.
const (
	statusTrue    = string(metav1.ConditionTrue)
	statusFalse   = string(metav1.ConditionFalse)
	statusUnknown = string(metav1.ConditionUnknown)
)

// Types of conditions that the API names nowhere.
const (
	failing         configv1.ClusterStatusConditionType = "Failing"
	releaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	recommended                                         = "Recommended" // of a conditional update
)

// errNoClusterVersion is what the views of updates say without a ClusterVersion.
var errNoClusterVersion = errors.New("No cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version")

// conditionOf returns the first condition of a type, nil without one.
func conditionOf(cv *configv1.ClusterVersion, t configv1.ClusterStatusConditionType) *Condition {
	c := openshift.FindCondition(cv.Status.Conditions, t)
	if c == nil {
		return nil
	}
	return &Condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time}
}

// recommendedOf returns the first Recommended condition, nil without one.
func recommendedOf(conditions []metav1.Condition) *Condition {
	for _, c := range conditions {
		if c.Type == recommended {
			return &Condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time}
		}
	}
	return nil
}

// is reports whether the condition is there with a status, and isNot whether it is
// there with another.
func (c *Condition) is(status string) bool    { return c != nil && c.Status == status }
func (c *Condition) isNot(status string) bool { return c != nil && c.Status != status }

// why is the reason and the message on lines of their own.
func (c *Condition) why() string {
	return "  Reason: " + c.Reason + "\n  Message: " + text.Indent(c.Message) + "\n"
}

// missingInfo is the warning for a condition that every ClusterVersion has.
func missingInfo(t configv1.ClusterStatusConditionType) string {
	return "warning: No current " + string(t) + " info, see `oc describe clusterversion` for more details.\n"
}
