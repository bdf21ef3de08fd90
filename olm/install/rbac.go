package install

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/big"
	"slices"

	"github.com/clusterupdate/clusterupdate/olm"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelPermissionsHash on a role is the hash of its rules, on a binding that of
// its role and subjects: OLM finds by it what it has created already.
const LabelPermissionsHash = "olm.permissions.hash"

// nameLength is the length that OLM cuts names of roles for: that of a DNS
// label.
const nameLength = 63

// RoleName returns the name that OLM gives the Role, and its RoleBinding, of a
// permission in a CSV.
// The error is about rules that cannot be written as JSON.
func RoleName(csv string, p olm.Permission) (string, error) {
	return hashedName(csv+"-"+p.ServiceAccountName, p)
}

// ClusterRoleName returns the name that OLM gives the ClusterRole, and its
// ClusterRoleBinding, of a cluster permission in a CSV.
// The error is about rules that cannot be written as JSON.
func ClusterRoleName(csv string, p olm.Permission) (string, error) {
	return hashedName(csv, p)
}

// hashedName appends the hash of the permission. A base that is too long is
// cut; at exactly 63 characters without the dash nothing is, and the name has
// 64, as OLM's.
func hashedName(base string, p olm.Permission) (string, error) {
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
// The error is about rules that cannot be written as JSON.
func RulesHash(rules []rbacv1.PolicyRule) (string, error) {
	data, err := json.Marshal(rules)
	if err != nil {
		return "", err
	}
	return base62(data), nil
}

// BindingHash returns the value of [LabelPermissionsHash] for a binding.
// The error is about a reference or subjects that cannot be written as JSON.
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

// accountObjects returns the service accounts of a CSV by name, each followed
// by its roles, role bindings, cluster roles and cluster role bindings. The
// account "default" exists already.
func accountObjects(csv *olm.ClusterServiceVersion) ([]any, error) {
	type account struct{ roles, bindings, clusterRoles, clusterBindings []any }
	accounts := map[string]*account{}
	of := func(name string) *account {
		if accounts[name] == nil {
			accounts[name] = &account{}
		}
		return accounts[name]
	}
	for _, p := range csv.Spec.Install.Spec.Permissions {
		name, err := RoleName(csv.Name, p)
		if err != nil {
			return nil, err
		}
		role := &rbacv1.Role{ObjectMeta: ownedMeta(csv, name, csv.Namespace), Rules: p.Rules}
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "Role"
		binding := &rbacv1.RoleBinding{
			ObjectMeta: ownedMeta(csv, name, csv.Namespace),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{accountSubject(csv, p)},
		}
		binding.APIVersion, binding.Kind = rbacv1.SchemeGroupVersion.String(), "RoleBinding"
		if err := labelHashes(role.Labels, p.Rules, binding.Labels, binding.RoleRef, binding.Subjects); err != nil {
			return nil, err
		}
		a := of(p.ServiceAccountName)
		a.roles, a.bindings = append(a.roles, role), append(a.bindings, binding)
	}
	for _, p := range csv.Spec.Install.Spec.ClusterPermissions {
		name, err := ClusterRoleName(csv.Name, p)
		if err != nil {
			return nil, err
		}
		role := &rbacv1.ClusterRole{ObjectMeta: ownedMeta(csv, name, ""), Rules: p.Rules}
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: ownedMeta(csv, name, ""),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{accountSubject(csv, p)},
		}
		binding.APIVersion, binding.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
		if err := labelHashes(role.Labels, p.Rules, binding.Labels, binding.RoleRef, binding.Subjects); err != nil {
			return nil, err
		}
		a := of(p.ServiceAccountName)
		a.clusterRoles, a.clusterBindings = append(a.clusterRoles, role), append(a.clusterBindings, binding)
	}

	var out []any
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		if name != "default" {
			sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: csv.Namespace, OwnerReferences: []metav1.OwnerReference{ownerReference(csv)},
			}}
			sa.APIVersion, sa.Kind = "v1", "ServiceAccount"
			out = append(out, sa)
		}
		a := accounts[name]
		out = slices.Concat(out, a.roles, a.bindings, a.clusterRoles, a.clusterBindings)
	}
	return out, nil
}

func accountSubject(csv *olm.ClusterServiceVersion, p olm.Permission) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: csv.Namespace}
}

// ownedMeta marks an object as one of the CSV's. An object without a namespace
// cannot have an owner in one: labels alone say whose it is.
func ownedMeta(csv *olm.ClusterServiceVersion, name, namespace string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name:      name,
		Namespace: namespace,
		Labels: map[string]string{
			"olm.owner":           csv.Name,
			"olm.owner.namespace": csv.Namespace,
			"olm.owner.kind":      kindCSV,
			"olm.managed":         "true",
		},
	}
	if namespace != "" {
		m.OwnerReferences = []metav1.OwnerReference{ownerReference(csv)}
	}
	return m
}

// ownerReference does not block the deletion of the CSV. Its UID is known only
// when the CSV has been created.
func ownerReference(csv *olm.ClusterServiceVersion) metav1.OwnerReference {
	no := false
	apiVersion, kind := csv.APIKind().ToAPIVersionAndKind()
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: csv.Name, UID: csv.UID,
		BlockOwnerDeletion: &no, Controller: &no,
	}
}

func labelHashes(role map[string]string, rules []rbacv1.PolicyRule, binding map[string]string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) error {
	var err error
	if role[LabelPermissionsHash], err = RulesHash(rules); err != nil {
		return err
	}
	binding[LabelPermissionsHash], err = BindingHash(ref, subjects)
	return err
}
