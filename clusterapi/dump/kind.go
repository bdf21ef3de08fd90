package dump

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kind is what a recording has of one kind.
type kind struct {
	gk       schema.GroupKind
	resource string // empty if nothing says it
	scope    scope
	// versions are those that something shows to be served; defined reports that
	// these are all.
	versions map[string]bool
	defined  bool

	objects []*object // by namespace, then name
	byKey   map[types.NamespacedName]*object

	// listed reports that there was a list, perhaps an empty one; short that a list
	// has more pages, in a heap.
	listed, short bool
	whole         bool            // in the cluster
	wholeIn       map[string]bool // in a namespace
	assumed       bool            // see Coverage
	recorded      bool            // whole on the word of a kinds.json
}

// everywhere are kinds of which every cluster that serves them has some: a
// recording without any did not collect them, whatever it looks like.
var everywhere = func() map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for group, kinds := range map[string][]string{
		"":                       {"Namespace", "Node"},
		"apiextensions.k8s.io":   {"CustomResourceDefinition"},
		"apiserver.openshift.io": {"APIRequestCount"},
		configGroup: {
			"APIServer", "Authentication", "ClusterOperator", "ClusterVersion", "DNS", "FeatureGate", "Infrastructure",
			"Ingress", "Network", "OAuth", "Proxy", "Scheduler",
		},
		machineGroup:            {"ControllerConfig", "MachineConfig", "MachineConfigPool"},
		"security.openshift.io": {"SecurityContextConstraints"},
	} {
		for _, kind := range kinds {
			out[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return out
}()

type scope int

const (
	scopeUnknown scope = iota
	scopeNamespaced
	scopeCluster
)

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// namespaces is what is known about which there are.
type namespaces struct {
	known map[string]bool
	whole bool // there are no others
}

// sorted returns the known namespaces for which keep holds.
func (n namespaces) sorted(keep func(string) bool) []string {
	var out []string
	for name := range n.known {
		if keep(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (a *assembly) kind(gk schema.GroupKind) *kind {
	k := a.kinds[gk]
	if k == nil {
		k = &kind{gk: gk, versions: make(map[string]bool), wholeIn: make(map[string]bool)}
		if scopeOf(gk) != scopeUnknown {
			k.resource = guess(gk).Resource
		}
		a.kinds[gk] = k
	}
	return k
}

// describe notes resource and scope, unless they are known.
func (k *kind) describe(resource string, namespaced bool) {
	k.resource = cmp.Or(k.resource, resource)
	if k.scope == scopeUnknown {
		k.scope = scopeCluster
		if namespaced {
			k.scope = scopeNamespaced
		}
	}
}

// groupResource names the kind in errors.
func (k *kind) groupResource() schema.GroupResource {
	if k.resource != "" {
		return schema.GroupResource{Group: k.gk.Group, Resource: k.resource}
	}
	return guess(k.gk)
}

// scopeOf is the scope of a kind that is known without a recording.
func scopeOf(gk schema.GroupKind) scope {
	namespaced, known := builtins().namespaced[gk]
	switch {
	case !known:
		return scopeUnknown
	case namespaced:
		return scopeNamespaced
	}
	return scopeCluster
}

// in returns the grade of the kind in a namespace.
func (k *kind) in(namespace string) string {
	switch {
	case k.whole || k.wholeIn[namespace]:
		return gradeWhole
	case len(k.of(namespace)) > 0:
		return gradeSome
	}
	return gradeNone
}

// cluster returns the grade of the kind in the whole cluster.
func (k *kind) cluster() string {
	switch {
	case k.whole:
		return gradeWhole
	case len(k.objects) > 0 || len(k.wholeIn) > 0:
		return gradeSome
	}
	return gradeNone
}

// of returns the objects of a namespace.
func (k *kind) of(namespace string) []*object {
	compare := func(o *object, ns string) int {
		switch {
		case o.key.Namespace < ns:
			return -1
		case o.key.Namespace > ns:
			return 1
		}
		return 0
	}
	start, _ := slices.BinarySearchFunc(k.objects, namespace, compare)
	end := start
	for end < len(k.objects) && k.objects[end].key.Namespace == namespace {
		end++
	}
	return k.objects[start:end]
}

// settle makes the indexes and takes what is claimed.
func (a *assembly) settle(claims claims) {
	// Whether a kind is whole in the cluster can hang on whether the namespaces
	// are all known.
	order := slices.SortedFunc(maps.Keys(a.kinds), compareKinds)
	for _, gk := range order {
		k := a.kinds[gk]
		if !k.whole && claims.cover(gk, k.groupResource()) {
			k.whole, k.assumed = true, true
		}
		if len(k.objects) == 0 && everywhere[gk] && !k.recorded {
			k.whole, k.assumed = false, false
		}
		k.byKey = make(map[types.NamespacedName]*object, len(k.objects))
		for _, o := range k.objects {
			k.byKey[o.key] = o
		}
	}
	// In a heap they are known where a list of them says so, see takeHeap.
	if k := a.kinds[namespaceKind]; k != nil && k.whole && (!a.isHeap() || k.assumed) {
		a.spaces.whole = true
	}
	if claims.cover(namespaceKind, guess(namespaceKind)) {
		a.spaces.whole = true
	}
	if !a.spaces.whole || len(a.spaces.known) == 0 {
		return
	}
	for _, gk := range order {
		if k := a.kinds[gk]; !k.whole && k.scope == scopeNamespaced {
			k.whole = len(a.spaces.sorted(func(ns string) bool { return !k.wholeIn[ns] })) == 0
		}
	}
}
