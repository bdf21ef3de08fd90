package maintain

import (
	"cmp"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
)

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
