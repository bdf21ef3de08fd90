package merge

import (
	securityv1 "github.com/openshift/api/security/v1"
)

func constraintsDefaults(c *securityv1.SecurityContextConstraints) {
	setPointer(&c.AllowPrivilegeEscalation, true)
}

// constraints enforces every field but the level of user namespaces.
func constraints(existing, required *securityv1.SecurityContextConstraints) error {
	was := *existing
	*existing = *required
	existing.TypeMeta, existing.ObjectMeta, existing.UserNamespaceLevel = was.TypeMeta, was.ObjectMeta, was.UserNamespaceLevel
	return nil
}
