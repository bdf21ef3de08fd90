package path

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/text"
	configv1 "github.com/openshift/api/config/v1"
)

// PictureOptions choose what a picture shows. The zero value shows the 40
// highest releases with all edges between them.
type PictureOptions struct {
	// From leaves only what can be reached from a version, To what can reach
	// one, under Policy; both are shown themselves.
	From, To string
	// Policy leaves only the edges and versions that it allows. With the
	// zero value, which allows what is recommended, set AllEdges to see the
	// others.
	Policy   Policy
	AllEdges bool
	// Path is highlighted, and shown in any case.
	Path *Path
	// MaxNodes is how many releases a person can look at; zero means 40. The
	// highest versions stay. AllNodes shows any number.
	MaxNodes int
	AllNodes bool
}

// Picture is a part of a network to be drawn.
type Picture struct {
	Nodes []PictureNode `json:"nodes"` // ascending
	Edges []PictureEdge `json:"edges"`
	// Omitted is how many releases were left out because of MaxNodes.
	Omitted int `json:"omitted,omitempty"`
}

// PictureNode is a release.
type PictureNode struct {
	Release configv1.Release `json:"release"`
	OnPath  bool             `json:"onPath,omitempty"`
}

// PictureEdge is an edge.
type PictureEdge struct {
	From           string          `json:"from"`
	To             string          `json:"to"`
	Conditional    bool            `json:"conditional,omitempty"`
	Recommendation string          `json:"recommendation"`
	Withheld       graph.DropCause `json:"withheld,omitempty"`
	Risks          []string        `json:"risks,omitempty"`
	Channels       []string        `json:"channels"`
	OnPath         bool            `json:"onPath,omitempty"`
}

// Picture chooses what to draw. Errors are about the options: a version that is
// not in the graphs, a policy that is invalid, a MaxNodes below zero.
func (n *Network) Picture(o PictureOptions) (*Picture, error) {
	if o.MaxNodes < 0 {
		return nil, options.NonNegative(o)
	}
	policy := o.Policy
	if o.AllEdges {
		policy.Edges = AnyEdge
	}
	r, err := n.compile(policy)
	if err != nil {
		return nil, err
	}
	shown := make([]bool, len(n.versions))
	for i := range shown {
		shown[i] = r.barred == nil || r.barred[i] == ""
	}
	keep := map[int32]bool{} // whatever the limit
	if o.From != "" {
		from, err := n.find(o.From)
		if err != nil {
			return nil, err
		}
		hops, _ := (&search{n: n, rules: r}).reach(from)
		for i := range shown {
			shown[i] = hops[i] >= 0 && (shown[i] || int32(i) == from)
		}
		keep[from] = true
	}
	if o.To != "" {
		to, err := n.find(o.To)
		if err != nil {
			return nil, err
		}
		leads := (&search{n: n, rules: r}).leading(to)
		for i := range shown {
			shown[i] = shown[i] && leads[i]
		}
		keep[to] = true
	}
	onPath := map[[2]string]bool{}
	if o.Path != nil {
		for _, release := range o.Path.Releases {
			if i, ok := n.index[release.Version]; ok {
				keep[i] = true
			}
		}
		for _, h := range o.Path.Hops {
			onPath[[2]string{h.From, h.To}] = true
		}
	}
	limit := cmp.Or(o.MaxNodes, 40)
	if o.AllNodes {
		limit = len(n.versions)
	}
	p := &Picture{}
	chosen := make([]bool, len(shown))
	count := 0
	for i := range keep {
		chosen[i] = true
		count++
	}
	for i := len(shown) - 1; i >= 0; i-- {
		switch {
		case !shown[i] || chosen[i]:
		case count >= limit:
			p.Omitted++
		default:
			chosen[i] = true
			count++
		}
	}
	for i := range chosen {
		if chosen[i] {
			text := n.text(int32(i))
			p.Nodes = append(p.Nodes, PictureNode{Release: n.release(int32(i)), OnPath: o.Path != nil && slices.Contains(o.Path.Versions(), text)})
		}
	}
	for i := range n.edges {
		e := &n.edges[i]
		pair := [2]string{n.text(e.from), n.text(e.to)}
		if !chosen[e.from] || !chosen[e.to] || !r.allows(e) && !onPath[pair] {
			continue
		}
		h := n.hop(e)
		drawn := PictureEdge{From: h.From, To: h.To, Conditional: h.Conditional, Recommendation: h.Recommendation, Withheld: h.Withheld, Channels: h.Channels, OnPath: onPath[pair]}
		for _, v := range h.Risks {
			drawn.Risks = append(drawn.Risks, v.Risk.Name)
		}
		p.Edges = append(p.Edges, drawn)
	}
	return p, nil
}

// DOT draws the picture for Graphviz. Conditional edges are dashed, withheld
// ones dotted; red are those that are not recommended, orange the unknown.
func (p *Picture) DOT() string { return p.drawing().DOT() }

// Mermaid draws the picture as a Mermaid flowchart: conditional edges are
// dotted and named by their risks, those on the path thick.
func (p *Picture) Mermaid() string { return p.drawing().Mermaid() }

func (p *Picture) drawing() *text.Drawing {
	d := &text.Drawing{Name: "updates", Prefix: "v"}
	if p.Omitted > 0 {
		d.Remark = fmt.Sprintf("%d lower releases are not shown", p.Omitted)
	}
	for _, n := range p.Nodes {
		d.Nodes = append(d.Nodes, text.Node{Name: n.Release.Version, Thick: n.OnPath})
	}
	for _, e := range p.Edges {
		drawn := text.Edge{From: e.From, To: e.To, Dotted: e.Conditional || e.Withheld != "", Thick: e.OnPath}
		switch {
		case e.Withheld != "":
			drawn.Attributes = append(drawn.Attributes, "style=dotted")
		case e.Conditional:
			drawn.Attributes = append(drawn.Attributes, "style=dashed")
		}
		switch e.Recommendation {
		case isNotRecommended:
			drawn.Attributes = append(drawn.Attributes, "color=red")
		case isUnknown:
			drawn.Attributes = append(drawn.Attributes, "color=orange")
		}
		if len(e.Risks) > 0 || e.Withheld != "" {
			drawn.Attributes = append(drawn.Attributes, "label="+text.QuoteDOT(e.label()))
		}
		if drawn.Dotted {
			drawn.Label = e.label()
		}
		d.Edges = append(d.Edges, drawn)
	}
	return d
}

// label names the risks, or explains why the edge is withheld.
func (e *PictureEdge) label() string {
	text := strings.Join(e.Risks, ", ")
	switch {
	case e.Withheld != "":
		return string(e.Withheld)
	case e.Recommendation != isRecommended:
		text = strings.TrimSpace(text + " (" + e.Recommendation + ")")
	}
	return text
}
