package olm

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// greedy is the original algorithm: update everything, seek what is missing,
// take back what does not fit. Each step takes the first in order.
type greedy struct {
	p      *problem
	slots  []*greedySlot   // of Subscriptions by name, freestanding by name, additions
	owners map[trait][]int // slots whose operators have it now, in order
}

type greedySlot struct {
	requests []int
	previous member
	current  member
	also     []*greedySlot // of further operators that current replaces
	added    bool          // for a requirement
	by       Demand
	reason   string // why it was taken back
}

func (s *greedySlot) changed() bool { return s.current != s.previous }

func (p *problem) greedy(ctx context.Context) (*result, error) {
	g := &greedy{p: p, owners: map[trait][]int{}}
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
	for i := range p.requests {
		w := &p.requests[i]
		first := g.first(w)
		s := byInstalled[w.installed]
		switch {
		case s == nil:
			s = &greedySlot{previous: nothing, current: first}
			if w.installed != none {
				s.previous = installedMember(w.installed)
				byInstalled[w.installed] = s
			}
			slots = append(slots, s)
		case s.current != first:
			s.current, s.reason = s.previous, "subscriptions want different things of one operator"
		}
		s.requests = append(s.requests, i)
	}
	slots = joinSlots(slots)
	for _, s := range slots {
		g.place(s)
	}
	for i := range p.installed {
		if p.mandatory(i) {
			g.place(&greedySlot{previous: installedMember(i), current: installedMember(i)})
		}
	}
}

// first is what a Subscription asks for first; the installed operator or
// nothing without an option.
func (g *greedy) first(w *request) member {
	out := nothing
	if w.installed != none {
		out = installedMember(w.installed)
	}
	if w.fact != nil || w.waits {
		return out
	}
	w.candidates.all(func(catalog int, e *Entry) bool {
		if e.Bundle.Deprecated {
			return true
		}
		out = entryMember(catalog, e)
		return false
	})
	return out
}

// joinSlots lets slots that come to one entry be one.
func joinSlots(slots []*greedySlot) []*greedySlot {
	byEntry := map[member]*greedySlot{}
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
			o.requests = append(o.requests, s.requests...)
			if o.previous == nothing {
				o.previous = s.previous
			}
		}
	}
	return out
}

func (g *greedy) place(s *greedySlot) {
	g.slots = append(g.slots, s)
	g.enter(len(g.slots)-1, true)
}

// enter adds a slot's operator to what there is, or removes it. Of an operator
// that is being replaced only the name counts.
func (g *greedy) enter(i int, add bool) {
	b := g.p.bundle(g.slots[i].current)
	if b == nil {
		return
	}
	for _, t := range b.traits() {
		if g.member(i) == nil && t.kind != traitName {
			continue
		}
		at, _ := slices.BinarySearch(g.owners[t], i)
		if add {
			g.owners[t] = slices.Insert(g.owners[t], at, i)
		} else {
			g.owners[t] = slices.Delete(g.owners[t], at, at+1)
		}
	}
}

// member returns what a slot contributes, nil for nothing and for an operator
// that is leaving.
func (g *greedy) member(i int) *Bundle {
	s := g.slots[i]
	b := g.p.bundle(s.current)
	if b != nil && s.current.entry == nil && g.p.leaving[b.Name] {
		return nil
	}
	return b
}

// satisfying yields the slots whose operators satisfy a requirement.
func (g *greedy) satisfying(r *Requirement) iter.Seq[int] {
	return func(yield func(int) bool) {
		if t, ok := r.trait(); ok {
			for _, i := range g.owners[t] {
				if matches(r, g.member(i), g.p.options.CEL) && !yield(i) {
					return
				}
			}
			return
		}
		for i := range g.slots {
			if b := g.member(i); b != nil && matches(r, b, g.p.options.CEL) && !yield(i) {
				return
			}
		}
	}
}

func (g *greedy) satisfied(r *Requirement) bool {
	for range g.satisfying(r) {
		return true
	}
	return false
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
				x := entryMember(catalog, e)
				g.place(&greedySlot{previous: nothing, current: x, added: true, by: Demand{b, r}})
				return false
			})
		}
	}
	return nil
}

// fits reports whether a bundle may be added to the members.
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
	// Who was not changed must not lose what it had.
	var lacking []int // changed slots
	for i, s := range g.slots {
		switch missing := g.missing(i); {
		case len(missing) == 0:
		case s.changed():
			lacking = append(lacking, i)
		default:
			for _, r := range missing {
				if k, old := g.hadBefore(r); k != none {
					g.revert(k, fmt.Sprintf("%s requires %s, which only %s provides", g.member(i).Name, apiOf(r), old.Name))
					return true
				}
			}
		}
	}
	if len(lacking) == 0 {
		return false
	}
	// All that require it at once, whatever comes back with one of them.
	first := g.missing(lacking[0])[0]
	lacking = slices.DeleteFunc(lacking, func(i int) bool { return !slices.ContainsFunc(g.missing(i), first.same) })
	for _, i := range lacking {
		g.revert(i, fmt.Sprintf("%s requires %s, which nothing provides", g.member(i).Name, apiOf(first)))
	}
	return true
}

// missing returns the requirements of a member that nobody satisfies.
func (g *greedy) missing(i int) []*Requirement {
	var out []*Requirement
	if b := g.member(i); b != nil {
		for j := range b.Requires {
			if r := &b.Requires[j]; !g.satisfied(r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// hadBefore returns the first changed slot of which a previous operator
// satisfies a requirement, and that operator.
func (g *greedy) hadBefore(r *Requirement) (int, *Bundle) {
	for i, s := range g.slots {
		if !s.changed() {
			continue
		}
		for _, o := range append([]*greedySlot{s}, s.also...) {
			if b := g.p.bundle(o.previous); b != nil && !g.p.leaving[b.Name] && matches(r, b, g.p.options.CEL) {
				return i, b
			}
		}
	}
	return none, nil
}

// conflict returns the slot that gives way in the first clash, and the clash;
// none if there is no clash or it was there before.
func (g *greedy) conflict() (int, string) {
	var first trait
	loser := none
	for t, owners := range g.owners {
		if t.kind == traitLabel || len(owners) < 2 || loser != none && compareTraits(t, first) > 0 {
			continue
		}
		// The last of the changed ones gives way. Those that a requirement added
		// come after all others.
		for _, i := range slices.Backward(owners) {
			if g.slots[i].changed() {
				first, loser = t, i
				break
			}
		}
	}
	if loser == none {
		return none, ""
	}
	owners := g.owners[first]
	return loser, first.clash(firstNames(len(owners), func(i int) string { return g.p.bundle(g.slots[owners[i]].current).Name }))
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
			for i := range g.satisfying(r) {
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
	r := &result{requests: make([]member, len(g.p.requests)), reasons: make([]string, len(g.p.requests))}
	for _, s := range g.slots {
		for _, w := range s.requests {
			r.requests[w], r.reasons[w] = s.current, s.reason
			if s.current.entry == nil && g.p.requests[w].installed == none {
				r.requests[w] = nothing // it shared the slot of an update that was taken back
			}
		}
		for _, o := range s.also {
			for _, w := range o.requests {
				r.requests[w] = s.current
			}
		}
		if s.added && s.changed() {
			r.additions = append(r.additions, addition{s.current, s.by})
		}
	}
	return r
}
