package olm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// Edge returns the field by which the entry replaces an installed operator of this name
// and version (nil: not known): replaces, skips or skipRange, the first of several;
// empty if it does not.
func (e *Entry) Edge(installed string, version *semver.Version) string {
	switch {
	case !e.Updates(installed, version):
		return ""
	case e.Replaces == installed:
		return "replaces"
	case slices.Contains(e.Skips, installed):
		return "skips"
	}
	return "skipRange"
}

// PathStep is one update on the way of an operator through its channels.
type PathStep struct {
	From    string // name of the CSV before
	To      string // and after
	Version string // of To, as the catalog has it
	Channel string // the channel that To is taken from
	Edge    string

	Entry *Entry // of To
}

// PathError explains why an update path is missing.
type PathError struct {
	Package, From string
	To            string // empty if any end would do
	Channels      []string
	// Reached are the operators that can be reached, in the order of the catalog:
	// from the head down.
	Reached []string
}

// Error describes what was looked for and how far one gets.
func (e *PathError) Error() string {
	text := fmt.Sprintf("package %s: no update path from %s", e.Package, e.From)
	if e.To != "" {
		text += " to " + e.To
	}
	text += fmt.Sprintf(" in channels %v", e.Channels)
	if len(e.Reached) == 0 {
		return text + ": nothing there replaces it"
	}
	return text + fmt.Sprintf(": it leads to %s at most", e.Reached[0])
}

// Origin is where an update path starts.
type Origin struct {
	// Name is the installed CSV. It need not be in the catalog.
	Name string
	// Version is its version; nil means the version of the package's entry with
	// that name, if there is one.
	Version *semver.Version
}

// Path returns the updates that follow each other when nothing else is in the
// way: each time the first entry of the channel, from its head down, that
// replaces the operator. An empty channel means that all count, the default
// channel first. No step means that nothing replaces it.
//
// The error is about a package or channel that the catalog does not have or
// that has no order.
func (c *Contents) Path(pkg, channel string, from Origin) ([]PathStep, error) {
	channels, err := c.pathChannels(pkg, channel)
	if err != nil {
		return nil, err
	}
	version := c.originVersion(pkg, from)
	name := from.Name
	seen := map[string]bool{name: true}
	var steps []PathStep
	for {
		next := firstUpdate(channels, name, version)
		if next == nil || seen[next.Name] {
			return steps, nil
		}
		steps = append(steps, newPathStep(name, version, next))
		name, version = next.Name, next.Bundle.Version
		seen[name] = true
	}
}

// PathTo returns the shortest way to the operator that the goal accepts, which
// an update may take or not; of equal ones that which keeps nearest to the
// channel's head. The goal is not asked about the origin. The error is a
// [*PathError] if there is none.
func (c *Contents) PathTo(pkg, channel string, from Origin, goal func(*Entry) bool) ([]PathStep, error) {
	channels, err := c.pathChannels(pkg, channel)
	if err != nil {
		return nil, err
	}
	type stop struct {
		step   PathStep
		before int // index of the stop before, -1 at the origin
	}
	stops := []stop{}
	seen := map[string]bool{from.Name: true}
	expand := func(name string, version *semver.Version, before int) (end int) {
		for _, e := range slices.Concat(updatesIn(channels, name, version)...) {
			if seen[e.Name] || e.Bundle.Deprecated {
				continue
			}
			seen[e.Name] = true
			stops = append(stops, stop{newPathStep(name, version, e), before})
			if goal(e) {
				return len(stops) - 1
			}
		}
		return -1
	}
	end := expand(from.Name, c.originVersion(pkg, from), -1)
	for i := 0; end < 0 && i < len(stops); i++ {
		e := stops[i].step.Entry
		end = expand(e.Name, e.Bundle.Version, i)
	}
	if end < 0 {
		fault := &PathError{Package: pkg, From: from.Name}
		for _, ch := range channels {
			fault.Channels = append(fault.Channels, ch.Name)
		}
		slices.SortFunc(stops, func(a, b stop) int { return cmp.Compare(a.step.Entry.rank, b.step.Entry.rank) })
		for _, s := range stops {
			fault.Reached = append(fault.Reached, s.step.To)
		}
		return nil, fault
	}
	var steps []PathStep
	for i := end; i >= 0; i = stops[i].before {
		steps = append(steps, stops[i].step)
	}
	slices.Reverse(steps)
	return steps, nil
}

// pathChannels returns the channels of a package to walk in, in order.
func (c *Contents) pathChannels(pkg, channel string) ([]*Channel, error) {
	p := c.Package(pkg)
	if p == nil {
		return nil, fmt.Errorf("the catalog has no package %q", pkg)
	}
	if channel != "" {
		ch := p.Channel(channel)
		if ch == nil {
			return nil, fmt.Errorf("package %q has no channel %q", pkg, channel)
		}
		if ch.Err != nil {
			return nil, ch.Err
		}
		return []*Channel{ch}, nil
	}
	var channels []*Channel
	var fault error
	for _, ch := range p.SearchOrder() {
		if ch.Err == nil {
			channels = append(channels, ch)
		} else if fault == nil {
			fault = ch.Err
		}
	}
	if len(channels) == 0 && fault != nil {
		return nil, fault
	}
	return channels, nil
}

func (c *Contents) originVersion(pkg string, from Origin) *semver.Version {
	if from.Version != nil {
		return from.Version
	}
	for _, ch := range c.Package(pkg).Channels {
		if e := ch.Entry(from.Name); e != nil && e.Bundle != nil {
			return e.Bundle.Version
		}
	}
	return nil
}

// firstUpdate is what an update takes if nothing else matters.
func firstUpdate(channels []*Channel, name string, version *semver.Version) *Entry {
	for _, e := range slices.Concat(updatesIn(channels, name, version)...) {
		if !e.Bundle.Deprecated {
			return e
		}
	}
	return nil
}

func newPathStep(from string, version *semver.Version, e *Entry) PathStep {
	return PathStep{
		From: from, To: e.Name, Version: e.Bundle.RawVersion, Channel: e.Channel.Name,
		Edge: e.Edge(from, version), Entry: e,
	}
}
