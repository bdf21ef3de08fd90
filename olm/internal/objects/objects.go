// Package objects reads the objects of bundles, and selects those of a namespace from a list.
package objects

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Belongs reports whether an object whose metadata says namespace ns counts as
// one of the namespace: an empty ns means any.
func Belongs(ns, namespace string) bool { return ns == "" || ns == namespace }

// In returns pointers to the objects of the namespace, by name. Objects of one
// name stay in their order.
func In[T any, P interface {
	*T
	metav1.Object
}](namespace string, list []T) []P {
	var out []P
	for i := range list {
		if p := P(&list[i]); Belongs(p.GetNamespace(), namespace) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b P) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}
