package sat

// choose returns the next decision, false if none is needed.
func (s *Solver) choose() (Lit, bool) {
	if s.conflicts >= patience {
		if l, ok := s.mostActive(); ok {
			return l, true
		}
	}
	if s.assumed {
		if l, ok := s.scan(&s.scanned, len(s.trail)); ok {
			return l, true
		}
	}
	for ; s.preferred < len(s.prefer); s.preferred++ {
		if l := s.prefer[s.preferred]; s.values[l] == unknown {
			return l, true
		}
	}
	if l, ok := s.scan(&s.early, s.facts); ok {
		return l, true
	}
	return s.scan(&s.scanned, len(s.trail))
}

// scan returns the first option of the next requirement on the trail that
// nothing satisfies yet.
func (s *Solver) scan(from *int, to int) (Lit, bool) {
	for ; *from < to; *from++ {
		l := s.trail[*from]
		if l.Negative() {
			continue
		}
		for _, c := range s.vars[l.variable()].requires {
			if next, open := s.option(&s.clauses[c]); open {
				return next, true
			}
		}
	}
	return 0, false
}

// mostActive returns the literal without a value that took part in the most
// recent contradictions.
func (s *Solver) mostActive() (Lit, bool) {
	for {
		v, ok := s.order.pop(s)
		if !ok {
			return 0, false
		}
		if l := Lit(2 * v); s.values[l] == unknown {
			if s.vars[v].phase {
				return l, true
			}
			return l.Not(), true
		}
	}
}

// option returns the first option that is left of a requirement which nothing
// satisfies yet.
func (s *Solver) option(c *clause) (Lit, bool) {
	if s.values[c.lits[c.hint]] == yes {
		return 0, false
	}
	first, found := Lit(0), false
	for i, l := range c.lits {
		switch s.values[l] {
		case yes:
			c.hint = int32(i)
			return 0, false
		case unknown:
			if l.Negative() {
				return 0, false // leaving it false satisfies the clause
			}
			if !found {
				first, found = l, true
			}
		}
	}
	return first, found
}

// touch makes a variable more active.
func (s *Solver) touch(v int32) {
	x := &s.vars[v]
	x.activity += s.bump
	if x.activity > 1e100 {
		for i := range s.vars {
			s.vars[i].activity *= 1e-100
		}
		s.bump *= 1e-100
	}
	x.active = true
	s.order.push(s, v)
}

// heap holds variables, the most active first, equals by number.
type heap struct {
	vars  []int32
	place []int32 // by variable: position + 1, 0 if absent
}

func (h *heap) less(s *Solver, a, b int32) bool {
	x, y := s.vars[a].activity, s.vars[b].activity
	return x > y || x == y && a < b
}

// push adds a variable, or moves it up if it is there.
func (h *heap) push(s *Solver, v int32) {
	for len(h.place) < len(s.vars) {
		h.place = append(h.place, 0)
	}
	if h.place[v] == 0 {
		h.vars = append(h.vars, v)
		h.place[v] = int32(len(h.vars))
	}
	for i := h.place[v] - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(s, h.vars[i], h.vars[up]) {
			return
		}
		h.swap(i, up)
		i = up
	}
}

func (h *heap) pop(s *Solver) (int32, bool) {
	if len(h.vars) == 0 {
		return 0, false
	}
	top, last := h.vars[0], int32(len(h.vars)-1)
	h.swap(0, last)
	h.vars = h.vars[:last]
	h.place[top] = 0
	for i := int32(0); ; {
		next := i
		for _, down := range [2]int32{2*i + 1, 2*i + 2} {
			if down < last && h.less(s, h.vars[down], h.vars[next]) {
				next = down
			}
		}
		if next == i {
			return top, true
		}
		h.swap(i, next)
		i = next
	}
}

func (h *heap) swap(i, j int32) {
	h.vars[i], h.vars[j] = h.vars[j], h.vars[i]
	h.place[h.vars[i]], h.place[h.vars[j]] = i+1, j+1
}
