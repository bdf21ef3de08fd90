package dump

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readLists notes what lists show to be whole.
func (a *assembly) readLists() {
	for _, f := range a.c.files {
		short := make(map[schema.GroupKind]bool) // one page of several
		for _, l := range f.lists {
			if l.partial {
				short[l.kind.GroupKind()] = true
			}
		}
		for _, l := range f.lists {
			a.readList(f, l, short)
		}
	}
}

func (a *assembly) readList(f *file, l *listed, short map[schema.GroupKind]bool) {
	gk := l.kind.GroupKind()
	if l.mixed {
		if l.partial {
			for _, o := range f.objects {
				a.kind(o.gvk.GroupKind()).short = true
			}
		}
		return
	}
	byPath, known := a.kindAt(f.place)
	if gk.Kind == "" {
		if !known {
			if len(f.objects)+f.skipped == 0 {
				a.problem(Problem{f.path, l.document, l.line, fmt.Errorf("an empty list of which nothing says the kind")})
			}
			return
		}
		gk = byPath
	}
	if a.c.skip[gk] {
		return
	}
	k := a.kind(gk)
	if k.scope == scopeUnknown {
		k.scope = scopeOf(gk)
	}
	if k.scope == scopeUnknown && f.place.namespace != "" {
		k.scope = scopeNamespaced
	}
	k.listed = true
	k.short = k.short || l.partial
	if f.place.role != roleList && f.place.role != roleRequests {
		return
	}
	if len(f.faults) > 0 || short[gk] || !l.typed && known && gk != byPath {
		return
	}
	if recorded, ours := a.recorded[f.place.root]; ours {
		if recorded == nil || recorded.has(gk) { // its kinds.json decides
			return
		}
	}
	switch {
	case f.place.namespace == "":
		k.whole = true
	case k.scope == scopeNamespaced:
		k.wholeIn[f.place.namespace] = true
	}
}

func (r *recordedKinds) has(gk schema.GroupKind) bool {
	for _, k := range r.Kinds {
		if k.Group == gk.Group && k.Kind == gk.Kind {
			return true
		}
	}
	return false
}

// readKinds reads each kinds.json, and takes the names in it.
func (a *assembly) readKinds() {
	for _, f := range a.c.files {
		if f.place.role != roleKinds {
			continue
		}
		a.recorded[f.place.root] = nil
		if f.raw == nil {
			continue
		}
		recorded, err := readKinds(f.raw)
		if err != nil {
			a.problem(Problem{Path: f.path, Err: err})
			continue
		}
		a.recorded[f.place.root] = recorded
		for _, r := range recorded.Kinds {
			gk := schema.GroupKind{Group: r.Group, Kind: r.Kind}
			k := a.kind(gk)
			k.versions[r.Version] = true
			k.describe(r.Resource, r.Namespaced)
			a.learn(schema.GroupResource{Group: r.Group, Resource: r.Resource}, gk)
		}
	}
}

// takeRecorded takes from each kinds.json what was read whole, as far as all of
// it is still there.
func (a *assembly) takeRecorded() {
	for root, recorded := range a.recorded {
		if recorded == nil || a.incomplete[root] {
			continue
		}
		for _, r := range recorded.Kinds {
			gk := schema.GroupKind{Group: r.Group, Kind: r.Kind}
			if a.c.skip[gk] {
				continue
			}
			k := a.kind(gk)
			resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
			lost := a.lost[spot{root, resource}]
			switch {
			case r.Whole && r.Assumed && len(lost) == 0:
				k.assumed = k.assumed || !k.whole
				k.whole = true
			case r.Whole && len(lost) == 0:
				k.whole, k.recorded = true, true
			case r.Whole && r.Namespaced && !lost[""]:
				for ns := range a.spaces.known {
					if !lost[ns] {
						k.wholeIn[ns] = true
					}
				}
			}
			for _, ns := range r.Namespaces {
				if !lost[ns] && !lost[""] {
					k.wholeIn[ns] = true
				}
			}
		}
	}
}

// takeHeap takes what a heap has of cluster-scoped kinds as all of them.
func (a *assembly) takeHeap() {
	if !a.isHeap() {
		return
	}
	for gk, k := range a.kinds {
		if k.scope == scopeCluster && (k.listed || len(k.objects) > 0) && !k.short && !a.lostAny && !a.lostKinds.has(gk.Kind) {
			k.whole = true
			a.spaces.whole = a.spaces.whole || gk == namespaceKind && k.listed && len(k.objects) > 0
		}
	}
}

// kindNames are names of kinds, as texts that were perhaps cut off have them.
type kindNames map[string]bool

// has reports whether a kind may be among them.
func (k kindNames) has(kind string) bool {
	for n := range len(kind) {
		if k[kind[:n+1]] {
			return true
		}
	}
	return false
}

// claims are resources that count as whole though nothing recorded shows it.
type claims struct {
	resources map[schema.GroupResource]bool
	// In a heap, lostKinds are names of kinds of which objects are lost.
	lostKinds kindNames
	skip      map[schema.GroupKind]bool
}

// cover reports whether a kind counts as whole.
func (c claims) cover(gk schema.GroupKind, resource schema.GroupResource) bool {
	return c.resources[resource] && !c.lostKinds.has(gk.Kind) && !c.skip[gk]
}

// coverEmpty is cover for a kind without objects.
func (c claims) coverEmpty(gk schema.GroupKind, resource schema.GroupResource) bool {
	return c.cover(gk, resource) && !everywhere[gk]
}

// claims finds which resources of Options.Whole, or else of MustGather, count as
// whole. given reports that Options.Whole was given.
func (a *assembly) claims(given bool) claims {
	out := claims{resources: make(map[schema.GroupResource]bool), skip: a.c.skip}
	if a.isHeap() {
		out.lostKinds = a.lostKinds
		for _, resource := range a.c.o.Whole {
			out.resources[resource] = !a.lostAny
		}
		return out
	}
	if given {
		for _, resource := range a.c.o.Whole {
			out.resources[resource] = true
			for root := range a.c.roots {
				if a.incomplete[root] || len(a.lost[spot{root, resource}]) > 0 {
					out.resources[resource] = false
				}
			}
		}
		return out
	}
	for root := range a.c.roots {
		if _, ours := a.recorded[root]; ours || a.c.insights[root] {
			continue
		}
		if !a.isMustGather(root) || a.isCut(root) || a.incomplete[root] {
			continue
		}
		for _, resource := range MustGather() {
			// The absence of any file says something where its scripts ran.
			at := spot{root, resource}
			if (a.there[at] || a.there[spot{root, operators}]) && len(a.lost[at]) == 0 {
				out.resources[resource] = true
			}
		}
	}
	return out
}

var operators = schema.GroupResource{Group: configGroup, Resource: "clusteroperators"}

// isMustGather reports whether the scripts of must-gather wrote a recording: by
// the name of its folder, which has the digest of an image, or of one above, by the
// log beside that, or by what else is in it.
func (a *assembly) isMustGather(root string) bool {
	if a.c.gathered[root] {
		return true
	}
	for at := root; ; at = path.Dir(at) {
		base := path.Base(at)
		switch {
		case strings.HasPrefix(base, "inspect.local."):
			return false
		case strings.HasPrefix(base, "must-gather.local.") || strings.Contains(base, "-sha256-") || a.c.logged[at]:
			return true
		case at == ".":
			return false
		}
	}
}

// isCut reports whether gathering a recording did not end.
func (a *assembly) isCut(root string) bool {
	for at := root; ; at = path.Dir(at) {
		if a.cutOff[at] || at == "." {
			return a.cutOff[at]
		}
	}
}
