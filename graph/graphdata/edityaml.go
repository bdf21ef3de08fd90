package graphdata

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// encodeYAML writes YAML as the files of trees are written: two blanks for a level,
// none for a list.
func encodeYAML(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func yamlText(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if text == "<<" {
		n.Style = yaml.DoubleQuotedStyle // the encoder quotes whatever else is no text
	}
	return n
}

// yamlList is written with brackets if it is empty.
func yamlList(texts ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, text := range texts {
		n.Content = append(n.Content, yamlText(text))
	}
	return n
}

// yamlMap takes keys and values in turn.
func yamlMap(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: pairs}
}

// child returns the value of a key of a map; nil if it is not there.
func child(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// setText gives a key of a map a text. Its style and comments stay.
func setText(m *yaml.Node, key, text string) {
	if n := child(m, key); n != nil {
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!str", text
		return
	}
	m.Content = append(m.Content, yamlText(key), yamlText(text))
}

// removeKey takes a key out of a map, with its comments.
func removeKey(m *yaml.Node, key string) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return
		}
	}
}

// equalYAML reports whether two documents say the same, whatever their style and
// comments.
func equalYAML(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && (a.Value != b.Value || a.ShortTag() != b.ShortTag()) {
		return false
	}
	for i := range a.Content {
		if !equalYAML(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
