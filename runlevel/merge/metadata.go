package merge

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// mergeMeta adds labels, annotations and owners, or overwrites them; none is
// removed. What it changes it does not share with what was there before.
func mergeMeta(into *metav1.ObjectMeta, from *metav1.ObjectMeta) {
	if from.Name != "" {
		into.Name = from.Name
	}
	if into.Namespace != "" && from.Namespace != "" {
		into.Namespace = from.Namespace // some manifests of kinds without namespaces name one
	}
	into.Labels = mergeMap(into.Labels, from.Labels)
	into.Annotations = mergeMap(into.Annotations, from.Annotations)
	owners := slices.Clone(into.OwnerReferences)
	for _, owner := range from.OwnerReferences {
		at := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
		if at < 0 {
			owners = append(owners, owner)
		} else {
			owners[at] = owner
		}
	}
	into.OwnerReferences = owners
}

// mergeMap returns a map with the entries of both, of which those of from count.
func mergeMap[V any](into, from map[string]V) map[string]V {
	if len(from) == 0 {
		return into
	}
	out := make(map[string]V, len(into)+len(from))
	maps.Copy(out, into)
	maps.Copy(out, from)
	return out
}

// mergeKeyed merges a list whose elements have keys. Those of both lists stay in
// their places, merged; those that only from has are added behind; those that only
// into has stay if keep is true. Where a key occurs more than once, the first ones
// belong together, and so on.
func mergeKeyed[T any, K comparable](into, from []T, keep bool, key func(*T) K, merge func(into, from *T)) []T {
	at := make(map[K][]int, len(from))
	for i := range from {
		k := key(&from[i])
		at[k] = append(at[k], i)
	}
	out := make([]T, 0, len(into)+len(from))
	used := make([]bool, len(from))
	for i := range into {
		k := key(&into[i])
		if len(at[k]) > 0 {
			j := at[k][0]
			at[k], used[j] = at[k][1:], true
			element := into[i]
			merge(&element, &from[j])
			out = append(out, element)
		} else if keep {
			out = append(out, into[i])
		}
	}
	for j := range from {
		if !used[j] {
			out = append(out, from[j])
		}
	}
	return out
}

// replace is for elements of [mergeKeyed] that are taken over whole.
func replace[T any](into, from *T) { *into = *from }

// metadataOf are the metadata of two objects of which the type is not at hand.
func metadataOf(existing, required *unstructured.Unstructured) (e, r *metav1.ObjectMeta, err error) {
	pe, pr, err := decode[metav1.PartialObjectMetadata](justMetadata(existing), justMetadata(required))
	if err != nil {
		return nil, nil, err
	}
	return &pe.ObjectMeta, &pr.ObjectMeta, nil
}

func justMetadata(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
	if m, ok := u.Object["metadata"]; ok {
		out["metadata"] = m
	}
	return &unstructured.Unstructured{Object: out}
}

// setMeta writes labels, annotations and owners into an object.
func setMeta(u *unstructured.Unstructured, m *metav1.ObjectMeta) {
	u.SetLabels(m.Labels)
	u.SetAnnotations(m.Annotations)
	if len(m.OwnerReferences) > 0 || len(u.GetOwnerReferences()) > 0 {
		u.SetOwnerReferences(m.OwnerReferences)
	}
}

// withoutManagedFields shares all else with u. They are not needed for a merge, and
// often the larger part of an object.
func withoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	meta, ok := u.Object["metadata"].(map[string]any)
	if !ok || meta["managedFields"] == nil {
		return u
	}
	meta = maps.Clone(meta)
	delete(meta, "managedFields")
	content := maps.Clone(u.Object)
	content["metadata"] = meta
	return &unstructured.Unstructured{Object: content}
}

// keepServerFields gives a merged object what the server alone writes, as it was.
func keepServerFields(merged, existing *unstructured.Unstructured) {
	if status, ok := existing.Object["status"]; ok {
		merged.Object["status"] = runtime.DeepCopyJSONValue(status)
	} else {
		delete(merged.Object, "status") // an empty one, for the type has it
	}
	from, _ := existing.Object["metadata"].(map[string]any)
	into, _ := merged.Object["metadata"].(map[string]any)
	for _, field := range []string{"creationTimestamp", "managedFields"} {
		if value, ok := from[field]; ok {
			into[field] = runtime.DeepCopyJSONValue(value)
		} else {
			delete(into, field)
		}
	}
}
