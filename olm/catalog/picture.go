package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/olm"
)

// PictureOptions choose what a picture shows. The zero value shows, for every
// operator of all channels, the one update that it takes.
type PictureOptions struct {
	// Channels restricts to some; empty means all.
	Channels []string
	// AllEdges shows every update that is possible, not only the first in
	// order.
	AllEdges bool
	// Path is highlighted.
	Path []olm.PathStep
	// MaxNodes is how many operators a person can look at; zero means 40. Those
	// nearest to the heads stay. AllNodes shows any number.
	MaxNodes int
	AllNodes bool
}

// Picture is the update graph of a package, to be drawn.
type Picture struct {
	Package string        `json:"package"`
	Nodes   []PictureNode `json:"nodes"` // heads first
	Edges   []PictureEdge `json:"edges"`
	// Faults are the channels that have no order, and why.
	Faults []string `json:"faults,omitempty"`
	// Omitted is how many operators were left out because of MaxNodes.
	Omitted int `json:"omitted,omitempty"`
}

// PictureNode is an operator of a package.
type PictureNode struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Channels hold it; Heads are those of which it is the head.
	Channels []string `json:"channels"`
	Heads    []string `json:"heads,omitempty"`
	// Skipped operators are never installed any more; deprecated ones neither.
	Skipped    bool `json:"skipped,omitempty"`
	Deprecated bool `json:"deprecated,omitempty"`
	OnPath     bool `json:"onPath,omitempty"`
}

// PictureEdge is an update.
type PictureEdge struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Channel string `json:"channel"`
	Kind    string `json:"kind"` // replaces, skips or skipRange
	OnPath  bool   `json:"onPath,omitempty"`
}

// NewPicture chooses what to draw of a package's update graph. The error is
// about a channel that the package does not have, or a MaxNodes below zero.
func NewPicture(p *olm.Package, o PictureOptions) (*Picture, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	out := &Picture{Package: p.Name, Nodes: []PictureNode{}, Edges: []PictureEdge{}}
	var channels []*olm.Channel
	for _, name := range o.Channels {
		if p.Channel(name) == nil {
			return nil, fmt.Errorf("package %q has no channel %q", p.Name, name)
		}
	}
	for _, ch := range p.SearchOrder() {
		if len(o.Channels) == 0 || slices.Contains(o.Channels, ch.Name) {
			channels = append(channels, ch)
			if ch.Err != nil {
				out.Faults = append(out.Faults, ch.Err.Error())
			}
		}
	}
	onPath, pathEdge := map[string]bool{}, map[PictureEdge]bool{}
	for _, s := range o.Path {
		onPath[s.From], onPath[s.To] = true, true
		pathEdge[PictureEdge{From: s.From, To: s.To, Channel: s.Channel, Kind: s.Edge}] = true
	}

	at := map[string]int{}
	var nodes []PictureNode
	for _, entries := range inRounds(channels) {
		for _, e := range entries {
			i, ok := at[e.Name]
			if !ok {
				i = len(nodes)
				at[e.Name] = i
				nodes = append(nodes, PictureNode{Name: e.Name, OnPath: onPath[e.Name]})
			}
			n := &nodes[i]
			n.Channels = append(n.Channels, e.Channel.Name)
			if slices.Contains(e.Channel.Heads, e) {
				n.Heads = append(n.Heads, e.Channel.Name)
			}
			n.Skipped = n.Skipped || e.Channel.Err == nil && e.Rank() < 0
			if e.Bundle != nil {
				n.Version, n.Deprecated = e.Bundle.RawVersion, e.Bundle.Deprecated
			}
		}
	}
	limit := cmp.Or(o.MaxNodes, 40)
	shown := map[string]bool{}
	for i := range nodes {
		if o.AllNodes || len(out.Nodes) < limit || nodes[i].OnPath {
			out.Nodes = append(out.Nodes, nodes[i])
			shown[nodes[i].Name] = true
		} else {
			out.Omitted++
		}
	}
	for _, ch := range channels {
		for _, from := range ch.Entries {
			if !shown[from.Name] || from.Bundle == nil {
				continue
			}
			first := true
			for _, to := range ch.Updates(from.Name, from.Bundle.Version) {
				e := PictureEdge{From: from.Name, To: to.Name, Channel: ch.Name, Kind: to.Edge(from.Name, from.Bundle.Version)}
				e.OnPath = pathEdge[e]
				wanted := o.AllEdges || first && !to.Bundle.Deprecated || e.OnPath
				first = first && to.Bundle.Deprecated
				if wanted && shown[to.Name] {
					out.Edges = append(out.Edges, e)
				}
			}
		}
	}
	return out, nil
}

// inRounds lists the entries of channels by their distance from the head, so
// that a limit cuts all channels alike: ordered ones first.
func inRounds(channels []*olm.Channel) [][]*olm.Entry {
	var rounds [][]*olm.Entry
	for _, ch := range channels {
		others := slices.DeleteFunc(slices.Clone(ch.Entries), func(e *olm.Entry) bool { return e.Rank() >= 0 })
		for i, e := range slices.Concat(ch.Ordered, others) {
			if i == len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[i] = append(rounds[i], e)
		}
	}
	return rounds
}

// DOT draws the picture for Graphviz: updates by skips dashed, by skipRange dotted,
// heads with a double frame, entries that are never installed again grey.
func (p *Picture) DOT() string { return p.drawing().DOT() }

// Mermaid draws the picture as a Mermaid flowchart: updates by skips or
// skipRange dotted, those on the path thick.
func (p *Picture) Mermaid() string { return p.drawing().Mermaid() }

func (p *Picture) drawing() *text.Drawing {
	d := &text.Drawing{Name: text.QuoteDOT(p.Package), Remark: p.remark(), Prefix: "n"}
	for _, n := range p.Nodes {
		node := text.Node{Name: n.Name, Label: n.label(), Thick: n.OnPath}
		if len(n.Heads) > 0 {
			node.Attributes = append(node.Attributes, "peripheries=2")
		}
		if n.Skipped || n.Deprecated {
			node.Attributes = append(node.Attributes, "color=grey")
		}
		d.Nodes = append(d.Nodes, node)
	}
	for _, e := range p.Edges {
		update := text.Edge{
			From: e.From, To: e.To, Label: e.Channel, Attributes: []string{"label=" + text.QuoteDOT(e.Channel)},
			Dotted: e.Kind != "replaces", Thick: e.OnPath,
		}
		switch e.Kind {
		case "skips":
			update.Attributes = append(update.Attributes, "style=dashed")
		case "skipRange":
			update.Attributes = append(update.Attributes, "style=dotted")
		}
		d.Edges = append(d.Edges, update)
	}
	return d
}

// remark is what the picture lacks.
func (p *Picture) remark() string {
	texts := slices.Clone(p.Faults)
	if p.Omitted > 0 {
		texts = append(texts, fmt.Sprintf("%d operators further from the heads are not shown", p.Omitted))
	}
	return strings.ReplaceAll(strings.Join(texts, "; "), "\n", " ")
}

// label is the name, and what it is the head of.
func (n *PictureNode) label() string {
	text := n.Name
	if len(n.Heads) > 0 {
		text += " (" + strings.Join(n.Heads, ", ") + ")"
	}
	return text
}
