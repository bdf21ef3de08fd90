package graph

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/strictjson"
)

// decoder reads the wire's fields into parts. A null is taken for an absent
// value, except for a node and for an edge.
type decoder struct {
	strictjson.Scanner
	memory   memory
	o        DecodeOptions
	parts    parts
	pairs    int
	interned map[string]string // texts that come often, each copied once
}

var errMissing = errors.New("missing")

func (d *decoder) graph() error {
	if null, err := d.Null(); null || err != nil {
		if err == nil {
			err = d.End()
		}
		return err
	}
	err := d.Object(func(key []byte) error {
		switch string(key) {
		case "version":
			return within("version", d.schema())
		case "nodes":
			return d.optionalArray("nodes", d.node)
		case "edges":
			return d.optionalArray("edges", d.edge)
		case "conditionalEdges":
			return d.optionalArray("conditionalEdges", d.conditionalEntry)
		}
		return d.ignore(key, "version", "nodes", "edges", "conditionalEdges")
	})
	if err != nil {
		return err
	}
	return d.End()
}

// optionalArray reads an array or null; errors of an element name it.
func (d *decoder) optionalArray(name string, element func(i int) error) error {
	if null, err := d.Null(); null || err != nil {
		return within(name, err)
	}
	at := -1
	err := d.Array(func(i int) error {
		at = i
		return element(i)
	})
	if err != nil && at >= 0 {
		return withinIndex(name, at, err)
	}
	return within(name, err)
}

// optionalObject reads an object or null.
func (d *decoder) optionalObject(field func(key []byte) error) error {
	if null, err := d.Null(); null || err != nil {
		return err
	}
	return d.Object(field)
}

// ignore reads an unknown field, which must still be valid. One that
// differs from a known field only by case is a mistake: to ignore it would
// lose what it says, such as the risks of an update.
func (d *decoder) ignore(key []byte, known ...string) error {
	for _, name := range known {
		if strings.EqualFold(name, string(key)) {
			return fmt.Errorf("key %s differs from %q only by case", bounded.Quote(key), name)
		}
	}
	if _, err := d.Skip(); err != nil {
		return within(bounded.Text(string(key), bounded.MaxQuoted), err)
	}
	return nil
}

// field reads a string or null into a field.
func (d *decoder) field(name string, into *string, copied func([]byte) (string, error)) error {
	if null, err := d.Null(); null || err != nil {
		return within(name, err)
	}
	text, err := d.Text()
	if err != nil {
		return within(name, err)
	}
	*into, err = copied(text)
	return within(name, err)
}

// unique copies a text that hardly comes twice.
func (d *decoder) unique(text []byte) (string, error) {
	if err := d.admit(len(text), d.o.MaxText, limitText, len(text)); err != nil {
		return "", err
	}
	return string(text), nil
}

// shared copies a text once for all that are equal.
func (d *decoder) shared(text []byte) (string, error) {
	if s, ok := d.interned[string(text)]; ok {
		return s, nil
	}
	if err := d.admit(len(text), d.o.MaxText, limitText, costInterned+len(text)); err != nil {
		return "", err
	}
	s := string(text)
	d.interned[s] = s
	return s, nil
}

func (d *decoder) schema() error {
	if null, err := d.Null(); null || err != nil {
		return err
	}
	text, err := d.Integer()
	if err != nil {
		return err
	}
	if string(text) != "1" && !d.o.AnySchema {
		return fmt.Errorf("schema version %s is not known, only 1 is", bounded.Text(string(text), bounded.MaxQuoted))
	}
	return nil
}

// admit returns a [*LimitError] for more than max of something, or if it does not
// fit into memory.
func (d *decoder) admit(n, max int, of string, cost int) error {
	if err := atMost(n, max, of); err != nil {
		return err
	}
	return d.memory.spend(cost)
}

func (d *decoder) node(i int) error {
	if null, err := d.Null(); null || err != nil {
		if err == nil {
			err = errors.New("null is not a node")
		}
		return err
	}
	if err := d.admit(i+1, d.o.MaxNodes, limitNodes, costNode); err != nil {
		return err
	}
	n := Node{}
	err := d.Object(func(key []byte) error {
		switch string(key) {
		case "version":
			return within("version", d.nodeVersion(&n))
		case "payload":
			return d.field("payload", &n.Image, d.unique)
		case "metadata":
			return within("metadata", d.metadata(&n.Metadata))
		}
		return d.ignore(key, "version", "payload", "metadata")
	})
	switch {
	case err != nil:
		return err
	case n.Version == nil:
		return within("version", errMissing)
	case n.Image == "" && !d.o.AllowNoPayload:
		return within("payload", errMissing)
	}
	d.parts.nodes = append(d.parts.nodes, n)
	return nil
}

func (d *decoder) nodeVersion(n *Node) error {
	var text string
	if err := d.field("", &text, d.shared); err != nil {
		return err
	}
	v, err := ParseVersion(text)
	if err != nil {
		if text != "" {
			err = fmt.Errorf("%s: %w", bounded.Quote(text), err)
		}
		return err
	}
	n.Version = v
	return nil
}

func (d *decoder) edge(i int) error {
	if i == 0 {
		// A sized list: no more edges than brackets follow.
		room := min(bytes.Count(d.Data[d.Pos:], []byte{'['}), d.o.MaxEdges, int((d.o.MaxMemory-d.memory.used)/costEdge))
		d.parts.edges = make([][2]int32, 0, room)
	}
	d.pairs++
	if err := d.admit(d.pairs, d.o.MaxEdges, limitEdges, costEdge); err != nil {
		return err
	}
	if e, ok := d.Pair(); ok {
		d.parts.edges = append(d.parts.edges, e)
		return nil
	}
	var e [2]int32
	found := 0
	if null, err := d.Null(); err != nil {
		return err
	} else if !null {
		if d.Peek() != '[' {
			return d.TypeError("an array")
		}
		d.Pos++
		for more := !d.Accept(']'); more; found++ {
			if found < len(e) {
				var err error
				e[found], err = d.edgeIndex()
				if err != nil {
					return err
				}
			} else if _, err := d.Skip(); err != nil {
				return err
			}
			more = d.Accept(',')
			if !more && !d.Accept(']') {
				return strictjson.ErrSyntax
			}
		}
	}
	if found != len(e) {
		return fmt.Errorf("expected 2 fields, found %d", found)
	}
	d.parts.edges = append(d.parts.edges, e)
	return nil
}

// edgeIndex reads an index. One that cannot be a node's becomes -1; the first
// such is remembered for the error's text.
func (d *decoder) edgeIndex() (int32, error) {
	text, err := d.Integer()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 0 {
		if d.parts.badIndex == "" {
			d.parts.badIndex = bounded.Text(string(text), bounded.MaxQuoted)
		}
		return -1, nil
	}
	return int32(n), nil
}

func (d *decoder) conditionalEntry(i int) error {
	if err := d.admit(i+1, d.o.MaxConditional, limitConditional, costEntry); err != nil {
		return err
	}
	var entry ConditionalEdges
	err := d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "edges":
			return d.optionalArray("edges", func(i int) error {
				pair, err := d.versionPair(i)
				entry.Edges = append(entry.Edges, pair)
				return err
			})
		case "risks":
			return d.optionalArray("risks", func(i int) error {
				risk, err := d.risk(i)
				entry.Risks = append(entry.Risks, risk)
				return err
			})
		}
		return d.ignore(key, "edges", "risks")
	})
	d.parts.conditional = append(d.parts.conditional, entry)
	return err
}

func (d *decoder) versionPair(i int) (pair VersionPair, err error) {
	d.pairs++
	if err := atMost(d.pairs, d.o.MaxEdges, limitEdges); err != nil {
		return pair, err
	}
	if err := d.admit(i+1, d.o.MaxPairs, limitPairs, costPair); err != nil {
		return pair, err
	}
	err = d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "from":
			return d.field("from", &pair.From, d.shared)
		case "to":
			return d.field("to", &pair.To, d.shared)
		}
		return d.ignore(key, "from", "to")
	})
	switch {
	case err != nil:
	case pair.From == "":
		err = within("from", errMissing)
	case pair.To == "":
		err = within("to", errMissing)
	}
	return pair, err
}

func (d *decoder) risk(i int) (risk configv1.ConditionalUpdateRisk, err error) {
	if err := d.admit(i+1, d.o.MaxRisks, limitRisks, costRisk); err != nil {
		return risk, err
	}
	err = d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "url":
			return d.field("url", &risk.URL, d.shared)
		case "name":
			return d.field("name", &risk.Name, d.shared)
		case "message":
			return d.field("message", &risk.Message, d.shared)
		case "matchingRules":
			return d.optionalArray("matchingRules", func(i int) error {
				rule, err := d.rule(i)
				risk.MatchingRules = append(risk.MatchingRules, rule)
				return err
			})
		}
		return d.ignore(key, "url", "name", "message", "matchingRules")
	})
	return risk, err
}

func (d *decoder) rule(i int) (rule configv1.ClusterCondition, err error) {
	if err := d.admit(i+1, d.o.MaxRules, limitRules, costRule); err != nil {
		return rule, err
	}
	err = d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "type":
			return d.field("type", &rule.Type, d.shared)
		case "promql":
			if null, err := d.Null(); null || err != nil {
				return within("promql", err)
			}
			rule.PromQL = &configv1.PromQLClusterCondition{}
			return within("promql", d.Object(func(key []byte) error {
				if string(key) == "promql" {
					return d.field("promql", &rule.PromQL.PromQL, d.shared)
				}
				return d.ignore(key, "promql")
			}))
		}
		return d.ignore(key, "type", "promql")
	})
	return rule, err
}
