package olm

import (
	"context"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// search takes one choice after the other: first the Subscriptions', then those for
// freestanding operators' requirements, then those for the chosen operators' own,
// breadth first. At each choice it takes the first option with which there still is
// a generation, so no choice is ever undone.
type search struct {
	f      *formula
	chosen map[int]bool // nodes
	order  []int        // of them
	queue  []*need
	steps  []step // the choices made

	promises []int // requests in the order in which they were promised
}

// step is a choice that was made.
type step struct {
	need  *need
	taken int  // index of the option; count() for the last one
	node  int  // of the option; none for nothing
	met   bool // it had been chosen before
}

// runSearch returns the search after its last choice, or false if there is no
// generation, which takes AllOrNothing.
func runSearch(ctx context.Context, p *problem) (*search, bool, error) {
	s := &search{f: newFormula(p, nil), chosen: map[int]bool{}}
	if p.lenient() {
		if err := s.promise(ctx); err != nil {
			return nil, false, err
		}
	} else {
		budget := p.maxConflicts()
		if ok, err := s.f.solve(ctx, &budget); !ok || err != nil {
			return nil, false, err
		}
	}
	s.queue = append(s.queue, s.f.requests...)
	s.expandFreestanding()
	for len(s.queue) > 0 {
		n := s.queue[0]
		s.queue = s.queue[1:]
		if err := s.decide(ctx, n); err != nil {
			return nil, false, err
		}
	}
	return s, true, nil
}

// promise binds Subscriptions to one of their candidates each, new ones before
// installed ones, as far as they can hold together.
func (s *search) promise(ctx context.Context) error {
	f := s.f
	var order []int // of requests
	for _, installed := range []bool{false, true} {
		for i, n := range f.requests {
			if (f.p.requests[i].installed != none) == installed && n.count() > 0 {
				order = append(order, i)
			}
		}
	}
	// The promise of a request is that its last option is not counted on.
	lits := make([]sat.Lit, len(order))
	for j, i := range order {
		lits[j] = f.promiseLit(f.requests[i])
	}
	if err := s.firstModel(ctx, lits); err != nil {
		return err
	}
	for j, i := range order {
		ok, err := s.possible(ctx, f.requests[i], lits[j])
		if err != nil {
			return err
		}
		if ok {
			f.s.Add(lits[j])
			s.promises = append(s.promises, i)
		}
	}
	return nil
}

// firstModel finds a generation that keeps as many promises as go together at first
// sight. If that is too hard, it finds one that keeps none: that in which all stays
// as it is.
func (s *search) firstModel(ctx context.Context, promises []sat.Lit) error {
	f := s.f
	f.s.Prefer(promises...)
	budget := f.p.maxConflicts()
	ok, err := f.solve(ctx, &budget)
	if !gaveUp(err) {
		return inconsistent(ok, err)
	}
	f.s.Prefer()
	var last []sat.Lit
	for _, n := range f.requests {
		if n.last != noLit {
			last = append(last, n.last)
		}
	}
	return inconsistent(f.solve(ctx, nil, last...))
}

// promiseLit returns a literal that, where true, leaves a request its candidates
// only.
func (f *formula) promiseLit(n *need) sat.Lit {
	l := f.newVar(subject{node: none})
	lits := []sat.Lit{l.Not()}
	lits = append(lits, n.lits[:n.clauses]...)
	if n.rest != noLit {
		lits = append(lits, n.rest)
	}
	f.s.Add(lits...)
	return l
}

// expandFreestanding queues the requirements of operators that nobody chooses.
func (s *search) expandFreestanding() {
	for i, n := range s.f.installed {
		if s.f.p.mandatory(i) && !s.chosen[n] {
			s.f.expand(n)
			s.queue = append(s.queue, &need{request: none, owner: n, req: nil})
		}
	}
}

// decide takes the first option of a choice that works out, or once the search
// for it is given up, the one that the last generation has.
func (s *search) decide(ctx context.Context, n *need) error {
	f := s.f
	if n.request == none && n.req == nil { // a freestanding operator
		s.choose(n.owner)
		return nil
	}
	if st, ok := s.met(n); ok {
		s.steps = append(s.steps, st)
		return nil
	}
	for k := range n.count() {
		if n.gaveUp && k >= n.clauses {
			break // no model has come that far
		}
		l := f.option(n, k)
		ok, err := s.possible(ctx, n, l)
		if err != nil {
			return err
		}
		if ok {
			node := f.subjects[l/2].node
			s.steps = append(s.steps, step{need: n, taken: k, node: node})
			s.choose(node)
			return nil
		}
	}
	node := none
	if n.last != noLit {
		if !f.inModel(n.last) { // it has one option, and no other
			return errInconsistent
		}
		node = f.subjects[n.last/2].node
		if node != none {
			s.choose(node)
		} else {
			f.s.Add(n.last)
		}
	} else if !n.optional {
		return errInconsistent
	}
	s.steps = append(s.steps, step{need: n, taken: n.count(), node: node})
	return nil
}

// met returns the step of a choice of which an option has been chosen already.
func (s *search) met(n *need) (step, bool) {
	for k, node := range n.before {
		if s.chosen[node] {
			return step{n, k, node, true}, true
		}
	}
	k := len(n.before)
	for catalog, e := range n.options.all() {
		if node := s.f.find(catalog, e); node != none && s.chosen[node] {
			return step{n, k, node, true}, true
		}
		k++
	}
	if n.last != noLit {
		if node := s.f.subjects[n.last/2].node; node != none && s.chosen[node] {
			return step{n, k, node, true}, true
		}
	}
	return step{}, false
}

// possible reports whether there is a generation with a literal, in addition to
// what was decided. What is not possible stays so. Once the budget of the choice
// is spent, only what the last generation has counts as possible.
func (s *search) possible(ctx context.Context, n *need, l sat.Lit) (bool, error) {
	f := s.f
	if f.inModel(l) {
		return true, nil
	}
	if f.s.Fixed(l.Not()) {
		return false, nil
	}
	ok, err := f.solve(ctx, &n.budget, l)
	if gaveUp(err) && f.p.lenient() {
		n.gaveUp = true
		return false, nil
	}
	if err == nil && !ok {
		f.s.Add(l.Not())
	}
	return ok, err
}

// choose makes an operator a member and queues what it needs.
func (s *search) choose(node int) {
	if s.chosen[node] {
		return
	}
	f := s.f
	s.chosen[node] = true
	s.order = append(s.order, node)
	f.s.Add(f.nodes[node].lit)
	f.expand(node)
	s.queue = append(s.queue, f.nodes[node].needs...)
}

// inconsistent is returned where a formula that has a model by construction has
// none: a fault of the search, not of its input.
func inconsistent(ok bool, err error) error {
	if err == nil && !ok {
		return errInconsistent
	}
	return err
}
