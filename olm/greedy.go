package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// greedy is the original algorithm: update everything, seek what is missing,
// take back what does not fit. Each step takes the first in order.
type greedy struct {
	p     *problem
	slots []*greedySlot // of Subscriptions by name, freestanding by name, additions

	apis     map[schema.GroupVersionKind][]int // slots that own it now
	packages map[string][]int
	names    map[string][]int

	settled bool // no clash since one was looked for
}

type greedySlot struct {
	wishes   []int
	previous pick
	current  pick
	added    bool // for a requirement
	by       Demand
	reason   string // why it was taken back
}

func (s *greedySlot) changed() bool { return s.current != s.previous }

func (p *problem) greedy(ctx context.Context) (*result, error) {
	g := &greedy{p: p, apis: map[schema.GroupVersionKind][]int{}, packages: map[string][]int{}, names: map[string][]int{}}
	g.update()
	g.expand()
	for g.downgrade() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	g.prune()
	return g.result(), nil
}

// update takes the first replacement for each installed operator and the first
// entry for each new Subscription, all against what is installed now.
func (g *greedy) update() {
	p := g.p
	byInstalled := map[int]*greedySlot{}
	byEntry := map[pick]*greedySlot{}
	var slots []*greedySlot
	for i := range p.wishes {
		w := &p.wishes[i]
		first := g.first(w)
		if w.installed != none {
			s := byInstalled[w.installed]
			if s == nil {
				s = &greedySlot{previous: installedPick(w.installed), current: first}
				byInstalled[w.installed] = s
				slots = append(slots, s)
			} else if s.current != first {
				s.current, s.reason = s.previous, "subscriptions want different things of one operator"
			}
			s.wishes = append(s.wishes, i)
			continue
		}
		s := byEntry[first]
		if s == nil || first == nothing {
			s = &greedySlot{previous: nothing, current: first}
			byEntry[first] = s
			slots = append(slots, s)
		}
		s.wishes = append(s.wishes, i)
	}
	slots = joinSlots(slots)
	for _, s := range slots {
		g.place(s)
	}
	for i := range p.installed {
		if p.mandatory(i) {
			g.place(&greedySlot{previous: installedPick(i), current: installedPick(i)})
		}
	}
}

// first is what a Subscription wishes first of all; the installed operator or
// nothing if there is no option.
func (g *greedy) first(w *wish) pick {
	out := nothing
	if w.installed != none {
		out = installedPick(w.installed)
	}
	if w.fact != nil || w.waits {
		return out
	}
	w.candidates.all(func(catalog int, e *Entry) bool {
		if e.Bundle.Deprecated {
			return true
		}
		out = entryPick(catalog, e)
		return false
	})
	return out
}

// joinSlots lets slots that come to one entry be one: an update, and what new
// Subscriptions want.
func joinSlots(slots []*greedySlot) []*greedySlot {
	byEntry := map[pick]*greedySlot{}
	var out []*greedySlot
	for _, s := range slots {
		o := byEntry[s.current]
		if s.current.entry == nil || o == nil || o.previous != nothing && s.previous != nothing {
			byEntry[s.current] = s
			out = append(out, s)
			continue
		}
		o.wishes = append(o.wishes, s.wishes...)
		slices.Sort(o.wishes)
		if o.previous == nothing {
			o.previous = s.previous
		}
	}
	return out
}

func (g *greedy) place(s *greedySlot) {
	g.slots = append(g.slots, s)
	g.enter(len(g.slots)-1, true)
}

// enter adds a slot's operator to the indexes, or removes it.
func (g *greedy) enter(i int, add bool) {
	b := g.p.bundle(g.slots[i].current)
	if b == nil {
		return
	}
	change := func(of []int) []int {
		if add {
			return append(of, i)
		}
		return slices.DeleteFunc(of, func(x int) bool { return x == i })
	}
	g.names[b.Name] = change(g.names[b.Name])
	if g.slots[i].current.entry == nil && g.p.going[b.Name] {
		return
	}
	for _, gvk := range b.Provides {
		g.apis[gvk] = change(g.apis[gvk])
	}
	for _, pkg := range b.packages() {
		g.packages[pkg] = change(g.packages[pkg])
	}
}

// member returns what a slot contributes, nil for nothing and for an operator
// that is going.
func (g *greedy) member(i int) *Bundle {
	s := g.slots[i]
	b := g.p.bundle(s.current)
	if b != nil && s.current.entry == nil && g.p.going[b.Name] {
		return nil
	}
	return b
}

func (g *greedy) satisfied(r *Requirement) bool {
	if r.Constraint.Kind == ConstraintGVK {
		return len(g.apis[r.Constraint.GVK]) > 0
	}
	for i := range g.slots {
		if b := g.member(i); b != nil && matches(r, b, g.p.options.CEL) {
			return true
		}
	}
	return false
}

// satisfying returns the slots whose operators satisfy a requirement, in order.
func (g *greedy) satisfying(r *Requirement) []int {
	if r.Constraint.Kind == ConstraintGVK {
		return slices.Sorted(slices.Values(g.apis[r.Constraint.GVK]))
	}
	var out []int
	for i := range g.slots {
		if b := g.member(i); b != nil && matches(r, b, g.p.options.CEL) {
			out = append(out, i)
		}
	}
	return out
}

// expand seeks providers of what is missing. It ends because each addition
// provides something that nobody provided, or is of a further package.
func (g *greedy) expand() {
	checked := map[string]bool{}
	for i := 0; i < len(g.slots); i++ {
		b := g.member(i)
		if b == nil {
			continue
		}
		for j := range b.Requires {
			r := &b.Requires[j]
			if g.satisfied(r) || checked[r.key()] {
				continue
			}
			checked[r.key()] = true
			o := g.p.eligible(g.slots[i].current.catalog, r)
			o.all(func(catalog int, e *Entry) bool {
				if !g.fits(e.Bundle) {
					return true
				}
				x := entryPick(catalog, e)
				g.place(&greedySlot{previous: nothing, current: x, added: true, by: Demand{b, r}})
				return false
			})
		}
	}
}

// fits reports whether a bundle may be added beside the members.
func (g *greedy) fits(b *Bundle) bool {
	if b.Deprecated || len(g.names[b.Name]) > 0 || g.p.readable(b) != nil {
		return false
	}
	for _, pkg := range b.packages() {
		if len(g.packages[pkg]) > 0 {
			return false
		}
	}
	for _, gvk := range b.Provides {
		if len(g.apis[gvk]) > 0 {
			return false
		}
	}
	return true
}

// downgrade applies the first rule that fires and reports whether one did.
// Every firing turns a changed slot into an unchanged one.
func (g *greedy) downgrade() bool {
	if !g.settled {
		if i, reason := g.conflict(); i != none {
			g.revert(i, reason)
			return true
		}
		g.settled = true
	}
	// Who was not changed must not lose what it had.
	for i, s := range g.slots {
		if s.changed() {
			continue
		}
		for _, r := range g.lacking(i) {
			for k, other := range g.slots {
				if old := g.p.bundle(other.previous); other.changed() && old != nil && !g.p.going[old.Name] && matches(r, old, g.p.options.CEL) {
					g.revert(k, fmt.Sprintf("%s requires %s, which only %s provides", g.member(i).Name, apiOf(r), old.Name))
					return true
				}
			}
		}
	}
	for i, s := range g.slots {
		if !s.changed() {
			continue
		}
		missing := g.lacking(i)
		if len(missing) == 0 {
			continue
		}
		first := missing[0]
		for k := i; k < len(g.slots); k++ {
			if g.slots[k].changed() && slices.ContainsFunc(g.lacking(k), func(r *Requirement) bool { return r.same(first) }) {
				g.revert(k, fmt.Sprintf("%s requires %s, which nothing provides", g.member(k).Name, apiOf(first)))
			}
		}
		return true
	}
	return false
}

// lacking returns the requirements of a member that nobody satisfies.
func (g *greedy) lacking(i int) []*Requirement {
	b := g.member(i)
	if b == nil {
		return nil
	}
	var out []*Requirement
	for j := range b.Requires {
		if r := &b.Requires[j]; !g.satisfied(r) {
			out = append(out, r)
		}
	}
	return out
}

// conflict returns the slot that gives way in the first clash, and the clash;
// none if there is no clash or it was there before.
func (g *greedy) conflict() (int, string) {
	type clash struct {
		api  *schema.GroupVersionKind
		name string
		kind int
	}
	var first clash
	loser := none
	var rivals []int
	before := func(a, b clash) bool {
		if a.kind != b.kind {
			return a.kind < b.kind
		}
		if a.api != nil {
			return compareAPIs(*a.api, *b.api) < 0
		}
		return a.name < b.name
	}
	meet := func(c clash, slots []int) {
		if len(slots) < 2 || loser != none && !before(c, first) {
			return
		}
		if i := g.givesWay(slots); i != none {
			first, loser, rivals = c, i, slots
		}
	}
	for i := range g.slots {
		s := g.slots[i]
		b := g.p.bundle(s.current)
		if b == nil || !s.changed() {
			continue // a clash has a changed slot, or nobody gives way
		}
		for j := range b.Provides {
			meet(clash{api: &b.Provides[j], kind: 0}, g.apis[b.Provides[j]])
		}
		for _, pkg := range b.packages() {
			meet(clash{name: pkg, kind: 1}, g.packages[pkg])
		}
		meet(clash{name: b.Name, kind: 2}, g.names[b.Name])
	}
	if loser == none {
		return none, ""
	}
	var names []string
	for _, i := range rivals {
		names = append(names, g.p.bundle(g.slots[i].current).Name)
	}
	what := "operator named " + first.name
	switch first.kind {
	case 0:
		what = "provider of " + apiText(*first.api)
	case 1:
		what = "operator from package " + first.name
	}
	return loser, fmt.Sprintf("there can be only one %s: %s exclude each other", what, joinLast(names, " and "))
}

// givesWay chooses among slots that clash: one that a requirement added, else
// the last of the changed ones.
func (g *greedy) givesWay(slots []int) int {
	out := none
	for _, i := range slots {
		s := g.slots[i]
		if s.changed() && (s.added || i > out) {
			out = i
			if s.added {
				break
			}
		}
	}
	return out
}

func compareAPIs(a, b schema.GroupVersionKind) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := strings.Compare(a.Version, b.Version); c != 0 {
		return c
	}
	return strings.Compare(a.Kind, b.Kind)
}

func (g *greedy) revert(i int, reason string) {
	g.slots[i].reason = reason
	g.enter(i, false)
	g.slots[i].current = g.slots[i].previous
	g.enter(i, true)
	if g.slots[i].current != nothing {
		g.settled = false // what came back may clash
	}
}

// prune drops additions that nobody needs but other such additions.
func (g *greedy) prune() {
	var kept memberIndex
	var open []*Bundle
	left := map[int]bool{}
	needed := map[int]Demand{} // who needs what is kept
	for i, s := range g.slots {
		b := g.member(i)
		switch {
		case b == nil:
		case s.added:
			left[i] = true
		default:
			kept.add(b)
			open = append(open, b)
		}
	}
	for len(open) > 0 {
		b := open[0]
		open = open[1:]
		for j := range b.Requires {
			r := &b.Requires[j]
			if kept.satisfies(r, g.p.options.CEL) {
				continue
			}
			for _, i := range g.satisfying(r) {
				if left[i] {
					x := g.member(i)
					delete(left, i)
					needed[i] = Demand{b, r}
					kept.add(x)
					open = append(open, x)
					break
				}
			}
		}
	}
	for i := range g.slots {
		if left[i] {
			g.revert(i, "nothing needs it any more")
		}
	}
	for i, by := range needed {
		// Who asked first may have been taken back meanwhile.
		if s := g.slots[i]; !slices.Contains(kept.bundles, s.by.Bundle) {
			s.by = by
		}
	}
}

func (g *greedy) result() *result {
	r := &result{wishes: make([]pick, len(g.p.wishes)), reasons: make([]string, len(g.p.wishes))}
	for _, s := range g.slots {
		for _, w := range s.wishes {
			r.wishes[w], r.reasons[w] = s.current, s.reason
			if s.current.entry == nil && g.p.wishes[w].installed == none {
				r.wishes[w] = nothing // it shared the slot of an update that was taken back
			}
		}
		if s.added && s.changed() {
			r.additions = append(r.additions, addition{s.current, s.by})
		}
	}
	return r
}
