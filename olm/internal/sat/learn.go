package sat

import (
	"cmp"
	"slices"
)

// firstRestart is the number of conflicts before the first restart, and the
// unit of the later ones.
const firstRestart = 100

// patience is the number of conflicts within one call after which decisions
// follow the activity of variables rather than the order of options.
const patience = 50

const decay = 1 / 0.95

const defaultMaxLearnt = 2000

// learn derives a clause from a contradiction, goes back to where it leaves one
// literal open, and asserts that.
func (s *Solver) learn(c conflict) {
	s.derived = append(s.derived[:0], 0)
	open := 0
	current := int32(len(s.levels))
	add := func(f Lit) { // f is false
		v := f.variable()
		x := &s.vars[v]
		if s.seen[v] || x.level == 0 {
			return
		}
		s.seen[v] = true
		s.touch(v)
		if x.level == current {
			open++
		} else {
			s.derived = append(s.derived, f)
		}
	}
	if c.clause == excluded {
		add(c.a.Not())
		add(c.b.Not())
		if c.guard != unguarded {
			add(c.guard.Not())
		}
	} else {
		for _, l := range s.clauses[c.clause].lits {
			add(l)
		}
	}
	i := len(s.trail) - 1
	for {
		for !s.seen[s.trail[i].variable()] {
			i--
		}
		l := s.trail[i]
		i--
		open--
		if open == 0 {
			s.derived[0] = l.Not()
			s.clearSeen(l)
			break
		}
		s.because(l, add)
		s.clearSeen(l)
	}
	s.minimise()
	s.bump *= decay

	levels := s.countLevels()
	back, second := int32(0), 1
	for j, l := range s.derived[1:] {
		if lv := s.vars[l.variable()].level; lv > back {
			back, second = lv, j+1
		}
	}
	s.backtrack(int(back))
	if len(s.derived) == 1 {
		s.assign(s.derived[0], reason{clause: decided})
		return
	}
	n := s.keep(clause{lits: slices.Clone(s.derived), levels: levels})
	s.attach(n, s.derived[0], s.derived[second])
	s.assign(s.derived[0], reason{clause: n})
}

// countLevels returns how many decisions the derived clause follows from: the
// fewer, the more often it will be useful.
func (s *Solver) countLevels() int32 {
	s.counted = s.counted[:0]
	for _, l := range s.derived {
		s.counted = append(s.counted, s.vars[l.variable()].level)
	}
	slices.Sort(s.counted)
	return int32(len(slices.Compact(s.counted)))
}

// keep adds a learnt clause and returns its place.
func (s *Solver) keep(c clause) int32 {
	s.learnt++
	if last := len(s.dropped) - 1; last >= 0 {
		n := s.dropped[last]
		s.dropped = s.dropped[:last]
		s.clauses[n] = c
		return n
	}
	s.clauses = append(s.clauses, c)
	return int32(len(s.clauses) - 1)
}

// forget drops the half of the learnt clauses that follow from most decisions, if
// there are too many; clauses from at most two decisions are kept. There must be no
// decision, so that no clause is the reason of anything.
func (s *Solver) forget() {
	if s.MaxLearnt == 0 {
		s.MaxLearnt = defaultMaxLearnt
	}
	if s.learnt <= s.MaxLearnt {
		return
	}
	s.MaxLearnt += s.MaxLearnt/10 + 1
	var learnt []int32
	for i := range s.clauses {
		if s.clauses[i].levels > 2 {
			learnt = append(learnt, int32(i))
		}
	}
	slices.SortStableFunc(learnt, func(a, b int32) int { return cmp.Compare(s.clauses[b].levels, s.clauses[a].levels) })
	for _, i := range learnt[:len(learnt)/2] {
		s.clauses[i] = clause{}
		s.dropped = append(s.dropped, i)
		s.learnt--
	}
	for l, ws := range s.watches {
		s.watches[l] = slices.DeleteFunc(ws, func(w watch) bool { return s.clauses[w.clause].lits == nil })
	}
}

func (s *Solver) clearSeen(l Lit) { s.seen[l.variable()] = false }

// because calls f with the false literals that made l true.
func (s *Solver) because(l Lit, f func(Lit)) {
	switch r := s.vars[l.variable()].reason; r.clause {
	case decided:
	case excluded:
		f(r.because.Not())
		if r.guard != unguarded {
			f(r.guard.Not())
		}
	default:
		for _, k := range s.clauses[r.clause].lits {
			if k != l {
				f(k)
			}
		}
	}
}

// minimise drops literals of the learnt clause that the others imply, and
// unmarks all of them.
func (s *Solver) minimise() {
	s.marked = append(s.marked[:0], s.derived...)
	kept := 1
	for _, l := range s.marked[1:] {
		redundant := s.vars[l.variable()].reason.clause != decided
		s.because(l.Not(), func(k Lit) {
			if v := k.variable(); !s.seen[v] && s.vars[v].level > 0 {
				redundant = false
			}
		})
		if !redundant {
			s.derived[kept] = l
			kept++
		}
	}
	s.derived = s.derived[:kept]
	for _, l := range s.marked {
		s.clearSeen(l)
	}
}

// contradicting returns the assumptions that make the assumption a false, and a.
func (s *Solver) contradicting(a Lit, assumptions []Lit) []Lit {
	guilty := map[Lit]bool{a: true}
	mark := func(f Lit) {
		if v := f.variable(); s.vars[v].level > 0 {
			s.seen[v] = true
		}
	}
	mark(a)
	for i := len(s.trail) - 1; i >= 0; i-- {
		l := s.trail[i]
		v := l.variable()
		if !s.seen[v] {
			continue
		}
		s.seen[v] = false
		if s.vars[v].reason.clause == decided {
			guilty[l] = true
			continue
		}
		s.because(l, mark)
	}
	var out []Lit
	for _, l := range assumptions {
		if guilty[l] {
			out = append(out, l)
			guilty[l] = false
		}
	}
	return out
}

// luby is the sequence 1 1 2 1 1 2 4 1 1 2 ….
func luby(i int) int {
	for k := 1; ; k++ {
		if i == 1<<k-1 {
			return 1 << (k - 1)
		}
		if i < 1<<k-1 {
			return luby(i - 1<<(k-1) + 1)
		}
	}
}
