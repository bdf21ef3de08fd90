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
	// nearest to the heads stay, and those on the path.
	MaxNodes int
}

// Picture is the update graph of a package, to be drawn: heads have a double frame,
// operators that are never installed again are grey.
type Picture struct{ drawing text.Drawing }

// NewPicture chooses what to draw of a package's update graph. The error is
// about a channel that the package does not have, or a MaxNodes below zero.
func NewPicture(p *olm.Package, o PictureOptions) (*Picture, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	for _, name := range o.Channels {
		if p.Channel(name) == nil {
			return nil, fmt.Errorf("package %q has no channel %q", p.Name, name)
		}
	}
	channels := slices.DeleteFunc(slices.Clone(p.SearchOrder()), func(ch *olm.Channel) bool {
		return len(o.Channels) > 0 && !slices.Contains(o.Channels, ch.Name)
	})
	d := text.Drawing{Name: text.QuoteDOT(p.Name), Prefix: "n"}
	onPath := map[string]bool{}
	for _, s := range o.Path {
		onPath[s.From], onPath[s.To] = true, true
	}
	shown := map[string]bool{}
	omitted := 0
	for _, name := range inRounds(channels) {
		if len(d.Nodes) >= cmp.Or(o.MaxNodes, 40) && !onPath[name] {
			omitted++
			continue
		}
		shown[name] = true
		d.Nodes = append(d.Nodes, drawNode(channels, name, onPath[name]))
	}
	var remarks []string
	for _, ch := range channels {
		if ch.Err != nil {
			remarks = append(remarks, ch.Err.Error())
		}
		for _, from := range ch.Entries {
			if shown[from.Name] && from.Bundle != nil {
				d.Edges = append(d.Edges, drawUpdates(ch, from, shown, o)...)
			}
		}
	}
	if omitted > 0 {
		remarks = append(remarks, fmt.Sprintf("%d operators further from the heads are not shown", omitted))
	}
	d.Remark = strings.ReplaceAll(strings.Join(remarks, "; "), "\n", " ")
	return &Picture{d}, nil
}

// inRounds lists the operators of channels by their distance from the head, so
// that a limit cuts all channels alike: ordered ones first.
func inRounds(channels []*olm.Channel) []string {
	var rounds [][]string
	for _, ch := range channels {
		others := slices.DeleteFunc(slices.Clone(ch.Entries), func(e *olm.Entry) bool { return e.Rank() >= 0 })
		for i, e := range slices.Concat(ch.Ordered, others) {
			if i == len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[i] = append(rounds[i], e.Name)
		}
	}
	var names []string
	listed := map[string]bool{}
	for _, name := range slices.Concat(rounds...) {
		if !listed[name] {
			listed[name] = true
			names = append(names, name)
		}
	}
	return names
}

// drawNode draws an operator with the channels of which it is a head.
func drawNode(channels []*olm.Channel, name string, onPath bool) text.Node {
	var heads []string
	grey := false
	for _, ch := range channels {
		e := ch.Entry(name)
		if e == nil {
			continue
		}
		if slices.Contains(ch.Heads, e) {
			heads = append(heads, ch.Name)
		}
		grey = grey || ch.Err == nil && e.Rank() < 0 || e.Bundle != nil && e.Bundle.Deprecated
	}
	n := text.Node{Name: name, Label: name, Thick: onPath}
	if len(heads) > 0 {
		n.Label += " (" + strings.Join(heads, ", ") + ")"
		n.Attributes = append(n.Attributes, "peripheries=2")
	}
	if grey {
		n.Attributes = append(n.Attributes, "color=grey")
	}
	return n
}

// drawUpdates draws the updates of an operator in a channel to operators that are shown:
// the one that it takes, those on the path, or all.
func drawUpdates(ch *olm.Channel, from *olm.Entry, shown map[string]bool, o PictureOptions) []text.Edge {
	var out []text.Edge
	taken := false
	for _, to := range ch.Updates(from.Name, from.Bundle.Version) {
		onPath := slices.ContainsFunc(o.Path, func(s olm.PathStep) bool {
			return s.From == from.Name && s.To == to.Name && s.Channel == ch.Name
		})
		takes := !taken && !to.Bundle.Deprecated
		taken = taken || takes
		if !shown[to.Name] || !takes && !onPath && !o.AllEdges {
			continue
		}
		kind := to.Edge(from.Name, from.Bundle.Version)
		e := text.Edge{
			From: from.Name, To: to.Name, Label: ch.Name, Attributes: []string{"label=" + text.QuoteDOT(ch.Name)},
			Dotted: kind != "replaces", Thick: onPath,
		}
		switch kind {
		case "skips":
			e.Attributes = append(e.Attributes, "style=dashed")
		case "skipRange":
			e.Attributes = append(e.Attributes, "style=dotted")
		}
		out = append(out, e)
	}
	return out
}

// DOT draws the picture for Graphviz: updates by skips dashed, by skipRange dotted.
func (p *Picture) DOT() string { return p.drawing.DOT() }

// Mermaid draws the picture as a Mermaid flowchart: updates by skips or
// skipRange dotted, those on the path thick.
func (p *Picture) Mermaid() string { return p.drawing.Mermaid() }
