package path

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
)

// ErrNoVersionsFound is the reason of the [*graph.Error] for a channel that has no
// release to mirror.
const ErrNoVersionsFound graph.Reason = "NoVersionsFound"

// MirrorChannel is a channel of a mirror planner's configuration.
type MirrorChannel struct {
	Name string
	// OKD says that the channel is of another product: it takes no part in the
	// walk from channel to channel.
	OKD bool
	// Min, Max, Full and ShortestPath are as in [MirrorQuery].
	Min, Max     string
	Full         bool
	ShortestPath bool
}

// MirrorOptions are those of [MirrorChannels].
type MirrorOptions struct {
	// VersionFilter restricts which versions are the highest and the lowest of
	// a channel; nil allows all.
	VersionFilter *regexp.Regexp
}

// MirrorSelection is what a mirror planner selects.
type MirrorSelection struct {
	// Releases come in ascending order, each image once.
	Releases []configv1.Release
	// Warnings say where a path ended early.
	Warnings []string
}

// maxMirrorSteps bounds the walk: more minors than there are.
const maxMirrorSteps = 100

// MirrorChannels selects the releases of several channels for one architecture
// as oc-mirror does: what each channel's own bounds ask for and, where there is
// more than one channel, those of a walk from the lowest minimum to the highest
// maximum. The walk goes to the highest release of its channel, then to that of
// the next minor's channel of the same type, until it is in the minor of the
// last channel. It knows unconditional edges alone: a step without a path adds
// nothing, and where the release that it reached is not in the next channel it
// gives up with a warning.
//
// Graphs come from s, asked by q with its Channel replaced, each once. Errors
// are s's, or an [*Error] of reason NoVersionsFound or VersionNotFound, or name
// the bound or channel that is invalid.
//
// A [Network] of the channels finds paths that this walk misses, since it
// searches all channels as one and knows conditional edges:
// [Network.MirrorRange] lists their releases.
func MirrorChannels(ctx context.Context, s graph.Source, q graph.Query, channels []MirrorChannel, o MirrorOptions) (*MirrorSelection, error) {
	m := mirrorer{ctx: ctx, source: s, query: q, o: o, graphs: map[string]*graph.Graph{}}
	var bounded []boundedChannel
	for _, c := range channels {
		b, err := m.bounds(c)
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", c.Name, err)
		}
		if err := m.selectChannel(c, b); err != nil {
			return nil, fmt.Errorf("channel %q: %w", c.Name, err)
		}
		if !c.OKD {
			bounded = append(bounded, b)
		}
	}
	if len(channels) > 1 && len(bounded) > 0 {
		source := slices.MinFunc(bounded, func(a, b boundedChannel) int { return a.low.Compare(b.low) })
		target := slices.MaxFunc(bounded, func(a, b boundedChannel) int { return a.high.Compare(b.high) })
		if err := m.walk(source, target); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(m.selected, func(a, b configv1.Release) int { return graph.CompareVersions(a.Version, b.Version) })
	return &MirrorSelection{Releases: uniqueImages(m.selected), Warnings: m.warnings}, nil
}

// boundedChannel is a channel with the bounds that its configuration comes to.
type boundedChannel struct {
	name      string
	low, high *semver.Version
}

// mirrorer collects what is selected.
type mirrorer struct {
	ctx      context.Context
	source   graph.Source
	query    graph.Query
	o        MirrorOptions
	graphs   map[string]*graph.Graph
	selected []configv1.Release
	warnings []string
}

// graph fetches a channel's graph, once.
func (m *mirrorer) graph(channel string) (*graph.Graph, error) {
	if g, ok := m.graphs[channel]; ok {
		return g, nil
	}
	q := m.query
	q.Channel = channel
	g, err := m.source.Fetch(m.ctx, q)
	if err == nil {
		m.graphs[channel] = g
	}
	return g, err
}

func (m *mirrorer) bounds(c MirrorChannel) (boundedChannel, error) {
	b := boundedChannel{name: c.Name}
	for _, bound := range []struct {
		text string
		into **semver.Version
	}{{c.Min, &b.low}, {c.Max, &b.high}} {
		if bound.text == "" {
			continue
		}
		v, err := graph.ParseVersion(bound.text)
		if err != nil {
			return b, fmt.Errorf("bound %q: %w", bound.text, err)
		}
		*bound.into = v
	}
	if b.low != nil && b.high != nil {
		return b, nil
	}
	lowest, highest, err := m.ends(c.Name)
	if err != nil {
		return b, err
	}
	if b.low == nil && b.high == nil && !c.Full {
		lowest = highest // the head alone
	}
	b.low, b.high = cmp.Or(b.low, lowest), cmp.Or(b.high, highest)
	return b, nil
}

// ends returns the lowest and the highest version of a channel.
func (m *mirrorer) ends(channel string) (lowest, highest *semver.Version, err error) {
	g, err := m.graph(channel)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range g.Nodes() {
		if m.o.VersionFilter != nil && !m.o.VersionFilter.MatchString(n.Version.Original()) {
			continue
		}
		if lowest == nil || n.Version.LessThan(lowest) {
			lowest = n.Version
		}
		if highest == nil || n.Version.GreaterThan(highest) {
			highest = n.Version
		}
	}
	if highest == nil {
		return nil, nil, noVersions(m.query.Architecture(), channel)
	}
	return lowest, highest, nil
}

func noVersions(arch, channel string) error {
	return &graph.Error{Reason: string(ErrNoVersionsFound), Message: fmt.Sprintf("no cluster versions found for %q in the %q channel", arch, channel)}
}

// selectChannel selects what one channel's bounds ask for.
func (m *mirrorer) selectChannel(c MirrorChannel, b boundedChannel) error {
	g, err := m.graph(c.Name)
	if err != nil {
		return err
	}
	if c.ShortestPath {
		path, err := mirrorPath(g, c.Name, b.low, b.high)
		if err != nil {
			return err
		}
		if path == nil { // the ends are selected all the same
			low, _ := g.Find(b.low)
			high, _ := g.Find(b.high)
			path = []configv1.Release{mirrorRelease(g, low), mirrorRelease(g, high)}
		}
		m.selected = append(m.selected, path...)
		return nil
	}
	for i, node := range g.Nodes() {
		if v := node.Version; v.Compare(b.low) >= 0 && v.Compare(b.high) <= 0 {
			m.selected = append(m.selected, mirrorRelease(g, i))
		}
	}
	return nil
}

// step adds the path between two versions of a channel, if there is one.
func (m *mirrorer) step(channel string, from, to *semver.Version) error {
	g, err := m.graph(channel)
	if err != nil {
		return err
	}
	path, err := mirrorPath(g, channel, from, to)
	m.selected = append(m.selected, path...)
	return err
}

// walk goes from channel to channel.
func (m *mirrorer) walk(source, target boundedChannel) error {
	if source.name == target.name {
		return m.step(source.name, source.low, target.high)
	}
	from, okFrom := graph.ParseChannel(source.name)
	to, okTo := graph.ParseChannel(target.name)
	if !okFrom {
		return fmt.Errorf("invalid channel name %s", source.name)
	}
	if !okTo {
		return fmt.Errorf("invalid channel name %s", target.name)
	}
	if from.Major == to.Major && from.Minor == to.Minor {
		_, err := m.enter(target.name, target.name, source.low, target.high)
		return err
	}
	_, reached, err := m.ends(source.name)
	if err != nil {
		return err
	}
	if err := m.step(source.name, source.low, reached); err != nil {
		return err
	}
	for range maxMirrorSteps {
		from.Minor++
		channel, goal := target.name, target.high
		last := from.Major == to.Major && from.Minor == to.Minor
		if !last {
			channel = from.String()
			if _, goal, err = m.ends(channel); err != nil {
				return err
			}
		}
		entered, err := m.enter(channel, target.name, reached, goal)
		if err != nil || !entered || last {
			return err
		}
		reached = goal
	}
	return &graph.LimitError{Limit: "minor versions between two channels", Max: maxMirrorSteps}
}

// enter adds the path in a channel, if that has the version to start from; else
// it warns and adds the release to get to, as the last channel has it.
func (m *mirrorer) enter(channel, last string, from, to *semver.Version) (entered bool, err error) {
	g, err := m.graph(channel)
	switch {
	case err != nil:
		return false, err
	case g.Len() == 0:
		return false, &graph.Error{Reason: string(ErrNoVersionsFound), Message: fmt.Sprintf("no cluster versions found in the %q channel", channel)}
	}
	if _, ok := g.Find(from); ok {
		return true, m.step(channel, from, to)
	}
	m.warnings = append(m.warnings, fmt.Sprintf("No upgrade path for %s in target channel %s", from.Original(), last))
	return false, m.step(last, to, to)
}

// mirrorPath returns the releases of the shortest path between two versions, nil
// where there is no path: a breadth-first search over unconditional edges that
// takes the greatest versions first.
func mirrorPath(g *graph.Graph, channel string, from, to *semver.Version) ([]configv1.Release, error) {
	start, ok := g.Find(from)
	if !ok {
		return nil, mirrorMissing(g, "current", from, channel)
	}
	end, ok := g.Find(to)
	if !ok {
		return nil, mirrorMissing(g, "requested", to, channel)
	}
	before := map[int]int{start: start}
	queue := []int{start}
	for at := 0; at < len(queue); at++ {
		v := queue[at]
		next := slices.Collect(g.Edges(v))
		slices.SortStableFunc(next, func(a, b graph.Edge) int { return g.Node(b.To).Version.Compare(g.Node(a.To).Version) })
		for _, e := range next {
			if _, seen := before[e.To]; !seen {
				before[e.To] = v
				queue = append(queue, e.To)
			}
		}
	}
	if _, ok := before[end]; !ok {
		return nil, nil
	}
	path := []configv1.Release{mirrorRelease(g, start)}
	for v := end; v != start; v = before[v] {
		path = append(path, mirrorRelease(g, v))
	}
	return path, nil
}

// mirrorMissing says that an end of a path is not in the graph.
func mirrorMissing(g *graph.Graph, which string, v *semver.Version, channel string) error {
	e := g.NotFound(v, channel)
	e.Message = fmt.Sprintf("%s version %s not found in the %q channel", which, v.Original(), channel)
	return e
}

func mirrorRelease(g *graph.Graph, node int) configv1.Release {
	r, _ := g.Release(node)
	r.Channels = slices.Clone(r.Channels)
	return r
}

// uniqueImages leaves out releases whose image came before.
func uniqueImages(releases []configv1.Release) []configv1.Release {
	seen := map[string]bool{}
	var kept []configv1.Release
	for _, r := range releases {
		if !seen[r.Image] {
			seen[r.Image] = true
			kept = append(kept, r)
		}
	}
	return kept
}
