package yamljson

import "iter"

// Node is a value of the document that a [Decoder] read last. The zero Node stands
// for no value. Its texts are parts of the document: who keeps one clones it, so as
// not to keep all of the document in memory.
type Node struct {
	d *Decoder
	i int32
}

// Field returns the value of a key, the last one where the key is there twice.
// It is the zero Node for a key that a map does not have, and for what is not
// a map.
func (n Node) Field(key string) (value Node) {
	for k, v := range n.Fields() {
		if k == key {
			value = v
		}
	}
	return value
}

// Fields yields the keys and values of a map in the order of the document. A
// key that is there twice comes twice; the last one counts.
func (n Node) Fields() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		if !n.IsMap() {
			return
		}
		nodes := n.d.nodes
		for c := nodes[n.i].first; c != 0; c = nodes[c].next {
			if !yield(nodes[c].key, Node{n.d, c}) {
				return
			}
		}
	}
}

// Len returns how many keys or items a map or list has, doubles included.
func (n Node) Len() int {
	if n.i == 0 {
		return 0
	}
	return int(n.d.nodes[n.i].n)
}

// Text returns the value of a string. ok is false for anything else.
func (n Node) Text() (text string, ok bool) {
	if n.i == 0 || n.d.nodes[n.i].kind != kindString {
		return "", false
	}
	return n.d.nodes[n.i].str, true
}

// IsMap reports whether n is a map.
func (n Node) IsMap() bool { return n.i != 0 && n.d.nodes[n.i].kind == kindMap }

// IsNull reports whether n is null or no value at all.
func (n Node) IsNull() bool { return n.i == 0 || n.d.nodes[n.i].kind == kindNull }
