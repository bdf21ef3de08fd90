package sat

// Clauses returns how many clauses the solver has room for.
func Clauses(s *Solver) int { return len(s.clauses) }

// Value of a literal in the last model.
func (s *Solver) Value(l Lit) bool {
	v := l.variable()
	if int(v) >= len(s.model) {
		return l.Negative()
	}
	return s.model[v] != l.Negative()
}
