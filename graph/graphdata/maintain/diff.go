package maintain

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
)

// Diff returns what turns the graph of one snapshot into another's: releases, their
// channels, updates and risks, for all channels and architectures. What is never
// served, as updates between channels, does not count. A nil snapshot is empty.
func Diff(a, b *graphdata.Snapshot) *Changes {
	d := newDiffer(a, b)
	for at := range d.nodes {
		d.node(at)
	}
	was, is := make([]int32, len(d.nodes)), make([]int32, len(d.nodes))
	for t := range d.nodes {
		d.updates(t, was, is)
	}
	d.risks()
	return d.changes
}

// differ is one call of Diff. Index 0 is for the first snapshot, 1 for the second.
type differ struct {
	snaps   [2]*inside.Graph
	nodes   []unionNode
	place   [2][]int32                         // of a snapshot's node in nodes
	lists   [2][]int32                         // of a snapshot's list of risks: offer
	offers  [][]configv1.ConditionalUpdateRisk // by number
	changes *Changes
}

// The numbers of offers that have no risks.
const (
	noOffer int32 = iota
	recommended
	firstConditional
)

// unionNode is a node of either snapshot.
type unionNode struct {
	at       [2]int32 // -1: not there
	channels [2][]string
	arches   []string // of both
	same     bool     // served alike, and in the same channels
}

func newDiffer(a, b *graphdata.Snapshot) *differ {
	d := &differ{changes: &Changes{}, offers: make([][]configv1.ConditionalUpdateRisk, firstConditional)}
	for side, s := range []*graphdata.Snapshot{a, b} {
		d.snaps[side] = &inside.Graph{}
		if s != nil {
			d.snaps[side] = s.Inside()
		}
	}
	d.merge()
	numbers := map[string]int32{}
	for side, s := range d.snaps {
		for _, list := range s.Lists {
			text := riskText(list)
			number, known := numbers[text]
			if !known {
				number = int32(len(d.offers))
				numbers[text] = number
				d.offers = append(d.offers, list)
			}
			d.lists[side] = append(d.lists[side], number)
		}
	}
	return d
}

// riskText distinguishes risks.
func riskText(risks any) string {
	text, err := json.Marshal(risks)
	if err != nil {
		return "" // cannot happen: Build has written them
	}
	return string(text)
}

// merge puts the nodes of both snapshots into one order.
func (d *differ) merge() {
	a, b := d.snaps[0].Nodes, d.snaps[1].Nodes
	for i, j := 0, 0; i < len(a) || j < len(b); {
		c := 0
		switch {
		case i == len(a):
			c = 1
		case j == len(b):
			c = -1
		default:
			c = cmp.Or(a[i].SemVer.Compare(b[j].SemVer), cmp.Compare(a[i].Version, b[j].Version))
		}
		n := unionNode{at: [2]int32{-1, -1}}
		if c <= 0 {
			n.at[0] = int32(i)
			d.place[0] = append(d.place[0], int32(len(d.nodes)))
			i++
		}
		if c >= 0 {
			n.at[1] = int32(j)
			d.place[1] = append(d.place[1], int32(len(d.nodes)))
			j++
		}
		d.nodes = append(d.nodes, d.complete(n))
	}
}

func (d *differ) complete(n unionNode) unionNode {
	var arches [2][]string
	for side, s := range d.snaps {
		if n.at[side] < 0 {
			continue
		}
		n.channels[side] = inside.SplitList(s.Nodes[n.at[side]].Metadata[graph.MetadataChannels])
		for _, served := range s.Nodes[n.at[side]].Served {
			arches[side] = append(arches[side], served.Arch)
		}
	}
	n.same = slices.Equal(arches[0], arches[1]) && slices.Equal(n.channels[0], n.channels[1])
	n.arches = slices.Concat(arches[0], arches[1])
	slices.Sort(n.arches)
	n.arches = slices.Compact(n.arches)
	return n
}

// served returns the version of a node as a snapshot serves it for an architecture,
// "" if it does not.
func (d *differ) served(side int, n *unionNode, arch string) string {
	if n.at[side] < 0 {
		return ""
	}
	return servedVersion(&d.snaps[side].Nodes[n.at[side]], arch)
}

// node finds what changes of a node.
func (d *differ) node(at int) {
	n := &d.nodes[at]
	for _, arch := range n.arches {
		change := NodeChange{Arch: arch}
		var channels [2][]string
		var states [2]*NodeState
		for side, s := range d.snaps {
			served := d.served(side, n, arch)
			if served == "" {
				continue
			}
			change.Version = served
			states[side] = stateOf(&s.Nodes[n.at[side]])
			channels[side] = n.channels[side]
		}
		change.Was, change.Is = states[0], states[1]
		if change.Was != nil && change.Is != nil && change.Was.Image == change.Is.Image && maps.Equal(change.Was.Metadata, change.Is.Metadata) {
			continue
		}
		change.Left, change.Joined = channelsWithout(channels[0], channels[1]), channelsWithout(channels[1], channels[0])
		d.changes.Nodes = append(d.changes.Nodes, change)
	}
}

// stateOf leaves out the key by which Build notes what it removes: it has no effect, and
// the updates show what changes.
func stateOf(n *inside.Node) *NodeState {
	metadata := n.Metadata
	if _, noted := metadata[graph.MetadataPreviousRemoveRegex]; noted {
		metadata = maps.Clone(metadata)
		delete(metadata, graph.MetadataPreviousRemoveRegex)
	}
	return &NodeState{Image: n.Image, Metadata: metadata}
}

// channelsWithout returns what is in a and not in b, in the order for people.
func channelsWithout(a, b []string) []string {
	rest := without(a, b)
	slices.SortFunc(rest, graph.CompareChannels)
	return rest
}

// risks finds the contents that risks have in one snapshot alone.
func (d *differ) risks() {
	contents := map[string][2][]configv1.ConditionalUpdateRisk{}
	seen := map[string][2]bool{}
	for side, s := range d.snaps {
		used := make([]bool, len(s.Lists)) // by an update that is left
		for _, pairs := range s.Pairs {
			for _, c := range pairs {
				used[c.List] = true
			}
		}
		for i, list := range s.Lists {
			if !used[i] {
				continue
			}
			for _, r := range list {
				text := riskText(r)
				if seen[text][side] {
					continue
				}
				both := seen[text]
				both[side] = true
				seen[text] = both
				of := contents[r.Name]
				of[side] = append(of[side], r)
				contents[r.Name] = of
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		of := contents[name]
		for side := range of {
			slices.SortFunc(of[side], func(x, y configv1.ConditionalUpdateRisk) int { return strings.Compare(riskText(x), riskText(y)) })
		}
		if riskText(of[0]) != riskText(of[1]) {
			d.changes.Risks = append(d.changes.Risks, RiskChange{Name: name, Was: of[0], Is: of[1]})
		}
	}
}

// updates finds what changes of the updates to a node. was and is hold the offer of
// each source; they are empty before and after.
func (d *differ) updates(t int, was, is []int32) {
	var sources []int32
	for side, offers := range [2][]int32{was, is} {
		at := d.nodes[t].at[side]
		if at < 0 {
			continue
		}
		set := func(f, offer int32) {
			f = d.place[side][f]
			offers[f] = offer
			sources = append(sources, f)
		}
		for _, f := range d.snaps[side].In[at] {
			set(f, recommended)
		}
		for _, c := range d.snaps[side].Pairs[at] {
			set(c.From, d.lists[side][c.List])
		}
	}
	slices.Sort(sources)
	for _, f := range slices.Compact(sources) {
		if was[f] != is[f] || !d.nodes[f].same || !d.nodes[t].same {
			d.update(&d.nodes[f], &d.nodes[t], [2]int32{was[f], is[f]})
		}
		was[f], is[f] = noOffer, noOffer
	}
}

// update reports an update that may be served otherwise, by what happens to it in
// which channels.
func (d *differ) update(from, to *unionNode, offers [2]int32) {
	for _, arch := range from.arches {
		if !slices.Contains(to.arches, arch) {
			continue
		}
		var channels [2][]string
		change := UpdateChange{Arch: arch}
		for side := range offers {
			f, t := d.served(side, from, arch), d.served(side, to, arch)
			change.From, change.To = cmp.Or(f, change.From), cmp.Or(t, change.To)
			if f == "" || t == "" || offers[side] == noOffer {
				continue
			}
			for _, c := range from.channels[side] {
				if slices.Contains(to.channels[side], c) {
					channels[side] = append(channels[side], c)
				}
			}
		}
		inBoth := without(channels[0], without(channels[0], channels[1]))
		for _, k := range []struct {
			channels []string
			was, is  int32
		}{
			{without(channels[0], channels[1]), offers[0], noOffer},
			{without(channels[1], channels[0]), noOffer, offers[1]},
			{inBoth, offers[0], offers[1]},
		} {
			if len(k.channels) == 0 || k.was == k.is {
				continue
			}
			change.Channels = slices.SortedFunc(slices.Values(k.channels), graph.CompareChannels)
			change.Was, change.Is = d.offer(k.was), d.offer(k.is)
			d.changes.Updates = append(d.changes.Updates, change)
		}
	}
}

func (d *differ) offer(number int32) Offer {
	kinds := []string{offerNone, offerRecommended, offerConditional}
	return Offer{Kind: kinds[min(number, firstConditional)], Risks: d.offers[number]}
}
