package install

import (
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	rbacv1 "k8s.io/api/rbac/v1"
)

// What only tests look at.
type (
	Changes    = changeSet
	CurrentCSV = currentCSV
	Resolution = resolution
)

var (
	ApprovedStatus  = approvedStatus
	AttemptedStatus = attemptedStatus
	BundleObjects   = bundleObjects
	BundleSteps     = bundleSteps
	CatalogsChange  = catalogsChange
	DecidePlan      = decidePlan
	HeldBackBy      = heldBackBy
	NewChanges      = newChanges
	NewInstallPlan  = newInstallPlan
	ObservedStatus  = observedStatus
	ResolvedStatus  = resolvedStatus
	UnpackLimitsOf  = unpackLimits
)

func RoleName(csv string, p olmapi.Permission) (string, error) {
	return hashedName(csv+"-"+p.ServiceAccountName, p), nil
}

func ClusterRoleName(csv string, p olmapi.Permission) (string, error) { return hashedName(csv, p), nil }

func RulesHash(rules []rbacv1.PolicyRule) (string, error) { return rulesHash(rules), nil }

func BindingHash(ref rbacv1.RoleRef, subjects []rbacv1.Subject) (string, error) {
	return bindingHash(ref, subjects), nil
}

// OldPlans are the names of those to be deleted.
func OldPlans(plans []olmapi.InstallPlan) []string {
	var names []string
	for _, p := range oldPlans(plans) {
		names = append(names, p.Name)
	}
	return names
}
