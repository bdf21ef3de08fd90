package graphdata

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// File is a file of a tree as it is to be. It is plain data.
type File struct {
	Name string // path in the tree
	Text []byte
}

// Encode returns the file of a blocked edge, which [Load] reads as the same but for
// the line. The error says that a text is not UTF-8.
func (b BlockedEdge) Encode() (File, error) {
	pairs := []*yaml.Node{yamlText("to"), yamlText(b.To), yamlText("from"), yamlText(b.From)}
	add := func(key string, value *yaml.Node) { pairs = append(pairs, yamlText(key), value) }
	if b.FixedIn != "" {
		add("fixedIn", yamlText(b.FixedIn))
	}
	if b.AutoExtend != "" {
		add("autoExtend", yamlText(b.AutoExtend))
	}
	if b.Risk != nil {
		add("url", yamlText(b.Risk.URL))
		add("name", yamlText(b.Risk.Name))
		add("message", yamlText(b.Risk.Message))
		rules := &yaml.Node{Kind: yaml.SequenceNode}
		for _, r := range b.Risk.MatchingRules {
			rule := yamlMap(yamlText("type"), yamlText(r.Type))
			if r.PromQL != nil {
				rule.Content = append(rule.Content, yamlText("promql"), yamlMap(yamlText("promql"), yamlText(r.PromQL.PromQL)))
			}
			rules.Content = append(rules.Content, rule)
		}
		add("matchingRules", rules)
	}
	text, err := encodeYAML(yamlMap(pairs...))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", b.File, err)
	}
	return File{b.File, text}, nil
}

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
		n.Style = yaml.DoubleQuotedStyle // the encoder quotes whatever else is not text
	}
	return n
}

// yamlMap takes keys and values in turn.
func yamlMap(pairs ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: pairs}
}
