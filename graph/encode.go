package graph

import (
	"strconv"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
)

// AppendJSON appends the graph as an update service writes it, with schema
// version 1, and returns the extended buffer. The text is canonical: equal
// graphs give equal bytes. Nodes and conditional entries keep their order, edges
// come by origin, the keys of metadata are sorted, lists are never null,
// nothing is indented, and texts are as [encoding/json] writes them without HTML
// escapes. Conditions of risks are not part of the format and are left out.
// Decoding the text gives an equal graph.
func (g *Graph) AppendJSON(b []byte) []byte {
	b = append(b, `{"version":1,"nodes":[`...)
	for i := range g.nodes {
		n := &g.nodes[i]
		b = appendComma(b, i)
		b = appendString(append(b, `{"version":`...), n.Version.Original())
		b = appendString(append(b, `,"payload":`...), n.Image)
		b = n.Metadata.appendJSON(append(b, `,"metadata":`...))
		b = append(b, '}')
	}
	b = append(b, `],"edges":[`...)
	var room [16]byte
	for from := range g.nodes {
		origin := append(strconv.AppendInt(append(room[:0], '['), int64(from), 10), ',')
		for _, to := range g.out(from) {
			b = strconv.AppendInt(append(b, origin...), int64(to), 10)
			b = append(b, ']', ',')
		}
	}
	if len(g.to) > 0 {
		b = b[:len(b)-1] // the last comma
	}
	b = append(b, `],"conditionalEdges":[`...)
	for i := range g.conditional {
		b = g.conditional[i].appendJSON(appendComma(b, i))
	}
	return append(b, "]}"...)
}

// MarshalJSON returns the text of [Graph.AppendJSON]. The error is nil.
// [encoding/json.Marshal] escapes <, > and & in it, as in every text.
func (g *Graph) MarshalJSON() ([]byte, error) {
	return g.AppendJSON(make([]byte, 0, g.encodedSize())), nil
}

// encodedSize estimates the length of the text. It is exceeded only where texts
// need escapes.
func (g *Graph) encodedSize() int {
	const (
		perNode = len(`{"version":"","payload":"","metadata":{}},`)
		perKey  = len(`"":"",`)
		perPair = len(`{"from":"","to":""},`)
		perRisk = len(`{"url":"","name":"","message":"","matchingRules":[]},`)
		perRule = len(`{"type":"","promql":{"promql":""}},`)
	)
	size := len(`{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`)
	for i := range g.nodes {
		n := &g.nodes[i]
		size += perNode + len(n.Version.Original()) + len(n.Image)
		for _, e := range n.Metadata.entries {
			size += perKey + len(e.key) + len(e.value)
		}
	}
	size += len(g.to) * (len("[,],") + 2*len(strconv.Itoa(len(g.nodes))))
	for i := range g.conditional {
		size += len(`{"edges":[],"risks":[]},`)
		for _, pair := range g.conditional[i].Edges {
			size += perPair + len(pair.From) + len(pair.To)
		}
		for j := range g.conditional[i].Risks {
			risk := &g.conditional[i].Risks[j]
			size += perRisk + len(risk.URL) + len(risk.Name) + len(risk.Message)
			for _, rule := range risk.MatchingRules {
				size += perRule + len(rule.Type)
				if rule.PromQL != nil {
					size += len(rule.PromQL.PromQL)
				}
			}
		}
	}
	return size
}

func (m Metadata) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i := range m.entries {
		e := &m.entries[i]
		b = append(appendString(appendComma(b, i), e.key), ':')
		if e.json {
			b = append(b, e.value...)
		} else {
			b = appendString(b, e.value)
		}
	}
	return append(b, '}')
}

func (c *ConditionalEdges) appendJSON(b []byte) []byte {
	b = append(b, `{"edges":[`...)
	for i := range c.Edges {
		b = appendString(append(appendComma(b, i), `{"from":`...), c.Edges[i].From)
		b = appendString(append(b, `,"to":`...), c.Edges[i].To)
		b = append(b, '}')
	}
	b = append(b, `],"risks":[`...)
	for i := range c.Risks {
		b = appendRisk(appendComma(b, i), &c.Risks[i])
	}
	return append(b, "]}"...)
}

func appendRisk(b []byte, risk *configv1.ConditionalUpdateRisk) []byte {
	b = appendString(append(b, `{"url":`...), risk.URL)
	b = appendString(append(b, `,"name":`...), risk.Name)
	b = appendString(append(b, `,"message":`...), risk.Message)
	b = append(b, `,"matchingRules":[`...)
	for i := range risk.MatchingRules {
		rule := &risk.MatchingRules[i]
		b = appendString(append(appendComma(b, i), `{"type":`...), rule.Type)
		if rule.PromQL != nil {
			b = appendString(append(b, `,"promql":{"promql":`...), rule.PromQL.PromQL)
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// appendComma separates the i-th element of a list from the one before it.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendString writes a string as [encoding/json] does without HTML escapes, and
// asks that only for texts with an escape or beyond ASCII.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			text, _ := schema.JSON(s) // a string has no error
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
