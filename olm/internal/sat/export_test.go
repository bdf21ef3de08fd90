package sat

// Clauses returns how many clauses the solver has room for.
func Clauses(s *Solver) int { return len(s.clauses) }
