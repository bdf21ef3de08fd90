package install

import (
	"context"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// The labels by which OLM finds what is its own, and what belongs to an operator
// that cannot own it.
const (
	labelManaged        = "olm.managed"
	labelOwner          = "olm.owner"
	labelOwnerNamespace = "olm.owner.namespace"
	labelOwnerKind      = "olm.owner.kind"
)

// prepare readies the object of a step to be written as OLM does: it gets OLM's
// label, and but for operators, Subscriptions and definitions the operator as its
// owner, by labels if it has no namespace. A Subscription gets the name of the
// plan. stored is the object that is there, nil if absent: a ServiceAccount keeps
// its owners, a definition everything but its spec.
func (x *execution) prepare(ctx context.Context, s *olmapi.Step, obj, stored *unstructured.Unstructured) error {
	addLabels(obj, map[string]string{labelManaged: "true"})
	switch gk := obj.GroupVersionKind().GroupKind(); gk.Kind {
	case kindCSV:
	case kindSubscription:
		addAnnotations(obj, map[string]string{annotationGeneratedBy: x.plan.Name})
	case kindCRD:
		if stored != nil {
			replaceSpec(obj, stored)
		}
	default:
		owner := &olmapi.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: x.plan.Namespace, Name: s.Resolving}}
		if obj.GetNamespace() == "" || gk.Group == rbacv1.GroupName {
			addLabels(obj, map[string]string{
				labelOwner: owner.Name, labelOwnerNamespace: owner.Namespace, labelOwnerKind: kindCSV,
			})
		}
		if obj.GetNamespace() == "" {
			return nil
		}
		return x.setOwners(ctx, owner, obj, stored)
	}
	return nil
}

// setOwners adds an operator to the owners of an object, and gives references to
// operators their UIDs: they are known only now. A ServiceAccount keeps the
// operators that own it already: until an update is over, the operator that it
// replaces runs under the account, and a ClusterServiceVersion whose account is
// another's fails.
func (x *execution) setOwners(
	ctx context.Context, owner *olmapi.ClusterServiceVersion, obj, stored *unstructured.Unstructured,
) error {
	refs := obj.GetOwnerReferences()
	isOwner := func(r metav1.OwnerReference) bool { return r.Kind == kindCSV && r.Name == owner.Name }
	if !slices.ContainsFunc(refs, isOwner) {
		refs = append(refs, ownerReference(owner))
	}
	for i := range refs {
		if refs[i].Kind != kindCSV {
			continue
		}
		uid, err := x.uidOf(ctx, refs[i].Name)
		if err != nil {
			return err
		}
		refs[i].UID = uid
	}
	if stored != nil && obj.GetKind() == kindServiceAccount {
		for _, ref := range stored.GetOwnerReferences() {
			same := func(r metav1.OwnerReference) bool { return r.UID == ref.UID }
			if ref.Kind == kindCSV && !slices.ContainsFunc(refs, same) {
				refs = append(refs, ref)
			}
		}
	}
	obj.SetOwnerReferences(refs)
	return nil
}

// uidOf returns the UID of an operator of the plan's namespace.
func (x *execution) uidOf(ctx context.Context, csv string) (types.UID, error) {
	if x.uids[csv] == "" {
		kind := (&olmapi.ClusterServiceVersion{}).APIKind()
		stored, err := clusterapi.GetShared(ctx, x.pass.api, kind, clusterapi.Key(x.plan.Namespace, csv))
		if err != nil {
			return "", err
		}
		x.uids[csv] = stored.UID()
	}
	return x.uids[csv], nil
}

// replaceSpec makes a definition the stored one with another spec: the conversion
// of the stored one goes with the rest. Labels and annotations are merged.
func replaceSpec(obj, stored *unstructured.Unstructured) {
	out := stored.DeepCopy()
	out.Object["spec"] = obj.Object["spec"]
	addLabels(out, obj.GetLabels())
	addAnnotations(out, obj.GetAnnotations())
	obj.Object = out.Object
}

func addLabels(obj *unstructured.Unstructured, labels map[string]string) {
	obj.SetLabels(merged(obj.GetLabels(), labels))
}

func addAnnotations(obj *unstructured.Unstructured, annotations map[string]string) {
	obj.SetAnnotations(merged(obj.GetAnnotations(), annotations))
}

// merged returns both maps as one; the second wins. Of nothing it returns nil.
func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	if len(out) == 0 {
		return nil
	}
	return out
}
