package maintain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// Extend proposes the blocked edges that a new release needs: copies of those of
// its predecessor that it does not fix, and that nobody wrote for it yet. The
// predecessor is the highest version below it of its minor in any channel. The
// copies have names of files that the tree does not have, and no lines; they are
// sorted by the name of the risk, those of drops by their file.
//
// A version that is not SemVer, or that has no predecessor, needs none. With the
// proposals in the tree, Extend proposes nothing.
func Extend(tree *graphdata.Tree, version string) []graphdata.BlockedEdge {
	var known []string
	for _, c := range slices.Concat(tree.Channels, tree.Internal) {
		for _, e := range c.Versions {
			known = append(known, e.Version)
		}
	}
	taken := map[string]bool{}
	for _, b := range slices.Concat(tree.Drops, tree.Risks) {
		taken[b.File] = true
	}
	previous := predecessor(known, version)
	var proposed []graphdata.BlockedEdge
	for _, b := range exposures(tree, previous, version) {
		b.File, b.Line, b.Lines = extendedName(b, version, taken), 0, nil
		taken[b.File] = true
		b.To = version
		if b.Risk != nil {
			b.Risk = b.Risk.DeepCopy()
		}
		proposed = append(proposed, b)
	}
	return proposed
}

// extendedName puts another version in front of a file's name.
func extendedName(b graphdata.BlockedEdge, version string, taken map[string]bool) string {
	dir, base := path.Split(b.File)
	rest, begins := strings.CutPrefix(strings.TrimSuffix(base, ".yaml"), b.To)
	if !begins {
		rest = ""
		if b.Risk != nil {
			rest = "-" + b.Risk.Name
		}
	}
	dir = cmp.Or(dir, "blocked-edges/")
	name := dir + version + rest + ".yaml"
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s%s%s-%d.yaml", dir, version, rest, n)
	}
	return name
}

// predecessor returns the highest version below one of its minor, "" if there is
// none.
func predecessor(known []string, version string) string {
	v, err := graph.ParseVersion(version)
	if err != nil {
		return ""
	}
	best := ""
	for _, text := range known {
		k, err := graph.ParseVersion(text)
		if err != nil || k.Major() != v.Major() || k.Minor() != v.Minor() || !k.LessThan(v) {
			continue
		}
		if best == "" || cmp.Or(graph.CompareVersions(best, text), cmp.Compare(best, text)) < 0 {
			best = text
		}
	}
	return best
}

// exposureKey is what the blocked edges of one cause have in common.
func exposureKey(b graphdata.BlockedEdge) string {
	if b.Risk != nil {
		return b.Risk.Name
	}
	return b.File
}

// exposures returns the blocked edges to a release that concern the next one too,
// by key. One of the same risk for the next release settles it; of a drop, one of
// the same expression.
func exposures(tree *graphdata.Tree, previous, version string) []graphdata.BlockedEdge {
	if previous == "" {
		return nil
	}
	settled := map[[2]string]bool{}
	of := func(b graphdata.BlockedEdge) [2]string {
		if b.Risk != nil {
			return [2]string{"risk", b.Risk.Name}
		}
		return [2]string{"drop", b.From}
	}
	all := slices.Concat(tree.Drops, tree.Risks)
	for _, b := range all {
		if b.To == version {
			settled[of(b)] = true
		}
	}
	var open []graphdata.BlockedEdge
	for _, b := range all {
		over := b.FixedIn != "" && graph.CompareVersions(version, b.FixedIn) >= 0
		if b.To == previous && !over && !settled[of(b)] {
			open = append(open, b)
		}
	}
	slices.SortStableFunc(open, func(a, b graphdata.BlockedEdge) int {
		return cmp.Or(cmp.Compare(exposureKey(a), exposureKey(b)), cmp.Compare(a.File, b.File))
	})
	return open
}
