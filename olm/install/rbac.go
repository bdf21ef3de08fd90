package install

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"slices"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelPermissionsHash on a role is the hash of its rules, on a binding the hash of
// its role and subjects: OLM uses it to find what it has created already.
const labelPermissionsHash = "olm.permissions.hash"

// nameLength is the length that OLM cuts names of roles to: the length of a DNS
// label.
const nameLength = 63

// hashedName is the name that OLM gives a role and its binding: the hash of the
// permission behind a base. One that is too long is cut; at exactly 63 characters
// without the dash nothing is, and the name has 64, as OLM's.
func hashedName(base string, p olmapi.Permission) string {
	hash := base62(append(asJSON(p), '\n'))
	if len(base)+len(hash) > nameLength {
		base = base[:nameLength-1-len(hash)]
	}
	return base + "-" + hash
}

func rulesHash(rules []rbacv1.PolicyRule) string { return base62(asJSON(rules)) }

func bindingHash(ref rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	return base62(asJSON(struct {
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}{ref, subjects}))
}

// asJSON is the JSON of a value that consists of texts, so always has one.
func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// base62 is the SHA-224 of data as a number in the digits 0-9, a-z, A-Z.
func base62(data []byte) string {
	sum := sha256.Sum224(data)
	return new(big.Int).SetBytes(sum[:]).Text(62)
}

// accountObjects returns the service accounts of a CSV by name, each followed
// by its roles, role bindings, cluster roles and cluster role bindings. The
// account "default" exists already.
func accountObjects(csv *olmapi.ClusterServiceVersion) []any {
	type object struct {
		account string
		order   int // in its account
		value   any
	}
	var objects []object
	add := func(p olmapi.Permission, order int, kind, name, namespace string) {
		account := p.ServiceAccountName
		// Role and ClusterRole have the same fields, and so have their bindings.
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		role := &rbacv1.Role{TypeMeta: rbacType(kind), ObjectMeta: meta, Rules: p.Rules}
		role.Labels = map[string]string{labelPermissionsHash: rulesHash(p.Rules)}
		binding := &rbacv1.RoleBinding{
			TypeMeta: rbacType(kind + "Binding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: csv.Namespace}},
		}
		binding.Labels = map[string]string{labelPermissionsHash: bindingHash(binding.RoleRef, binding.Subjects)}
		objects = append(objects, object{account, order, role}, object{account, order + 1, binding})
		there := func(o object) bool { return o.account == account && o.order == 0 }
		if account != "default" && !slices.ContainsFunc(objects, there) {
			sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: csv.Namespace}}
			sa.APIVersion, sa.Kind = "v1", "ServiceAccount"
			objects = append(objects, object{account, 0, sa})
		}
	}
	for _, p := range csv.Spec.Install.Spec.Permissions {
		add(p, 1, "Role", hashedName(csv.Name+"-"+p.ServiceAccountName, p), csv.Namespace)
	}
	for _, p := range csv.Spec.Install.Spec.ClusterPermissions {
		add(p, 3, "ClusterRole", hashedName(csv.Name, p), "")
	}
	slices.SortStableFunc(objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.order, b.order))
	})
	out := make([]any, len(objects))
	for i := range objects {
		out[i] = objects[i].value
	}
	return out
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// ownerReference does not block the deletion of the owner. The UID of a CSV is
// known only when it has been created.
func ownerReference(owner interface {
	metav1.Object
	clusterapi.Kinder
}) metav1.OwnerReference {
	no := false
	apiVersion, kind := owner.APIKind().ToAPIVersionAndKind()
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		BlockOwnerDeletion: &no, Controller: &no,
	}
}
