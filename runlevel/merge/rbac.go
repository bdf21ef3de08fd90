package merge

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

func role(existing, required *rbacv1.Role) error {
	existing.Rules = required.Rules
	return nil
}

// clusterRole leaves the rules of an aggregated role to the controller that
// gathers them.
func clusterRole(existing, required *rbacv1.ClusterRole) error {
	existing.AggregationRule = required.AggregationRule
	if required.AggregationRule == nil {
		existing.Rules = required.Rules
	}
	return nil
}

func roleBinding(existing, required *rbacv1.RoleBinding) error {
	existing.Subjects, existing.RoleRef = required.Subjects, required.RoleRef
	return nil
}

func clusterRoleBinding(existing, required *rbacv1.ClusterRoleBinding) error {
	existing.Subjects, existing.RoleRef = required.Subjects, required.RoleRef
	return nil
}
