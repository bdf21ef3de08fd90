package catalog

import (
	"fmt"
	"slices"
	"strings"

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
	// MaxNodes is how many operators a person can look at; zero means 40,
	// negative any number. Those nearest to the heads stay.
	MaxNodes int
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
	From    string       `json:"from"`
	To      string       `json:"to"`
	Channel string       `json:"channel"`
	Kind    olm.EdgeKind `json:"kind"`
	OnPath  bool         `json:"onPath,omitempty"`
}

// NewPicture chooses what to draw of a package's update graph. The error is
// about a channel that the package does not have.
func NewPicture(p *olm.Package, o PictureOptions) (*Picture, error) {
	out := &Picture{Package: p.Name, Nodes: []PictureNode{}, Edges: []PictureEdge{}}
	var channels []*olm.Channel
	for _, name := range o.Channels {
		if p.Channel(name) == nil {
			return nil, fmt.Errorf("package %q has no channel %q", p.Name, name)
		}
	}
	for _, ch := range searchOrder(p) {
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
	limit := o.MaxNodes
	if limit == 0 {
		limit = 40
	}
	shown := map[string]bool{}
	for i := range nodes {
		if limit < 0 || len(out.Nodes) < limit || nodes[i].OnPath {
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
// that a limit cuts all channels alike: ordered ones first, then the others.
func inRounds(channels []*olm.Channel) [][]*olm.Entry {
	lists := make([][]*olm.Entry, len(channels))
	longest := 0
	for i, ch := range channels {
		list := slices.Clone(ch.Ordered)
		for _, e := range ch.Entries {
			if e.Rank() < 0 {
				list = append(list, e)
			}
		}
		lists[i] = list
		longest = max(longest, len(list))
	}
	rounds := make([][]*olm.Entry, longest)
	for _, list := range lists {
		for i, e := range list {
			rounds[i] = append(rounds[i], e)
		}
	}
	return rounds
}

// DOT draws the picture for Graphviz: updates by skips dashed, by skipRange
// dotted, heads with a double frame, what is no longer installed grey.
func (p *Picture) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", dotQuote(p.Package))
	if text := p.remark(); text != "" {
		fmt.Fprintf(&b, "  label=%s;\n", dotQuote(text))
	}
	for _, n := range p.Nodes {
		attributes := []string{"label=" + dotQuote(n.label())}
		if len(n.Heads) > 0 {
			attributes = append(attributes, "peripheries=2")
		}
		if n.Skipped || n.Deprecated {
			attributes = append(attributes, "color=grey")
		}
		if n.OnPath {
			attributes = append(attributes, "penwidth=2")
		}
		fmt.Fprintf(&b, "  %s [%s];\n", dotQuote(n.Name), strings.Join(attributes, ", "))
	}
	for _, e := range p.Edges {
		attributes := []string{"label=" + dotQuote(e.Channel)}
		switch e.Kind {
		case olm.EdgeSkips:
			attributes = append(attributes, "style=dashed")
		case olm.EdgeSkipRange:
			attributes = append(attributes, "style=dotted")
		}
		if e.OnPath {
			attributes = append(attributes, "penwidth=2")
		}
		fmt.Fprintf(&b, "  %s -> %s [%s];\n", dotQuote(e.From), dotQuote(e.To), strings.Join(attributes, ", "))
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws the picture as a Mermaid flowchart: updates by skips or
// skipRange dotted, those on the path thick.
func (p *Picture) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	if text := p.remark(); text != "" {
		fmt.Fprintf(&b, "  %%%% %s\n", text)
	}
	id := map[string]string{}
	for i, n := range p.Nodes {
		id[n.Name] = fmt.Sprintf("n%d", i)
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, mermaidText(n.label()))
		if n.OnPath {
			fmt.Fprintf(&b, "  style n%d stroke-width:3px\n", i)
		}
	}
	for _, e := range p.Edges {
		arrow := "-->"
		switch {
		case e.OnPath:
			arrow = "==>"
		case e.Kind != olm.EdgeReplaces:
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|\"%s\"| %s\n", id[e.From], arrow, mermaidText(e.Channel), id[e.To])
	}
	return b.String()
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

func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func mermaidText(s string) string {
	return strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(s)
}

// searchOrder is the order in which a Subscription without a channel looks: the
// default channel, then by name.
func searchOrder(p *olm.Package) []*olm.Channel {
	channels := slices.Clone(p.Channels)
	slices.SortStableFunc(channels, func(a, b *olm.Channel) int {
		switch {
		case a.Default == b.Default:
			return 0
		case a.Default:
			return -1
		}
		return 1
	})
	return channels
}
