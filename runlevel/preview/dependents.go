package preview

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
)

// Dependents are objects of one kind that go with one that is deleted: custom
// resources with their definition, the contents of a namespace, what it owns. It
// is plain data.
type Dependents struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	// Unknown reports that there may be more of them.
	Unknown bool `json:"unknown,omitempty"`
}

// namespacedKinds are the built-in kinds that are looked for in a namespace, and
// as what others own.
var namespacedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	podKind,
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// owners are the kinds whose objects own others that are looked for.
var owners = []string{"CronJob", "DaemonSet", "Deployment", "Job", "StatefulSet"}

// dependents finds what goes with an object, before it is deleted.
func (r *run) dependents(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) ([]Dependents, error) {
	live, err := clusterapi.GetShared(ctx, r.Cluster, gvk, key)
	if err != nil {
		return nil, nil // the deletion itself will tell
	}
	d := dependentsOf{run: r}
	switch {
	case gvk.GroupKind() == definitionKind.GroupKind():
		for _, kind := range definedKinds([]*clusterapi.Object{live}, "") {
			d.count(ctx, kind, clusterapi.ListOptions{}, nil)
		}
	case gvk == schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
		kinds := slices.Clone(namespacedKinds)
		definitions, err := clusterapi.ListShared(ctx, r.Cluster, definitionKind, clusterapi.ListOptions{})
		if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
			return nil, err
		}
		kinds = append(kinds, definedKinds(definitions, "Namespaced")...)
		for _, kind := range kinds {
			d.count(ctx, kind, clusterapi.ListOptions{Namespace: key.Name}, nil)
		}
	case slices.Contains(owners, gvk.Kind):
		d.owned(ctx, key.Namespace, live.UID())
	}
	return d.found, d.err
}

type dependentsOf struct {
	run   *run
	found []Dependents
	err   error
}

// count counts objects of a kind, and returns their UIDs.
func (d *dependentsOf) count(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions, counts func(*clusterapi.Object) bool) (uids []types.UID) {
	list, err := clusterapi.ListShared(ctx, d.run.Cluster, gvk, o)
	unknown := errors.Is(err, clusterapi.ErrNotCollected)
	if err != nil && !unknown && !clusterapi.IsMissing(err) {
		d.err = errors.Join(d.err, err)
	}
	for _, obj := range list {
		if counts == nil || counts(obj) {
			uids = append(uids, obj.UID())
		}
	}
	if len(uids) > 0 || unknown {
		d.found = append(d.found, Dependents{gvk.GroupVersion().String(), gvk.Kind, len(uids), unknown})
	}
	return uids
}

// owned counts what an object owns, and what that owns.
func (d *dependentsOf) owned(ctx context.Context, namespace string, owner types.UID) {
	uids := map[types.UID]bool{owner: true}
	for _, name := range []string{"Job", "ReplicaSet", "Pod"} {
		i := slices.IndexFunc(namespacedKinds, func(k schema.GroupVersionKind) bool { return k.Kind == name })
		for _, uid := range d.count(ctx, namespacedKinds[i], clusterapi.ListOptions{Namespace: namespace}, func(o *clusterapi.Object) bool {
			refs := o.Unstructured().GetOwnerReferences()
			return len(refs) > 0 && !slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return !uids[ref.UID] })
		}) {
			uids[uid] = true
		}
	}
}

// definedKinds are the kinds of definitions, in the version that is stored;
// scope restricts them.
func definedKinds(definitions []*clusterapi.Object, scope string) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, o := range definitions {
		if at, _, _ := unstructured.NestedFieldNoCopy(o.Unstructured().Object, "spec", "scope"); scope != "" && at != scope {
			continue
		}
		for name, v := range versionsOf(o.Unstructured()) {
			if v["storage"] == true {
				out = append(out, apiserver.Kind(o.Unstructured().Object).WithVersion(name))
			}
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
