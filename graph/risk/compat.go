package risk

// What [Evaluator].Compat changes, and nothing else:
//   - risks of one name share the verdict of the highest version
//   - an update without risks is recommended, and so is one whose rules are all of
//     unknown types
//   - what a ClusterVersion cannot hold stays
//
// MaxBytes still holds.

// sharesVerdicts reports whether risks of one name have one verdict.
func (e Evaluator) sharesVerdicts() bool { return e.ByName || e.Compat }

// keepsAll reports whether an update stays that a ClusterVersion cannot hold.
func (e Evaluator) keepsAll() bool { return e.Compat }

// trustsNoRisks reports whether an update without risks is recommended.
func (e Evaluator) trustsNoRisks() bool { return e.Compat }
