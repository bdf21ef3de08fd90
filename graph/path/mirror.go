package path

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	configv1 "github.com/openshift/api/config/v1"
)

// ErrNoVersionsFound is the reason of the [*graph.Error] for a channel that has no
// release to mirror.
const ErrNoVersionsFound graph.Reason = "NoVersionsFound"

// MirrorQuery asks which releases of a channel to mirror. It is the release
// part of a mirror planner's configuration.
type MirrorQuery struct {
	// Channel is one of the network's; empty means all of them.
	Channel string
	// Min and Max bound the versions, ends included. Where one is empty, see
	// [Network.MirrorBounds].
	Min, Max string
	// Full takes the whole channel where neither bound is given, instead of
	// its highest version alone.
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

// MirrorBounds are the versions between which a mirror planner selects.
type MirrorBounds struct {
	Min, Max string
	// Full says that the bounds are not just the head of the channel.
	Full bool
}

// MirrorBounds completes the bounds: with both they are as given; with none
// they are the channel's highest version, or with Full its lowest and highest;
// a missing one is the channel's. The error names the channel where no version
// is left, with reason NoVersionsFound.
func (n *Network) MirrorBounds(q MirrorQuery) (MirrorBounds, error) {
	for _, text := range []string{q.Min, q.Max} {
		if _, err := graph.ParseVersion(text); text != "" && err != nil {
			return MirrorBounds{}, fmt.Errorf("bound %q: %w", text, err)
		}
	}
	if q.Min != "" && q.Max != "" {
		return MirrorBounds{q.Min, q.Max, true}, nil
	}
	lowest, highest := "", ""
	for v := range n.versions {
		if text := n.text(int32(v)); n.inChannel(int32(v), q.Channel) && (q.VersionFilter == nil || q.VersionFilter.MatchString(text)) {
			if lowest == "" {
				lowest = text
			}
			highest = text
		}
	}
	if highest == "" {
		return MirrorBounds{}, noVersions(n.arch, q.Channel)
	}
	switch {
	case q.Min != "":
		return MirrorBounds{q.Min, highest, true}, nil
	case q.Max != "":
		return MirrorBounds{lowest, q.Max, true}, nil
	case q.Full:
		return MirrorBounds{lowest, highest, true}, nil
	}
	return MirrorBounds{highest, highest, false}, nil
}

func (n *Network) inChannel(v int32, channel string) bool {
	if channel == "" {
		return true
	}
	return slices.ContainsFunc(n.channels, func(c channelNodes) bool { return c.Channel == channel && c.local[v] >= 0 })
}

// MirrorRange lists the releases to mirror, ascending, each image once: all of
// the channel between the bounds, or those of the shortest path between them.
// Errors are those of [Network.MirrorBounds] and [Network.ShortestPath].
func (n *Network) MirrorRange(q MirrorQuery) ([]configv1.Release, error) {
	bounds, err := n.MirrorBounds(q)
	if err != nil {
		return nil, err
	}
	var selected []configv1.Release
	switch {
	case !q.ShortestPath:
		for v := range n.versions {
			r := n.release(int32(v))
			if n.inChannel(int32(v), q.Channel) && graph.CompareVersions(r.Version, bounds.Min) >= 0 && graph.CompareVersions(r.Version, bounds.Max) <= 0 {
				selected = append(selected, r)
			}
		}
	default:
		p, err := n.ShortestPath(bounds.Min, bounds.Max, q.Policy)
		if err != nil {
			return nil, err
		}
		selected = p.Releases
	}
	slices.SortStableFunc(selected, func(a, b configv1.Release) int { return graph.CompareVersions(a.Version, b.Version) })
	return uniqueImages(selected), nil
}

func noVersions(arch, channel string) error {
	return &graph.Error{Reason: string(ErrNoVersionsFound), Message: fmt.Sprintf("no cluster versions found for %q in the %q channel", arch, channel)}
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
