package path

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ShortestPath finds the best path by the order [Shortest]. From and to the
// same version is a path without hops. Errors: a [*graph.Error] of reason
// VersionNotFound when one is not in the graphs; a [*NoPathError]; or what is
// wrong with the policy. It costs O(V+E), with several channels times their
// number.
func (n *Network) ShortestPath(from, to string, p Policy) (*Path, error) {
	return n.bestPath(from, to, Shortest, p)
}

// SafestPath finds the best path by the order [Safest], else as
// [Network.ShortestPath], with the same errors. It costs O((V+E) log V).
func (n *Network) SafestPath(from, to string, p Policy) (*Path, error) {
	return n.bestPath(from, to, Safest, p)
}

func (n *Network) bestPath(from, to string, order Order, p Policy) (*Path, error) {
	s, start, err := n.search(from, to, order, p)
	if err != nil {
		return nil, err
	}
	if start == s.to {
		return n.path(start, nil), nil
	}
	edges, ok := s.best(start, s.measure(nil))
	if !ok {
		return nil, s.noPath(start)
	}
	return n.path(start, edges), nil
}

// search prepares a search between two versions.
func (n *Network) search(from, to string, order Order, p Policy) (*search, int32, error) {
	start, errFrom := n.find(from)
	end, errTo := n.find(to)
	if err := bounded.Errors(errFrom, errTo); err != nil {
		return nil, 0, err
	}
	switch order {
	case "", Safest, Shortest:
	default:
		return nil, 0, fmt.Errorf("order %q is neither Safest nor Shortest", string(order))
	}
	r, err := n.compile(p)
	if err != nil {
		return nil, 0, err
	}
	return &search{n: n, rules: r, order: order, to: end}, start, nil
}

// noPath explains why a path is missing.
func (s *search) noPath(from int32) error {
	_, order := s.reach(from)
	highest := s.n.text(slices.Max(order))
	return &NoPathError{From: s.n.text(from), To: s.n.text(s.to), Highest: highest, Sources: s.sources(s.to)}
}

// leading returns which nodes have a way to one of the targets, these included.
func (s *search) leading(targets ...int32) []bool {
	leads := make([]bool, len(s.n.versions))
	for _, v := range targets {
		leads[v] = true
	}
	queue := slices.Clone(targets)
	for at := 0; at < len(queue); at++ {
		v := queue[at]
		for _, i := range s.n.into[s.n.firstIn[v]:s.n.firstIn[v+1]] {
			if e := &s.n.edges[i]; !leads[e.from] && s.allows(e) {
				leads[e.from] = true
				queue = append(queue, e.from)
			}
		}
	}
	return leads
}

// sources lists the versions that have a way to one of the targets, the highest
// first, without these.
func (s *search) sources(targets ...int32) (versions []string) {
	leads := s.leading(targets...)
	for _, v := range targets {
		leads[v] = false
	}
	for v := int32(len(leads)) - 1; v >= 0; v-- {
		if leads[v] {
			versions = append(versions, s.n.text(v))
		}
	}
	return versions
}

// reach returns the number of hops to each node, -1 where none lead, and the
// nodes that can be reached, the nearest first.
func (s *search) reach(from int32) (hops []int32, order []int32) {
	hops = slices.Repeat([]int32{-1}, len(s.n.versions))
	hops[from] = 0
	order = append(order, from)
	for at := 0; at < len(order); at++ {
		v := order[at]
		for i := s.n.first[v]; i < s.n.first[v+1]; i++ {
			if e := &s.n.edges[i]; hops[e.to] < 0 && s.allows(e) {
				hops[e.to] = hops[v] + 1
				order = append(order, e.to)
			}
		}
	}
	return hops, order
}

// Reached is a release that can be reached.
type Reached struct {
	Release configv1.Release `json:"release"`
	// Hops is how many updates it takes at least.
	Hops int `json:"hops"`
}

// Reachable lists all releases that can be reached, the highest version first,
// without the one that it starts from. Errors are as those of
// [Network.ShortestPath]. It costs O(V+E).
func (n *Network) Reachable(from string, p Policy) ([]Reached, error) {
	s, start, err := n.search(from, from, Shortest, p)
	if err != nil {
		return nil, err
	}
	hops, _ := s.reach(start)
	var all []Reached
	for v := int32(len(hops)) - 1; v >= 0; v-- {
		if hops[v] > 0 {
			all = append(all, Reached{Release: n.release(v), Hops: int(hops[v])})
		}
	}
	return all, nil
}

// Latest finds the highest version that can be reached, the one that it starts from
// included; with a minor, such as 4.16, the highest of that minor, by any way. If
// there is none in the minor the error is a [*NoPathError] whose To is the minor.
// It costs O(V+E).
func (n *Network) Latest(from, in string, p Policy) (configv1.Release, error) {
	s, start, err := n.search(from, from, Shortest, p)
	if err != nil {
		return configv1.Release{}, err
	}
	_, order := s.reach(start)
	highest := slices.Max(order)
	if in == "" {
		return n.release(highest), nil
	}
	minor, err := openshift.ParseMinor(in)
	if err != nil {
		return configv1.Release{}, err
	}
	best := int32(-1)
	for _, v := range order {
		if openshift.MinorOf(n.versions[v]) == minor {
			best = max(best, v)
		}
	}
	if best >= 0 {
		return n.release(best), nil
	}
	var targets []int32
	for v := range n.versions {
		if openshift.MinorOf(n.versions[v]) == minor {
			targets = append(targets, int32(v))
		}
	}
	sources := s.sources(targets...)
	return configv1.Release{}, &NoPathError{From: n.text(start), To: in, Highest: n.text(highest), Sources: sources}
}

// Heads lists the releases that no edge of any kind leaves, the highest
// version first.
func (n *Network) Heads() []configv1.Release {
	var heads []configv1.Release
	for v := int32(len(n.versions)) - 1; v >= 0; v-- {
		if n.first[v] == n.first[v+1] {
			heads = append(heads, n.release(v))
		}
	}
	return heads
}

// Bounds returns the lowest and the highest release of a channel, or of all for
// an empty name. The error is ErrChannelEmpty for a channel without releases.
func (n *Network) Bounds(channel string) (lowest, highest configv1.Release, err error) {
	if channel == "" {
		return n.release(0), n.release(int32(len(n.versions)) - 1), nil
	}
	for _, c := range n.channels {
		if c.Channel != channel {
			continue
		}
		low, high := -1, -1
		for v, local := range c.local {
			if local < 0 {
				continue
			}
			if low < 0 {
				low = v
			}
			high = v
		}
		return n.release(int32(low)), n.release(int32(high)), nil
	}
	return lowest, highest, ErrChannelEmpty
}
