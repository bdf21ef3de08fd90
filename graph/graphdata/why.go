package graphdata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
)

// The effects of a [Cause].
const (
	declared    = "Declared"
	removed     = "Removed"
	conditional = "Conditional"
)

// Cause is why an update is served, is not, or is conditional.
type Cause struct {
	// Effect is Declared where a release or its metadata name the update, Removed
	// where the tree or metadata take it out, and Conditional where a risk matches,
	// which counts unless the update is removed; under BuildOptions.Compat it counts
	// in any case.
	Effect string
	// File and Line are the place in the tree. Without a line, File is the source
	// of a release or, if that is not known, its version.
	File string
	Line int
	// Key is what says so: previous or next of a release, a key of its metadata,
	// from in the tree, or cycle (BuildOptions.DropCycles).
	Key string
	// Value is the expression or list of the tree or the metadata; empty for a
	// release's own lists and for a cycle.
	Value string
	// Risk is the name of the risk; empty for other effects.
	Risk string
}

// String is the place and what it does.
func (c Cause) String() string {
	text := fmt.Sprintf("%s: %s by %s", c.place(), c.Effect, c.Key)
	if c.Value != "" {
		text += " " + c.Value
	}
	if c.Risk != "" {
		text += ": " + c.Risk
	}
	return text
}

func (c Cause) place() string {
	if c.Line > 0 {
		return fmt.Sprintf("%s:%d", c.File, c.Line)
	}
	return c.File
}

// reasons are what [Snapshot.Why] needs to know.
type reasons struct {
	drops, risks [][]BlockedEdge // of each node, in the order of the tree
	previous     [][]naming      // of each node: what its releases name
	next         [][]naming
	raw          [][]RawEntry       // of each node: what its metadata have of the tree
	own          []string           // what metadata remove by an expression
	cycles       map[[2]string]bool // updates that were left out, by the versions of their nodes
}

// naming is a list of versions in a release.
type naming struct {
	source   string
	versions []string
}

// Why returns the causes of an update on an architecture: who declares it, what
// removes it, under which risks it is, in this order. The versions may be with or
// without their builds. The result is nil for an update that nobody declares, and for
// versions that the graph does not have.
//
// Channels are not a cause: an update is served in those that hold both versions.
func (s *Snapshot) Why(from, to, arch string) []Cause {
	f, t := s.find(from, arch), s.find(to, arch)
	if f < 0 || t < 0 {
		return nil
	}
	causes := s.declared(f, t)
	if len(causes) == 0 {
		return nil
	}
	causes = append(causes, s.removed(f, t)...)
	for _, b := range s.reasons.risks[t] {
		if matchesFrom(b.From, s.nodes[f].version) {
			causes = append(causes, Cause{Effect: conditional, File: b.File, Line: b.Line, Key: "from", Value: b.From, Risk: b.Risk.Name})
		}
	}
	return causes
}

// find returns the node of a version on an architecture, or -1.
func (s *Snapshot) find(version, arch string) int {
	at := slices.IndexFunc(s.nodes, func(n node) bool {
		return n.base == inside.WithoutBuild(version) && n.build == arch
	})
	if at >= 0 {
		return at
	}
	return slices.IndexFunc(s.nodes, func(n node) bool { return n.version == version })
}

// declared returns who reports that there is an update.
func (s *Snapshot) declared(f, t int) (causes []Cause) {
	for _, d := range []struct {
		at    int
		lists []naming
		key   string
		base  string
	}{{t, s.reasons.previous[t], "previous", s.nodes[f].base}, {f, s.reasons.next[f], "next", s.nodes[t].base}} {
		for _, list := range d.lists {
			if slices.ContainsFunc(list.versions, func(v string) bool { return inside.WithoutBuild(v) == d.base }) {
				causes = append(causes, Cause{Effect: declared, File: cmp.Or(list.source, s.nodes[d.at].version), Key: d.key})
			}
		}
	}
	return append(causes, s.edits(declared, f, t, graph.MetadataPreviousAdd, graph.MetadataNextAdd)...)
}

// removed returns what reports that there is no update.
func (s *Snapshot) removed(f, t int) (causes []Cause) {
	for _, b := range s.reasons.drops[t] {
		if matchesFrom(b.From, s.nodes[f].version) {
			causes = append(causes, Cause{Effect: removed, File: b.File, Line: b.Line, Key: "from", Value: b.From})
		}
	}
	causes = append(causes, s.removedByMetadata(f, t)...)
	if s.reasons.cycles[[2]string{s.nodes[f].version, s.nodes[t].version}] {
		causes = append(causes, Cause{Effect: removed, File: s.source(f), Key: "cycle"})
	}
	return causes
}

// removedByMetadata returns what says so in the metadata of both ends.
func (s *Snapshot) removedByMetadata(f, t int) (causes []Cause) {
	if own := s.reasons.own[t]; own != "" && matchesFrom(own, s.nodes[f].version) {
		causes = append(causes, s.whole(t, graph.MetadataPreviousRemoveRegex, own))
	}
	if all := s.nodes[t].metadata[graph.MetadataPreviousRemove]; strings.TrimSpace(all) == "*" {
		causes = append(causes, s.whole(t, graph.MetadataPreviousRemove, all))
	}
	return append(causes, s.edits(removed, f, t, graph.MetadataPreviousRemove, graph.MetadataNextRemove)...)
}

// edits returns the metadata of both ends that name the other one.
func (s *Snapshot) edits(effect string, f, t int, previous, next string) (causes []Cause) {
	for _, e := range []struct {
		at, other int
		key       string
	}{{t, f, previous}, {f, t, next}} {
		at, other := s.nodes[e.at], s.nodes[e.other]
		names := func(item string) bool {
			if at.arch == "" {
				return item == other.version
			}
			return inside.WithoutBuild(item) == other.base && other.build == at.arch
		}
		for _, c := range s.parts(e.at, e.key) {
			if slices.ContainsFunc(inside.SplitList(c.Value), names) {
				c.Effect = effect
				causes = append(causes, c)
			}
		}
	}
	return causes
}

// parts returns the parts of a list in the metadata of a node: what a release says,
// and behind it what each line of raw/metadata.json adds.
func (s *Snapshot) parts(i int, key string) (parts []Cause) {
	own := s.nodes[i].metadata[key]
	for _, e := range slices.Backward(s.reasons.raw[i]) {
		if e.Key == key {
			parts = append(parts, Cause{File: rawFile, Line: e.Line, Key: key, Value: e.Value})
			own = strings.TrimSuffix(strings.TrimSuffix(own, e.Value), ",")
		}
	}
	if own != "" {
		parts = append(parts, Cause{File: s.source(i), Key: key, Value: own})
	}
	slices.Reverse(parts)
	return parts
}

// whole returns the cause that a value of metadata is as a whole. What adds to it
// last makes it what it is.
func (s *Snapshot) whole(i int, key, value string) Cause {
	c := Cause{Effect: removed, File: s.source(i), Key: key, Value: value}
	for _, e := range s.reasons.raw[i] {
		if e.Key == key {
			c.File, c.Line = rawFile, e.Line
		}
	}
	return c
}

// source is where the metadata of a node come from.
func (s *Snapshot) source(i int) string {
	source := ""
	if lists := s.reasons.previous[i]; len(lists) > 0 {
		source = lists[len(lists)-1].source // of several releases the last one's count
	}
	return cmp.Or(source, s.nodes[i].version)
}

// matchesFrom reports whether an expression that could be used matches.
func matchesFrom(from, version string) bool {
	re, err := CompileFrom(from)
	return err == nil && re.MatchString(version)
}
