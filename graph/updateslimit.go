package graph

import (
	"cmp"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
)

// refuse drops the targets whose risks a ClusterVersion cannot hold. It comes
// after duplicates, since what is refused is still a second entry.
func (l *lister) refuse() {
	l.conditional = slices.DeleteFunc(l.conditional, func(t guardedTarget) bool {
		if t.refused != nil {
			l.drop(t.node, t.entry, InvalidRisks, t.refused)
		}
		return t.refused != nil
	})
}

// limit keeps as many targets as a ClusterVersion can hold, the highest
// versions first.
func (l *lister) limit() {
	maxBytes := cmp.Or(l.q.MaxBytes, schema.MaxListBytes)
	maxConditional := schema.MaxConditionalUpdates
	if l.q.Compat {
		maxConditional = len(l.conditional)
	}
	if len(l.conditional) <= maxConditional && l.atMost(maxBytes) {
		return
	}
	type candidate struct {
		node int32
		at   int // in conditional, -1 for available ones
		size int
	}
	candidates := make([]candidate, 0, len(l.available)+len(l.conditional))
	for _, node := range l.available {
		candidates = append(candidates, candidate{node, -1, schema.SizeOfRelease(&l.releases[node].Release)})
	}
	last, risks := int32(-1), 0
	for i, t := range l.conditional {
		if t.entry != last {
			last, risks = t.entry, schema.SizeOfRisks(t.risks)
		}
		candidates = append(candidates, candidate{t.node, i, schema.SizeOfRelease(&l.releases[t.node].Release) + risks})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(l.g.nodes[b.node].Version.Compare(l.g.nodes[a.node].Version), cmp.Compare(l.image(a.node), l.image(b.node)))
	})
	left, conditional := maxBytes, 0
	out := make([]bool, len(l.conditional))
	outAvailable := map[int32]bool{}
	for _, c := range candidates {
		entry := int32(-1)
		if c.at >= 0 {
			entry = l.conditional[c.at].entry
		}
		var over error
		switch {
		case c.size > left:
			over = &LimitError{What: schema.LimitList, Max: int64(maxBytes)}
		case c.at >= 0 && conditional == maxConditional:
			over = &LimitError{What: schema.LimitConditional, Max: int64(maxConditional)}
		}
		switch {
		case over == nil && c.at >= 0:
			left, conditional = left-c.size, conditional+1
		case over == nil:
			left -= c.size
		case c.at >= 0:
			out[c.at] = true
		default:
			outAvailable[c.node] = true
		}
		if over != nil {
			l.drop(c.node, entry, ExceedsLimit, over)
		}
	}
	l.available = slices.DeleteFunc(l.available, func(node int32) bool { return outAvailable[node] })
	at := -1
	l.conditional = slices.DeleteFunc(l.conditional, func(guardedTarget) bool { at++; return out[at] })
}

// atMost says quickly whether the lists surely are within a size.
func (l *lister) atMost(size int) bool {
	for _, node := range l.available {
		size -= l.releases[node].bound
	}
	last, risks := int32(-1), 0
	for _, t := range l.conditional {
		if t.entry != last {
			last, risks = t.entry, schema.BoundOfRisks(t.risks)
		}
		size -= l.releases[t.node].bound + risks
		if size < 0 {
			return false
		}
	}
	return size >= 0
}
