package yamljson

import "strconv"

// Object returns the generic object of a JSON text that a [Decoder] made: what
// apimachinery reads from it, with int64 for numbers that are whole and fit, else
// float64. Strings of the object are parts of text where they can be. ok is false
// for a text that is not a JSON map.
func Object(text string) (object map[string]any, ok bool) {
	const perValue = 24 // bytes of text, in definitions
	d := Decoder{MaxDepth: len(text), s: text, nodes: make([]node, 1, len(text)/perValue+8)}
	root, ok := d.jsonValue(1)
	if !ok || d.pos != len(text) || d.nodes[root].kind != kindMap {
		return nil, false
	}
	g := generic{nodes: d.nodes}
	return g.object(root), true
}

// generic makes values of nodes.
type generic struct {
	nodes []node
	boxes [64]any // strings seen lately, as values: see box
}

func (g *generic) value(i int32) any {
	n := &g.nodes[i]
	switch n.kind {
	case kindFalse:
		return false
	case kindTrue:
		return true
	case kindInt:
		return n.num
	case kindFloat:
		f, _ := strconv.ParseFloat(n.str, 64) // which wrote it
		return f
	case kindString:
		return g.box(n.str)
	case kindSeq:
		list := make([]any, 0, n.n)
		for c := n.first; c != 0; c = g.nodes[c].next {
			list = append(list, g.value(c))
		}
		return list
	case kindMap:
		return g.object(i)
	}
	return nil
}

func (g *generic) object(i int32) map[string]any {
	object := make(map[string]any, g.nodes[i].n)
	for c := g.nodes[i].first; c != 0; c = g.nodes[c].next {
		object[g.nodes[c].key] = g.value(c)
	}
	return object
}

// box makes a value of a string. Short ones come again and again ("string",
// "object"), so the last of each kind is kept, which saves most allocations.
func (g *generic) box(s string) any {
	if len(s) == 0 || len(s) > 32 {
		return s
	}
	slot := &g.boxes[(uint(len(s))*31+uint(s[0])*7+uint(s[len(s)-1])*3+uint(s[len(s)/2]))%uint(len(g.boxes))]
	if old, ok := (*slot).(string); ok && old == s {
		return *slot
	}
	*slot = s
	return *slot
}
