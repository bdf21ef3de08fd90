package dump

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// assembly makes a recording from the collected files.
type assembly struct {
	c        *collection
	problems []Problem
	more     int // problems that are not kept

	kinds     map[schema.GroupKind]*kind
	resources map[schema.GroupResource]schema.GroupKind
	served    *served
	spaces    namespaces
	read      int // objects, those that are not kept too

	// recorded are the kinds.json of recordings, nil for one that cannot be used:
	// there, lists may lack objects.
	recorded map[string]*recordedKinds
	// there are the resources of which recordings have files, and lost those of
	// which objects are lost, by namespace, "" for the cluster. In a heap, what is
	// lost can be of lostKinds, or of any kind.
	there     map[spot]bool
	lost      map[spot]map[string]bool
	lostKinds kindNames
	lostAny   bool
	// cutOff are folders in which gathering began and did not end, and incomplete
	// recordings of which a part that matters could not be read.
	cutOff, incomplete map[string]bool
}

// spot is a resource in a recording.
type spot struct {
	root     string
	resource schema.GroupResource
}

func spotOf(p place) spot {
	return spot{p.root, schema.GroupResource{Group: p.group, Resource: p.resource}}
}

// assemble makes the recording. given reports that Options.Whole was.
func assemble(c *collection, given bool) (*Recording, error) {
	a := &assembly{
		c: c, problems: c.ignored, more: c.more,
		kinds:     make(map[schema.GroupKind]*kind),
		resources: make(map[schema.GroupResource]schema.GroupKind),
		served:    &served{groups: make(map[string]bool)},
		spaces:    namespaces{known: make(map[string]bool)},
		recorded:  make(map[string]*recordedKinds),
		there:     make(map[spot]bool),
		lost:      make(map[spot]map[string]bool),
		lostKinds: make(kindNames),
		cutOff:    make(map[string]bool), incomplete: make(map[string]bool),
	}
	slices.SortFunc(c.files, func(x, y *file) int { return strings.Compare(x.path, y.path) })
	a.faults()
	a.readKinds()
	a.readDiscovery()
	a.mergeObjects()
	if a.read == 0 {
		a.sortProblems()
		return nil, errNothing(a.problems)
	}
	a.readDefinitions()
	a.learnPaths()
	a.findScopes()
	times := a.timestamps()
	a.findSpaces()
	a.readLists()
	a.takeRecorded()
	a.takeInsights()
	a.takeHeap()
	claims := a.claims(given)
	a.settle(claims)
	r := &Recording{kinds: a.kinds, served: a.served, claims: claims, spaces: a.spaces, skip: c.skip, alerts: a.alerts()}
	r.now = a.time(times)
	a.sortProblems()
	r.problems = a.problems
	return r, nil
}

func (a *assembly) isHeap() bool { return len(a.c.roots) == 0 }

func (a *assembly) problem(p Problem) {
	if len(a.problems) >= a.c.o.MaxProblems {
		a.more++
		return
	}
	a.problems = append(a.problems, p)
}

func (a *assembly) sortProblems() {
	slices.SortStableFunc(a.problems, func(x, y Problem) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), cmp.Compare(x.Document, y.Document), cmp.Compare(x.Line, y.Line))
	})
	if a.more > 0 {
		a.problems = append(a.problems, Problem{Err: fmt.Errorf("%d more problems are not kept (limit MaxProblems)", a.more)})
	}
}

// faults turns what could not be read into problems, and notes what may be lost.
func (a *assembly) faults() {
	for _, f := range a.c.files {
		at := spotOf(f.place)
		a.there[at] = true
		for _, fault := range f.faults {
			a.problem(Problem{f.path, fault.document, fault.line, fault.err})
			if f.place.role == roleHeap && !fault.lost || !f.place.role.holdsObjects() {
				continue
			}
			if a.lost[at] == nil {
				a.lost[at] = make(map[string]bool)
			}
			a.lost[at][f.place.namespace] = true
			for _, kind := range fault.kinds {
				a.lostKinds[kind] = true
			}
			a.lostAny = a.lostAny || len(fault.kinds) == 0
		}
		a.more += f.more
		a.lostAny = a.lostAny || f.more > 0
	}
	for name := range a.c.incomplete {
		// A link, or a folder that cannot be read.
		if ext := path.Ext(name); ext == "" || name == "." || inHeap(name).role == roleHeap {
			a.lostAny = true
		}
		for root := name; ; root = path.Dir(root) {
			rel, _ := below(root, name)
			matters := a.c.mayHold(root, rel) || a.c.placeIn(root, rel).role != roleNone
			if a.c.roots[root] && matters {
				a.incomplete[root] = true
			}
			if root == "." {
				break
			}
		}
	}
	if a.c.incomplete["."] {
		maps.Copy(a.incomplete, a.c.roots)
	}
}

// mergeObjects chooses one of the copies of each object.
func (a *assembly) mergeObjects() {
	n := 0
	for _, f := range a.c.files {
		n += len(f.objects)
	}
	all := make([]*object, 0, n)
	for _, f := range a.c.files {
		a.read += len(f.objects) + f.skipped
		for _, o := range f.objects {
			if in := f.place.namespace; in != "" && o.key.Namespace != in {
				a.problem(Problem{f.path, o.document, 0, fmt.Errorf("%s %s stands in the folder of namespace %s", o.gvk.Kind, keyText(o.key), in)})
			}
		}
		all = append(all, f.objects...)
	}
	// Copies stay in the order of their paths.
	slices.SortStableFunc(all, func(x, y *object) int {
		return cmp.Or(compareKinds(x.gvk.GroupKind(), y.gvk.GroupKind()), compareKeys(x, y))
	})
	for start := 0; start < len(all); {
		end := start + 1
		first := all[start]
		for end < len(all) && all[end].gvk.GroupKind() == first.gvk.GroupKind() && all[end].key == first.key {
			end++
		}
		copies := all[start:end]
		start = end
		best := choose(copies)
		for _, o := range copies {
			if o.uid != best.uid && o.uid != "" && best.uid != "" {
				a.problem(Problem{o.path, o.document, 0, fmt.Errorf("%s %s has another UID than in %s, which is used", o.gvk.Kind, keyText(o.key), best.path)})
			}
		}
		k := a.kind(best.gvk.GroupKind())
		for _, o := range copies {
			k.versions[o.gvk.Version] = true
		}
		k.objects = append(k.objects, best)
	}
}

// choose returns the copy to use: not one in the clear where another is
// redacted; of the rest the latest, else the first.
func choose(copies []*object) *object {
	hidden := slices.ContainsFunc(copies, func(o *object) bool { return o.secrecy == redacted })
	var best *object
	for _, o := range copies {
		if hidden && o.secrecy == inTheClear {
			continue
		}
		if best == nil || newer(o.revision, best.revision) {
			best = o
		}
	}
	return best
}

// newer reports whether a resourceVersion is later than another. One that is not
// a number is earlier than each that is.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		_, errA := resourceversion.CompareResourceVersion(a, a)
		_, errB := resourceversion.CompareResourceVersion(b, b)
		return errA == nil && errB != nil
	}
	return order > 0
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
}

func compareKeys(a, b *object) int {
	return cmp.Or(strings.Compare(a.key.Namespace, b.key.Namespace), strings.Compare(a.key.Name, b.key.Name))
}

// readDiscovery takes the kinds that discovery names.
func (a *assembly) readDiscovery() {
	d := newDecoder(&a.c.o)
	for _, f := range a.c.files {
		core := f.place.role == roleCore
		if f.place.role != roleGroups && !core {
			continue
		}
		if f.raw == nil {
			a.served.broken(core)
			continue
		}
		_, partial := a.recorded[f.place.root] // Record writes what it reads alone
		err := d.stream(a.c.parent, f.raw, func(doc document) error {
			found, err := a.served.read(doc.text, core, partial)
			if err != nil {
				a.served.broken(core)
				a.problem(Problem{f.path, doc.number, doc.line, err})
			}
			for _, one := range found {
				k := a.kind(one.kind.GroupKind())
				k.versions[one.kind.Version] = true
				k.describe(one.resource, one.namespaced)
				a.learn(schema.GroupResource{Group: one.kind.Group, Resource: one.resource}, k.gk)
			}
			return nil
		}, func(bad fault) {
			a.served.broken(core)
			a.problem(Problem{f.path, bad.document, bad.line, bad.err})
		})
		if err != nil {
			return // the context ended
		}
	}
}

// learn notes the kind of a resource, unless it is known.
func (a *assembly) learn(resource schema.GroupResource, kind schema.GroupKind) {
	if _, known := a.resources[resource]; !known {
		a.resources[resource] = kind
	}
}

// readDefinitions takes the kinds that CustomResourceDefinitions define.
func (a *assembly) readDefinitions() {
	definitions := a.kinds[schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}]
	if definitions == nil {
		return
	}
	for _, o := range definitions.objects {
		spec := field(o.text, "spec")
		group, _ := textOf(field(spec, "group"))
		name, _ := textOf(field(spec, "names", "kind"))
		plural, _ := textOf(field(spec, "names", "plural"))
		scope, _ := textOf(field(spec, "scope"))
		if group == "" || name == "" || plural == "" {
			continue
		}
		k := a.kind(schema.GroupKind{Group: group, Kind: name})
		k.describe(plural, scope != "Cluster")
		a.learn(schema.GroupResource{Group: group, Resource: plural}, k.gk)
		for version := range elements(field(spec, "versions")) {
			if name, ok := textOf(field(version, "name")); ok {
				k.defined = true
				if field(version, "served") == "true" {
					k.versions[name] = true
				}
			}
		}
		if old, ok := textOf(field(spec, "version")); ok && old != "" { // v1beta1
			k.defined, k.versions[old] = true, true
		}
	}
}

// learnPaths takes the resources that the paths of objects give to their kinds.
func (a *assembly) learnPaths() {
	for _, f := range a.c.files {
		if f.place.resource == "" {
			continue
		}
		resource := schema.GroupResource{Group: f.place.group, Resource: f.place.resource}
		see := func(gk schema.GroupKind) {
			if known, ok := builtins().kinds[resource]; ok && known != gk {
				return // a path says less than what is known of it
			}
			a.learn(resource, gk)
			if k := a.kinds[gk]; k != nil && k.resource == "" && gk.Group == f.place.group {
				k.resource = f.place.resource
			}
		}
		for _, l := range f.lists {
			if l.kind.Kind != "" && !a.c.skip[l.kind.GroupKind()] {
				k := a.kind(l.kind.GroupKind())
				k.versions[l.kind.Version] = true
				see(k.gk)
			}
		}
		if len(f.lists) == 0 {
			for _, o := range f.objects {
				see(o.gvk.GroupKind())
			}
		}
	}
}

// kindAt returns the kind of a list by its path.
func (a *assembly) kindAt(p place) (schema.GroupKind, bool) {
	if p.resource == "" {
		return schema.GroupKind{}, false
	}
	resource := schema.GroupResource{Group: p.group, Resource: p.resource}
	if gk, ok := a.resources[resource]; ok {
		return gk, true
	}
	if p.role == roleList && p.group == configGroup {
		// The folder is for every group of that ending.
		var found []schema.GroupKind
		for other, gk := range a.resources {
			if other.Resource == p.resource && strings.HasSuffix(other.Group, configGroup) {
				found = append(found, gk)
			}
		}
		if len(found) == 1 {
			return found[0], true
		}
	}
	gk, ok := builtins().kinds[resource]
	return gk, ok
}

const configGroup = "config.openshift.io"

// findScopes says of each kind whether it is namespaced, if nothing did.
func (a *assembly) findScopes() {
	for gk, k := range a.kinds {
		if k.scope == scopeUnknown {
			k.scope = scopeOf(gk)
		}
		if k.scope == scopeUnknown && len(k.objects) > 0 {
			k.scope = scopeCluster
			if slices.ContainsFunc(k.objects, func(o *object) bool { return o.key.Namespace != "" }) {
				k.scope = scopeNamespaced
			}
		}
	}
}

// findSpaces notes which namespaces there are.
func (a *assembly) findSpaces() {
	maps.Copy(a.spaces.known, a.c.spaces)
	for gk, k := range a.kinds {
		for _, o := range k.objects {
			switch {
			case gk == namespaceKind:
				a.spaces.known[o.key.Name] = true
			case k.scope == scopeNamespaced && o.key.Namespace != "":
				a.spaces.known[o.key.Namespace] = true
			}
		}
	}
	for _, recorded := range a.recorded {
		if recorded == nil {
			continue
		}
		for _, k := range recorded.Kinds {
			for _, ns := range k.Namespaces {
				a.spaces.known[ns] = true
			}
		}
	}
}

// alerts returns those of the first answer of Prometheus, rules before alerts, else
// those of the Alertmanager; nil without an answer.
func (a *assembly) alerts() []clusterapi.Alert {
	for _, role := range []role{roleRules, roleAlerts, roleActive} {
		for _, f := range a.c.files {
			if f.place.role != role || f.raw == nil {
				continue
			}
			alerts, err := clusterapi.DecodeAlerts(f.raw)
			if err != nil {
				a.problem(Problem{Path: f.path, Err: err})
				continue
			}
			return append([]clusterapi.Alert{}, alerts...)
		}
	}
	return nil
}
