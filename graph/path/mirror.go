package path

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
)

// MirrorQuery asks which releases of a channel to mirror. It is the release
// part of a mirror planner's configuration.
type MirrorQuery struct {
	// Channel is one of the network's; empty means all of them.
	Channel string
	// Min and Max bound the versions, ends included. An empty one is the channel's
	// lowest or highest version.
	Min, Max string
	// Full takes the whole channel if neither bound is given, instead of its highest
	// version alone.
	Full bool
	// ShortestPath takes the shortest path between the bounds instead of all
	// versions between them.
	ShortestPath bool
	// Policy says which way the path may go. The channels of its hops are not
	// bound by Channel.
	Policy Policy
	// VersionFilter restricts which versions are the highest and the lowest;
	// nil allows all.
	VersionFilter *regexp.Regexp
}

// mirrorBounds completes the bounds: with both they are as given; with none
// they are the channel's highest version, or with Full its lowest and highest;
// a missing one is the channel's. The error names the channel if no version is left.
func (n *Network) mirrorBounds(q MirrorQuery) (lowest, highest string, err error) {
	for _, text := range []string{q.Min, q.Max} {
		if _, err := graph.ParseVersion(text); text != "" && err != nil {
			return "", "", fmt.Errorf("bound %q: %w", text, err)
		}
	}
	if q.Min != "" && q.Max != "" {
		return q.Min, q.Max, nil
	}
	for v := range n.versions {
		text := n.text(int32(v))
		if n.inChannel(int32(v), q.Channel) && (q.VersionFilter == nil || q.VersionFilter.MatchString(text)) {
			lowest = cmp.Or(lowest, text)
			highest = text
		}
	}
	if highest == "" {
		return "", "", &graph.Error{Reason: "NoVersionsFound", Message: fmt.Sprintf("no cluster versions found for %q in the %q channel", n.arch, q.Channel)}
	}
	if q.Min == "" && q.Max == "" && !q.Full {
		return highest, highest, nil
	}
	return cmp.Or(q.Min, lowest), cmp.Or(q.Max, highest), nil
}

func (n *Network) inChannel(v int32, channel string) bool {
	if channel == "" {
		return true
	}
	return slices.ContainsFunc(n.channels, func(c channelNodes) bool { return c.Channel == channel && c.local[v] >= 0 })
}

// MirrorRange lists the releases to mirror, ascending, each image once: all of
// the channel between the bounds, or those of the shortest path between them.
// The error is that of [Network.ShortestPath], names a bound that is not a version, or
// is a [*graph.Error] of reason NoVersionsFound.
func (n *Network) MirrorRange(q MirrorQuery) ([]configv1.Release, error) {
	lowest, highest, err := n.mirrorBounds(q)
	if err != nil {
		return nil, err
	}
	var selected []configv1.Release
	switch {
	case !q.ShortestPath:
		for v := range n.versions {
			r := n.release(int32(v))
			if n.inChannel(int32(v), q.Channel) && graph.CompareVersions(r.Version, lowest) >= 0 && graph.CompareVersions(r.Version, highest) <= 0 {
				selected = append(selected, r)
			}
		}
	default:
		p, err := n.ShortestPath(lowest, highest, q.Policy)
		if err != nil {
			return nil, err
		}
		selected = p.Releases
	}
	slices.SortStableFunc(selected, func(a, b configv1.Release) int { return graph.CompareVersions(a.Version, b.Version) })
	return uniqueImages(selected), nil
}

// uniqueImages leaves out releases whose image came before.
func uniqueImages(releases []configv1.Release) []configv1.Release {
	seen := map[string]bool{}
	var kept []configv1.Release
	for _, r := range releases {
		if !seen[r.Image] {
			seen[r.Image] = true
			kept = append(kept, r)
		}
	}
	return kept
}
