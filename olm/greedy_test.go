package olm_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"pgregory.net/rapid"
)

// greedy is OLM's original algorithm to the letter, in the reference's terms:
// update everything, seek what is missing, take back what does not fit, each
// time the first in order. Where it takes nothing back, the search must come to
// the same.
type greedy struct {
	r     *reference
	slots []*greedySlot // of Subscriptions by name, freestanding by name, additions
}

// greedySlot has operators as sets of elements.
type greedySlot struct {
	subs              []string
	previous, current uint
	added             bool
}

func (s *greedySlot) changed() bool { return s.current != s.previous }

func newGreedy(w *world) *greedy {
	g := &greedy{r: newReference(w, false)}
	g.update()
	g.expand()
	for g.downgrade() {
	}
	g.prune()
	return g
}

// first is the element that a Subscription asks for first, as a set; empty if
// there is none.
func (r *reference) first(s *refSub) uint {
	for _, c := range s.candidates {
		if !r.elements[c].forbidden {
			return 1 << c
		}
	}
	return 0
}

// update takes the first replacement of each installed operator and the first
// entry of each new Subscription, all against what is installed now.
// Subscriptions that have one operator, or come to one entry, share a slot.
func (g *greedy) update() {
	free := g.r.before()
	var slots []*greedySlot
	for i := range g.r.subs {
		sub := &g.r.subs[i]
		s := &greedySlot{subs: []string{sub.Name}}
		if sub.installed >= 0 {
			s.previous = 1 << sub.installed
		}
		if s.current = g.r.first(sub); s.current == 0 {
			s.current = s.previous
		}
		at := slices.IndexFunc(slots, func(o *greedySlot) bool { return s.previous != 0 && o.previous == s.previous })
		free &^= s.previous
		if at < 0 {
			slots = append(slots, s)
			continue
		}
		slots[at].subs = append(slots[at].subs, sub.Name)
		if slots[at].current != s.current { // they want different things of one operator
			slots[at].current = s.previous
		}
	}
	for _, s := range slots {
		at := slices.IndexFunc(g.slots, func(o *greedySlot) bool { return s.current != 0 && o.current == s.current })
		if at < 0 {
			g.slots = append(g.slots, s)
			continue
		}
		g.slots[at].subs = append(g.slots[at].subs, s.subs...)
		g.slots[at].previous |= s.previous
	}
	for _, i := range g.r.installed {
		if free>>i&1 == 1 {
			g.slots = append(g.slots, &greedySlot{previous: 1 << i, current: 1 << i})
		}
	}
}

func (g *greedy) members() (set uint) {
	for _, s := range g.slots {
		set |= s.current
	}
	return set
}

// requirements calls visit with each requirement of a slot until it returns
// true, and reports whether it did.
func (g *greedy) requirements(s *greedySlot, visit func(owner *element, p olm.Property) bool) bool {
	for left := s.current; left != 0; left &= left - 1 {
		e := &g.r.elements[bits.TrailingZeros(left)]
		if slices.ContainsFunc(e.requirements(), func(p olm.Property) bool { return visit(e, p) }) {
			return true
		}
	}
	return false
}

// expand seeks a provider of each requirement that lacks one, once.
func (g *greedy) expand() {
	var checked []string
	for i := 0; i < len(g.slots); i++ {
		g.requirements(g.slots[i], func(owner *element, p olm.Property) bool {
			key := p.Type + string(p.Value)
			if g.r.met(p, g.members()) || slices.Contains(checked, key) {
				return false
			}
			checked = append(checked, key)
			for _, c := range g.r.providers(owner, p) {
				if e := &g.r.elements[c]; e.catalog >= 0 && !e.forbidden && !g.rivals(c) {
					g.slots = append(g.slots, &greedySlot{current: 1 << c, added: true})
					return false
				}
			}
			return false
		})
	}
}

// rivals reports whether a member excludes an element.
func (g *greedy) rivals(c int) bool {
	for left := g.members(); left != 0; left &= left - 1 {
		if i := bits.TrailingZeros(left); i == c || g.r.clash(i, c) {
			return true
		}
	}
	return false
}

// downgrade applies the first rule that fires and reports whether one did.
func (g *greedy) downgrade() bool {
	// Of those that exclude each other the last changed one gives way.
	for _, owners := range g.clashes() {
		for _, s := range slices.Backward(owners) {
			if s.changed() {
				s.current = s.previous
				return true
			}
		}
	}
	// Who was not changed must not lose what it had.
	var first *olm.Property // that a changed one lacks
	for _, s := range g.slots {
		fired := g.requirements(s, func(_ *element, p olm.Property) bool {
			switch {
			case g.r.met(p, g.members()):
			case s.changed() && first == nil:
				first = &p
			case !s.changed():
				had := func(s *greedySlot) bool { return s.changed() && g.r.met(p, s.previous) }
				if at := slices.IndexFunc(g.slots, had); at >= 0 {
					g.slots[at].current = g.slots[at].previous
					return true
				}
			}
			return false
		})
		if fired {
			return true
		}
	}
	if first == nil {
		return false
	}
	// All that were changed and lack the first such thing are taken back at once.
	lacks := func(_ *element, p olm.Property) bool {
		return p.Type == first.Type && string(p.Value) == string(first.Value)
	}
	for _, s := range g.slots {
		if s.changed() && g.requirements(s, lacks) {
			s.current = s.previous
		}
	}
	return true
}

// clashes are the slots that share an API, a package or a name, in this order.
func (g *greedy) clashes() [][]*greedySlot {
	owners := map[string][]*greedySlot{}
	var keys []string
	for _, s := range g.slots {
		for left := s.current; left != 0; left &= left - 1 {
			e := &g.r.elements[bits.TrailingZeros(left)]
			traits := []string{"2 " + e.Package, "3 " + e.Name}
			for _, api := range e.Provides {
				traits = append(traits, "1 "+api)
			}
			for _, t := range traits {
				if !slices.Contains(owners[t], s) {
					owners[t] = append(owners[t], s)
				}
				keys = append(keys, t)
			}
		}
	}
	slices.Sort(keys)
	var out [][]*greedySlot
	for _, t := range slices.Compact(keys) {
		if len(owners[t]) > 1 {
			out = append(out, owners[t])
		}
	}
	return out
}

// prune drops additions that nobody needs but other such additions.
func (g *greedy) prune() {
	var kept uint
	var open []*greedySlot
	for _, s := range g.slots {
		if !s.added {
			kept |= s.current
			open = append(open, s)
		}
	}
	for ; len(open) > 0; open = open[1:] {
		g.requirements(open[0], func(_ *element, p olm.Property) bool {
			at := slices.IndexFunc(g.slots, func(s *greedySlot) bool { return s.added && g.r.met(p, s.current) })
			if at >= 0 && !g.r.met(p, kept) {
				kept |= g.slots[at].current
				open = append(open, g.slots[at])
			}
			return false
		})
	}
	g.slots = slices.DeleteFunc(g.slots, func(s *greedySlot) bool { return s.added && s.current&^kept == s.current })
}

// heldBack reports whether a Subscription did not get what it asks for first.
func (g *greedy) heldBack() bool {
	return slices.ContainsFunc(g.r.subs, func(sub refSub) bool {
		at := slices.IndexFunc(g.slots, func(s *greedySlot) bool { return slices.Contains(s.subs, sub.Name) })
		return len(sub.candidates) > 0 && g.slots[at].current>>sub.candidates[0]&1 == 0
	})
}

// String is what placed says of the same generation.
func (g *greedy) String() string {
	var b strings.Builder
	for _, s := range g.slots {
		current := g.r.names(s.current)
		if s.changed() && s.current != 0 {
			e := &g.r.elements[bits.TrailingZeros(s.current)]
			current += fmt.Sprintf(" of %s in %s", e.channel, []string{"c", "d"}[e.catalog])
		}
		fmt.Fprintf(&b, "%s: %s to %s\n", s.subs, g.r.names(s.previous), current)
	}
	return b.String()
}

// placed has a line for each slot of a generation.
func placed(g *olm.Generation) string {
	var b strings.Builder
	for _, s := range g.Slots {
		var previous []string
		if s.Previous != nil {
			previous = append(previous, s.Previous.Name)
		}
		for _, also := range s.AlsoReplaced {
			previous = append(previous, also.Name)
		}
		slices.Sort(previous)
		current := ""
		if s.Current != nil {
			current = s.Current.Name
		}
		if s.Operator != nil {
			current += fmt.Sprintf(" of %s in %s", s.Operator.Channel, s.Operator.Catalog.Name)
		}
		fmt.Fprintf(&b, "%s: %s to %s\n", s.Subscriptions, strings.Join(previous, " "), current)
	}
	return b.String()
}

// TestGreedyAgainstSearch: where the original algorithm holds nothing back and
// nothing was broken before, the search comes to the same generation in both
// modes.
func TestGreedyAgainstSearch(t *testing.T) {
	compared, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{starting: true, labels: true, mild: rapid.Bool().Draw(t, "mild"), channels: rapid.Bool().Draw(t, "channels")})
		want := newGreedy(&w)
		all++
		if want.heldBack() || brokenBefore(&w) || len(w.subs) == 0 {
			return
		}
		compared++
		for _, strict := range []bool{false, true} {
			if strict && slices.ContainsFunc(want.r.subs, func(s refSub) bool { return s.nowhere }) {
				continue
			}
			got, err := olm.Resolve(context.Background(), w.snapshot(), olm.Options{AllOrNothing: strict})
			if prevented := (*olm.Prevented)(nil); strict && errors.As(err, &prevented) {
				continue
			}
			if err != nil {
				t.Fatalf("%v, but greedily:\n%s\n%s", err, want, &w)
			}
			if placed(got) != want.String() {
				t.Fatalf("greedy:\n%s\nsearch, all or nothing %v:\n%s\n%s", want, strict, placed(got), &w)
			}
		}
	})
	t.Logf("%d of %d compared", compared, all)
}
