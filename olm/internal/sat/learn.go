package sat

// firstRestart is the number of conflicts before the first restart, and the
// unit of the later ones.
const firstRestart = 100

// patience is the number of conflicts within one call after which decisions
// follow the activity of variables rather than the order of options.
const patience = 50

const decay = 1 / 0.95

// learn derives a clause from a contradiction, goes back to where it leaves one
// literal open, and asserts that.
func (s *Solver) learn(c conflict) {
	s.learnt = append(s.learnt[:0], 0)
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
			s.learnt = append(s.learnt, f)
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
			s.learnt[0] = l.Not()
			s.clearSeen(l)
			break
		}
		s.because(l, add)
		s.clearSeen(l)
	}
	s.minimise()
	s.bump *= decay

	back, second := int32(0), 1
	for j, l := range s.learnt[1:] {
		if lv := s.vars[l.variable()].level; lv > back {
			back, second = lv, j+1
		}
	}
	s.backtrack(int(back))
	if len(s.learnt) == 1 {
		s.assign(s.learnt[0], reason{clause: decided})
		return
	}
	n := int32(len(s.clauses))
	s.clauses = append(s.clauses, clause{lits: append([]Lit(nil), s.learnt...)})
	s.attach(n, s.learnt[0], s.learnt[second])
	s.assign(s.learnt[0], reason{clause: n})
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
	s.marked = append(s.marked[:0], s.learnt...)
	kept := 1
	for _, l := range s.marked[1:] {
		redundant := s.vars[l.variable()].reason.clause != decided
		s.because(l.Not(), func(k Lit) {
			if v := k.variable(); !s.seen[v] && s.vars[v].level > 0 {
				redundant = false
			}
		})
		if !redundant {
			s.learnt[kept] = l
			kept++
		}
	}
	s.learnt = s.learnt[:kept]
	for _, l := range s.marked {
		s.clearSeen(l)
	}
}

// blame returns the assumptions that make the assumption a false, and a.
func (s *Solver) blame(a Lit, assumptions []Lit) []Lit {
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
