package sat

import (
	"context"
	"errors"
)

// Lit is a variable or its negation.
type Lit int32

// Not returns the opposite literal.
func (l Lit) Not() Lit { return l ^ 1 }

// Negative reports whether the literal is a negation.
func (l Lit) Negative() bool { return l&1 == 1 }

func (l Lit) variable() int32 { return int32(l >> 1) }

// Group is a set of literals of which at most one may be true.
type Group int32

// ErrLimit is returned by a search that met more conflicts than it may.
var ErrLimit = errors.New("too many conflicts")

// Solver holds a formula. The zero value is an empty one, ready to use. It is
// not safe for concurrent use.
type Solver struct {
	// MaxConflicts bounds the conflicts of each call of Solve; 0: no bound.
	MaxConflicts int

	// MaxLearnt is how many clauses learnt from conflicts are kept at first;
	// 0: 2,000. Each time that half of them are dropped, it may be a tenth more.
	MaxLearnt int

	vars    []variable
	values  []value // by literal
	clauses []clause
	watches [][]watch // by literal: the clauses to look at when it becomes false
	groups  []group
	prefer  []Lit

	learnt  int     // clauses in use that were derived
	dropped []int32 // clauses whose places are free

	trail  []Lit
	levels []level // one for each decision
	head   int     // first literal of the trail that is not propagated

	scans
	broken bool // no model whatever the assumptions
	failed []Lit
	model  []bool // by variable

	stamps   []int // by literal: the last clause that was added with it
	clauseNo int

	seen      []bool
	derived   []Lit // the clause that is being learnt
	counted   []int32
	marked    []Lit
	order     heap
	bump      float64
	conflicts int // of this call, then of the last one
	restart   int // conflicts until the next restart
	restarts  int
}

// scans say how far the search for the next decision has come. It looks at what
// the assumptions brought first: if they cannot be, that mostly shows there.
type scans struct {
	assumed   bool // there are assumptions
	facts     int  // how many literals the trail had before the first assumption
	scanned   int  // all requirements of the trail from facts up to this are satisfied
	preferred int  // all of prefer before this have a value
	early     int  // all requirements of the trail before this, up to facts, are satisfied
}

type value int8

const (
	unknown value = 0
	yes     value = 1
	no      value = -1
)

type variable struct {
	level    int32
	reason   reason
	groups   []membership
	requires []int32 // clauses that it owns: those to satisfy once it is true
	guards   []Group
	phase    bool
	active   bool // has taken part in a contradiction
	activity float64
}

// clause keeps its literals in the order in which they were given, since that
// is the order of decisions; the watched two are kept apart.
type clause struct {
	lits    []Lit
	watched [2]Lit
	hint    int32 // index of the option that satisfied it last
	levels  int32 // of a learnt clause: from how many decisions it was derived; 0 for a given one
}

// watch stands for a clause that watches a literal; if blocker is true the
// clause need not be looked at.
type watch struct {
	clause  int32
	blocker Lit
}

type membership struct {
	group Group
	class int32
}

// member of a group. Two members of the same class other than 0 may both be
// true.
type member struct {
	lit   Lit
	class int32
}

type group struct {
	members []member
	facts   []member // those that are true for good; not kept if guarded
	guard   Lit      // the group counts only while this is true; always if unguarded
}

const unguarded Lit = -1

// level is what to go back to when a decision is undone.
type level struct {
	decision Lit
	trail    int
	scans
}

// reason explains why a literal is true: none for decisions and facts, else a
// clause, or another literal that excludes its negation.
type reason struct {
	clause  int32 // index, or one of the two below
	because Lit   // with excluded: the true member of the group
	guard   Lit   // with excluded: the group's guard
}

const (
	decided  int32 = -1
	excluded int32 = -2
)

// NewVar adds a variable and returns its positive literal.
func (s *Solver) NewVar() Lit {
	v := len(s.vars)
	s.vars = append(s.vars, variable{reason: reason{clause: decided}})
	s.values = append(s.values, unknown, unknown)
	s.watches = append(s.watches, nil, nil)
	s.stamps = append(s.stamps, 0, 0)
	s.seen = append(s.seen, false)
	return Lit(2 * v)
}

// Prefer makes the solver try to make these literals true before anything but
// the assumptions, in order; none: no longer any. It does not change which
// formulas have a model.
func (s *Solver) Prefer(lits ...Lit) {
	s.backtrack(0)
	s.prefer = append(s.prefer[:0], lits...)
}

// NewGroup adds an empty group.
func (s *Solver) NewGroup() Group {
	s.groups = append(s.groups, group{guard: unguarded})
	return Group(len(s.groups) - 1)
}

// NewGuardedGroup adds an empty group that counts only while the guard, a
// positive literal, is true. All its members must have joined before the first
// Solve.
func (s *Solver) NewGuardedGroup(guard Lit) Group {
	g := Group(len(s.groups))
	s.groups = append(s.groups, group{guard: guard})
	v := &s.vars[guard.variable()]
	v.guards = append(v.guards, g)
	return g
}

// Join adds a positive literal to a group: at most one member may be true.
// Members of the same class other than 0 do not exclude each other.
func (s *Solver) Join(g Group, l Lit, class int) {
	s.backtrack(0)
	c := int32(class)
	gr := &s.groups[g]
	for _, m := range gr.facts {
		if c == 0 || m.class != c {
			s.fact(l.Not())
		}
	}
	if s.values[l] == yes && gr.guard == unguarded { // rare: mostly variables join groups when they are new
		for _, m := range gr.members {
			if c == 0 || m.class != c {
				s.fact(m.lit.Not())
			}
		}
		gr.facts = append(gr.facts, member{l, c})
	}
	gr.members = append(gr.members, member{l, c})
	v := &s.vars[l.variable()]
	v.groups = append(v.groups, membership{g, c})
}

// Add adds a clause: one of the literals must be true. The first literal must be
// the negation of the clause's owner, unless there is only one literal: the
// positive literals are the options of which the owner, together with those of
// further negated literals, needs one, in order.
func (s *Solver) Add(lits ...Lit) {
	s.backtrack(0)
	kept := make([]Lit, 0, len(lits))
	s.clauseNo++
	for _, l := range lits {
		switch {
		case s.values[l] == yes || s.stamps[l.Not()] == s.clauseNo:
			return
		case s.values[l] == no && l != lits[0], s.stamps[l] == s.clauseNo:
			continue
		}
		s.stamps[l] = s.clauseNo
		kept = append(kept, l)
	}
	options := false
	for _, l := range kept[min(1, len(kept)):] {
		options = options || !l.Negative()
	}
	if len(kept) > 0 && s.values[kept[0]] == no {
		// The owner is a fact: what is left must hold, but stays in order.
		if !options || len(kept) <= 2 {
			kept = kept[1:]
		}
	}
	switch len(kept) {
	case 0:
		s.broken = true
		return
	case 1:
		s.fact(kept[0])
		return
	}
	c := int32(len(s.clauses))
	if options {
		// It waits for an option once all its negated literals are true.
		for _, l := range kept {
			if l.Negative() {
				owner := &s.vars[l.variable()]
				owner.requires = append(owner.requires, c)
			}
		}
	}
	// Watch two literals that are not false. Only the owner can be.
	w := kept
	if s.values[w[0]] == no {
		w = w[1:]
	}
	s.clauses = append(s.clauses, clause{lits: kept})
	s.attach(c, w[0], w[1])
}

// Fixed reports whether the literal is known to be true whatever is assumed.
func (s *Solver) Fixed(l Lit) bool {
	return s.values[l] == yes && s.vars[l.variable()].level == 0
}

// Failed returns the assumptions that cannot hold together, after a Solve that
// found no model, in the order in which they were assumed. Empty: there is no
// model without assumptions either.
func (s *Solver) Failed() []Lit { return s.failed }

// Conflicts returns how many contradictions the last Solve met: what it cost.
func (s *Solver) Conflicts() int { return s.conflicts }

// Solve looks for a model in which the assumptions are true. It returns
// ErrLimit or the context's error if it had to give up.
func (s *Solver) Solve(ctx context.Context, assumptions ...Lit) (bool, error) {
	s.resume(assumptions)
	s.failed = nil
	s.conflicts, s.restarts, s.restart = 0, 0, firstRestart
	if s.bump == 0 {
		s.bump = 1
	}
	if s.broken || !s.settle() {
		return false, nil
	}
	for steps := 0; ; steps++ {
		if steps%256 == 0 {
			if err := ctx.Err(); err != nil {
				s.backtrack(0)
				return false, err
			}
		}
		conflict, ok := s.propagate()
		if !ok {
			s.conflicts++
			if len(s.levels) == 0 {
				s.broken = true
				return false, nil
			}
			s.learn(conflict)
			if s.MaxConflicts > 0 && s.conflicts >= s.MaxConflicts {
				s.backtrack(0)
				return false, ErrLimit
			}
			continue
		}
		if s.conflicts >= s.restart {
			s.restarts++
			s.restart = s.conflicts + firstRestart*luby(s.restarts)
			s.backtrack(0)
			s.forget()
			continue
		}
		if n := len(s.levels); n < len(assumptions) {
			a := assumptions[n]
			if s.values[a] == no {
				s.failed = s.contradicting(a, assumptions)
				return false, nil
			}
			if n == 0 {
				s.scans = scans{assumed: true, facts: len(s.trail), scanned: len(s.trail)}
			}
			s.push(a)
			if s.values[a] == unknown {
				s.assign(a, reason{clause: decided})
			}
			continue
		}
		next, ok := s.choose()
		if !ok {
			s.keepModel()
			return true, nil
		}
		s.push(next)
		s.assign(next, reason{clause: decided})
	}
}

// resume goes back to the last assumption that this call has in common with the
// one before: what follows from those is known.
func (s *Solver) resume(assumptions []Lit) {
	same := 0
	for same < min(len(assumptions), len(s.levels)) && s.levels[same].decision == assumptions[same] {
		same++
	}
	s.backtrack(same)
	if same == 0 {
		s.scans = scans{}
	}
}

// settle propagates the facts.
func (s *Solver) settle() bool {
	if len(s.levels) > 0 {
		return true
	}
	if _, ok := s.propagate(); !ok {
		s.broken = true
	}
	return !s.broken
}

func (s *Solver) keepModel() {
	if len(s.model) < len(s.vars) {
		s.model = make([]bool, len(s.vars))
	}
	clear(s.model)
	for _, l := range s.trail {
		if !l.Negative() {
			s.model[l.variable()] = true
		}
	}
}

// Model appends the last model to dst: whether each variable is true.
func (s *Solver) Model(dst []bool) []bool { return append(dst, s.model...) }

// True calls f with each literal that is true in the last model and positive,
// in the order of their variables.
func (s *Solver) True(f func(Lit)) {
	for v, t := range s.model {
		if t {
			f(Lit(2 * v))
		}
	}
}

// fact makes a literal true for good.
func (s *Solver) fact(l Lit) {
	switch s.values[l] {
	case no:
		s.broken = true
	case unknown:
		s.assign(l, reason{clause: decided})
	}
}

func (s *Solver) push(decision Lit) {
	s.levels = append(s.levels, level{decision, len(s.trail), s.scans})
}

func (s *Solver) assign(l Lit, r reason) {
	s.values[l], s.values[l.Not()] = yes, no
	v := &s.vars[l.variable()]
	v.level, v.reason = int32(len(s.levels)), r
	s.trail = append(s.trail, l)
}

func (s *Solver) backtrack(n int) {
	if len(s.levels) <= n {
		return
	}
	to := s.levels[n]
	for i := len(s.trail) - 1; i >= to.trail; i-- {
		l := s.trail[i]
		s.values[l], s.values[l.Not()] = unknown, unknown
		v := &s.vars[l.variable()]
		v.phase = !l.Negative()
		if v.active {
			s.order.push(s, l.variable())
		}
	}
	s.trail = s.trail[:to.trail]
	s.scans = to.scans
	s.levels = s.levels[:n]
	s.head = len(s.trail)
}
