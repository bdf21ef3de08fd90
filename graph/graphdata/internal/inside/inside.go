// Package inside is what package maintain sees of a snapshot of package graphdata,
// beyond what it serves.
package inside

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
)

// Graph is the inside of a snapshot. It shares its parts: do not change them.
type Graph struct {
	Nodes []Node    // by precedence, then build
	In    [][]int32 // unconditional predecessors of each node, ascending
	Pairs [][]Pair  // conditional predecessors of each node, ascending
	// Lists are lists of risks, by number.
	Lists [][]configv1.ConditionalUpdateRisk
	// Index has the nodes of each channel, by architecture and name.
	Index map[string]map[string][]int32
	// Declared returns the predecessors that releases and metadata name, ascending,
	// whatever becomes of the updates.
	Declared func(node int32) []int32
	// Removed returns the places of metadata that remove an update.
	Removed func(from, to int32) []string
}

// Node is a version on an architecture.
type Node struct {
	Version, Base, Build string // Version has the build, Base does not
	SemVer               *semver.Version
	Image                string
	Metadata             map[string]string // nil: no release has the version
	Served               []Served          // one for each of its architectures
}

// Served is how a node is served for an architecture.
type Served struct{ Arch, Version string }

// Pair is a predecessor under a list of risks.
type Pair struct{ From, List int32 }

// WithoutBuild cuts the build of a version.
func WithoutBuild(version string) string {
	base, _, _ := strings.Cut(version, "+")
	return base
}

// DropTarget returns what a drop is about. A version whose pre-release is an
// architecture is one of the first releases for it.
func DropTarget(to string) string {
	if _, pre, _ := strings.Cut(to, "-"); pre == "s390x" && WithoutBuild(to) == to {
		return to + "+s390x"
	}
	return to
}

// SplitList splits a list of metadata. Empty items do not count.
func SplitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if item != "" {
			items = append(items, item)
		}
	}
	return items
}
