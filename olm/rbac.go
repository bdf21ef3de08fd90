package olm

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/big"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// LabelPermissionsHash on a role is the hash of its rules, on a binding that of
// its role and subjects: OLM finds by it what it has created already.
const LabelPermissionsHash = "olm.permissions.hash"

// nameLength is the length that OLM cuts names of roles for: that of a DNS
// label.
const nameLength = 63

// RoleName returns the name that OLM gives the Role, and its RoleBinding, of a
// permission in a CSV.
func RoleName(csv string, p Permission) (string, error) {
	return hashedName(csv+"-"+p.ServiceAccountName, p)
}

// ClusterRoleName returns the name that OLM gives the ClusterRole, and its
// ClusterRoleBinding, of a cluster permission in a CSV.
func ClusterRoleName(csv string, p Permission) (string, error) {
	return hashedName(csv, p)
}

// hashedName appends the hash of the permission. A base that is too long is
// cut; at exactly 63 characters without the dash nothing is, and the name has
// 64, as OLM's.
func hashedName(base string, p Permission) (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	hash := base62(append(data, '\n'))
	if len(base)+len(hash) > nameLength {
		base = base[:nameLength-1-len(hash)]
	}
	return base + "-" + hash, nil
}

// RulesHash returns the value of [LabelPermissionsHash] for a role.
func RulesHash(rules []rbacv1.PolicyRule) (string, error) {
	data, err := json.Marshal(rules)
	if err != nil {
		return "", err
	}
	return base62(data), nil
}

// BindingHash returns the value of [LabelPermissionsHash] for a binding.
func BindingHash(ref rbacv1.RoleRef, subjects []rbacv1.Subject) (string, error) {
	data, err := json.Marshal(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects})
	if err != nil {
		return "", err
	}
	return base62(data), nil
}

// base62 is the SHA-224 of data as a number in the digits 0-9, a-z, A-Z.
func base62(data []byte) string {
	sum := sha256.Sum224(data)
	return new(big.Int).SetBytes(sum[:]).Text(62)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
