package runlevel

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// maxNamespaces is in how many namespaces a kind is watched one by one. The
// objects of 4.18.15 are of 50 kinds, in 308 pairs of kind and namespace. So many
// watches would be more than one connection carries; by kind alone, all Secrets of
// the cluster would be read for the sake of two. With this limit, and without what
// is to be deleted, it is 52, three of them for configuration.
const maxNamespaces = 4

// WatchedKind is a kind to be watched.
type WatchedKind struct {
	GVK       schema.GroupVersionKind
	Namespace string // empty: all
	// Whole reports that objects are to be kept as they are; else Trim leaves what
	// is needed of them.
	Whole bool
}

// Watch makes passes rely on watches for the objects of tasks: it returns what is to
// be watched, sorted. The caller hands what the watches show to [Tracker.Observe],
// until [Tracker.Unwatched]. A pass in state Reconciling then makes no call for an
// object that is as a pass in the same mode applied it. Watch is called again when the
// tasks or the filter change.
func (t *Tracker) Watch(tasks []*manifest.Task, filter manifest.Filter) []WatchedKind {
	kinds := make(map[manifest.Identity]schema.GroupVersionKind) // the last manifest's version is applied
	for _, task := range tasks {
		if !task.Manifest.Deletes() && filter.Judge(task.Manifest).Included {
			kinds[task.Manifest.Identity()] = task.Manifest.GVK()
		}
	}
	t.mu.Lock()
	t.ledger.begin(slices.Collect(maps.Keys(kinds)))
	t.mu.Unlock()

	namespaces := make(map[schema.GroupVersionKind]map[string]bool)
	add := func(kind schema.GroupVersionKind, namespace string) {
		if namespaces[kind] == nil {
			namespaces[kind] = make(map[string]bool)
		}
		namespaces[kind][namespace] = true
	}
	for id, kind := range kinds {
		add(kind, id.Namespace)
	}
	for _, kind := range configKinds {
		add(kind, "")
	}
	var out []WatchedKind
	for kind, in := range namespaces {
		// ClusterOperators are watched whole by whoever waits for them: it is one watch then
		whole := kind == clusterOperatorKind || slices.Contains(configKinds, kind)
		if len(in) > maxNamespaces || in[""] {
			in = map[string]bool{"": true}
		}
		for namespace := range in {
			out = append(out, WatchedKind{kind, namespace, whole})
		}
	}
	slices.SortFunc(out, func(a, b WatchedKind) int {
		return cmp.Or(cmp.Compare(a.GVK.Group, b.GVK.Group), cmp.Compare(a.GVK.Kind, b.GVK.Kind),
			cmp.Compare(a.GVK.Version, b.GVK.Version), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// fieldDigest is where Trim puts the digest of an object.
const fieldDigest = "clusterupdateDigest"

// Trim returns what [Tracker.Observe] needs of an object: which one it is, a digest
// of what an apply may change, and what checks look at. It does not change u. Objects
// that are to be kept whole it returns as they are.
func (k WatchedKind) Trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	if k.Whole {
		return u
	}
	state := stateOf(u)
	metadata := map[string]any{"name": u.GetName(), "uid": string(state.uid), "resourceVersion": state.version}
	if namespace := u.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if at, ok, _ := unstructured.NestedString(u.Object, "metadata", "deletionTimestamp"); ok {
		metadata["deletionTimestamp"] = at
	}
	out := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata, fieldDigest: state.digest,
	}
	switch u.GroupVersionKind() {
	case deploymentKind, crdKind:
		out["status"] = u.Object["status"]
	case jobKind:
		out["status"] = u.Object["status"]
		if n, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "completions"); ok {
			out["spec"] = map[string]any{"completions": n}
		}
	}
	return &unstructured.Unstructured{Object: out}
}
