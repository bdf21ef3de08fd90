package path

import (
	"errors"
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ErrNotControlPlaneOnly reports that two versions do not fit a control-plane-only
// update: their minors are not neighbours among those with extended update support.
var ErrNotControlPlaneOnly = errors.New("a control-plane-only update leads from a minor version with extended update support to the next one")

// ControlPlaneOnlyOptions are those of [Network.ControlPlaneOnly].
type ControlPlaneOnlyOptions struct {
	Policy Policy
	// AllowSkip allows an edge over a minor in between, which no cluster should
	// take, where a custom graph has one.
	AllowSkip bool
}

// ControlPlaneOnlyPlan leads from one minor with extended update support to the next,
// while the worker pools are paused: from 4.18 over 4.19 to 4.20, from 4.22 over 5.0 and
// 5.1 to 5.2.
type ControlPlaneOnlyPlan struct {
	Path *Path `json:"path"`
	// PauseBefore is the hop, an index into Path.Hops, before which worker pools are
	// paused: the first that leaves the first minor. UnpauseAfter is the one after
	// which they continue: the last.
	PauseBefore  int `json:"pauseBefore"`
	UnpauseAfter int `json:"unpauseAfter"`
	// Intermediate are the versions of the minors in between on the way.
	Intermediate []string `json:"intermediate"`
	// Channels are those that lead to the last minor with releases of all minors on
	// the way: the eus one first.
	Channels []PlanChannel `json:"channels"`
}

// PlanChannel is a channel that a plan can use.
type PlanChannel struct {
	Name string `json:"name"`
	// Offered reports that the metadata of the release to start from name it.
	Offered bool `json:"offered"`
	// Holds reports that its graph is known and has every hop of the plan.
	Holds bool `json:"holds"`
}

// ControlPlaneOnly plans the update of a control plane over the minors in between: with
// as few of their releases as possible, else the best by the order [Shortest]. The
// intermediate releases are those that can continue to the target, which the newest
// often cannot. Errors: ErrNotControlPlaneOnly; else those of [Network.ShortestPath],
// where the sources of a [*NoPathError] are what can reach the target by such a plan.
func (n *Network) ControlPlaneOnly(from, to string, o ControlPlaneOnlyOptions) (*ControlPlaneOnlyPlan, error) {
	s, start, err := n.search(from, to, Shortest, o.Policy)
	if err != nil {
		return nil, err
	}
	low, high := openshift.MinorOf(n.versions[start]), openshift.MinorOf(n.versions[s.to])
	hops := low.ControlPlaneOnly()
	last := len(hops)
	if last == 0 || hops[last-1] != high {
		return nil, fmt.Errorf("%s to %s: %w", n.text(start), n.text(s.to), ErrNotControlPlaneOnly)
	}
	level := func(v int32) int { // 0 to last; -1 outside
		m := openshift.MinorOf(n.versions[v])
		if low.Above(m) || m.Above(high) {
			return -1
		}
		return low.Steps(m)
	}
	s.only = func(e *edge) bool {
		a, b := level(e.from), level(e.to)
		return a >= 0 && b >= a && (b-a < 2 || o.AllowSkip)
	}
	s.lead = func(e *edge) uint32 {
		if to := level(e.to); to > 0 && to < last {
			return 1
		}
		return 0
	}
	edges, ok := s.best(start, s.measure(nil))
	if !ok {
		return nil, s.noPath(start)
	}
	p := &ControlPlaneOnlyPlan{Path: n.path(start, edges), UnpauseAfter: len(edges) - 1}
	p.PauseBefore = slices.IndexFunc(edges, func(i int32) bool { return level(n.edges[i].to) > 0 })
	for _, i := range edges {
		if to := n.edges[i].to; level(to) > 0 && level(to) < last {
			p.Intermediate = append(p.Intermediate, n.text(to))
		}
	}
	types := []string{"eus"}
	if high.Above(openshift.Minor{Major: 4, Minor: 13}) {
		types = append(types, "stable", "fast")
	}
	for _, kind := range types {
		name := graph.Channel{Type: kind, Major: high.Major, Minor: high.Minor}.String()
		p.Channels = append(p.Channels, PlanChannel{
			Name:    name,
			Offered: slices.Contains(n.releases[start].Channels, name),
			Holds:   !slices.ContainsFunc(p.Path.Hops, func(h Hop) bool { return !slices.Contains(h.Channels, name) }),
		})
	}
	return p, nil
}
