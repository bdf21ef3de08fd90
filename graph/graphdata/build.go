package graphdata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// BuildOptions change how a graph is built. The zero value fails on releases that
// contradict each other and takes all else as it is.
type BuildOptions struct {
	// Compat builds what an update service does, faults included: a risk beats a
	// drop, the last of two drops wins, and more. buildcompat.go lists the points.
	// For comparisons only.
	Compat bool
	// Partial reports that there are some of all releases, as on a mirror: versions
	// of the tree that no release has are not reported.
	Partial bool
	// DropMismatched leaves out a version that several images claim, rather than
	// failing.
	DropMismatched bool
	// DropCycles removes the edges of a cycle that lead to a lower version, rather
	// than failing.
	DropCycles bool
	// Image returns the pull spec to serve, such as a mirror's; nil takes
	// Release.Image. It is called once for each node.
	Image func(Release) string
	// MaxNodes is how many nodes there may be, those without a release included;
	// the default is 200,000.
	MaxNodes int
	// MaxEdges is how many edges there may be, and how often releases may name
	// others; the default is 20,000,000.
	MaxEdges int
}

// Build makes a graph of a tree and releases. It reads nothing else: the same
// tree and releases, in whatever order, make the same Snapshot. That keeps parts of
// both: do not change them afterwards.
//
// The error is a [*MismatchError], a [*CycleError] or a [*LimitError], or reports
// that two nodes are indistinguishable without their architecture. What can be left
// out is, and is a problem of the report. Under Compat, what an update service
// fails on is an error too.
func Build(tree *Tree, releases []Release, opts BuildOptions) (*Snapshot, error) {
	if err := options.NonNegative(opts); err != nil {
		return nil, err
	}
	opts.MaxNodes = cmp.Or(opts.MaxNodes, 200_000)
	opts.MaxEdges = cmp.Or(opts.MaxEdges, 20_000_000)
	b := &builder{tree: inOrder(tree), releases: releases, opts: opts, report: &Report{Pairs: map[string]int{}}, expressions: map[string]*matcher{}}
	named := 0
	for i := range releases {
		named += len(releases[i].Previous) + len(releases[i].Next)
	}
	if named > opts.MaxEdges {
		return nil, &LimitError{What: limitEdges, Max: int64(opts.MaxEdges)}
	}
	for _, step := range []func() error{
		b.addNodes,    // what releases there are, and what they name
		b.addRaw,      // metadata of old releases
		b.addDrops,    // which updates are removed
		b.addRisks,    // which are conditional
		b.addChannels, // who is in which channel
		b.addEdges,    // what releases say about updates
		b.editAdd,     // what metadata add
		b.checkCycles, // nothing leads back
		b.decideEdges, // what is removed, what conditional
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.snapshot()
}

// inOrder returns a tree whose blocked edges are in the order of their files.
func inOrder(tree *Tree) *Tree {
	sorted := *tree
	for _, list := range []*[]BlockedEdge{&sorted.Drops, &sorted.Risks} {
		*list = slices.Clone(*list)
		slices.SortStableFunc(*list, func(x, y BlockedEdge) int {
			return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.To, y.To), cmp.Compare(x.From, y.From))
		})
	}
	return &sorted
}

// builder is one call of Build.
type builder struct {
	tree     *Tree
	releases []Release
	opts     BuildOptions
	report   *Report

	order  []int               // of releases, so that theirs does not matter
	full   []string            // the version of each release, with its build
	nodes  []node              // by precedence, then build
	byArch map[string]archNode // architecture or build → version without build → node
	byBase map[string][]int32  // version without build → nodes
	in     [][]int32           // predecessors of each node, ascending
	pairs  [][]inside.Pair     // conditional predecessors of each node, ascending

	bases       map[string]base
	drops       [][]*edgeRule // of each node
	risks       [][]*edgeRule
	expressions map[string]*matcher
	tallies     []*tally // of blocked edges
	reasons     reasons

	riskTable []servedRisk // distinct, by name
	lists     [][]int32    // of riskTable
	listIDs   map[string]int32
}

type archNode map[string]int32

func (b *builder) problem(source, field, rule, format string, args ...any) {
	b.report.Problems = append(b.report.Problems, Problem{File: source, Field: field, Rule: rule, Message: fmt.Sprintf(format, args...), Warning: true})
}

// MismatchError reports that several images claim one version.
type MismatchError struct {
	Version string
	A, B    Release // the one whose Source sorts first, and the other
}

// Error names the digests and where they come from.
func (e *MismatchError) Error() string {
	text := fmt.Sprintf("mismatched manifest ref for concrete release %s: %s, %s", e.Version, cmp.Or(e.B.Digest, "none"), cmp.Or(e.A.Digest, "none"))
	if e.A.Source != "" || e.B.Source != "" {
		text += fmt.Sprintf(" (from %s and %s)", cmp.Or(e.B.Source, "an unnamed source"), cmp.Or(e.A.Source, "an unnamed source"))
	}
	return text
}

// CycleError reports that updates lead back to where they began.
type CycleError struct {
	Versions []string // each leads to the next one, the last to the first
	Arch     string   // the build of the first one
}

// Error lists the versions of the cycle.
func (e *CycleError) Error() string {
	return "updates form a cycle: " + strings.Join(append(e.Versions, e.Versions[0]), " → ")
}
