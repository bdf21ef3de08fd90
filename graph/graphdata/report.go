package graphdata

import "slices"

// Report describes what Build found and did.
type Report struct {
	// Edges and Conditional are how many updates there are of each kind, Removed
	// how many were taken out.
	Edges, Conditional, Removed int
	// Pairs counts the updates that each cause is about: the lists "previous" and
	// "next" of releases and the keys of metadata that add updates declare them;
	// files of blocked edges and the keys that remove updates take them out, or
	// make them conditional, if they are declared. One update may have several
	// causes. A cause that is about none is not there.
	Pairs map[string]int
	// UnknownTargets are the files of blocked edges whose target no release has,
	// UnknownVersions the versions of channels. Unmatched are the files of blocked
	// edges whose target there is, and that no declared update matches. All are
	// empty for a part of all releases.
	UnknownTargets, UnknownVersions, Unmatched []string
	// Abstract are versions that releases name and that have no release.
	Abstract []string
	// Problems are what was left out and why, sorted by source.
	Problems []Problem
}

// Report describes what Build found and did. Do not change it.
func (s *Snapshot) Report() *Report { return s.report }

// tally counts the updates that a blocked edge is about.
type tally struct {
	file  string
	known bool // there is a release that it is about
	pairs int
}

// count counts updates for a cause.
func (b *builder) count(cause string, pairs int) {
	if pairs > 0 {
		b.report.Pairs[cause] += pairs
	}
}

// countTallies puts what blocked edges are about into the report.
func (b *builder) countTallies() {
	for _, t := range b.tallies {
		b.count(t.file, t.pairs)
		if t.known && t.pairs == 0 && !b.opts.Partial {
			b.report.Unmatched = append(b.report.Unmatched, t.file)
		}
	}
	slices.Sort(b.report.Unmatched)
	b.report.Unmatched = slices.Compact(b.report.Unmatched)
}
