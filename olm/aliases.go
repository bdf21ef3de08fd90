package olm

import (
	"bytes"

	yamlv3 "go.yaml.in/yaml/v3"
)

// checkAliases refuses a YAML document with too many aliases, or one that they
// expand to more than a number of bytes.
func checkAliases(text []byte, maxAliases int, maxBytes int64) error {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return yamlFault(err) // rather than convert what cannot be counted
	}
	if countAliases(&root) > maxAliases {
		return &CatalogLimitError{Limit: "MaxAliases", Max: int64(maxAliases), What: "YAML aliases in a document"}
	}
	sizes := make(map[*yamlv3.Node]int64)
	if expanded(&root, sizes, maxBytes) > maxBytes {
		return &CatalogLimitError{Limit: "MaxDocumentBytes", Max: maxBytes, What: "bytes in a document after the expansion of aliases"}
	}
	return nil
}

func countAliases(n *yamlv3.Node) int {
	if n.Kind == yamlv3.AliasNode {
		return 1
	}
	count := 0
	for _, c := range n.Content {
		count += countAliases(c)
	}
	return count
}

// expanded is about the size of a node with its aliases replaced, anything
// beyond limit for a larger one. An alias to a node that contains it counts as
// nothing here; the conversion refuses it.
func expanded(n *yamlv3.Node, sizes map[*yamlv3.Node]int64, limit int64) int64 {
	if n.Kind == yamlv3.AliasNode {
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
