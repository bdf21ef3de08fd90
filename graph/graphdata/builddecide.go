package graphdata

import (
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// removal is what removes the updates to a node.
type removal struct {
	all            bool
	previous, next []int32     // metadata of the node; remove them
	own            *matcher    // expression of metadata; nil if absent
	drops          []*edgeRule // of the tree
	joined         *matcher    // under Compat: all expressions as one, which decides
}

// removals returns what metadata and drops remove, for each node.
func (b *builder) removals() ([]removal, error) {
	removals := make([]removal, len(b.nodes))
	for i := range b.nodes {
		r := &removals[i]
		r.drops = b.drops[i]
		var err error
		if strings.TrimSpace(b.nodes[i].metadata[graph.MetadataPreviousRemove]) == "*" {
			r.all = true
		} else if r.previous, err = b.items(i, graph.MetadataPreviousRemove); err != nil {
			return nil, err
		}
		next, err := b.items(i, graph.MetadataNextRemove)
		if err != nil {
			return nil, err
		}
		for _, to := range next {
			removals[to].next = append(removals[to].next, int32(i))
		}
		if own := b.reasons.own[i]; own != "" {
			r.own, err = b.matcher(own)
			if err != nil && !b.opts.Compat {
				b.problem(b.nodes[i].version, graph.MetadataPreviousRemoveRegex, ruleFrom, "error parsing %s as Regex: %v", bounded.Quote(own), err)
			}
		}
		if b.opts.Compat {
			r.joined, err = b.joined(i)
			if err != nil {
				return nil, err
			}
		}
	}
	return removals, nil
}

// removed reports whether an update is removed, and counts why.
func (b *builder) removed(r *removal, f int32) bool {
	named := r.all || slices.Contains(r.previous, f)
	if named {
		b.count(graph.MetadataPreviousRemove, 1)
	}
	if slices.Contains(r.next, f) {
		b.count(graph.MetadataNextRemove, 1)
		named = true
	}
	matched := r.own != nil && b.matches(r.own, f)
	if matched {
		b.count(graph.MetadataPreviousRemoveRegex, 1)
	}
	for _, d := range r.drops {
		if b.matches(d.matcher, f) {
			d.tally.pairs++
			matched = true
		}
	}
	if b.opts.Compat {
		matched = r.joined != nil && b.matches(r.joined, f)
	}
	return named || matched
}

// decideEdges removes what is removed and makes conditional what is under risks.
// To remove wins. The updates to an abstract node stay beside the conditional ones:
// they are not served.
func (b *builder) decideEdges() error {
	removals, err := b.removals()
	if err != nil {
		return err
	}
	b.listIDs = map[string]int32{}
	var ids []int32
	for t := range b.in {
		kept := b.in[t][:0]
		for _, f := range b.in[t] {
			ids = ids[:0]
			for _, r := range b.risks[t] {
				if b.matches(r.matcher, f) {
					r.tally.pairs++
					ids = append(ids, r.risk)
				}
			}
			removed := b.removed(&removals[t], f)
			if len(ids) > 0 && (b.opts.Compat || !removed) {
				b.pairs[t] = append(b.pairs[t], inside.Pair{From: f, List: b.list(ids)})
				b.report.Conditional++
				removed = removed || b.nodes[t].metadata != nil
			} else if removed {
				b.report.Removed++
			}
			if !removed {
				kept = append(kept, f)
			}
		}
		b.in[t] = kept
		b.report.Edges += len(kept)
	}
	b.countTallies()
	return nil
}
