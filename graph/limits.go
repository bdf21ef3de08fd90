package graph

import (
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// memory counts the bytes that decoding takes. What an element costs is
// counted before it is made: its struct, twice since lists grow by doubling,
// and its part of the index.
type memory struct{ used, max int64 }

func (m *memory) spend(bytes int) error {
	m.used += int64(bytes)
	return limit.Limit{Max: m.max, What: "bytes of memory"}.Check(m.used)
}

// What the elements of a graph cost in bytes.
const (
	costNode     = 400
	costMetadata = 120 // one entry
	costEdge     = 12
	costEntry    = 100
	costPair     = 128
	costRisk     = 320
	costRule     = 64
	costInterned = 96 // in addition to the text
	costChannel  = 48
	costJSON     = 48 // a byte of a value that is kept as JSON
)

// atMost returns a [*LimitError] for more than max of something.
func atMost(n, max int, of string) error {
	return limit.Limit{Max: int64(max), What: of}.Check(int64(n))
}

// The lists and texts that have limits, as errors name them.
const (
	limitNodes       = "nodes"
	limitEdges       = "edges"
	limitConditional = "conditional entries"
	limitPairs       = "edges of a conditional entry"
	limitRisks       = "risks of a conditional entry"
	limitRules       = "matching rules of a risk"
	limitKeys        = "keys of an object"
	limitChannels    = "channels of a release"
	limitText        = "bytes of a text"
)

// check applies the limits and rules of decoding to parts that were not decoded.
func (p *parts) check(o DecodeOptions) error {
	if err := atMost(len(p.nodes), o.MaxNodes, limitNodes); err != nil {
		return err
	}
	if err := atMost(len(p.conditional), o.MaxConditional, limitConditional); err != nil {
		return err
	}
	for i := range p.nodes {
		if err := p.nodes[i].check(o); err != nil {
			return withinIndex("nodes", i, err)
		}
	}
	pairs := len(p.edges)
	for i := range p.conditional {
		pairs += len(p.conditional[i].Edges)
	}
	if err := atMost(pairs, o.MaxEdges, limitEdges); err != nil {
		return err
	}
	for i := range p.conditional {
		if err := p.conditional[i].check(o); err != nil {
			return withinIndex("conditionalEdges", i, err)
		}
	}
	return nil
}

func (n *Node) check(o DecodeOptions) error {
	if err := o.text("payload", n.Image); err != nil {
		return err
	}
	if err := atMost(n.Metadata.Len(), o.MaxKeys, limitKeys); err != nil {
		return within("metadata", err)
	}
	for i := range n.Metadata.entries {
		e := &n.Metadata.entries[i]
		if err := o.text("key", e.key); err != nil {
			return within("metadata", err)
		}
		if err := o.text(e.key, e.value); err != nil {
			return within("metadata", err)
		}
		if e.key == MetadataChannels && !e.json {
			if err := atMost(strings.Count(e.value, ",")+1, o.MaxChannels, limitChannels); err != nil {
				return within("metadata", err)
			}
		}
	}
	return nil
}

func (c *ConditionalEdges) check(o DecodeOptions) error {
	if err := atMost(len(c.Edges), o.MaxPairs, limitPairs); err != nil {
		return err
	}
	if err := atMost(len(c.Risks), o.MaxRisks, limitRisks); err != nil {
		return err
	}
	for i, pair := range c.Edges {
		for _, end := range [...]struct{ name, version string }{{"from", pair.From}, {"to", pair.To}} {
			err := o.text(end.name, end.version)
			if err == nil && end.version == "" && !o.Compat {
				err = within(end.name, errMissing)
			}
			if err != nil {
				return withinIndex("edges", i, err)
			}
		}
	}
	for i := range c.Risks {
		risk := &c.Risks[i]
		for _, field := range [...]struct{ name, text string }{{"url", risk.URL}, {"name", risk.Name}, {"message", risk.Message}} {
			if err := o.text(field.name, field.text); err != nil {
				return withinIndex("risks", i, err)
			}
		}
		if err := atMost(len(risk.MatchingRules), o.MaxRules, limitRules); err != nil {
			return withinIndex("risks", i, err)
		}
		for j, rule := range risk.MatchingRules {
			err := o.text("type", rule.Type)
			if err == nil && rule.PromQL != nil {
				err = o.text("promql", rule.PromQL.PromQL)
			}
			if err != nil {
				return withinIndex("risks", i, withinIndex("matchingRules", j, err))
			}
		}
	}
	return nil
}

func (o *DecodeOptions) text(name, text string) error {
	return within(name, atMost(len(text), o.MaxText, limitText))
}
