package yamljson

import (
	"bytes"

	"go.yaml.in/yaml/v3" // its nodes keep aliases as they are written
)

// MeasureAliases returns how many aliases the YAML document text has, and about how
// many bytes it has with all of them replaced by what they stand for. Where
// that is more than limit, the size is some number above limit. An error is
// one of syntax. A few hundred bytes of aliases to aliases can stand for
// gigabytes, so ask before anything expands them: this takes no more memory than
// the document without expansion.
func MeasureAliases(text []byte, limit int64) (aliases int, size int64, err error) {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return 0, int64(len(text)), nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return 0, 0, err
	}
	return count(&root), expanded(&root, map[*yaml.Node]int64{}, limit), nil
}

func count(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return 1
	}
	total := 0
	for _, c := range n.Content {
		total += count(c)
	}
	return total
}

// expanded is about the size of a node with its aliases replaced, anything
// beyond limit for a larger one. An alias to a node that contains it counts as
// nothing here; a conversion has to refuse it.
func expanded(n *yaml.Node, sizes map[*yaml.Node]int64, limit int64) int64 {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
		if size, ok := sizes[n]; ok {
			return size
		}
	}
	sizes[n] = 0
	size := int64(len(n.Value)) + 3
	for _, c := range n.Content {
		if size += expanded(c, sizes, limit); size > limit {
			break
		}
	}
	sizes[n] = size
	return size
}
