package maintain

import (
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// matchesNoUpdate reports an expression that matches no declared update to its
// target. A target without a release is another rule's.
func (l *linter) matchesNoUpdate(b graphdata.BlockedEdge, x *expression) {
	targets := l.targets(b)
	for _, t := range targets {
		for _, f := range l.snap.Declared(t) {
			if x.re.MatchString(l.snap.Nodes[f].Version) {
				return
			}
		}
	}
	if len(targets) > 0 && (len(x.matched) > 0 || x.bare == nil) {
		l.edge(b, "from", "%s matches no version that updates to %s", bounded.Quote(b.From), b.To)
	}
}

// commonUpdate returns the source of a declared update that two blocked edges
// match, "" if absent.
func (l *linter) commonUpdate(a, b graphdata.BlockedEdge) string {
	x, y := l.expression(a.From), l.expression(b.From)
	if x == nil || y == nil {
		return ""
	}
	targets := l.targets(b)
	for _, t := range l.targets(a) {
		if !slices.Contains(targets, t) {
			continue
		}
		for _, f := range l.snap.Declared(t) {
			if v := l.snap.Nodes[f].Version; x.re.MatchString(v) && y.re.MatchString(v) {
				return v
			}
		}
	}
	return ""
}

// overlapMetadata reports the metadata that remove an update which a risk is about,
// each place once.
func (l *linter) overlapMetadata(r graphdata.BlockedEdge) {
	x := l.expression(r.From)
	if x == nil {
		return
	}
	seen := map[string]bool{}
	for _, t := range l.targets(r) {
		for _, f := range l.snap.Declared(t) {
			v := l.snap.Nodes[f].Version
			if !x.re.MatchString(v) {
				continue
			}
			for _, place := range l.snap.Removed(f, t) {
				if !seen[place] {
					seen[place] = true
					l.edge(r, "from", "the update from %s is removed by %s", v, place)
				}
			}
		}
	}
}

func (l *linter) updatesOut() {
	if l.snap == nil {
		return
	}
	ways := newConnectivity(l.snap)
	for _, c := range l.public {
		way := ways.wayOut(c)
		for i, e := range c.Versions {
			if text, known := way.concern(e.Version); known && text != "" {
				l.report(c.File, e.Line, element("versions", i), "%s", text)
			}
		}
	}
}

func (l *linter) updatesPatch() {
	if l.snap == nil {
		return
	}
	ways := newConnectivity(l.snap)
	if ways == nil {
		return
	}
	for _, c := range l.public {
		concerns := ways.patchConcerns(c)
		for i, e := range c.Versions {
			at := ways.find(e.Version)
			if text := concerns[at]; text != "" {
				l.report(c.File, e.Line, element("versions", i), "%s", text)
				delete(concerns, at)
			}
		}
	}
}

// targets returns the releases that a blocked edge is about, as Build finds them.
func (l *linter) targets(b graphdata.BlockedEdge) (nodes []int32) {
	to := b.To
	if b.Risk == nil {
		to = inside.DropTarget(to)
	}
	text, build, has := strings.Cut(to, "+")
	for _, i := range l.releases[text] {
		if !has || l.snap.Nodes[i].Build == build {
			nodes = append(nodes, i)
		}
	}
	return nodes
}
