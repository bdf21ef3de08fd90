package runlevel

import (
	"cmp"
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

// WatchedKind is what of a cluster is to be watched.
type WatchedKind struct {
	GVK       schema.GroupVersionKind
	Namespace string // empty: all
	// Whole says that objects are to be kept as they are; else Trim leaves what is
	// needed of them.
	Whole bool
	// Mode is that of the passes.
	Mode Mode
}

// Watch begins to go by what watches show, for the objects of tasks: it returns
// what is to be watched, sorted. The caller hands in what the watches show, by
// [Tracker.Saw] and [Tracker.Gone], until [Tracker.Unwatched]. A pass in state
// Reconciling and this mode then makes no call for an object that is as it was
// applied; one in another mode applies everything. It is called again where the
// tasks or the filter change; for another mode, the watches begin anew.
func (t *Tracker) Watch(tasks []*manifest.Task, filter manifest.Filter, mode Mode) []WatchedKind {
	objects := make(map[manifest.Identity]bool)
	kinds := make(map[manifest.Identity]schema.GroupVersionKind) // the last manifest's version is applied
	for _, task := range tasks {
		if task.Manifest.Deletes() || !filter.Judge(task.Manifest).Included {
			continue
		}
		id := task.Manifest.Identity()
		objects[id], kinds[id] = true, task.Manifest.GVK()
	}
	t.mu.Lock()
	t.ledger.begin(objects, mode)
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
			out = append(out, WatchedKind{kind, namespace, whole, mode})
		}
	}
	slices.SortFunc(out, func(a, b WatchedKind) int {
		return cmp.Or(cmp.Compare(a.GVK.Group, b.GVK.Group), cmp.Compare(a.GVK.Kind, b.GVK.Kind),
			cmp.Compare(a.GVK.Version, b.GVK.Version), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// fieldDigest is where Trim puts the digest of what we own.
const fieldDigest = "clusterupdateOwned"

// Trim returns what [Tracker.Saw] needs of an object: which one it is, a digest of
// what is owned by [clusterapi.ManagerPayload], or with [ApplyMerge] of all but its
// status, and what checks look at. It does not change u. Where objects are to be kept
// whole, it returns u.
func (k WatchedKind) Trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	if k.Whole {
		return u
	}
	meta := map[string]any{"name": u.GetName(), "uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()}
	if namespace := u.GetNamespace(); namespace != "" {
		meta["namespace"] = namespace
	}
	digest := digestFor(u, k.Mode)
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": meta, fieldDigest: digest,
	}}
	if digest == "" {
		return out // whoever's it is
	}
	if at, ok, _ := unstructured.NestedString(u.Object, "metadata", "deletionTimestamp"); ok {
		meta["deletionTimestamp"] = at
	}
	var keep [][]string
	switch u.GroupVersionKind() {
	case deploymentKind, crdKind:
		keep = [][]string{{"status", "conditions"}}
	case jobKind:
		keep = [][]string{{"status", "conditions"}, {"status", "succeeded"}, {"status", "active"}, {"status", "failed"}, {"spec", "completions"}}
	}
	for _, path := range keep {
		if value, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); ok {
			in, _ := out.Object[path[0]].(map[string]any)
			if in == nil {
				in = make(map[string]any)
				out.Object[path[0]] = in
			}
			in[path[1]] = value
		}
	}
	return out
}

// digestOf is the digest of an object, be it trimmed or not.
func digestOf(u *unstructured.Unstructured, mode Mode) string {
	if digest, ok := u.Object[fieldDigest].(string); ok {
		return digest
	}
	return digestFor(u, mode)
}

// digestFor is the digest of what a pass keeps as it is.
func digestFor(u *unstructured.Unstructured, mode Mode) string {
	if mode == ApplyMerge {
		return contentDigest(u)
	}
	return ownedDigest(u)
}
