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

// member is a member of a generation: an installed operator or an entry.
type member struct {
	installed int // index; none for an entry
	catalog   int
	entry     *Entry
}

var nothing = member{installed: none, catalog: none}

func entryMember(catalog int, e *Entry) member { return member{none, catalog, e} }

// result is what the search decided, before it is put into words.
type result struct {
	requests  []member // what each Subscription gets
	additions []addition
	demands   []HeldBack // of requirements
	limits    []error    // by Subscription: why the search for it ended early
}

// addition is an entry that a requirement added.
type addition struct {
	member
	by Demand
}

// bundle returns the bundle of a member, nil for nothing.
func (p *problem) bundle(x member) *Bundle {
	switch {
	case x.entry != nil:
		return x.entry.Bundle
	case x.installed != none:
		return p.installed[x.installed]
	}
	return nil
}

// result reads off what a search decided.
func (s *search) result() *result {
	f := s.f
	toPick := func(n int) member {
		if n == none {
			return nothing
		}
		x := &f.nodes[n]
		return member{x.installed, x.catalog, x.entry}
	}
	r := &result{requests: make([]member, len(f.requests)), limits: make([]error, len(f.requests))}
	added := map[int]bool{}
	for _, st := range s.steps {
		if st.need.request != none {
			r.requests[st.need.request] = toPick(st.node)
			added[st.node] = true
			if st.need.gaveUp {
				r.limits[st.need.request] = f.p.limitError("subscription " + f.p.requests[st.need.request].sub.Name)
			}
		}
	}
	for _, st := range s.steps {
		n := st.need
		if n.request != none || st.taken == none {
			continue
		}
		by := Demand{f.nodes[n.owner].bundle, n.req}
		if st.node != none && f.nodes[st.node].entry != nil && !added[st.node] {
			added[st.node] = true
			r.additions = append(r.additions, addition{toPick(st.node), by})
		}
		if h := (HeldBack{Demand: &by, NotTaken: s.passedOver(n, st.taken)}); len(h.NotTaken) > 0 {
			if st.node != none {
				h.Taken = f.nodes[st.node].bundle.Name
			}
			if n.gaveUp {
				h.Err = f.p.limitError(fmt.Sprintf("an operator %s for %s", n.req, by.Bundle.Name))
			}
			r.demands = append(r.demands, h)
		}
	}
	return r
}

// passedOver returns the entries before the option taken.
func (s *search) passedOver(n *need, taken int) []Option {
	var out []Option
	for k := len(n.before); k < taken; k++ {
		x := &s.f.nodes[s.f.subjects[s.f.option(n, k)/2].node]
		if !x.unreadable {
			out = append(out, s.f.p.option(x.catalog, x.entry))
		}
	}
	return out
}

func (p *problem) option(catalog int, e *Entry) Option { return Option{p.catalogs[catalog].key, e} }

// generation puts a result into words.
func (p *problem) generation(r *result) *Generation {
	g := &Generation{Namespace: p.snapshot.Namespace, Warnings: slices.Clone(p.warnings), problem: p}
	if p.lenient() {
		g.InProgress = slices.Clone(p.updates)
	}
	p.addSlots(g, r)
	slices.SortStableFunc(g.Operators, func(a, b Operator) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	p.addHeldBack(g, r)
	p.addBroken(g)
	for i := range p.requests {
		if p.requests[i].stuck && p.bundle(r.requests[i]) == p.installed[p.requests[i].installed] {
			g.Stuck = append(g.Stuck, p.requests[i].sub.Name)
		}
	}
	return g
}

func (p *problem) addSlots(g *Generation, r *result) {
	byPick := map[member]int{}
	placed := map[int]bool{} // installed operators
	for i, x := range r.requests {
		w := &p.requests[i]
		if at, ok := byPick[x]; ok && x != nothing {
			s := &g.Slots[at]
			s.Subscriptions = append(s.Subscriptions, w.sub.Name)
			if w.installed == none || placed[w.installed] {
				continue
			}
			placed[w.installed] = true
			if b := p.installed[w.installed]; s.Previous == nil {
				s.Previous, s.Outcome, s.Operator.Replaces = b, outcomeUpdated, b.Name
			} else {
				s.AlsoReplaced = append(s.AlsoReplaced, b)
			}
			continue
		}
		s := Slot{Subscriptions: []string{w.sub.Name}, Current: p.bundle(x)}
		if w.installed != none {
			s.Previous = p.installed[w.installed]
			placed[w.installed] = true
		}
		switch {
		case x == nothing:
			s.Outcome = outcomeNotInstalled
		case x.entry == nil:
			s.Outcome = outcomeKept
		default:
			s.Outcome = addedForSubscription
			s.Operator = p.operator(x)
			if s.Previous != nil {
				s.Outcome, s.Operator.Replaces = outcomeUpdated, s.Previous.Name
			}
		}
		byPick[x] = len(g.Slots)
		g.Slots = append(g.Slots, s)
	}
	for i := range p.installed {
		if !placed[i] {
			b := p.installed[i]
			g.Slots = append(g.Slots, Slot{Outcome: outcomeKept, Previous: b, Current: b})
		}
	}
	for i := range r.additions {
		a := &r.additions[i]
		op := p.operator(a.member)
		g.Slots = append(g.Slots, Slot{Outcome: addedForRequirement, Current: a.entry.Bundle, Operator: op,
			RequiredBy: &a.by})
		g.NewSubscriptions = append(g.NewSubscriptions, *op.Subscription(p.snapshot.Namespace))
	}
	for i := range g.Slots {
		if op := g.Slots[i].Operator; op != nil {
			g.Operators = append(g.Operators, *op)
		}
	}
}

// operator describes a chosen entry.
func (p *problem) operator(x member) *Operator {
	e := x.entry
	op := &Operator{
		Name: e.Name, Version: e.Bundle.RawVersion, Package: e.Package.Name, Channel: e.Channel.Name,
		DefaultChannel: e.Channel.Name == e.Package.DefaultChannel,
		Catalog:        p.catalogs[x.catalog].key, Bundle: e.Bundle, Entry: e, Replaces: e.Replaces,
	}
	for i := range p.requests {
		if w := &p.requests[i]; w.installed == none && w.sub.Spec.StartingCSV == e.Name {
			op.StartingCSV = e.Name
		}
	}
	return op
}

func (p *problem) addHeldBack(g *Generation, r *result) {
	for i := range p.requests {
		w := &p.requests[i]
		if w.waits {
			continue
		}
		h := HeldBack{Subscription: w.sub.Name, Err: w.err}
		if w.fact != nil {
			h.Err = w.fact
		}
		for catalog, e := range w.candidates.all() {
			if entryMember(catalog, e) == r.requests[i] {
				break
			}
			h.NotTaken = append(h.NotTaken, p.option(catalog, e))
		}
		if h.Err == nil && len(h.NotTaken) == 0 {
			continue
		}
		if h.Err == nil {
			h.Err = r.limits[i]
		}
		if b := p.bundle(r.requests[i]); b != nil {
			h.Taken = b.Name
		}
		g.HeldBack = append(g.HeldBack, h)
	}
	g.HeldBack = append(g.HeldBack, r.demands...)
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
		fmt.Fprintf(&b, "update in progress: %s replaces %s\n", u.New, u.Old)
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
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
