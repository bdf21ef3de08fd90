package olm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// formula is a problem as the solver sees it. It grows where models reach it:
// of an operator that no model chooses, the needs are never looked at.
//
// With facts, each constraint has a literal of its own that puts it into force,
// and the formula is complete from the start, to find out which constraints
// contradict each other.
type formula struct {
	p     *problem
	s     sat.Solver
	model []bool   // by variable: the last generation found
	facts *factSet // nil: constraints hold without condition

	nodes     []node
	subjects  []subject // by variable
	installed []int     // nodes of the installed operators
	ranked    [][]int32 // by catalog and rank: node + 1
	unranked  map[entryKey]int
	requests  []*need
	exclusive map[exclusion]bool

	groups map[trait]sat.Group // members exclude each other
}

// node is an operator that may be a member of the generation.
type node struct {
	lit       sat.Lit
	catalog   int // none for an installed one
	entry     *Entry
	bundle    *Bundle
	installed int // index, none for an entry
	needs     []*need

	expanded   bool
	unreadable bool // its needs are unknown
}

const noLit sat.Lit = -1

// subject describes what a variable stands for.
type subject struct {
	node int   // none if it is not an operator
	rest *need // further options of a need
}

type entryKey struct {
	catalog int
	entry   *Entry
}

// exclusion is a pair of an update and the operator that it replaces.
type exclusion struct{ update, installed int }

// newFormula states what is there before anything is chosen: the installed
// operators and the Subscriptions.
func newFormula(p *problem, facts *factSet) *formula {
	f := &formula{
		p: p, facts: facts,
		ranked:    make([][]int32, len(p.catalogs)),
		unranked:  map[entryKey]int{},
		exclusive: map[exclusion]bool{},
		groups:    map[trait]sat.Group{},
	}
	for c := range p.catalogs {
		f.ranked[c] = make([]int32, len(p.catalogs[c].contents.index.all))
	}
	for i := range p.installed {
		f.addInstalled(i)
	}
	for i := range p.requests {
		f.addRequest(i)
	}
	for i := range p.installed {
		if p.mandatory(i) {
			f.require(f.nodes[f.installed[i]].lit, f.installed[i], func() Fact {
				name := p.installed[i].Name
				return Fact{Kind: factFreestanding, Member: name,
					Message: fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", name)}
			})
		}
	}
	return f
}

// mandatory reports whether an installed operator stays whatever comes: no
// Subscription has it, or it is not clear which one is meant.
func (p *problem) mandatory(installed int) bool {
	for i := range p.requests {
		if p.requests[i].installed == installed {
			return false
		}
	}
	return true
}

// lenient reports whether what was wrong before is tolerated.
func (p *problem) lenient() bool { return !p.options.AllOrNothing }

func (f *formula) addInstalled(i int) {
	b := f.p.installed[i]
	n := f.add(node{catalog: none, bundle: b, installed: i})
	f.installed = append(f.installed, n)
	class := 0
	if f.p.lenient() {
		class = 1
	}
	if f.p.leaving[b.Name] {
		// Its successor stands for it; only its name is still taken.
		f.join(n, trait{kind: traitName, name: b.Name}, class)
		f.nodes[n].expanded = true
		return
	}
	f.joinAll(n, class)
	if b.Deprecated && !f.p.lenient() {
		f.forbid(n)
	}
}

// entryNode returns the node of an entry.
func (f *formula) entryNode(catalog int, e *Entry) int {
	if n := f.find(catalog, e); n != none {
		return n
	}
	n := f.add(node{catalog: catalog, entry: e, bundle: e.Bundle, installed: none})
	if e.rank >= 0 {
		f.ranked[catalog][e.rank] = int32(n + 1)
	} else {
		f.unranked[entryKey{catalog, e}] = n
	}
	f.joinAll(n, 0)
	if e.Bundle.Deprecated {
		f.forbid(n)
	}
	if f.p.readable(e.Bundle) != nil {
		// With AllOrNothing there is none. Otherwise it is not an option.
		f.nodes[n].unreadable = true
		f.s.Add(f.nodes[n].lit.Not())
	}
	return n
}

// find returns the node of an entry, none if no model has come near it.
func (f *formula) find(catalog int, e *Entry) int {
	if e.rank >= 0 {
		return int(f.ranked[catalog][e.rank]) - 1
	}
	if n, ok := f.unranked[entryKey{catalog, e}]; ok {
		return n
	}
	return none
}

func (f *formula) add(n node) int {
	id := len(f.nodes)
	n.lit = f.newVar(subject{node: id})
	f.nodes = append(f.nodes, n)
	return id
}

func (f *formula) newVar(s subject) sat.Lit {
	f.subjects = append(f.subjects, s)
	return f.s.NewVar()
}

func (f *formula) joinAll(n, class int) {
	for _, t := range f.nodes[n].bundle.traits() {
		f.join(n, t, class)
	}
}

// join adds a node to those of which at most one may be chosen.
func (f *formula) join(n int, t trait, class int) {
	g, ok := f.groups[t]
	if !ok {
		if f.facts == nil {
			g = f.s.NewGroup()
		} else {
			g = f.facts.newGroup(f, t)
		}
		f.groups[t] = g
	}
	f.s.Join(g, f.nodes[n].lit, class)
	if f.facts != nil {
		f.facts.joined(g, n)
	}
}

// require makes a literal true, which is about a node or none.
func (f *formula) require(l sat.Lit, node int, fact func() Fact) {
	if f.facts == nil {
		f.s.Add(l)
		return
	}
	rule := f.facts.rule(f, fact())
	f.facts.of(rule).node = node
	f.s.Add(rule.Not(), l)
}

// forbid rules out a deprecated operator.
func (f *formula) forbid(n int) {
	f.require(f.nodes[n].lit.Not(), n, func() Fact {
		return Fact{Kind: factDeprecated, Member: f.id(n), Message: fmt.Sprintf("bundle %s is deprecated", f.id(n))}
	})
}

// addWish states what a Subscription needs.
func (f *formula) addRequest(i int) {
	p, w := f.p, &f.p.requests[i]
	n := &need{request: i, owner: none, last: noLit, rest: noLit, rule: noLit, budget: p.maxConflicts()}
	f.requests = append(f.requests, n)
	n.lit = f.newVar(subject{node: none})
	f.require(n.lit, none, func() Fact {
		return Fact{Kind: factSubscription, Subscription: w.sub.Name,
			Message: fmt.Sprintf("subscription %s exists", w.sub.Name)}
	})
	switch {
	case w.installed != none:
		n.last = f.nodes[f.installed[w.installed]].lit
	case p.lenient():
		n.last = f.newVar(subject{node: none})
	}
	if w.fact != nil && !p.lenient() {
		f.require(n.lit.Not(), none, func() Fact { return *w.fact })
		return
	}
	if w.fact == nil && !w.waits {
		n.options = w.candidates
	}
	if w.installed != none {
		for catalog, e := range n.options.all() {
			// A shared package excludes it just as well, without a clause each.
			shared := func(s string) bool { return slices.Contains(e.Bundle.packages(), s) }
			if f.facts == nil && slices.ContainsFunc(f.p.installed[w.installed].packages(), shared) {
				continue
			}
			f.exclude(f.entryNode(catalog, e), f.installed[w.installed])
		}
	}
	if f.facts == nil {
		f.extend(n)
		return
	}
	n.rule = f.facts.rule(f, Fact{})
	f.extend(n)
	r := f.facts.of(n.rule)
	r.fact, r.need = f.requestFact(n), n
}

// exclude states that an update and what it replaces are not there together.
func (f *formula) exclude(update, installed int) {
	if f.exclusive[exclusion{update, installed}] {
		return
	}
	f.exclusive[exclusion{update, installed}] = true
	lits := []sat.Lit{f.nodes[update].lit.Not(), f.nodes[installed].lit.Not()}
	if f.facts != nil {
		u, i := f.id(update), f.id(installed)
		rule := f.facts.rule(f, Fact{Kind: factReplaces, Member: u, IDs: []string{i}, Message: u + " conflicts with " + i})
		r := f.facts.of(rule)
		r.node, r.replaced = update, installed
		lits = append(lits, rule.Not())
	}
	f.s.Add(lits...)
}

// solve looks for a model with the assumptions that is a generation: all that
// it chooses is expanded. The error is the context's, or a *LimitError after as
// many conflicts as the budget has, from which those that it met are taken; nil
// is a budget without bound. After an error the last model still stands.
func (f *formula) solve(ctx context.Context, budget *int, assumptions ...sat.Lit) (bool, error) {
	for {
		f.s.MaxConflicts = 0
		if budget != nil {
			if *budget <= 0 {
				return false, f.p.limitError("")
			}
			f.s.MaxConflicts = *budget
		}
		ok, err := f.s.Solve(ctx, assumptions...)
		if budget != nil {
			*budget -= f.s.Conflicts()
		}
		if errors.Is(err, sat.ErrLimit) {
			err = f.p.limitError("")
		}
		if !ok || err != nil {
			return false, err
		}
		grown := false
		f.s.True(func(l sat.Lit) {
			switch s := f.subjects[l/2]; {
			case s.node != none && !f.nodes[s.node].expanded:
				f.expand(s.node)
				grown = true
			case s.rest != nil && s.rest.rest == l:
				// One option failed; look at what the next ones need at once.
				from := s.rest.clauses
				f.extend(s.rest)
				for _, option := range s.rest.lits[from:s.rest.clauses] {
					f.expand(f.subjects[option/2].node)
				}
				grown = true
			}
		})
		if !grown {
			f.model = f.s.Model(f.model[:0])
			return true, nil
		}
	}
}

// maxConflicts is the budget of one choice.
func (p *problem) maxConflicts() int { return cmp.Or(p.options.MaxConflicts, defaultMaxConflicts) }

// limitError is the error of a search for something, "" for any generation.
func (p *problem) limitError(what string) *LimitError {
	if what != "" {
		what = "gave up on " + what
	}
	return &LimitError{Where: what, Limit: nameMaxConflicts, Max: int64(p.maxConflicts()), What: "conflicts"}
}

// inModel reports whether the last generation that was found has a positive
// literal. It has not if the variable is younger.
func (f *formula) inModel(l sat.Lit) bool {
	v := int(l / 2)
	return v < len(f.model) && f.model[v]
}

// id is the identifier of an operator in OLM's messages.
func (f *formula) id(n int) string {
	x := &f.nodes[n]
	if x.installed != none {
		return fmt.Sprintf("@existing/%s//%s", f.p.snapshot.Namespace, x.bundle.Name)
	}
	key := f.p.catalogs[x.catalog].key
	return fmt.Sprintf("%s/%s/%s/%s", key.Name, key.Namespace, x.entry.Channel.Name, x.entry.Name)
}
