package graphdata

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/scc"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/strictjson"
)

// RawOptions change how a [RawGraph] is read. The zero value is strict.
type RawOptions struct {
	// Compat takes a node that has an image or metadata and not both, or metadata
	// that are not all texts, for one without either, as an update service does.
	Compat bool
	// MaxBytes is how long the text may be; the default is 64 MiB.
	MaxBytes int64
	// MaxNodes is how many nodes there may be; the default is 200,000.
	MaxNodes int
	// MaxEdges is how many edges, conditional pairs and groups of pairs there may
	// be together; the default is 20,000,000.
	MaxEdges int
}

// DecodeRaw reads a graph as a builder serves it: not a channel's, which has a
// schema version and which package graph reads.
//
// The error names the element that is missing, of another type, an unknown field of
// the graph, a version twice or an index out of range; it is a [*CycleError], a
// [*LimitError] or r's.
func DecodeRaw(r io.Reader, o RawOptions) (*RawGraph, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxNodes = cmp.Or(o.MaxNodes, 200_000)
	o.MaxEdges = cmp.Or(o.MaxEdges, 20_000_000)
	text, err := io.ReadAll(io.LimitReader(r, o.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > o.MaxBytes {
		return nil, &LimitError{What: limitRawBytes, Max: o.MaxBytes}
	}
	d := &rawDecoder{Scanner: strictjson.Scanner{Data: text}, o: o, seen: map[string]bool{},
		g: &RawGraph{Nodes: []RawNode{}, Edges: [][2]int{}, ConditionalEdges: []graph.ConditionalEdges{}}}
	if err := d.graph(); err != nil {
		if errors.Is(err, strictjson.ErrSyntax) {
			line, err := d.Describe()
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		return nil, err
	}
	if err := d.g.check(); err != nil {
		return nil, err
	}
	return d.g, nil
}

type rawDecoder struct {
	strictjson.Scanner
	o     RawOptions
	g     *RawGraph
	seen  map[string]bool // versions
	edges int
}

func (d *rawDecoder) graph() error {
	var nodes, edges bool
	err := d.Object(func(key []byte) error {
		switch string(key) {
		case "nodes":
			nodes = true
			return d.list("nodes", d.node)
		case "edges":
			edges = true
			return d.list("edges", d.edge)
		case "conditionalEdges":
			return d.list("conditionalEdges", d.conditional)
		}
		return fmt.Errorf("unknown field %s", bounded.Quote(string(key)))
	})
	switch {
	case err != nil:
		return err
	case !nodes:
		return errors.New("nodes are missing")
	case !edges:
		return errors.New("edges are missing")
	}
	return d.End()
}

// list reads an array; errors of an element name it.
func (d *rawDecoder) list(name string, element func() error) error {
	return d.Array(func(i int) error {
		err := element()
		if err == nil || errors.Is(err, strictjson.ErrSyntax) || errors.As(err, new(*LimitError)) {
			return err
		}
		return fmt.Errorf("%s[%d]: %w", name, i, err)
	})
}

func (d *rawDecoder) node() error {
	var n RawNode
	var payload, whole bool // there is an image; metadata are all texts
	err := d.Object(func(key []byte) error {
		switch string(key) {
		case "version":
			text, err := d.Text()
			n.Version = string(text)
			return err
		case "payload":
			if null, err := d.Null(); null || err != nil {
				return err
			}
			text, err := d.Text()
			n.Payload, payload = string(text), true
			return err
		case "metadata":
			if null, err := d.Null(); null || err != nil {
				return err
			}
			whole = true
			return d.metadata(&n, &whole)
		}
		_, err := d.Skip()
		return err
	})
	switch {
	case err != nil:
		return err
	case n.Version == "":
		return errors.New("a non-empty string version is missing")
	case d.seen[n.Version]:
		return fmt.Errorf("%s is not a unique string version", bounded.Quote(n.Version))
	case len(d.g.Nodes) == d.o.MaxNodes:
		return &LimitError{What: limitNodes, Max: int64(d.o.MaxNodes)}
	case payload && whole: // a release
	case d.o.Compat || !payload && n.Metadata == nil:
		n.Payload, n.Metadata = "", nil
	case payload:
		return fmt.Errorf("%s has a payload without metadata that are texts", bounded.Quote(n.Version))
	default:
		return fmt.Errorf("%s has metadata without a payload", bounded.Quote(n.Version))
	}
	d.seen[n.Version] = true
	d.g.Nodes = append(d.g.Nodes, n)
	return nil
}

func (d *rawDecoder) metadata(n *RawNode, whole *bool) error {
	n.Metadata = map[string]string{}
	return d.Object(func(key []byte) error {
		k := string(key)
		if d.Peek() != '"' {
			*whole = false
			_, err := d.Skip()
			return err
		}
		text, err := d.Text()
		n.Metadata[k] = string(text)
		return err
	})
}

func (d *rawDecoder) edge() error {
	if err := d.count(1); err != nil {
		return err
	}
	pair, ok := d.Pair()
	if !ok {
		return errors.New("is not a pair of indices")
	}
	d.g.Edges = append(d.g.Edges, [2]int{int(pair[0]), int(pair[1])})
	return nil
}

// count counts what the limit of edges is for.
func (d *rawDecoder) count(n int) error {
	d.edges += n
	if d.edges > d.o.MaxEdges {
		return &LimitError{What: limitEdges, Max: int64(d.o.MaxEdges)}
	}
	return nil
}

func (d *rawDecoder) conditional() error {
	text, err := d.Skip()
	if err != nil {
		return err
	}
	var c graph.ConditionalEdges
	if err := json.Unmarshal(text, &c); err != nil {
		return errors.New(bounded.Text(err.Error(), bounded.MaxQuoted))
	}
	d.g.ConditionalEdges = append(d.g.ConditionalEdges, c)
	return d.count(1 + len(c.Edges))
}

// check looks at what edges lead to.
func (g *RawGraph) check() error {
	in := make([][]int32, len(g.Nodes))
	for i, e := range g.Edges {
		for _, end := range e {
			if end < 0 || end >= len(g.Nodes) {
				return fmt.Errorf("edges[%d]: there is no node %s", i, strconv.Itoa(end))
			}
		}
		in[e[1]] = append(in[e[1]], int32(e[0]))
	}
	component := scc.Components(in)
	for _, e := range g.Edges {
		if component[e[0]] != component[e[1]] {
			continue
		}
		err := &CycleError{}
		for _, i := range cycle(in, int32(e[0]), int32(e[1]), component) {
			err.Versions = append(err.Versions, g.Nodes[i].Version)
		}
		_, err.Arch, _ = strings.Cut(err.Versions[0], "+")
		return err
	}
	return nil
}
