package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// Summary is what a network holds.
type Summary struct {
	Arch     string   `json:"arch,omitempty"`
	Channels []string `json:"channels"`
	Releases int      `json:"releases"`
	Lowest   string   `json:"lowest,omitempty"`
	Highest  string   `json:"highest,omitempty"`
	Heads    []string `json:"heads"` // those that no update leads from
}

// Summary describes what the network holds.
func (n *Network) Summary() *Summary {
	s := &Summary{Arch: n.arch, Channels: n.Channels(), Releases: n.Len()}
	if n.Len() > 0 {
		s.Lowest, s.Highest = n.releases[0].Version, n.releases[n.Len()-1].Version
	}
	for _, r := range n.Heads() {
		s.Heads = append(s.Heads, r.Version)
	}
	return s
}

// String says it in lines.
func (s *Summary) String() string {
	return fmt.Sprintf("Channels: %s%s\nReleases: %d, from %s to %s\nHeads: %s\n", strings.Join(s.Channels, ", "), inBrackets(s.Arch),
		s.Releases, s.Lowest, s.Highest, strings.Join(s.Heads, ", "))
}

func inBrackets(arch string) string {
	if arch == "" {
		return ""
	}
	return " (" + arch + ")"
}

// Updates are what a release can be updated to in one step, and how far it gets.
type Updates struct {
	From      configv1.Release `json:"from"`
	Arch      string           `json:"arch,omitempty"`
	Channels  []ChannelUpdates `json:"channels"`  // the newest first
	Reachable []Reached        `json:"reachable"` // the highest first
}

// ChannelUpdates are the updates of a release in one channel.
type ChannelUpdates struct {
	Channel     string                       `json:"channel"`
	Available   []configv1.Release           `json:"available"`
	Conditional []configv1.ConditionalUpdate `json:"conditional"`
	// Dropped says, by version, which updates a cluster is not offered, and why,
	// but for those that a better one supersedes.
	Dropped map[string]graph.DropCause `json:"dropped,omitempty"`
}

// Updates lists what a cluster that runs a version would be offered in each
// channel, its risks judged by m at the time now, and what it can reach by the
// policy. Errors are those of [Network.Release], [Network.Reachable] and [graph.Graph.Updates].
func (n *Network) Updates(ctx context.Context, version string, m graph.RiskMatcher, now time.Time, p Policy) (*Updates, error) {
	from, err := n.Release(version)
	if err != nil {
		return nil, err
	}
	u := &Updates{From: from, Arch: n.arch}
	u.Reachable, err = n.Reachable(version, p)
	if err != nil {
		return nil, err
	}
	for _, c := range n.channels {
		if !contains(c.Graph, from.Version) {
			continue
		}
		updates, err := c.Graph.Updates(graph.UpdatesQuery{Version: from.Version, Channel: c.Channel, Architecture: string(from.Architecture)})
		if err != nil {
			return nil, err
		}
		in := ChannelUpdates{Channel: c.Channel, Dropped: map[string]graph.DropCause{}}
		in.Available, in.Conditional = risk.Evaluate(ctx, updates, m, nil, nil, now)
		for _, d := range updates.Dropped {
			if d.Cause != graph.Superseded {
				in.Dropped[d.Release.Version] = d.Cause
			}
		}
		u.Channels = append(u.Channels, in)
	}
	return u, nil
}

// contains reports whether a graph holds a version that was found in the network.
func contains(g *graph.Graph, version string) bool {
	v, err := graph.ParseVersion(version)
	if err != nil {
		return false
	}
	_, ok := g.Find(v)
	return ok
}

// String says it in lines.
func (u *Updates) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", u.From.Version, inBrackets(u.Arch))
	if offered := graph.OfferedChannels(u.From); len(offered) > 0 {
		fmt.Fprintf(&b, "Offered channels: %s\n", strings.Join(offered, ", "))
	}
	for _, c := range u.Channels {
		fmt.Fprintf(&b, "\nUpdates in %s:\n", c.Channel)
		for _, r := range c.Available {
			fmt.Fprintf(&b, "  %s\n", r.Version)
		}
		for _, u := range c.Conditional {
			if condition := u.Conditions[0]; condition.Status != "True" {
				fmt.Fprintf(&b, "  %s  Recommended=%s %s: %s\n", u.Release.Version, condition.Status, condition.Reason, strings.ReplaceAll(condition.Message, "\n", "\n      "))
			}
		}
		for _, version := range slices.SortedFunc(maps.Keys(c.Dropped), graph.CompareVersions) {
			fmt.Fprintf(&b, "  %s  not offered: %s\n", version, c.Dropped[version])
		}
		if len(c.Available)+len(c.Conditional) == 0 {
			b.WriteString("  none\n")
		}
	}
	if len(u.Reachable) == 0 {
		b.WriteString("\nNothing can be reached.\n")
		return b.String()
	}
	most := 0
	for _, r := range u.Reachable {
		most = max(most, r.Hops)
	}
	fmt.Fprintf(&b, "\nReachable: %d releases in up to %d hops; the highest is %s in %d.\n", len(u.Reachable), most, u.Reachable[0].Release.Version, u.Reachable[0].Hops)
	return b.String()
}

// Answer is why (not) and by which ways a release can be updated to another.
type Answer struct {
	*Explanation `json:"explanation"`
	Paths        []*Path `json:"paths"` // the best first; none: see NoPath
}

// Answer explains an update and finds the k best paths. Errors are those of
// [Network.Explain] and [Network.Paths], but a missing path is an answer.
func (n *Network) Answer(q ExplainQuery, k int, order Order) (*Answer, error) {
	x, err := n.Explain(q)
	if err != nil || x.Block == notInGraph || x.Block == wrongArchitecture && x.Missing != "" {
		return &Answer{Explanation: x}, err
	}
	paths, err := n.Paths(q.From, q.To, k, order, q.Policy)
	if errors.Is(err, ErrNoPath) {
		err = nil
	}
	return &Answer{Explanation: x, Paths: paths}, err
}

// String says the explanation, and each path hop by hop.
func (a *Answer) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.Explanation)
	for i, p := range a.Paths {
		hops := "hops"
		if len(p.Hops) == 1 {
			hops = "hop"
		}
		fmt.Fprintf(&b, "\nPath %d: %d %s\n%s", i+1, len(p.Hops), hops, p.Text())
	}
	return b.String()
}

// Text says in a line for each hop what to do and what is known about it.
func (p *Path) Text() string {
	var b strings.Builder
	for i, h := range p.Hops {
		if h.Switch {
			fmt.Fprintf(&b, "     switch to channel %s\n", h.Channel)
		}
		fmt.Fprintf(&b, "  %d. %s -> %s  in %s", i+1, h.From, h.To, h.Channel)
		if h.Recommendation != isRecommended {
			fmt.Fprintf(&b, "  %s", h.Recommendation)
		}
		if h.Withheld != "" {
			fmt.Fprintf(&b, " (withheld: %s)", h.WithheldBy)
		}
		b.WriteByte('\n')
		for _, r := range h.Risks {
			fmt.Fprintf(&b, "       risk %s: Applies=%s  %s %s\n", r.Risk.Name, r.Applies.Status, r.Risk.Message, r.Risk.URL)
		}
	}
	if p.NotRecommended+p.Unknown > 0 && len(p.Hops) > 1 {
		b.WriteString("  Risks are judged by what is known today; later hops happen on another cluster.\n")
	}
	return b.String()
}

// String says the plan in lines.
func (c *ControlPlaneOnlyPlan) String() string {
	var b strings.Builder
	versions := c.Path.Versions()
	fmt.Fprintf(&b, "Control-plane-only update %s -> %s", versions[0], versions[len(versions)-1])
	if len(c.Intermediate) > 0 {
		fmt.Fprintf(&b, " over %s", strings.Join(c.Intermediate, ", "))
	}
	b.WriteString("\n")
	for _, channel := range c.Channels {
		fmt.Fprintf(&b, "  channel %s: offered now: %t, holds the plan: %t\n", channel.Name, channel.Offered, channel.Holds)
	}
	fmt.Fprintf(&b, "  pause the worker pools before hop %d, unpause them after hop %d\n", c.PauseBefore+1, c.UnpauseAfter+1)
	return b.String() + c.Path.Text()
}
