package view

import "slices"

// Verdict is a status in a word, for a program that acts on it.
type Verdict string

// The verdicts, from the one that wins where several fit.
const (
	VerdictStuck   Verdict = "Stuck"   // the control plane stalled, or an insight is an error
	VerdictUnknown Verdict = "Unknown" // what decides could not be read
	VerdictWarning Verdict = "Warning" // there is an insight
	VerdictFine    Verdict = "Fine"
)

// Verdict sums the status up. It can be called concurrently.
func (s *Status) Verdict() Verdict {
	serious := func(i Insight) bool { return i.Level == levelError || i.Level == levelCritical }
	switch {
	case s.ControlPlane != nil && s.ControlPlane.Assessment == assessmentStalled || slices.ContainsFunc(s.Health, serious):
		return VerdictStuck
	case slices.ContainsFunc(s.Unknown, func(u Unknown) bool {
		return u.Kind != kindAlert && u.Effect != fewerWaits && u.Effect != unknownDrains
	}):
		return VerdictUnknown
	case len(s.Health) > 0:
		return VerdictWarning
	}
	return VerdictFine
}
