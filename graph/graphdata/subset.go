package graphdata

import (
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
)

// Subset cuts a tree down to some versions, as a mirror holds them: what it says
// about others is left out. A version with a build stands for one architecture's
// release, without for all. A graph of releases of the chosen versions alone is the
// same with both trees.
//
// Channels that none of the versions is in go, unless they feed one that stays;
// they are empty then. Files keep their names and lines, so problems of the tree
// do not. The tree is not changed; the result shares parts of it.
func Subset(tree *Tree, versions []string) *Tree {
	s := subset{builds: map[string]map[string]bool{}}
	for _, v := range versions {
		base, build, _ := strings.Cut(v, "+")
		if s.builds[base] == nil {
			s.builds[base] = map[string]bool{}
		}
		s.builds[base][build] = true
	}
	part := &Tree{SchemaVersion: tree.SchemaVersion, Suggestions: tree.Suggestions, Drops: s.blockedEdges(tree.Drops), Risks: s.blockedEdges(tree.Risks)}
	// Raw metadata and risks are for all architectures under Compat, whatever
	// their build.
	for _, e := range tree.Raw {
		if s.holdsBase(e.Version) {
			part.Raw = append(part.Raw, e)
		}
	}
	part.Channels, part.Internal = s.channels(tree.Channels), s.channels(tree.Internal)
	stays := map[string]bool{}
	for _, list := range [][]Channel{part.Channels, part.Internal} {
		for _, c := range list {
			stays[c.Name] = stays[c.Name] || len(c.Versions) > 0
		}
	}
	feeders := map[string]string{}
	for _, list := range [][]Channel{part.Channels, part.Internal} {
		for _, c := range list {
			if c.Feeder != nil {
				feeders[c.Name] = c.Feeder.Name
			}
		}
	}
	for name := range maps.Clone(stays) {
		for stays[name] && feeders[name] != "" && !stays[feeders[name]] {
			name = feeders[name]
			stays[name] = true
		}
	}
	goes := func(c Channel) bool { return !stays[c.Name] }
	part.Channels, part.Internal = slices.DeleteFunc(part.Channels, goes), slices.DeleteFunc(part.Internal, goes)
	return part
}

// subset holds versions: without build → builds; "" is all of them.
type subset struct{ builds map[string]map[string]bool }

func (s subset) holdsBase(version string) bool {
	base := inside.WithoutBuild(version)
	return s.builds[base] != nil
}

func (s subset) holds(version string) bool {
	base, build, _ := strings.Cut(version, "+")
	held := s.builds[base]
	return held != nil && (build == "" || held[""] || held[build])
}

func (s subset) blockedEdges(list []BlockedEdge) (kept []BlockedEdge) {
	for _, e := range list {
		if s.holdsBase(e.To) {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s subset) channels(list []Channel) []Channel {
	kept := slices.Clone(list)
	for i := range kept {
		kept[i].Versions, kept[i].Tombstones = s.entries(kept[i].Versions), s.entries(kept[i].Tombstones)
	}
	return kept
}

func (s subset) entries(list []Entry) (kept []Entry) {
	for _, e := range list {
		if s.holds(e.Version) {
			kept = append(kept, e)
		}
	}
	return kept
}
