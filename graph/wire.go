package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	configv1 "github.com/openshift/api/config/v1"
)

// decoder reads the wire's fields into parts. A null is taken for an absent
// value, except for a node and for an edge.
type decoder struct {
	scanner
	arena
	o DecodeOptions
	parts
	pairs int
}

var errMissing = errors.New("missing")

func (d *decoder) graph() error {
	if null, err := d.null(); null || err != nil {
		if err == nil {
			err = d.end()
		}
		return err
	}
	err := d.object(func(key []byte) error {
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
		return d.ignore(key)
	})
	if err != nil {
		return err
	}
	return d.end()
}

// optionalArray reads an array or null; errors of an element name it.
func (d *decoder) optionalArray(name string, element func(i int) error) error {
	if null, err := d.null(); null || err != nil {
		return within(name, err)
	}
	at := -1
	err := d.array(func(i int) error {
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
	if null, err := d.null(); null || err != nil {
		return err
	}
	return d.object(field)
}

// ignore reads an unknown field, which must be valid all the same.
func (d *decoder) ignore(key []byte) error {
	if _, err := d.skip(); err != nil {
		return within(string(key), err)
	}
	return nil
}

// field reads a string or null into a field.
func (d *decoder) field(name string, into *string, copied func([]byte) string) error {
	if null, err := d.null(); null || err != nil {
		return within(name, err)
	}
	text, err := d.text()
	if err != nil {
		return within(name, err)
	}
	*into = copied(text)
	return nil
}

func (d *decoder) schema() error {
	if null, err := d.null(); null || err != nil {
		return err
	}
	text, err := d.integer()
	if err != nil {
		return err
	}
	if string(text) != "1" && !d.o.AnySchema {
		return fmt.Errorf("schema version %s is not known, only 1 is", text)
	}
	return nil
}

func (d *decoder) node(i int) error {
	if null, err := d.null(); null || err != nil {
		if err == nil {
			err = errors.New("null is not a node")
		}
		return err
	}
	if i >= d.o.MaxNodes {
		return &LimitError{Limit: "nodes", Max: int64(d.o.MaxNodes)}
	}
	n := Node{}
	err := d.object(func(key []byte) error {
		switch string(key) {
		case "version":
			return within("version", d.nodeVersion(&n))
		case "payload":
			return d.field("payload", &n.Image, d.arena.string)
		case "metadata":
			return within("metadata", d.metadata(&n.Metadata))
		}
		return d.ignore(key)
	})
	switch {
	case err != nil:
		return err
	case n.Version == nil:
		return within("version", errMissing)
	case n.Image == "" && !d.o.AllowNoPayload:
		return within("payload", errMissing)
	}
	d.nodes = append(d.nodes, n)
	return nil
}

func (d *decoder) nodeVersion(n *Node) error {
	var text string
	if err := d.field("", &text, d.intern); err != nil {
		return err
	}
	v, err := ParseVersion(text)
	if err != nil {
		if text != "" {
			err = fmt.Errorf("%q: %w", text, err)
		}
		return err
	}
	n.Version = v
	return nil
}

func (d *decoder) metadata(m *Metadata) error {
	var room [16]metadataEntry // most nodes have fewer
	entries := room[:0]
	err := d.optionalObject(func(key []byte) error {
		e := metadataEntry{key: d.intern(key)}
		if d.peek() == '"' {
			text, err := d.text()
			if err != nil {
				return within(e.key, err)
			}
			// Channel lists repeat on most nodes, other values do not.
			if e.key == MetadataChannels {
				e.value = d.intern(text)
			} else {
				e.value = d.arena.string(text)
			}
		} else {
			raw, err := d.skip()
			if err != nil {
				return within(e.key, err)
			}
			if e.value, err = canonicalJSON(raw); err != nil {
				return within(e.key, err)
			}
			e.json = true
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	m.entries = append([]metadataEntry(nil), entries...)
	m.sort()
	return nil
}

// canonicalJSON brings a valid value into the one form that encoding gives it.
func canonicalJSON(raw []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

func (d *decoder) edge(i int) error {
	if i == 0 {
		// A sized list: no more edges than brackets follow.
		room := min(bytes.Count(d.data[d.pos:], []byte{'['}), d.o.MaxEdges)
		d.edges = make([][2]int32, 0, room)
	}
	if d.pairs++; d.pairs > d.o.MaxEdges {
		return &LimitError{Limit: "edges", Max: int64(d.o.MaxEdges)}
	}
	if e, ok := d.pair(); ok {
		d.edges = append(d.edges, e)
		return nil
	}
	var e [2]int32
	found := 0
	if null, err := d.null(); err != nil {
		return err
	} else if !null {
		if d.peek() != '[' {
			return d.typeError("an array")
		}
		d.pos++
		for more := !d.accept(']'); more; found++ {
			if found < len(e) {
				var err error
				if e[found], err = d.edgeIndex(); err != nil {
					return err
				}
			} else if _, err := d.skip(); err != nil {
				return err
			}
			if more = d.accept(','); !more && !d.accept(']') {
				return errSyntax
			}
		}
	}
	if found != len(e) {
		return fmt.Errorf("expected 2 fields, found %d", found)
	}
	d.edges = append(d.edges, e)
	return nil
}

// edgeIndex reads an index. One that cannot be a node's becomes -1; the first
// such is remembered for the error's text.
func (d *decoder) edgeIndex() (int32, error) {
	text, err := d.integer()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 0 {
		if d.badIndex == "" {
			d.badIndex = string(text)
		}
		return -1, nil
	}
	return int32(n), nil
}

func (d *decoder) conditionalEntry(int) error {
	var entry ConditionalEdges
	err := d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "edges":
			return d.optionalArray("edges", func(int) error {
				var pair VersionPair
				if d.pairs++; d.pairs > d.o.MaxEdges {
					return &LimitError{Limit: "edges", Max: int64(d.o.MaxEdges)}
				}
				err := d.optionalObject(func(key []byte) error {
					switch string(key) {
					case "from":
						return d.field("from", &pair.From, d.intern)
					case "to":
						return d.field("to", &pair.To, d.intern)
					}
					return d.ignore(key)
				})
				entry.Edges = append(entry.Edges, pair)
				return err
			})
		case "risks":
			return d.optionalArray("risks", func(int) error {
				risk, err := d.risk()
				entry.Risks = append(entry.Risks, risk)
				return err
			})
		}
		return d.ignore(key)
	})
	d.conditional = append(d.conditional, entry)
	return err
}

func (d *decoder) risk() (configv1.ConditionalUpdateRisk, error) {
	var risk configv1.ConditionalUpdateRisk
	err := d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "url":
			return d.field("url", &risk.URL, d.intern)
		case "name":
			return d.field("name", &risk.Name, d.intern)
		case "message":
			return d.field("message", &risk.Message, d.intern)
		case "matchingRules":
			return d.optionalArray("matchingRules", func(int) error {
				rule, err := d.rule()
				risk.MatchingRules = append(risk.MatchingRules, rule)
				return err
			})
		}
		return d.ignore(key)
	})
	return risk, err
}

func (d *decoder) rule() (configv1.ClusterCondition, error) {
	var rule configv1.ClusterCondition
	err := d.optionalObject(func(key []byte) error {
		switch string(key) {
		case "type":
			return d.field("type", &rule.Type, d.intern)
		case "promql":
			if null, err := d.null(); null || err != nil {
				return within("promql", err)
			}
			rule.PromQL = &configv1.PromQLClusterCondition{}
			return within("promql", d.object(func(key []byte) error {
				if string(key) == "promql" {
					return d.field("promql", &rule.PromQL.PromQL, d.intern)
				}
				return d.ignore(key)
			}))
		}
		return d.ignore(key)
	})
	return rule, err
}
