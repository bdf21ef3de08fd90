package maintain

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Extend proposes the blocked edges that a new release needs: copies of its
// predecessor's that it does not fix, and that nobody wrote for it yet. The
// predecessor is the highest version below it of its minor in any channel. The
// copies have names of files that the tree does not have, and no lines; they are
// sorted by the name of the risk, those of drops by their file.
//
// A version that is not SemVer, or that has no predecessor, needs none. With the
// proposals in the tree, Extend proposes nothing.
func Extend(tree *graphdata.Tree, version string) []graphdata.BlockedEdge {
	previous := predecessor(tree, version)
	if previous == "" {
		return nil
	}
	all := slices.Concat(tree.Drops, tree.Risks)
	taken, done := map[string]bool{}, map[[2]string]bool{}
	for _, b := range all {
		taken[b.File] = true
		if b.To == version {
			done[causeOf(b)] = true
		}
	}
	var proposed []graphdata.BlockedEdge
	for _, b := range all {
		fixed := b.FixedIn != "" && graph.CompareVersions(version, b.FixedIn) >= 0
		if b.To == previous && !fixed && !done[causeOf(b)] {
			proposed = append(proposed, b)
		}
	}
	slices.SortStableFunc(proposed, func(a, b graphdata.BlockedEdge) int {
		return cmp.Or(cmp.Compare(sortKey(a), sortKey(b)), cmp.Compare(a.File, b.File))
	})
	for i := range proposed {
		b := &proposed[i]
		b.File = extendedName(*b, version, taken)
		taken[b.File] = true
		b.Line, b.Lines = 0, nil
		b.To = version
		if b.Risk != nil {
			b.Risk = b.Risk.DeepCopy()
		}
	}
	return proposed
}

// causeOf is what one blocked edge for a release settles: a risk by its name, a drop
// by its expression.
func causeOf(b graphdata.BlockedEdge) [2]string {
	if b.Risk != nil {
		return [2]string{"risk", b.Risk.Name}
	}
	return [2]string{"drop", b.From}
}

// sortKey is the name of the risk, or the file of a drop.
func sortKey(b graphdata.BlockedEdge) string {
	if b.Risk != nil {
		return b.Risk.Name
	}
	return b.File
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

// predecessor returns the highest version of any channel below one of its minor, "" if
// absent.
func predecessor(tree *graphdata.Tree, version string) (best string) {
	v, err := graph.ParseVersion(version)
	if err != nil {
		return ""
	}
	for _, c := range slices.Concat(tree.Channels, tree.Internal) {
		for _, e := range c.Versions {
			k, err := graph.ParseVersion(e.Version)
			if err != nil || openshift.MinorOf(k) != openshift.MinorOf(v) || !k.LessThan(v) {
				continue
			}
			if best == "" || cmp.Or(graph.CompareVersions(best, e.Version), cmp.Compare(best, e.Version)) < 0 {
				best = e.Version
			}
		}
	}
	return best
}
