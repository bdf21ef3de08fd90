package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// Explanation explains why something is as it is, as a tree: each child is a reason
// for its parent.
type Explanation struct {
	Text     string
	Children []*Explanation

	// Remedies are changes that would help, each tried out. At the root only.
	Remedies []Remedy
}

// String draws the tree, a line for each node, two blanks for each level.
func (e *Explanation) String() string {
	var b strings.Builder
	e.draw(&b, "")
	for _, x := range e.Remedies {
		fmt.Fprintf(&b, "way out: %s\n", x.Text)
	}
	return b.String()
}

func (e *Explanation) draw(b *strings.Builder, indent string) {
	b.WriteString(indent + e.Text + "\n")
	for _, c := range e.Children {
		c.draw(b, indent+"  ")
	}
}

// Line is the explanation on one line: the text and its reasons, depth first,
// joined with semicolons.
func (e *Explanation) Line() string {
	var reasons []string
	for _, c := range e.Children {
		reasons = append(reasons, c.flat()...)
	}
	if len(reasons) == 0 {
		return e.Text
	}
	return e.Text + ": " + strings.Join(reasons, "; ")
}

func (e *Explanation) flat() []string {
	out := []string{e.Text}
	for _, c := range e.Children {
		out = append(out, c.flat()...)
	}
	return out
}

// Explain explains why the operator of a Subscription, of a package or of a CSV's
// name is as it is in the generation: which edge, Subscription or requirement brought
// it, and for each option before it what stands against that. What stands against an
// option is minimal: nothing of it can be left out. For a Subscription that is held
// back, Remedies are changes that would give it a better option.
//
// The work is done on demand: it repeats the resolution and takes some times as
// long. The error is a [*LimitError], the context's, or wraps
// [ErrNothingToExplain].
func (g *Generation) Explain(ctx context.Context, name string) (*Explanation, error) {
	i := g.slotOf(name)
	if i == none {
		return nil, fmt.Errorf("%w: %s", ErrNothingToExplain, name)
	}
	slot := &g.Slots[i]
	root := slot.reason(g)
	var held []*HeldBack
	for j := range g.HeldBack {
		if h := &g.HeldBack[j]; h.concerns(slot) {
			held = append(held, h)
		}
	}
	x := &explainer{p: g.problem, held: held}
	for _, h := range held {
		reasons, err := x.reasons(ctx, h)
		if err != nil {
			return nil, err
		}
		root.Children = append(root.Children, reasons...)
		if h.Subscription != "" {
			remedies, err := g.remedies(ctx, h, x)
			if err != nil {
				return nil, err
			}
			for _, r := range remedies {
				same := func(o Remedy) bool { return o.Text == r.Text }
				if !slices.ContainsFunc(root.Remedies, same) {
					root.Remedies = append(root.Remedies, r)
				}
			}
		}
	}
	return root, nil
}

// Why says of each of some elements of HeldBack what stands against the options that were
// not taken. It costs what one Explain costs but for the remedies: what the elements have in
// common is done once. The error is the context's, or wraps [ErrNothingToExplain].
func (g *Generation) Why(ctx context.Context, held ...*HeldBack) ([]*Explanation, error) {
	x := &explainer{p: g.problem, held: held}
	var out []*Explanation
	for _, h := range held {
		reasons, err := x.reasons(ctx, h)
		if err != nil {
			return nil, err
		}
		out = append(out, &Explanation{Text: h.String(), Children: reasons})
	}
	return out, nil
}

// concerns reports whether the request decided about the slot.
func (h *HeldBack) concerns(s *Slot) bool {
	if h.Subscription != "" {
		return slices.Contains(s.Subscriptions, h.Subscription)
	}
	return s.RequiredBy != nil && s.RequiredBy.Requirement == h.Demand.Requirement
}

// slotOf finds a slot by Subscription, then CSV, then package.
func (g *Generation) slotOf(name string) int {
	for _, is := range []func(*Slot) bool{
		func(s *Slot) bool { return slices.Contains(s.Subscriptions, name) },
		func(s *Slot) bool {
			return s.Current != nil && s.Current.Name == name || s.Previous != nil && s.Previous.Name == name
		},
		func(s *Slot) bool {
			for _, w := range g.problem.requests {
				if w.sub.Spec.Package == name && slices.Contains(s.Subscriptions, w.sub.Name) {
					return true
				}
			}
			return s.Current != nil && slices.Contains(s.Current.packages(), name)
		},
	} {
		for i := range g.Slots {
			if is(&g.Slots[i]) {
				return i
			}
		}
	}
	return none
}

// reason describes what brought the slot to what it is.
func (s *Slot) reason(g *Generation) *Explanation {
	e := &Explanation{Text: s.String()}
	because := func(format string, args ...any) {
		e.Children = append(e.Children, &Explanation{Text: fmt.Sprintf(format, args...)})
	}
	switch s.Outcome {
	case outcomeKept:
		for _, u := range g.InProgress {
			if s.Current.Name == u.Old || s.Current.Name == u.New {
				because("%s is being replaced by %s; its subscription waits until %[1]s is gone", u.Old, u.New)
			}
		}
		switch held := slices.ContainsFunc(g.HeldBack, func(h HeldBack) bool { return h.concerns(s) }); {
		case held || len(e.Children) > 0:
		case len(s.Subscriptions) == 0:
			because("no subscription has it, so it is neither updated nor removed")
		case slices.ContainsFunc(s.Subscriptions, func(n string) bool { return slices.Contains(g.Stuck, n) }):
			because("it is not the head of its channel, but nothing there replaces it")
		default:
			because("nothing in its channel replaces it")
		}
	case outcomeUpdated:
		en, old := s.Operator.Entry, s.Previous
		switch {
		case en.Replaces == old.Name:
			because("%s names %s in replaces", en.Name, old.Name)
		case slices.Contains(en.Skips, old.Name):
			because("%s names %s in skips", en.Name, old.Name)
		default:
			because("the skipRange %s of %s contains the version %s", en.SkipRange, en.Name, old.Version)
		}
	case addedForSubscription:
		en := s.Operator.Entry
		switch {
		case s.Operator.StartingCSV != "":
			because("startingCSV names it")
		case len(en.Channel.Ordered) > 0 && en.Channel.Ordered[0] == en:
			because("it is first in channel %s", en.Channel.Name)
		default:
			because("it is the first in channel %s that can be", en.Channel.Name)
		}
	}
	return e
}

// explainer finds out what stands against options. It repeats the search, to know what had
// been decided before each choice, and states the problem with facts, both once.
type explainer struct {
	p    *problem
	held []*HeldBack // that it is asked about

	search   *search  // nil until it is asked
	f        *formula // with facts
	promises []rule   // the later ones, to be left out first
	choices  []rule   // by step of the search; those that chose nothing have no literal
}

// reasons explains why a request did not get its first option.
func (x *explainer) reasons(ctx context.Context, h *HeldBack) ([]*Explanation, error) {
	var out []*Explanation
	if h.Err != nil {
		out = append(out, &Explanation{Text: h.Err.Error()})
	}
	for _, o := range h.NotTaken {
		if x.p == nil || x.p.catalogOf(o) == none {
			return nil, fmt.Errorf("%w: catalog %s", ErrNothingToExplain, o.Catalog)
		}
		against, err := x.against(ctx, h, o)
		if err != nil {
			return nil, err
		}
		out = append(out, against)
	}
	return out, nil
}

// against describes what stands against an option that was not taken.
func (x *explainer) against(ctx context.Context, h *HeldBack, o Option) (*Explanation, error) {
	root := &Explanation{Text: o.Entry.Name + " not taken"}
	r, err := x.contradiction(ctx, h, o)
	if gaveUp(err) {
		root.Children = append(root.Children, &Explanation{Text: err.Error()})
		return root, nil
	}
	if err != nil {
		return nil, err
	}
	if r == nil {
		root.Children = append(root.Children, &Explanation{Text: "nothing stands against it; a search with more conflicts finds that"})
		return root, nil
	}
	root.Children = append(r.whyNot(r.option), r.rest()...)
	return root, nil
}

// contradiction finds the facts that stand against an option; nil if nothing
// does, but the search gave up before it found that.
func (x *explainer) contradiction(ctx context.Context, h *HeldBack, o Option) (*renderer, error) {
	if x.search == nil {
		if err := x.prepare(ctx); err != nil {
			return nil, err
		}
	}
	option := x.f.find(x.p.catalogOf(o), o.Entry)
	rules, err := x.f.minimalCore(ctx, x.f.inForce(x.before(h)), x.f.nodes[option].lit)
	if err != nil {
		return nil, err
	}
	if rules == nil && gaveUp(h.Err) {
		return nil, nil
	}
	if rules == nil {
		return nil, errInconsistent
	}
	return newRenderer(x.f, option, rules), nil
}

func (p *problem) catalogOf(o Option) int {
	return slices.IndexFunc(p.catalogs, func(c catalogView) bool { return c.key == o.Catalog })
}

// prepare repeats the search and states the problem.
func (x *explainer) prepare(ctx context.Context) error {
	p := x.p
	s, ok, err := runSearch(ctx, p)
	if err := inconsistent(ok, err); err != nil {
		return err
	}
	// An operator that only meets what was lacking before is in no constraint, so
	// the formula would not reach it.
	f := newFormula(p, &factSet{})
	for _, h := range x.held {
		for _, o := range h.NotTaken {
			if catalog := p.catalogOf(o); catalog != none {
				f.entryNode(catalog, o.Entry)
			}
		}
	}
	for _, n := range s.order {
		if e := &s.f.nodes[n]; e.entry != nil {
			f.entryNode(e.catalog, e.entry)
		}
	}
	f.expandAll()
	for _, i := range slices.Backward(s.promises) {
		n := f.requests[i]
		name := p.requests[i].sub.Name
		x.promises = append(x.promises, rule{lit: f.promiseLit(n), need: n, node: none, fact: Fact{
			Kind: factPromise, Subscription: name, Message: fmt.Sprintf("subscription %s is served before", name)}})
	}
	for _, st := range s.steps {
		x.choices = append(x.choices, s.choice(st, f))
	}
	f.facts.finish(f)
	x.search = s
	x.f = f
	return nil
}

// choice is a step of the search as a fact of a formula; one that chose nothing has no
// literal.
func (s *search) choice(st step, f *formula) rule {
	if st.node == none {
		return rule{lit: noLit}
	}
	n := st.need
	from := &s.f.nodes[st.node]
	node := none
	if from.entry != nil {
		node = f.find(from.catalog, from.entry)
	} else {
		node = f.installed[from.installed]
	}
	r := rule{lit: f.nodes[node].lit, node: node, need: n}
	if n.request != none {
		name := f.p.requests[n.request].sub.Name
		r.fact = Fact{Kind: factSubscriptionTook, Subscription: name, Member: f.id(node),
			Message: fmt.Sprintf("subscription %s takes %s", name, from.bundle.Name)}
	} else {
		r.fact = Fact{Kind: factRequirementTook, Requirement: n.req, Member: f.id(node),
			Message: fmt.Sprintf("%s is taken for another requirement", from.bundle.Name)}
	}
	return r
}

// before returns what was decided before the choice that a request was held back in: the
// promises, then the choices.
func (x *explainer) before(h *HeldBack) []rule {
	before := slices.Clone(x.promises)
	seen := map[sat.Lit]bool{noLit: true}
	for i, st := range x.search.steps {
		if x.search.isOf(st.need, h) {
			break
		}
		if r := x.choices[i]; !seen[r.lit] {
			seen[r.lit] = true
			before = append(before, r)
		}
	}
	return before
}

// isOf reports whether a choice was about the request that was held back.
func (s *search) isOf(n *need, h *HeldBack) bool {
	if h.Demand == nil {
		return n.request != none && s.f.p.requests[n.request].sub.Name == h.Subscription
	}
	return n.request == none && n.req == h.Demand.Requirement && s.f.nodes[n.owner].bundle == h.Demand.Bundle
}
