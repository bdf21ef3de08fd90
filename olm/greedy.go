package olm

import (
	"cmp"
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

	owners map[trait][]int // slots whose operators have it now, in order
	before map[trait][]int // slots whose previous operators have it, in order
	askers map[trait][]int // slots whose operators, now or before, may require it
	choosy []int           // slots with requirements that name no trait

	clashes  map[trait]bool // where there may be one; nowhere else is one
	suspects map[int]bool   // slots that may lack something; no others do
}

type greedySlot struct {
	wishes   []int
	previous pick
	current  pick
	also     []*greedySlot // of further operators that current replaces
	added    bool          // for a requirement
	by       Demand
	reason   string // why it was taken back

	lacks []*Requirement // those that nobody satisfies
	known bool           // lacks is up to date
}

func (s *greedySlot) changed() bool { return s.current != s.previous }

// trait is what a requirement may ask for, and operators may clash by.
type trait struct {
	kind traitKind
	api  schema.GroupVersionKind
	name string
}

type traitKind int

// The kinds of traits, in the order in which clashes are looked at.
const (
	traitAPI traitKind = iota
	traitPackage
	traitName
	traitLabel // which many may have
)

func compareTraits(a, b trait) int {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		strings.Compare(a.api.Group, b.api.Group),
		strings.Compare(a.api.Version, b.api.Version),
		strings.Compare(a.api.Kind, b.api.Kind),
		strings.Compare(a.name, b.name),
	)
}

// traits returns what a bundle has.
func (b *Bundle) traits() []trait {
	packages := b.packages()
	out := make([]trait, 0, len(b.Provides)+len(packages)+len(b.Labels)+1)
	for _, gvk := range b.Provides {
		out = append(out, trait{kind: traitAPI, api: gvk})
	}
	for _, pkg := range packages {
		out = append(out, trait{kind: traitPackage, name: pkg})
	}
	for _, l := range b.Labels {
		out = append(out, trait{kind: traitLabel, name: l})
	}
	return append(out, trait{kind: traitName, name: b.Name})
}

// trait returns what everyone has who satisfies the requirement, false if
// that is not a single trait.
func (r *Requirement) trait() (trait, bool) {
	switch c := &r.Constraint; {
	case c.Kind == ConstraintGVK:
		return trait{kind: traitAPI, api: c.GVK}, true
	case c.Kind == ConstraintPackage && c.Package != "":
		return trait{kind: traitPackage, name: c.Package}, true
	case c.Kind == ConstraintLabel:
		return trait{kind: traitLabel, name: c.Label}, true
	}
	return trait{}, false
}

func (p *problem) greedy(ctx context.Context) (*result, error) {
	g := &greedy{p: p, owners: map[trait][]int{}, before: map[trait][]int{}, askers: map[trait][]int{}, clashes: map[trait]bool{}, suspects: map[int]bool{}}
	g.update()
	if err := g.expand(ctx); err != nil {
		return nil, err
	}
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
	var slots []*greedySlot
	for i := range p.wishes {
		w := &p.wishes[i]
		first := g.first(w)
		s := byInstalled[w.installed]
		switch {
		case s == nil:
			s = &greedySlot{previous: nothing, current: first}
			if w.installed != none {
				s.previous = installedPick(w.installed)
				byInstalled[w.installed] = s
			}
			slots = append(slots, s)
		case s.current != first:
			s.current, s.reason = s.previous, "subscriptions want different things of one operator"
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

// joinSlots lets slots that come to one entry be one.
func joinSlots(slots []*greedySlot) []*greedySlot {
	byEntry := map[pick]*greedySlot{}
	var out []*greedySlot
	for _, s := range slots {
		o := byEntry[s.current]
		switch {
		case s.current.entry == nil || o == nil:
			byEntry[s.current] = s
			out = append(out, s)
		case o.previous != nothing && s.previous != nothing:
			o.also = append(o.also, s)
		default:
			o.wishes = append(o.wishes, s.wishes...)
			if o.previous == nothing {
				o.previous = s.previous
			}
		}
	}
	return out
}

func (g *greedy) place(s *greedySlot) {
	i := len(g.slots)
	g.slots = append(g.slots, s)
	g.listen(i, s.current)
	if s.changed() {
		g.listen(i, s.previous)
		g.recall(i, s.previous)
		for _, o := range s.also {
			g.recall(i, o.previous)
		}
	}
	g.enter(i, true)
}

// listen notes what an operator of a slot requires.
func (g *greedy) listen(i int, x pick) {
	b := g.p.bundle(x)
	if b == nil {
		return
	}
	for j := range b.Requires {
		if t, ok := b.Requires[j].trait(); ok {
			g.askers[t] = append(g.askers[t], i)
		} else {
			g.choosy = append(g.choosy, i)
		}
	}
}

// recall notes what the operators have that a slot had before.
func (g *greedy) recall(i int, x pick) {
	b := g.p.bundle(x)
	if b == nil || g.p.going[b.Name] {
		return
	}
	for _, t := range b.traits() {
		g.before[t] = append(g.before[t], i)
	}
}

// enter adds a slot's operator to what there is, or removes it.
func (g *greedy) enter(i int, add bool) {
	g.suspect(i)
	b := g.p.bundle(g.slots[i].current)
	if b == nil {
		return
	}
	gone := g.member(i) == nil
	for _, t := range b.traits() {
		if gone && t.kind != traitName {
			continue
		}
		owners := g.owners[t]
		at, _ := slices.BinarySearch(owners, i)
		if !add {
			g.owners[t] = slices.Delete(owners, at, at+1)
		} else if g.owners[t] = slices.Insert(owners, at, i); len(owners) > 0 && t.kind != traitLabel {
			g.clashes[t] = true
		}
		for _, j := range g.askers[t] {
			g.suspect(j)
		}
	}
	for _, j := range g.choosy {
		g.suspect(j)
	}
}

// suspect notes that what a slot lacks may have changed.
func (g *greedy) suspect(i int) {
	g.slots[i].known = false
	g.suspects[i] = true
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

// satisfying calls f with the slots whose operators satisfy a requirement, until
// it returns false.
func (g *greedy) satisfying(r *Requirement, f func(i int) bool) {
	if t, ok := r.trait(); ok {
		for _, i := range g.owners[t] {
			if matches(r, g.member(i), g.p.options.CEL) && !f(i) {
				return
			}
		}
		return
	}
	for i := range g.slots {
		if b := g.member(i); b != nil && matches(r, b, g.p.options.CEL) && !f(i) {
			return
		}
	}
}

func (g *greedy) satisfied(r *Requirement) bool {
	found := false
	g.satisfying(r, func(int) bool {
		found = true
		return false
	})
	return found
}

// expand seeks providers of what is missing. It ends because each addition
// provides something that nobody provided, or is of a further package.
func (g *greedy) expand(ctx context.Context) error {
	checked := map[string]bool{}
	for i := 0; i < len(g.slots); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
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
	return nil
}

// fits reports whether a bundle may be added beside the members.
func (g *greedy) fits(b *Bundle) bool {
	if b.Deprecated || g.p.readable(b) != nil {
		return false
	}
	return !slices.ContainsFunc(b.traits(), func(t trait) bool { return t.kind != traitLabel && len(g.owners[t]) > 0 })
}

// downgrade applies the first rule that fires and reports whether one did.
// Every firing turns a changed slot into an unchanged one.
func (g *greedy) downgrade() bool {
	if i, reason := g.conflict(); i != none {
		g.revert(i, reason)
		return true
	}
	var lackers []int
	for i := range g.suspects {
		if len(g.lacking(i)) == 0 {
			delete(g.suspects, i)
		} else {
			lackers = append(lackers, i)
		}
	}
	slices.Sort(lackers)
	// Who was not changed must not lose what it had.
	for _, i := range lackers {
		if g.slots[i].changed() {
			continue
		}
		for _, r := range g.lacking(i) {
			if k, old := g.hadBefore(r); k != none {
				g.revert(k, fmt.Sprintf("%s requires %s, which only %s provides", g.member(i).Name, apiOf(r), old.Name))
				return true
			}
		}
	}
	lackers = slices.DeleteFunc(lackers, func(i int) bool { return !g.slots[i].changed() })
	if len(lackers) == 0 {
		return false
	}
	// All that require it at once, whatever comes back with one of them.
	first := g.lacking(lackers[0])[0]
	lackers = slices.DeleteFunc(lackers, func(i int) bool {
		return !slices.ContainsFunc(g.lacking(i), func(r *Requirement) bool { return r.same(first) })
	})
	for _, i := range lackers {
		g.revert(i, fmt.Sprintf("%s requires %s, which nothing provides", g.member(i).Name, apiOf(first)))
	}
	return true
}

// lacking returns the requirements of a member that nobody satisfies.
func (g *greedy) lacking(i int) []*Requirement {
	s := g.slots[i]
	if s.known {
		return s.lacks
	}
	s.lacks, s.known = nil, true
	if b := g.member(i); b != nil {
		for j := range b.Requires {
			if r := &b.Requires[j]; !g.satisfied(r) {
				s.lacks = append(s.lacks, r)
			}
		}
	}
	return s.lacks
}

// hadBefore returns the first changed slot of which a previous operator
// satisfies a requirement, and that operator.
func (g *greedy) hadBefore(r *Requirement) (int, *Bundle) {
	try := func(i int) *Bundle {
		s := g.slots[i]
		if !s.changed() {
			return nil
		}
		if b := g.p.bundle(s.previous); b != nil && !g.p.going[b.Name] && matches(r, b, g.p.options.CEL) {
			return b
		}
		for _, o := range s.also {
			if b := g.p.bundle(o.previous); !g.p.going[b.Name] && matches(r, b, g.p.options.CEL) {
				return b
			}
		}
		return nil
	}
	if t, ok := r.trait(); ok {
		for _, i := range g.before[t] {
			if b := try(i); b != nil {
				return i, b
			}
		}
		return none, nil
	}
	for i := range g.slots {
		if b := try(i); b != nil {
			return i, b
		}
	}
	return none, nil
}

// conflict returns the slot that gives way in the first clash, and the clash;
// none if there is no clash or it was there before.
func (g *greedy) conflict() (int, string) {
	var first trait
	loser := none
	for t := range g.clashes {
		i := none
		if owners := g.owners[t]; len(owners) > 1 {
			i = g.givesWay(owners)
		}
		switch {
		case i == none:
			delete(g.clashes, t)
		case loser == none || compareTraits(t, first) < 0:
			first, loser = t, i
		}
	}
	if loser == none {
		return none, ""
	}
	owners := g.owners[first]
	names := firstNames(len(owners), func(i int) string { return g.p.bundle(g.slots[owners[i]].current).Name })
	what := "operator named " + first.name
	switch first.kind {
	case traitAPI:
		what = "provider of " + apiText(first.api)
	case traitPackage:
		what = "operator from package " + first.name
	}
	return loser, fmt.Sprintf("there can be only one %s: %s exclude each other", what, joinLast(names, " and "))
}

// givesWay chooses among slots that clash: the last of the changed ones. Those
// that a requirement added come after all others.
func (g *greedy) givesWay(slots []int) int {
	for _, i := range slices.Backward(slots) {
		if g.slots[i].changed() {
			return i
		}
	}
	return none
}

func (g *greedy) revert(i int, reason string) {
	s := g.slots[i]
	s.reason = reason
	g.enter(i, false)
	s.current = s.previous
	g.enter(i, true)
	for _, o := range s.also {
		o.reason, o.current = reason, o.previous
		g.place(o)
	}
	s.also = nil
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
			g.satisfying(r, func(i int) bool {
				if left[i] {
					x := g.member(i)
					delete(left, i)
					needed[i] = Demand{b, r}
					kept.add(x)
					open = append(open, x)
					return false
				}
				return true
			})
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
		for _, o := range s.also {
			for _, w := range o.wishes {
				r.wishes[w] = s.current
			}
		}
		if s.added && s.changed() {
			r.additions = append(r.additions, addition{s.current, s.by})
		}
	}
	return r
}
