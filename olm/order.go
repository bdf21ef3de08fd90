package olm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// ChannelError explains why the entries of a channel have no order. It prevents
// resolutions that reach the channel. With neither Cycle nor Chains, the channel
// has no head.
type ChannelError struct {
	Package, Channel string

	// Cycle is the head from which the chain of replacements runs in a circle.
	Cycle string
	// Chains are the chains of a channel with several heads, from the head down,
	// by the name of the head.
	Chains [][]string
}

// Error returns OLM's text.
func (e *ChannelError) Error() string {
	switch {
	case e.Cycle != "":
		return fmt.Sprintf("a cycle exists in the chain of replacement beginning with %q in channel %q of package %q",
			e.Cycle, e.Channel, e.Package)
	case len(e.Chains) > 0:
		chains := make([]string, len(e.Chains))
		for i, c := range e.Chains {
			chains[i] = c[0]
			if len(c) > 1 {
				chains[i] += "..." + c[len(c)-1]
			}
		}
		return fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order between channel entries, but %d replacement chains were found in channel %q of package %q: %s",
			len(chains), e.Channel, e.Package, strings.Join(chains, ", "))
	}
	return fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %q of package %q",
		e.Channel, e.Package)
}

// Updates returns the entries that may replace an installed operator of this name
// and version (nil: not known), from the head down. The installed operator itself
// is not among them, nor are the entries below it on the way from the head:
// otherwise an open skipRange would lead down and up again without end.
func (ch *Channel) Updates(installed string, version *semver.Version) []*Entry {
	end := len(ch.Entries)
	if e := ch.Entry(installed); e != nil && e.walk >= 0 {
		end = e.walk
	}
	var updates []*Entry
	for _, e := range ch.Ordered {
		if e.walk >= end {
			break
		}
		if e.Name != installed && e.Updates(installed, version) {
			updates = append(updates, e)
		}
	}
	return updates
}

// updatesIn returns for each channel the entries that [Channel.Updates] returns, but none
// that is below the installed operator in another of them: an open skipRange in one channel
// would lead down what another leads up.
func updatesIn(channels []*Channel, installed string, version *semver.Version) [][]*Entry {
	if len(channels) == 1 {
		return [][]*Entry{channels[0].Updates(installed, version)}
	}
	below := map[string]bool{}
	for _, ch := range channels {
		at := ch.Entry(installed)
		if at == nil || at.walk < 0 {
			continue
		}
		for _, e := range ch.Ordered {
			below[e.Name] = below[e.Name] || e.walk > at.walk
		}
	}
	updates := make([][]*Entry, len(channels))
	for i, ch := range channels {
		updates[i] = slices.DeleteFunc(ch.Updates(installed, version), func(e *Entry) bool { return below[e.Name] })
	}
	return updates
}

// order finds heads and order of a channel whose entries are complete. Names
// that are not in the channel play no part, and versions neither.
func (ch *Channel) order() {
	byName := ch.byName()
	replaced := make(map[string]bool, len(ch.Entries))
	skipped := make(map[string]bool)
	for _, e := range ch.Entries {
		e.walk = -1
		if e.Replaces != "" {
			replaced[e.Replaces] = true
		}
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	for _, e := range ch.Entries {
		if !replaced[e.Name] && !skipped[e.Name] {
			ch.Heads = append(ch.Heads, e)
		}
	}
	if len(ch.Entries) == 0 {
		return
	}
	slices.SortFunc(ch.Heads, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })

	fault := &ChannelError{Package: ch.Package.Name, Channel: ch.Name}
	var walk []*Entry
	for _, head := range ch.Heads {
		var cyclic bool
		walk, cyclic = walkDown(head, byName)
		if cyclic {
			fault.Cycle = head.Name
			ch.Err = fault
			return
		}
		if len(ch.Heads) > 1 {
			fault.Chains = append(fault.Chains, unskipped(walk, skipped))
		}
	}
	if len(ch.Heads) != 1 {
		ch.Err = fault
		return
	}
	for i, e := range walk {
		e.walk = i
		if !skipped[e.Name] && e.Bundle != nil {
			ch.Ordered = append(ch.Ordered, e)
		}
	}
}

func (ch *Channel) byName() map[string]*Entry {
	byName := make(map[string]*Entry, len(ch.Entries))
	for _, e := range ch.Entries {
		byName[e.Name] = e
	}
	return byName
}

// walkDown follows replaces from a head through the entries of a channel.
func walkDown(head *Entry, byName map[string]*Entry) (walk []*Entry, cyclic bool) {
	for e := head; e != nil; e = byName[e.Replaces] {
		if len(walk) == len(byName) {
			return walk, true // more steps than entries
		}
		walk = append(walk, e)
	}
	return walk, false
}

func unskipped(walk []*Entry, skipped map[string]bool) []string {
	var names []string
	for _, e := range walk {
		if !skipped[e.Name] {
			names = append(names, e.Name)
		}
	}
	return names
}
