// Package sat decides propositional formulas of the shape that choosing operators
// has: requirements (a chosen operator needs one of several others), groups of
// which at most one may be chosen, and a few plain clauses.
//
// It is a conflict-driven solver: it decides, propagates, learns a clause from
// each contradiction and jumps back to where the clause bites. Three things fit
// it to its purpose.
//
// A group is a constraint of its own. Choosing one member rules out the others
// without a clause for each pair, so a group of thousands costs what it has
// members.
//
// Everything not chosen is false. The solver decides only to satisfy a
// requirement whose owner is chosen, takes its first option that is left, and
// is done when no requirement is open: a model is found after looking at what
// was chosen, not at all there is. In this way the first model mostly is the
// preferred one, too. After many contradictions within one call it prefers the
// variables that took part in recent ones, as solvers usually do.
//
// It is incremental: between calls of [Solver.Solve] variables and constraints may
// be added, so that the caller can expand a problem only where models reach it.
// Assumptions hold for one call; if they fail, [Solver.Failed] reports which of
// them contradict each other. Decisions look at what the assumptions brought first,
// so that a call that fails mostly does so before it looks at the rest. A call that
// starts with the same assumptions as the one before continues from what follows
// from them.
//
// Each call may be given a number of conflicts to meet at most, which bounds its
// time: a conflict takes some microseconds in formulas of some thousand
// variables. Of the clauses learnt from conflicts, those that are of least use
// are dropped from time to time, which bounds memory.
//
// The same calls in the same order give the same models.
package sat
