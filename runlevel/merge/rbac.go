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

func roleBindingDefaults(b *rbacv1.RoleBinding) { bindingDefaults(b.Subjects, &b.RoleRef) }

func roleBinding(existing, required *rbacv1.RoleBinding) error {
	existing.Subjects, existing.RoleRef = required.Subjects, required.RoleRef
	return nil
}

func clusterRoleBindingDefaults(b *rbacv1.ClusterRoleBinding) {
	bindingDefaults(b.Subjects, &b.RoleRef)
}

func clusterRoleBinding(existing, required *rbacv1.ClusterRoleBinding) error {
	existing.Subjects, existing.RoleRef = required.Subjects, required.RoleRef
	return nil
}

// bindingDefaults fill in the group of RBAC, which all but service accounts are of.
func bindingDefaults(subjects []rbacv1.Subject, ref *rbacv1.RoleRef) {
	setDefault(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.UserKind || subjects[i].Kind == rbacv1.GroupKind {
			setDefault(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}
