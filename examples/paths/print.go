package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// printer answers for the graphs of one architecture.
type printer struct {
	w       io.Writer
	o       options
	n       *path.Network
	others  []*path.Network
	graphs  []path.ChannelGraph
	matcher graph.RiskMatcher
}

func (p *printer) print(ctx context.Context) error {
	switch {
	case p.o.picture != "":
		return p.picture()
	case p.o.eus:
		return p.controlPlaneOnly()
	case p.o.to != "":
		return p.paths()
	case p.o.from != "":
		return p.updates(ctx)
	}
	return p.summary()
}

// encode prints JSON.
func (p *printer) encode(v any) error {
	e := json.NewEncoder(p.w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// summary says what the graphs hold.
func (p *printer) summary() error {
	var heads []string
	for _, r := range p.n.Heads() {
		heads = append(heads, r.Version)
	}
	lowest, highest, err := p.n.Bounds("")
	if err != nil {
		return err
	}
	if p.o.json {
		return p.encode(map[string]any{"arch": p.n.Arch(), "channels": p.n.Channels(), "releases": p.n.Len(), "lowest": lowest.Version, "highest": highest.Version, "heads": heads})
	}
	p.line("Channels: %s%s", strings.Join(p.n.Channels(), ", "), p.arch())
	p.line("Releases: %d, from %s to %s", p.n.Len(), lowest.Version, highest.Version)
	p.line("Heads: %s", strings.Join(heads, ", "))
	return nil
}

func (p *printer) arch() string {
	if p.n.Arch() == "" {
		return ""
	}
	return " (" + p.n.Arch() + ")"
}

// updates lists what the release can be updated to in one step, and how far it
// gets.
func (p *printer) updates(ctx context.Context) error {
	from, err := p.n.Release(p.o.from)
	if err != nil {
		return err
	}
	reached, err := p.n.Reachable(from.Version, p.o.rules())
	if err != nil {
		return err
	}
	type channelUpdates struct {
		Channel     string                       `json:"channel"`
		Available   []configv1.Release           `json:"available"`
		Conditional []configv1.ConditionalUpdate `json:"conditional"`
		Dropped     map[string]graph.DropCause   `json:"dropped,omitempty"`
	}
	var all []channelUpdates
	for _, channel := range p.n.ChannelsWith(from.Version) {
		at := slices.IndexFunc(p.graphs, func(g path.ChannelGraph) bool { return g.Channel == channel && g.Arch == p.n.Arch() })
		u, err := p.graphs[at].Graph.Updates(graph.UpdatesQuery{Version: from.Version, Channel: channel, Architecture: string(from.Architecture)})
		if err != nil {
			return err
		}
		c := channelUpdates{Channel: channel, Dropped: map[string]graph.DropCause{}}
		c.Available, c.Conditional = risk.Evaluate(ctx, u, p.matcher, nil, nil, time.Now())
		for _, d := range u.Dropped {
			if d.Cause != graph.Superseded {
				c.Dropped[d.Release.Version] = d.Cause
			}
		}
		all = append(all, c)
	}
	if p.o.json {
		return p.encode(map[string]any{"from": from, "channels": all, "reachable": reached})
	}
	p.line("%s%s", from.Version, p.arch())
	if offered := graph.OfferedChannels(from); len(offered) > 0 {
		p.line("Offered channels: %s", strings.Join(offered, ", "))
	}
	for _, c := range all {
		p.line("\nUpdates in %s:", c.Channel)
		for _, r := range c.Available {
			p.line("  %s", r.Version)
		}
		for _, u := range c.Conditional {
			condition := u.Conditions[0]
			if condition.Status == "True" {
				continue
			}
			p.line("  %s  Recommended=%s %s: %s", u.Release.Version, condition.Status, condition.Reason, strings.ReplaceAll(condition.Message, "\n", "\n      "))
		}
		for _, r := range p.n.Releases() {
			if cause, ok := c.Dropped[r.Version]; ok {
				p.line("  %s  not offered: %s", r.Version, cause)
			}
		}
		if len(c.Available)+len(c.Conditional) == 0 {
			p.line("  none")
		}
	}
	if len(reached) == 0 {
		p.line("\nNothing can be reached.")
		return nil
	}
	most := 0
	highest := reached[0]
	for _, r := range reached {
		most = max(most, r.Hops)
	}
	p.line("\nReachable: %d releases in up to %d hops; the highest is %s in %d.", len(reached), most, highest.Release.Version, highest.Hops)
	return nil
}

// paths explains the direct update and prints the best paths.
func (p *printer) paths() error {
	var others []*path.Network
	for _, n := range p.others {
		if n != p.n {
			others = append(others, n)
		}
	}
	x, err := p.n.Explain(path.ExplainQuery{From: p.o.from, To: p.o.to, Policy: p.o.rules(), Channel: p.o.present, Others: others})
	if err != nil {
		return err
	}
	if x.Block == path.NotInGraph || x.Block == path.WrongArchitecture && x.Missing != "" {
		return errors.New(x.String())
	}
	order := path.Shortest
	if p.o.safest {
		order = path.Safest
	}
	paths, err := p.n.Paths(p.o.from, p.o.to, p.o.best, order, p.o.rules())
	if err != nil && !errors.Is(err, path.ErrNoPath) {
		return err
	}
	if p.o.json {
		return errors.Join(err, p.encode(map[string]any{"explanation": x, "paths": paths}))
	}
	p.line("%s", x)
	for i, path := range paths {
		p.line("\nPath %d: %s", i+1, count(len(path.Hops), "hop"))
		p.hops(path)
	}
	return err
}

func (p *printer) hops(found *path.Path) {
	for i, h := range found.Hops {
		if h.Switch {
			p.line("     switch to channel %s", h.Channel)
		}
		text := fmt.Sprintf("  %d. %s -> %s  in %s", i+1, h.From, h.To, h.Channel)
		if h.Recommendation != path.IsRecommended {
			text += "  " + string(h.Recommendation)
		}
		if h.Withheld != "" {
			text += " (withheld: " + h.WithheldBy + ")"
		}
		p.line("%s", text)
		for _, r := range h.Risks {
			p.line("       risk %s: Applies=%s  %s %s", r.Risk.Name, r.Applies.Status, r.Risk.Message, r.Risk.URL)
		}
	}
	if found.NotRecommended+found.Unknown > 0 && len(found.Hops) > 1 {
		p.line("  Risks are judged by what is known today; later hops happen on another cluster.")
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// controlPlaneOnly prints a plan over an odd minor.
func (p *printer) controlPlaneOnly() error {
	plan, err := p.n.ControlPlaneOnly(p.o.from, p.o.to, path.ControlPlaneOnlyOptions{Policy: p.o.rules()})
	if err != nil {
		return err
	}
	if p.o.json {
		return p.encode(plan)
	}
	p.line("Control-plane-only update %s -> %s over %s", p.o.from, p.o.to, strings.Join(plan.Intermediate, ", "))
	for _, c := range plan.Channels {
		p.line("  channel %s: offered now: %t, holds the plan: %t", c.Name, c.Offered, c.Holds)
	}
	p.line("  pause the worker pools before hop %d, unpause them after hop %d", plan.PauseBefore+1, plan.UnpauseAfter+1)
	p.hops(plan.Path)
	return nil
}

// picture draws.
func (p *printer) picture() error {
	o := path.PictureOptions{From: p.o.from, To: p.o.to, Policy: p.o.rules(), AllEdges: p.o.policy == "Recommended" && p.o.from == "", MaxNodes: p.o.nodes}
	if p.o.to != "" {
		path, err := p.n.ShortestPath(p.o.from, p.o.to, p.o.rules())
		if err != nil {
			return err
		}
		o.Path = path
	}
	picture, err := p.n.Picture(o)
	if err != nil {
		return err
	}
	switch p.o.picture {
	case "dot":
		fmt.Fprint(p.w, picture.DOT())
	case "mermaid":
		fmt.Fprint(p.w, picture.Mermaid())
	default:
		return p.encode(picture)
	}
	return nil
}
