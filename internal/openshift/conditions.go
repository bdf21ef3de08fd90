package openshift

import configv1 "github.com/openshift/api/config/v1"

// FindCondition returns the condition of a type, a pointer into conditions, or nil
// without one.
func FindCondition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}
