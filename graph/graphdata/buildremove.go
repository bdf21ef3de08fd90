package graphdata

import (
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
)

// removeMarked takes out the releases that are to be left out, with their edges.
// They are the last to go, so that what they say about others stays.
func (b *builder) removeMarked() error {
	if !b.opts.HonourRemove {
		return nil
	}
	place := make([]int32, len(b.nodes)) // of each node among those that stay; -1: it goes
	var kept int32
	for i := range b.nodes {
		place[i] = -1
		if b.nodes[i].metadata[graph.MetadataRemove] != "true" {
			place[i] = kept
			kept++
		}
	}
	if int(kept) == len(b.nodes) {
		return nil
	}
	b.report.Edges, b.report.Conditional = 0, 0
	for t := range b.in {
		b.in[t] = slices.DeleteFunc(b.in[t], func(f int32) bool { return place[t] < 0 || place[f] < 0 })
		b.pairs[t] = slices.DeleteFunc(b.pairs[t], func(c conditional) bool { return place[t] < 0 || place[c.from] < 0 })
		for i := range b.in[t] {
			b.in[t][i] = place[b.in[t][i]]
		}
		for i := range b.pairs[t] {
			b.pairs[t][i].from = place[b.pairs[t][i].from]
		}
		b.report.Edges += len(b.in[t])
		b.report.Conditional += len(b.pairs[t])
	}
	b.nodes = staying(b.nodes, place)
	b.in, b.pairs = staying(b.in, place), staying(b.pairs, place)
	r := &b.reasons
	r.drops, r.risks = staying(r.drops, place), staying(r.risks, place)
	r.raw, r.own = staying(r.raw, place), staying(r.own, place)
	r.previous, r.next = staying(r.previous, place), staying(r.next, place)
	return nil
}

// staying returns those elements that have a place.
func staying[T any](list []T, place []int32) []T {
	kept := list[:0]
	for i := range list {
		if place[i] >= 0 {
			kept = append(kept, list[i])
		}
	}
	return kept
}
