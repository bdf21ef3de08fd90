package olm

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// index finds entries by what a requirement asks for, each list in the order
// in which the entries were added.
type index struct {
	gvk   map[schema.GroupVersionKind][]*Entry
	pkg   map[string][]*Entry
	label map[string][]*Entry
	all   []*Entry
}

func newIndex(entries []*Entry) index {
	x := index{
		gvk:   make(map[schema.GroupVersionKind][]*Entry),
		pkg:   make(map[string][]*Entry),
		label: make(map[string][]*Entry),
		all:   entries,
	}
	for _, e := range entries {
		b := e.Bundle
		for _, gvk := range b.Provides {
			x.gvk[gvk] = append(x.gvk[gvk], e)
		}
		for _, l := range b.Labels {
			x.label[l] = append(x.label[l], e)
		}
		x.pkg[b.Package] = append(x.pkg[b.Package], e)
		for i, id := range b.Identities {
			if id.Package != b.Package && !namedBefore(b.Identities[:i], id.Package) {
				x.pkg[id.Package] = append(x.pkg[id.Package], e)
			}
		}
	}
	return x
}

func namedBefore(ids []Identity, pkg string) bool {
	return slices.ContainsFunc(ids, func(id Identity) bool { return id.Package == pkg })
}

// candidates returns the entries among which are all that satisfy the
// constraint: a superset, in order, each once. exact means nothing else.
func (x *index) candidates(c *Constraint) (entries []*Entry, exact bool) {
	switch c.Kind {
	case constraintGVK:
		return x.gvk[c.GVK], true
	case constraintLabel:
		return x.label[c.Label], true
	case constraintPackage:
		return x.pkg[c.Package], false
	case constraintAll:
		entries = x.all
		for i := range c.Parts {
			if part, _ := x.candidates(&c.Parts[i]); len(part) < len(entries) {
				entries = part
			}
		}
		return entries, len(c.Parts) == 0
	case constraintAny:
		n := 0
		parts := make([][]*Entry, len(c.Parts))
		for i := range c.Parts {
			parts[i], _ = x.candidates(&c.Parts[i])
			n += len(parts[i])
			if n >= len(x.all) {
				return x.all, false
			}
		}
		entries = slices.Concat(parts...)
		slices.SortFunc(entries, func(a, b *Entry) int { return cmp.Compare(a.place, b.place) })
		return slices.Compact(entries), false
	}
	return x.all, false
}

// matching returns the entries that satisfy a requirement alone, in order. eval
// may be nil if no constraint is a cel rule; the error is a [*CELError].
func (x *index) matching(r *Requirement, eval CELEvaluator) ([]*Entry, error) {
	candidates, exact := x.candidates(&r.Constraint)
	if exact {
		return candidates, nil
	}
	var entries []*Entry
	for _, e := range candidates {
		ok, err := r.Matches(e.Bundle, eval)
		if err != nil {
			return nil, err
		}
		if ok {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// disordered returns the channels without an order that hold an entry which
// satisfies the requirement, in the order in which they would be searched:
// OLM's resolver stops with the error of such a channel.
func (c *Contents) disordered(r *Requirement, eval CELEvaluator) ([]*Channel, error) {
	entries, err := c.bad.matching(r, eval)
	if err != nil {
		return nil, err
	}
	var channels []*Channel
	for _, e := range entries {
		if n := len(channels); n == 0 || channels[n-1] != e.Channel {
			channels = append(channels, e.Channel)
		}
	}
	return channels, nil
}

// NewContents orders and indexes packages of different names. Of a package it
// takes the exported fields, its Bundles and its Channels; of a channel the
// Name, texts and Entries; of an entry its Name, Bundle, Replaces, Skips and
// SkipRange. It sets all else, and keeps the packages: the caller must not
// change them any more.
func NewContents(packages []*Package) *Contents {
	c := &Contents{packages: slices.Clone(packages), byName: make(map[string]*Package, len(packages))}
	parsed := make(ranges)
	for _, p := range packages {
		c.byName[p.Name] = p
		for _, b := range p.Bundles {
			b.addIdentity()
		}
		for _, ch := range p.Channels {
			ch.Package, ch.Default = p, ch.Name == p.DefaultChannel
			for _, e := range ch.Entries {
				e.Package, e.Channel, e.rank, e.walk = p, ch, -1, -1
				if e.SkipRange != "" {
					e.skipRange, _ = parsed.parse(e.SkipRange)
				}
			}
		}
		slices.SortFunc(p.Channels, func(a, b *Channel) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Bundles, func(a, b *Bundle) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(c.packages, func(a, b *Package) int { return strings.Compare(a.Name, b.Name) })
	for _, defaults := range []bool{true, false} {
		for _, p := range c.packages {
			for _, ch := range p.Channels {
				if ch.Default == defaults {
					c.channels = append(c.channels, ch)
				}
			}
		}
	}
	place := 0
	var entries, bad []*Entry
	for _, ch := range c.channels {
		ch.order()
		for _, e := range ch.Ordered {
			e.rank, e.place = len(entries), place
			place++
			entries = append(entries, e)
		}
		for _, e := range ch.Entries {
			if e.rank >= 0 {
				continue
			}
			e.place = place
			place++
			if ch.Err != nil && e.Bundle != nil {
				bad = append(bad, e)
			}
		}
	}
	c.index, c.bad = newIndex(entries), newIndex(bad)
	return c
}
