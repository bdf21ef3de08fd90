package path

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/scc"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	configv1 "github.com/openshift/api/config/v1"
)

// channelSets interns sets of channels, since most edges share a few.
type channelSets struct {
	members [][]int32 // set → channels, ascending; 0: the empty set
	next    map[[2]int32]int32
}

// with returns the set with a channel added that is greater than its members.
func (s *channelSets) with(set, channel int32) int32 {
	key := [2]int32{set, channel}
	if id, ok := s.next[key]; ok {
		return id
	}
	id := int32(len(s.members))
	s.members = append(s.members, append(slices.Clone(s.members[set]), channel))
	s.next[key] = id
	return id
}

// newEdge is an edge of the node at hand, before its guard is known.
type newEdge struct {
	to, set int32
	entries []entryRef // conditional entries that name the pair
	broken  bool       // a channel's metadata of the target are invalid
}

type entryRef struct{ channel, entry int32 }

// connect unites the edges.
func (b *builder) connect() error {
	n := len(b.n.versions)
	b.n.sets = channelSets{members: [][]int32{nil}, next: map[[2]int32]int32{}}
	b.n.guards = []guard{{}}
	b.guards = map[guardKey]int32{}
	b.known, b.same = map[string]int32{}, map[*configv1.ConditionalUpdateRisk]int32{}
	risky := 0 // risks on all edges
	pruned := b.prunedEntries()
	b.n.first = make([]int32, n+1)
	slot := make([]int32, n) // target → its edge in out, +1
	union := b.localToUnion()
	var out []newEdge
	for u := range int32(n) {
		out = out[:0]
		b.gather(u, union, slot, &out)
		slices.SortFunc(out, func(x, y newEdge) int { return cmp.Compare(y.to, x.to) })
		for i := range out {
			e := &out[i]
			slot[e.to] = 0
			if e.set == 0 {
				continue // guarded by a channel, held by none
			}
			id := b.guardOf(e, pruned)
			risky += len(b.n.guards[id].verdicts)
			if risky > maxNetworkRisks {
				return &graph.LimitError{What: "risks on all edges", Max: maxNetworkRisks}
			}
			for _, v := range b.n.guards[id].verdicts {
				b.carried[v][e.to] = true
			}
			b.n.edges = append(b.n.edges, edge{from: u, to: e.to, guard: id, set: e.set})
		}
		b.n.first[u+1] = int32(len(b.n.edges))
	}
	for v, targets := range b.carried {
		for _, to := range slices.Backward(slices.Sorted(maps.Keys(targets))) {
			b.risks[v].versions = append(b.risks[v].versions, b.n.text(to))
		}
		if len(targets) > 0 {
			b.risks[v].highest = b.risks[v].versions[0]
		}
	}
	return nil
}

// guardKey is what a guard is made of.
type guardKey struct {
	entries int // how many
	first   entryRef
	others  string // the entries after the first, as text: there rarely are any
	broken  int32  // the target whose metadata are invalid, -1 for none
}

// guardOf returns the guard of an edge. Edges that the same entries name share it, and
// all without any have the first one.
func (b *builder) guardOf(e *newEdge, pruned [][]prunedEntry) int32 {
	if len(e.entries) == 0 && !e.broken {
		return 0
	}
	key := guardKey{entries: len(e.entries), broken: -1}
	if len(e.entries) > 0 {
		key.first = e.entries[0]
	}
	if len(e.entries) > 1 {
		key.others = fmt.Sprint(e.entries[1:])
	}
	if e.broken {
		key.broken = e.to
	}
	id, ok := b.guards[key]
	if !ok {
		id = b.newGuard(e, pruned)
		b.guards[key] = id
	}
	return id
}

// localToUnion maps each channel's nodes to those of the union.
func (b *builder) localToUnion() [][]int32 {
	union := make([][]int32, len(b.n.channels))
	for c := range b.n.channels {
		g := b.n.channels[c].Graph
		union[c] = make([]int32, g.Len())
		for i, node := range g.Nodes() {
			union[c][i] = b.n.index[node.Version.Original()]
		}
	}
	return union
}

// gather lists the edges that leave a node in any channel.
func (b *builder) gather(u int32, union [][]int32, slot []int32, out *[]newEdge) {
	at := func(to int32) *newEdge {
		if slot[to] == 0 {
			*out = append(*out, newEdge{to: to})
			slot[to] = int32(len(*out))
		}
		return &(*out)[slot[to]-1]
	}
	for c := range b.n.channels {
		ch := &b.n.channels[c]
		local := ch.local[u]
		hold := func(to int32) {
			e := at(to)
			if members := b.n.sets.members[e.set]; len(members) == 0 || members[len(members)-1] != int32(c) {
				e.set = b.n.sets.with(e.set, int32(c))
			}
			if _, err := ch.Graph.Release(int(ch.local[to])); err != nil {
				e.broken = true
			}
		}
		if local >= 0 {
			for edge := range ch.Graph.Edges(int(local)) {
				if to := union[c][edge.To]; to != u {
					hold(to)
				}
			}
		}
		for entry, target := range ch.Graph.ConditionalEdgesFrom(b.n.text(u)) {
			// A channel may know of a risk without having the release, in
			// which case it guards the pair for the others.
			to, ok := b.n.index[target.Version]
			if !ok || to == u {
				continue
			}
			e := at(to)
			e.entries = append(e.entries, entryRef{int32(c), int32(entry)})
			if local >= 0 && target.Node >= 0 {
				hold(to)
			}
		}
	}
}

// prunedEntry is a conditional entry with the rules that a cluster knows.
type prunedEntry struct {
	risks   []configv1.ConditionalUpdateRisk
	err     error // a risk has no rule left
	refused error // a ClusterVersion cannot hold the risks
}

func (b *builder) prunedEntries() [][]prunedEntry {
	rules := b.o.Rules
	if rules == nil {
		rules = graph.NewRules(graph.Facts(nil)) // only the validity of rules is asked
	}
	all := make([][]prunedEntry, len(b.n.channels))
	for c := range b.n.channels {
		for _, entry := range b.n.channels[c].Graph.ConditionalEdges() {
			var p prunedEntry
			p.risks, p.err = rules.PruneRisks(entry.Risks)
			if len(p.risks) > 0 && p.err == nil {
				p.refused = schema.RefusedRisks(p.risks)
			}
			all[c] = append(all[c], p)
		}
	}
	return all
}

// newGuard unites what the channels say about a pair.
func (b *builder) newGuard(e *newEdge, pruned [][]prunedEntry) int32 {
	g := guard{conditional: len(e.entries) > 0}
	var unusable, several, refused error
	named := map[string]bool{}
	entries := e.entries // grouped by channel, the newest first
	for len(entries) > 0 {
		c := entries[0].channel
		var kept *prunedEntry
		var errs []error
		count, i := 0, 0
		for ; i < len(entries) && entries[i].channel == c; i++ {
			p := &pruned[c][entries[i].entry]
			if p.err != nil {
				errs = append(errs, p.err)
				continue
			}
			kept = p
			count++
		}
		entries = entries[i:]
		switch {
		case count == 0 && unusable == nil:
			unusable = fmt.Errorf("channel %q: %w", b.n.channels[c].Channel, bounded.Aggregate(errs))
		case count > 1 && several == nil:
			several = fmt.Errorf("channel %q: %d conditional entries lead to it", b.n.channels[c].Channel, count)
		}
		if count != 1 {
			continue
		}
		if kept.refused != nil && refused == nil {
			refused = fmt.Errorf("channel %q: %w", b.n.channels[c].Channel, kept.refused)
		}
		for i := range kept.risks {
			if risk := &kept.risks[i]; !named[risk.Name] {
				g.verdicts = append(g.verdicts, b.verdictOf(risk))
			}
		}
		for i := range kept.risks {
			named[kept.risks[i].Name] = true
		}
	}
	switch {
	case unusable != nil:
		g.withheld, g.err = graph.UnrecognizedRules, unusable
	case several != nil:
		g.withheld, g.err = graph.DuplicateTarget, several
	case refused != nil:
		g.withheld, g.err = graph.InvalidRisks, refused
	case e.broken:
		g.withheld, g.err = graph.InvalidMetadata, b.n.broken[e.to]
	}
	b.n.guards = append(b.n.guards, g)
	return int32(len(b.n.guards) - 1)
}

// verdictOf returns the index of the verdict on a risk.
func (b *builder) verdictOf(r *configv1.ConditionalUpdateRisk) int32 {
	// Equal risks often are the same: those of one entry, for each of its edges.
	if id, ok := b.same[r]; ok {
		return id
	}
	key := risk.Evaluator{}.Key(r)
	id, ok := b.known[key]
	if !ok {
		id = int32(len(b.risks))
		b.known[key] = id
		b.risks = append(b.risks, &carriedRisk{risk: r})
		b.carried = append(b.carried, map[int32]bool{})
	}
	b.same[r] = id
	return id
}

// reverse indexes the edges by target.
func (b *builder) reverse() {
	n := len(b.n.versions)
	b.n.firstIn = make([]int32, n+1)
	for i := range b.n.edges {
		b.n.firstIn[b.n.edges[i].to+1]++
	}
	for i := range n {
		b.n.firstIn[i+1] += b.n.firstIn[i]
	}
	next := slices.Clone(b.n.firstIn)
	b.n.into = make([]int32, len(b.n.edges))
	for i := range b.n.edges {
		to := b.n.edges[i].to
		b.n.into[next[to]] = int32(i)
		next[to]++
	}
}

// hasCycle reports whether some edges form a cycle. Where all lead to higher versions
// none do.
func (b *builder) hasCycle() bool {
	if !slices.ContainsFunc(b.n.edges, func(e edge) bool { return e.from > e.to }) {
		return false
	}
	next := make([][]int32, len(b.n.versions))
	for _, e := range b.n.edges {
		next[e.from] = append(next[e.from], e.to)
	}
	return int(slices.Max(scc.Components(next))) < len(next)
}
