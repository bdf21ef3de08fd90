package maintain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
)

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
