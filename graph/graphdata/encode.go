package graphdata

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlText is a text. The encoder quotes what is something else without quotes, but
// for the key of a merge.
type yamlText string

func (t yamlText) MarshalYAML() (any, error) {
	if t == "<<" {
		return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: string(t)}, nil
	}
	return string(t), nil
}

// Encode returns the text of the file of a blocked edge, which [Load] reads as the
// same but for the line. The error reports that a text is not UTF-8.
func (b BlockedEdge) Encode() ([]byte, error) {
	type query struct {
		PromQL yamlText `yaml:"promql"`
	}
	type rule struct {
		Type   yamlText `yaml:"type"`
		PromQL *query   `yaml:"promql,omitempty"`
	}
	type risk struct {
		URL           yamlText `yaml:"url"`
		Name          yamlText `yaml:"name"`
		Message       yamlText `yaml:"message"`
		MatchingRules []rule   `yaml:"matchingRules"`
	}
	file := struct {
		To         yamlText `yaml:"to"`
		From       yamlText `yaml:"from"`
		FixedIn    yamlText `yaml:"fixedIn,omitempty"`
		AutoExtend yamlText `yaml:"autoExtend,omitempty"`
		Risk       *risk    `yaml:",inline"`
	}{yamlText(b.To), yamlText(b.From), yamlText(b.FixedIn), yamlText(b.AutoExtend), nil}
	texts := []string{b.To, b.From, b.FixedIn, b.AutoExtend}
	if b.Risk != nil {
		texts = append(texts, b.Risk.URL, b.Risk.Name, b.Risk.Message)
		file.Risk = &risk{yamlText(b.Risk.URL), yamlText(b.Risk.Name), yamlText(b.Risk.Message), []rule{}}
		for _, r := range b.Risk.MatchingRules {
			of := rule{Type: yamlText(r.Type)}
			if r.PromQL != nil {
				of.PromQL = &query{yamlText(r.PromQL.PromQL)}
				texts = append(texts, r.PromQL.PromQL)
			}
			texts = append(texts, r.Type)
			file.Risk.MatchingRules = append(file.Risk.MatchingRules, of)
		}
	}
	if slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }) {
		return nil, fmt.Errorf("%s: a text is not UTF-8", b.File)
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	e.CompactSeqIndent() // as the files of trees are written
	if err := errors.Join(e.Encode(file), e.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", b.File, err)
	}
	return text.Bytes(), nil
}
