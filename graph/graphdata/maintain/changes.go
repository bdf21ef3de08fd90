package maintain

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
)

// Changes are what makes one graph another, as [Diff] finds it: with them, the
// first one becomes the second. They are plain data, in the order of versions, and
// share parts with the snapshots: do not change them.
type Changes struct {
	Nodes   []NodeChange   `json:"nodes,omitempty"`
	Updates []UpdateChange `json:"updates,omitempty"`
	Risks   []RiskChange   `json:"risks,omitempty"`
}

// Empty reports whether both graphs serve the same.
func (c *Changes) Empty() bool { return len(c.Nodes)+len(c.Updates)+len(c.Risks) == 0 }

// NodeChange is a release that appears, vanishes, or is served otherwise.
type NodeChange struct {
	Version string `json:"version"` // without the architecture
	Arch    string `json:"arch"`
	// Was and Is are what the graphs have of it; nil: nothing.
	Was *NodeState `json:"was,omitempty"`
	Is  *NodeState `json:"is,omitempty"`
	// Joined and Left are the channels that it comes into and goes from.
	Joined []string `json:"joined,omitempty"`
	Left   []string `json:"left,omitempty"`
}

// NodeState is what a graph has of a release.
type NodeState struct {
	Image    string            `json:"image,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // with the channels, without previous.remove_regex
}

// UpdateChange is an update that is served differently, in the channels in which it is
// so. An update that changes in two ways, by channel, is there twice.
type UpdateChange struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Arch     string   `json:"arch"`
	Channels []string `json:"channels"`
	Was      Offer    `json:"was"`
	Is       Offer    `json:"is"`
}

// Offer is how an update is served.
type Offer struct {
	// Kind is None for an update that is not served, Recommended for one that is
	// served without condition, or Conditional for one under risks.
	Kind string `json:"kind"`
	// Risks are those of a conditional update, in the order of the graph.
	Risks []configv1.ConditionalUpdateRisk `json:"risks,omitempty"`
}

// The kinds of offers.
const (
	offerNone        = "None"
	offerRecommended = "Recommended"
	offerConditional = "Conditional"
)

// RiskChange is a risk of a name that updates are under, and whose content is
// another; there is more than one content where files say different things. No
// content means that no update is under it.
type RiskChange struct {
	Name string                           `json:"name"`
	Was  []configv1.ConditionalUpdateRisk `json:"was,omitempty"`
	Is   []configv1.ConditionalUpdateRisk `json:"is,omitempty"`
}

// String lists the changes, one a line: releases, risks, then updates, those that
// change alike together. It is empty if absent. Of metadata it names the keys
// alone, and not the channels'.
func (c *Changes) String() string {
	var s strings.Builder
	releases := newGroups()
	for _, n := range c.Nodes {
		releases.add("release "+n.Version+" "+n.what(), n.Arch)
	}
	for _, text := range releases.order {
		fmt.Fprintf(&s, "%s (%s)\n", text, strings.Join(releases.items[text], ", "))
	}
	for _, r := range c.Risks {
		fmt.Fprintf(&s, "risk %s %s\n", r.Name, r.what())
	}
	// Sources that change alike on an architecture, then architectures that are alike.
	sources := newGroups()
	arches := map[string]string{}
	for _, u := range c.Updates {
		key := fmt.Sprintf("%s\x00%s\x00%s", u.To, u.what(), u.Arch)
		arches[key] = u.Arch
		sources.add(key, u.From)
	}
	alike := newGroups()
	for _, key := range sources.order {
		parts := strings.Split(key, "\x00")
		alike.add(fmt.Sprintf("updates to %s from %s %s", parts[0], strings.Join(sources.items[key], ", "), parts[1]), arches[key])
	}
	for _, text := range alike.order {
		fmt.Fprintf(&s, "%s (%s)\n", text, strings.Join(alike.items[text], ", "))
	}
	return s.String()
}

// groups are items by what they have in common, in the order in which they were
// added.
type groups struct {
	order []string
	items map[string][]string
}

func newGroups() *groups { return &groups{items: map[string][]string{}} }

func (g *groups) add(key, item string) {
	if _, known := g.items[key]; !known {
		g.order = append(g.order, key)
	}
	g.items[key] = append(g.items[key], item)
}

// what describes what happens to a release.
func (n NodeChange) what() string {
	var parts []string
	switch {
	case n.Was == nil:
		parts = append(parts, "appears")
	case n.Is == nil:
		parts = append(parts, "vanishes")
	default:
		if n.Was.Image != n.Is.Image {
			parts = append(parts, "has another image")
		}
		if keys := changedKeys(n.Was.Metadata, n.Is.Metadata); len(keys) > 0 {
			parts = append(parts, "has other metadata: "+strings.Join(keys, ", "))
		}
	}
	if len(n.Left) > 0 {
		parts = append(parts, "leaves "+strings.Join(n.Left, ", "))
	}
	if len(n.Joined) > 0 {
		parts = append(parts, "joins "+strings.Join(n.Joined, ", "))
	}
	return strings.Join(parts, "; ")
}

func changedKeys(was, is map[string]string) (keys []string) {
	for _, m := range []map[string]string{was, is} {
		for key := range m {
			a, inA := was[key]
			b, inB := is[key]
			if key != graph.MetadataChannels && (a != b || inA != inB) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (r RiskChange) what() string {
	switch {
	case len(r.Was) == 0:
		return "appears"
	case len(r.Is) == 0:
		return "vanishes"
	}
	return "says something else"
}

// what describes what happens to an update, and where.
func (u UpdateChange) what() string {
	was, is := riskNames(u.Was.Risks), riskNames(u.Is.Risks)
	text := ""
	switch {
	case u.Was.Kind == offerNone && u.Is.Kind == offerConditional:
		text = "appear under " + is
	case u.Was.Kind == offerNone:
		text = "appear"
	case u.Is.Kind == offerNone:
		text = "vanish"
	case u.Is.Kind == offerRecommended:
		text = "become unconditional, and were under " + was
	case u.Was.Kind == offerRecommended:
		text = "become conditional under " + is
	case was == is:
		return "stay in " + strings.Join(u.Channels, ", ") + " under " + is + ", which says something else"
	default:
		text = "are under " + is + ", and were under " + was
	}
	return text + " in " + strings.Join(u.Channels, ", ")
}

func riskNames(risks []configv1.ConditionalUpdateRisk) string {
	var names []string
	for _, r := range risks {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}
