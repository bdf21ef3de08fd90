package sat

// conflict is what cannot be: a clause all of whose literals are false, or two
// true members of one group.
type conflict struct {
	clause int32 // index, or excluded
	a, b   Lit   // with excluded: the two true literals
	guard  Lit   // with excluded: the group's guard
}

// propagate derives what follows from the trail.
func (s *Solver) propagate() (conflict, bool) {
	for s.head < len(s.trail) {
		l := s.trail[s.head]
		s.head++
		if !l.Negative() {
			if c, ok := s.exclude(l); !ok {
				return c, false
			}
		}
		if c, ok := s.visit(l.Not()); !ok {
			return c, false
		}
	}
	return conflict{}, true
}

// exclude rules out the rivals of a true literal, and those that a guard puts
// into force.
func (s *Solver) exclude(l Lit) (conflict, bool) {
	v := &s.vars[l.variable()]
	for _, ms := range v.groups {
		g := &s.groups[ms.group]
		switch {
		case g.guard != unguarded:
			if s.values[g.guard] != yes {
				continue
			}
		case len(s.levels) == 0:
			g.facts = append(g.facts, member{l, ms.class})
		}
		if c, ok := s.excludeOthers(g, member{l, ms.class}); !ok {
			return c, false
		}
	}
	for _, id := range v.guards {
		g := &s.groups[id]
		for _, m := range g.members {
			if s.values[m.lit] == yes {
				if c, ok := s.excludeOthers(g, m); !ok {
					return c, false
				}
			}
		}
	}
	return conflict{}, true
}

func (s *Solver) excludeOthers(g *group, chosen member) (conflict, bool) {
	for _, m := range g.members {
		if m.lit == chosen.lit || m.class != 0 && m.class == chosen.class {
			continue
		}
		switch s.values[m.lit] {
		case yes:
			return conflict{excluded, chosen.lit, m.lit, g.guard}, false
		case unknown:
			s.assign(m.lit.Not(), reason{excluded, chosen.lit, g.guard})
		}
	}
	return conflict{}, true
}

// visit looks at the clauses that watch a literal which has become false.
func (s *Solver) visit(f Lit) (conflict, bool) {
	ws := s.watches[f]
	kept := 0
	for i := 0; i < len(ws); i++ {
		w := ws[i]
		if s.values[w.blocker] == yes {
			ws[kept] = w
			kept++
			continue
		}
		c := &s.clauses[w.clause]
		slot := 0
		if c.watched[1] == f {
			slot = 1
		}
		other := c.watched[1-slot]
		if s.values[other] == yes {
			ws[kept] = watch{w.clause, other}
			kept++
			continue
		}
		moved := false
		for _, l := range c.lits {
			if l != other && l != f && s.values[l] != no {
				c.watched[slot] = l
				s.watches[l] = append(s.watches[l], watch{w.clause, other})
				moved = true
				break
			}
		}
		if moved {
			continue
		}
		ws[kept] = w
		kept++
		if s.values[other] == no {
			kept += copy(ws[kept:], ws[i+1:])
			s.watches[f] = ws[:kept]
			return conflict{clause: w.clause}, false
		}
		s.assign(other, reason{clause: w.clause})
	}
	s.watches[f] = ws[:kept]
	return conflict{}, true
}

func (s *Solver) attach(c int32, a, b Lit) {
	s.watches[a] = append(s.watches[a], watch{c, b})
	s.watches[b] = append(s.watches[b], watch{c, a})
	s.clauses[c].watched = [2]Lit{a, b}
}
