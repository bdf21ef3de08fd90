package olm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errInconsistent = errors.New("olm: the search contradicts itself; this is a fault of the resolver, please report it with its input")

// passedOver returns the entries before the option taken.
func (s *search) passedOver(st step) []Option {
	var out []Option
	for k := len(st.need.before); k < st.taken; k++ {
		x := &s.f.nodes[s.f.subjects[s.f.option(st.need, k)/2].node]
		if !x.unreadable {
			out = append(out, Option{s.f.p.catalogs[x.catalog].key, x.entry})
		}
	}
	return out
}

// generation describes what a search decided.
func (p *problem) generation(s *search) *Generation {
	g := &Generation{Namespace: p.snapshot.Namespace, Warnings: slices.Clone(p.warnings), problem: p}
	if p.lenient() {
		g.InProgress = slices.Clone(p.updates)
	}
	p.addSlots(g, s)
	p.addOperators(g)
	p.addHeldBack(g, s)
	p.addBroken(g)
	return g
}

// addSlots adds the slots of Subscriptions, of further installed operators, and of what
// requirements added. Subscriptions come first among the steps.
func (p *problem) addSlots(g *Generation, s *search) {
	slotOf := map[int]int{}  // by node
	placed := map[int]bool{} // installed operators
	for i, st := range s.steps[:len(p.requests)] {
		w := &p.requests[i]
		var installed *Bundle
		if w.installed != none && !placed[w.installed] {
			placed[w.installed] = true
			installed = p.installed[w.installed]
		}
		if w.stuck && st.node == s.f.installed[w.installed] {
			g.Stuck = append(g.Stuck, w.sub.Name)
		}
		if at, ok := slotOf[st.node]; ok && st.node != none {
			slot := &g.Slots[at]
			slot.Subscriptions = append(slot.Subscriptions, w.sub.Name)
			slot.replaces(installed)
			continue
		}
		slot := Slot{Subscriptions: []string{w.sub.Name}, Outcome: outcomeNotInstalled}
		if st.node != none {
			slot.Current = s.f.nodes[st.node].bundle
			slot.Operator = p.operator(&s.f.nodes[st.node])
			slot.Outcome = addedForSubscription
			if slot.Operator == nil {
				slot.Outcome = outcomeKept
			}
		}
		slot.replaces(installed)
		slotOf[st.node] = len(g.Slots)
		g.Slots = append(g.Slots, slot)
	}
	for i, b := range p.installed {
		if !placed[i] {
			g.Slots = append(g.Slots, Slot{Outcome: outcomeKept, Previous: b, Current: b})
		}
	}
	for _, st := range s.steps[len(p.requests):] {
		if _, ok := slotOf[st.node]; ok || st.met || st.node == none || s.f.nodes[st.node].entry == nil {
			continue
		}
		slotOf[st.node] = len(g.Slots)
		g.Slots = append(g.Slots, Slot{
			Outcome: addedForRequirement, Current: s.f.nodes[st.node].bundle, Operator: p.operator(&s.f.nodes[st.node]),
			RequiredBy: s.demand(st),
		})
	}
}

// replaces notes an installed operator in whose place the slot is, nil for none.
func (s *Slot) replaces(installed *Bundle) {
	switch {
	case installed == nil:
	case s.Previous != nil:
		s.AlsoReplaced = append(s.AlsoReplaced, installed)
	default:
		s.Previous = installed
		if s.Operator != nil {
			s.Outcome = outcomeUpdated
			s.Operator.Replaces = installed.Name
		}
	}
}

// demand is the requirement that a step is about.
func (s *search) demand(st step) *Demand {
	return &Demand{s.f.nodes[st.need.owner].bundle, st.need.req}
}

// operator describes a chosen entry; it returns nil for an installed operator.
func (p *problem) operator(n *node) *Operator {
	e := n.entry
	if e == nil {
		return nil
	}
	op := &Operator{
		Name: e.Name, Version: e.Bundle.RawVersion, Package: e.Package.Name, Channel: e.Channel.Name,
		DefaultChannel: e.Channel.Name == e.Package.DefaultChannel,
		Catalog:        p.catalogs[n.catalog].key, Bundle: e.Bundle, Entry: e, Replaces: e.Replaces,
	}
	for i := range p.requests {
		if w := &p.requests[i]; w.installed == none && w.sub.Spec.StartingCSV == e.Name {
			op.StartingCSV = e.Name
		}
	}
	return op
}

// addOperators lists what is to be installed, and the new Subscriptions.
func (p *problem) addOperators(g *Generation) {
	for i := range g.Slots {
		op := g.Slots[i].Operator
		if op == nil {
			continue
		}
		g.Operators = append(g.Operators, *op)
		if g.Slots[i].Outcome == addedForRequirement {
			g.NewSubscriptions = append(g.NewSubscriptions, *op.Subscription(g.Namespace))
		}
	}
	slices.SortStableFunc(g.Operators, func(a, b Operator) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
}

// addHeldBack reports the steps that did not take their first option. A requirement that
// something met which had been chosen before is not held back.
func (p *problem) addHeldBack(g *Generation, s *search) {
	for _, st := range s.steps {
		h := HeldBack{NotTaken: s.passedOver(st)}
		what := ""
		if st.need.request != none {
			w := &p.requests[st.need.request]
			if w.waits {
				continue
			}
			h.Subscription = w.sub.Name
			h.Err = w.err
			if w.fact != nil {
				h.Err = w.fact
			}
			what = "subscription " + w.sub.Name
		} else {
			if st.met {
				continue
			}
			h.Demand = s.demand(st)
			what = fmt.Sprintf("an operator %s for %s", st.need.req, h.Demand.Bundle.Name)
		}
		if h.Err == nil && len(h.NotTaken) == 0 {
			continue
		}
		if h.Err == nil && st.need.gaveUp {
			h.Err = p.limitError(what)
		}
		if st.node != none {
			h.Taken = s.f.nodes[st.node].bundle.Name
		}
		g.HeldBack = append(g.HeldBack, h)
	}
}

// addBroken reports what was wrong before and still is.
func (p *problem) addBroken(g *Generation) {
	slots, members := g.members()
	stays := map[*Bundle]bool{}
	for _, slot := range slots {
		stays[slot.Current] = slot.Outcome == outcomeKept
	}
	for _, b := range p.installed {
		if !stays[b] {
			continue
		}
		if b.Deprecated {
			g.BrokenBefore = append(g.BrokenBefore, Broken{Kind: brokenDeprecated, Operators: []string{b.Name}})
		}
		for j := range b.Requires {
			if r := &b.Requires[j]; !members.satisfies(r, p.options.CEL) {
				g.BrokenBefore = append(g.BrokenBefore,
					Broken{Kind: brokenRequirement, Operators: []string{b.Name}, Requirement: r})
			}
		}
	}
	byTrait := map[trait][]string{}
	for _, b := range p.installed {
		if stays[b] {
			for _, t := range b.traits() {
				byTrait[t] = append(byTrait[t], b.Name)
			}
		}
	}
	var shared []trait
	for t, names := range byTrait {
		if len(names) > 1 && t.kind != traitName {
			shared = append(shared, t)
		}
	}
	slices.SortFunc(shared, compareTraits)
	for _, t := range shared {
		broken := Broken{Kind: brokenPackage, Operators: byTrait[t], Subject: t.name}
		if t.kind == traitAPI {
			broken.Kind, broken.Subject = brokenAPI, apiText(t.api)
		}
		g.BrokenBefore = append(g.BrokenBefore, broken)
	}
}

// members returns the slots of operators that are there to stay, and what they satisfy.
func (g *Generation) members() (slots []*Slot, index memberIndex) {
	for i := range g.Slots {
		s := &g.Slots[i]
		if s.Current != nil && !(s.Outcome == outcomeKept && g.problem.leaving[s.Current.Name]) {
			index.add(s.Current)
			slots = append(slots, s)
		}
	}
	return slots, index
}

// memberIndex answers which requirements the members of a generation satisfy.
type memberIndex struct {
	bundles []*Bundle
	apis    map[schema.GroupVersionKind]bool
}

func (m *memberIndex) add(b *Bundle) {
	if m.apis == nil {
		m.apis = map[schema.GroupVersionKind]bool{}
	}
	m.bundles = append(m.bundles, b)
	for _, gvk := range b.Provides {
		m.apis[gvk] = true
	}
}

func (m *memberIndex) satisfies(r *Requirement, eval CELEvaluator) bool {
	if r.Constraint.Kind == constraintGVK {
		return m.apis[r.Constraint.GVK]
	}
	return slices.ContainsFunc(m.bundles, func(b *Bundle) bool { return matches(r, b, eval) })
}

// String lists the generation, one line for each slot, and what there is to
// know about it. The same generation gives the same text.
func (g *Generation) String() string {
	var b strings.Builder
	for i := range g.Slots {
		b.WriteString(g.Slots[i].String())
		b.WriteByte('\n')
	}
	b.WriteString(g.Remarks())
	return b.String()
}

// Remarks says in lines what is not as it should be.
func (g *Generation) Remarks() string {
	var b strings.Builder
	for i := range g.HeldBack {
		fmt.Fprintln(&b, g.HeldBack[i].String())
	}
	for i := range g.BrokenBefore {
		fmt.Fprintln(&b, g.BrokenBefore[i].String())
	}
	for _, name := range g.Stuck {
		fmt.Fprintf(&b, "subscription %s is stuck: nothing in its channel replaces what is installed\n", name)
	}
	for _, u := range g.InProgress {
		fmt.Fprintln(&b, u)
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// String names the two operators.
func (u InProgressUpdate) String() string {
	return fmt.Sprintf("update in progress: %s replaces %s", u.New, u.Old)
}

// String describes what becomes of the slot.
func (s *Slot) String() string {
	who := ""
	if len(s.Subscriptions) > 0 {
		who = " for subscription " + strings.Join(s.Subscriptions, ", ")
	}
	switch s.Outcome {
	case outcomeKept:
		return "kept " + s.Current.Name + who
	case outcomeUpdated:
		return "updated " + s.Previous.Name + " to " + s.Operator.where() + who
	case addedForSubscription:
		return "added " + s.Operator.where() + who
	case addedForRequirement:
		return fmt.Sprintf("added %s: %s requires an operator %s", s.Operator.where(), s.RequiredBy.Bundle.Name,
			s.RequiredBy.Requirement)
	}
	return "nothing" + who
}

func (o *Operator) where() string {
	return fmt.Sprintf("%s (channel %s, catalog %s)", o.Name, o.Channel, o.Catalog)
}

// String describes what was not taken.
func (h *HeldBack) String() string {
	var b strings.Builder
	b.WriteString("held back: ")
	if h.Demand != nil {
		fmt.Fprintf(&b, "%s requires an operator %s", h.Demand.Bundle.Name, h.Demand.Requirement)
	} else {
		b.WriteString("subscription " + h.Subscription)
	}
	if h.Err != nil {
		fmt.Fprintf(&b, ": %v", h.Err)
	}
	if len(h.NotTaken) > 0 {
		names := make([]string, len(h.NotTaken))
		for i, o := range h.NotTaken {
			names[i] = o.Entry.Name
		}
		b.WriteString(": not taken " + strings.Join(names, ", "))
	}
	if h.Taken == "" {
		b.WriteString("; nothing instead")
	} else {
		b.WriteString("; instead " + h.Taken)
	}
	return b.String()
}

// String describes what was broken.
func (b *Broken) String() string {
	who := strings.Join(b.Operators, ", ")
	switch b.Kind {
	case brokenRequirement:
		return fmt.Sprintf("broken before: %s requires an operator %s", who, b.Requirement)
	case brokenAPI:
		return fmt.Sprintf("broken before: %s provide %s", who, b.Subject)
	case brokenPackage:
		return fmt.Sprintf("broken before: %s originate from package %s", who, b.Subject)
	}
	return fmt.Sprintf("broken before: %s is deprecated", who)
}
