package graphdata

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Where the update service builds another graph, BuildOptions.Compat does what
// that does:
//
//   - A version of raw/metadata.json stands for every architecture, whatever its
//     build.
//   - The last of several drops for a release wins, and undoes what its own
//     metadata, or the raw ones, remove by an expression.
//   - A risk for one architecture removes the updates of all, and makes those of
//     its own conditional.
//   - A risk beats what removes: such an update stays, under the risk.
//   - Expressions of a release are joined to one, so that a flag such as (?i) in
//     one acts on those that follow.
//   - Risks of an update are in the order of their files, and there as often.
//   - A channel is in a release's list as often as files and metadata declare it.
//   - The build fails on an item of edited edges that is empty or no version, on
//     an expression of metadata that does not compile, and if one of several
//     channels of a release has no hyphen in its name.
//   - Conditional updates are served whose versions contain the architecture
//     anywhere, even where no node is ("64").
//
// Where the service's result depends on chance, files are taken in the order of
// their names, and nodes in theirs. Not even Compat serves two nodes with one
// version, which package graph does not know, nor does it use an expression that
// means something else in Go. What the options DropMismatched and DropCycles leave
// out is left out.

// rawVersion returns what a version of raw/metadata.json stands for.
func (b *builder) rawVersion(version string) string {
	if b.opts.Compat {
		return inside.WithoutBuild(version)
	}
	return version
}

// riskTarget returns of which release a risk removes updates.
func (b *builder) riskTarget(to string) string {
	if b.opts.Compat {
		return inside.WithoutBuild(to)
	}
	return to
}

// forget undoes what removed updates to a node by an expression until now.
func (b *builder) forget(t int32) {
	delete(b.nodes[t].metadata, graph.MetadataPreviousRemoveRegex)
	b.reasons.own[t] = ""
	b.drops[t], b.reasons.drops[t] = nil, nil
}

// joined returns all expressions that remove updates to a node as one.
func (b *builder) joined(i int) (*matcher, error) {
	text, ok := b.nodes[i].metadata[graph.MetadataPreviousRemoveRegex]
	if !ok {
		return nil, nil
	}
	m := b.expressions[text]
	if m == nil {
		re, err := compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: error parsing %s as Regex: %w", b.nodes[i].version, graph.MetadataPreviousRemoveRegex, bounded.Quote(text), err)
		}
		m = &matcher{re: re}
		b.expressions[text] = m
	}
	return m, nil
}

// compatServed reports between which nodes of a channel conditional updates of an
// architecture may be, and as what.
func (s *Snapshot) compatServed(members []int32, arch string) func(int32) (string, bool) {
	in := map[int32]bool{}
	for _, i := range members {
		in[i] = strings.Contains(s.nodes[i].version, arch)
	}
	return func(i int32) (version string, ok bool) {
		if !in[i] {
			return "", false
		}
		return servedVersion(s.nodes[i].version, arch), true
	}
}

// checkHyphens returns an error where the service cannot sort a release's
// channels.
func checkHyphens(names []string) error {
	for _, name := range names {
		if len(names) > 1 && !strings.Contains(name, "-") {
			return fmt.Errorf("channel %s has no hyphen in its name", bounded.Quote(name))
		}
	}
	return nil
}
