package maintain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// connectivity answers which updates a snapshot leaves open. The maintainers look
// at amd64, or without it at the first architecture.
type connectivity struct {
	snap       *inside.Graph
	arch       string
	nodes      map[string]int32  // of the architecture, by version without a build
	candidates [][]graph.Channel // of each node
}

func newConnectivity(s *inside.Graph) *connectivity {
	arches := slices.Sorted(maps.Keys(s.Index))
	if len(arches) == 0 {
		return nil
	}
	c := &connectivity{snap: s, arch: arches[0], nodes: map[string]int32{}, candidates: make([][]graph.Channel, len(s.Nodes))}
	if slices.Contains(arches, "amd64") {
		c.arch = "amd64"
	}
	for i, n := range s.Nodes {
		if servedVersion(&n, c.arch) != "" {
			c.nodes[n.Base] = int32(i)
		}
	}
	for name, members := range s.Index[c.arch] {
		channel, ok := graph.ParseChannel(name)
		if !ok || channel.Type != "candidate" {
			continue
		}
		for _, i := range members {
			c.candidates[i] = append(c.candidates[i], channel)
		}
	}
	return c
}

// find returns the release that a version of a channel is on the architecture, -1
// if there is none.
func (c *connectivity) find(version string) int32 {
	text, build, has := strings.Cut(version, "+")
	at, ok := c.nodes[text]
	if !ok || has && build != c.snap.Nodes[at].Build {
		return -1
	}
	return at
}

// members returns which nodes a channel's versions are.
func (c *connectivity) members(entries []graphdata.Entry) []bool {
	in := make([]bool, len(c.snap.Nodes))
	for _, e := range entries {
		if at := c.find(e.Version); at >= 0 {
			in[at] = true
		}
	}
	return in
}

// servedVersion returns the version of a node as it is served for an architecture, ""
// if it is not.
func servedVersion(n *inside.Node, arch string) string {
	for _, served := range n.Served {
		if served.Arch == arch {
			return served.Version
		}
	}
	return ""
}

func minorOf(c graph.Channel) openshift.Minor {
	return openshift.Minor{Major: c.Major, Minor: c.Minor}
}

// between reports whether a candidate channel is one after a minor, up to a
// channel's.
func between(candidate graph.Channel, from openshift.Minor, channel graph.Channel) bool {
	m := minorOf(candidate)
	return m.Above(from) && !m.Above(minorOf(channel))
}

// leadingTo returns the nodes that have a way to the minor of a channel: over
// updates of the candidate channels after an earlier minor, and through versions of
// the channel.
func (c *connectivity) leadingTo(channel graph.Channel, in []bool, from openshift.Minor) []bool {
	reached := make([]bool, len(in))
	var queue []int32
	for i, n := range c.snap.Nodes {
		if in[i] && openshift.MinorOf(n.SemVer) == minorOf(channel) {
			reached[i] = true
			queue = append(queue, int32(i))
		}
	}
	served := func(f, t int32) bool {
		return slices.ContainsFunc(c.candidates[t], func(x graph.Channel) bool {
			return between(x, from, channel) && slices.Contains(c.candidates[f], x)
		})
	}
	visit := func(f, t int32) {
		if reached[f] || !served(f, t) {
			return
		}
		reached[f] = true
		if in[f] { // others may start a way, not be on it
			queue = append(queue, f)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		t := queue[0]
		for _, f := range c.snap.In[t] {
			visit(f, t)
		}
		for _, p := range c.snap.Pairs[t] {
			visit(p.From, t)
		}
	}
	return reached
}

// wayOut remembers leadingTo for the versions of one channel.
type wayOut struct {
	from    *connectivity
	channel graph.Channel
	in      []bool
	reached map[openshift.Minor][]bool
}

// wayOut returns nil for channels that need lead nowhere: candidates, and those
// without a minor.
func (c *connectivity) wayOut(channel graphdata.Channel) *wayOut {
	name, ok := graph.ParseChannel(channel.Name)
	if c == nil || !ok || name.Type == "candidate" {
		return nil
	}
	return &wayOut{c, name, c.members(channel.Versions), map[openshift.Minor][]bool{}}
}

// concern reports that no way leads from a version to the minor of the channel;
// "" if there is one or none is needed. known reports whether there is a release.
func (w *wayOut) concern(version string) (text string, known bool) {
	v, err := graph.ParseVersion(version)
	if w == nil || err != nil {
		return "", false
	}
	at := w.from.find(version)
	known = at >= 0
	from := openshift.MinorOf(v)
	if minorOf(w.channel) == from {
		return "", known
	}
	if w.reached[from] == nil {
		w.reached[from] = w.from.leadingTo(w.channel, w.in, from)
	}
	if known && w.reached[from][at] {
		return "", known
	}
	var names []string
	for name := range w.from.snap.Index[w.from.arch] {
		if x, ok := graph.ParseChannel(name); ok && x.Type == "candidate" && between(x, from, w.channel) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, graph.CompareChannels)
	if len(names) == 0 {
		names = []string{"any candidate channel"}
	}
	return fmt.Sprintf("No paths from %s to %s in %s", version, minorOf(w.channel), strings.Join(names, ", ")), known
}

// patchConcerns determines which versions of the highest minor of a channel have no
// unconditional update within the channel, by node. The highest version needs none,
// nor do pre-releases. A version that leads only to a reported one needs no finding
// of its own.
func (c *connectivity) patchConcerns(channel graphdata.Channel) map[int32]string {
	in := c.members(channel.Versions)
	highest := -1
	for i := range in {
		if in[i] {
			highest = i
		}
	}
	if highest < 0 {
		return nil
	}
	updates := make(map[int32]bool)
	exposed := make(map[int32][]conditionalTarget)
	for i := range in {
		if !in[i] {
			continue
		}
		for _, f := range c.snap.In[i] {
			updates[f] = true
		}
		for _, p := range c.snap.Pairs[i] {
			exposed[p.From] = append(exposed[p.From], conditionalTarget{int32(i), p.List})
		}
	}
	concerns := map[int32]string{}
	top := openshift.MinorOf(c.snap.Nodes[highest].SemVer)
	for i := int32(highest) - 1; i >= 0; i-- {
		v := c.snap.Nodes[i].SemVer
		if !in[i] || updates[i] || v.Prerelease() != "" || openshift.MinorOf(v) != top {
			continue
		}
		version := servedVersion(&c.snap.Nodes[i], c.arch)
		if len(exposed[i]) == 0 {
			concerns[i] = fmt.Sprintf("%s has no patch updates in %s", version, channel.Name)
			continue
		}
		if slices.ContainsFunc(exposed[i], func(t conditionalTarget) bool { return concerns[t.to] != "" }) {
			continue
		}
		var names []string
		for _, t := range exposed[i] {
			for _, r := range c.snap.Lists[t.list] {
				names = append(names, r.Name)
			}
		}
		slices.Sort(names)
		concerns[i] = fmt.Sprintf("%s has patch updates in %s, but they are exposed to risks: %s", version, channel.Name, strings.Join(slices.Compact(names), ", "))
	}
	return concerns
}

// conditionalTarget is an update under a list of risks.
type conditionalTarget struct{ to, list int32 }
