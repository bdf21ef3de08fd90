package catalog_test

import (
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func TestCommunityCatalog(t *testing.T) {
	c := community(t)
	got := make(map[string]int)
	for _, p := range c.Packages() {
		got["packages"]++
		got["bundles"] += len(p.Bundles)
		severalHeads := false
		for _, ch := range p.Channels {
			got["channels"]++
			got["entries"] += len(ch.Entries)
			countChannel(got, ch)
			severalHeads = severalHeads || len(ch.Heads) > 1
		}
		if severalHeads {
			got["packages with several heads"]++
		}
	}
	channels := make(map[string]bool)
	ranges := make(map[string]bool)
	for _, p := range c.Problems() {
		got["rule "+p.Rule]++
		channels[p.Package+"/"+p.Channel] = true
		if p.Rule == "SkipRange" {
			ranges[p.Package+"/"+p.Channel] = true
		}
		if p.File != "community.jsonl" || p.Line == 0 || p.Line != p.Document {
			t.Errorf("place of %v", &p)
		}
	}
	got["channels with problems"] = len(channels)
	got["channels with bad ranges"] = len(ranges)
	want := map[string]int{
		"packages": 332, "channels": 653, "entries": 9023, "bundles": 7014,
		"several heads": 260, "packages with several heads": 196, "default channels with several heads": 192, "several heads without an edge": 190,
		"stranded for the resolver":  8,
		"ranges that lead back down": 3,
		"rule Heads":                 260, "rule Stranded": 17, "rule SkipRange": 31, "channels with bad ranges": 5,
		"channels with problems": 278,
	}
	checktest.Same(t, want, got)
	if c.Validate() == nil {
		t.Error("the catalog tools would accept it")
	}
}

func countChannel(count map[string]int, ch *olm.Channel) {
	switch {
	case len(ch.Heads) == 0:
		count["no head"]++
	case len(ch.Heads) > 1:
		count["several heads"]++
		if ch.Default {
			count["default channels with several heads"]++
		}
		if !slices.ContainsFunc(ch.Entries, func(e *olm.Entry) bool { return e.Replaces != "" || len(e.Skips) > 0 || e.SkipRange != "" }) {
			count["several heads without an edge"]++
		}
	}
	if (ch.Err != nil) != (len(ch.Heads) > 1) {
		count["other disorder"]++
	}
	if ch.Err != nil {
		return
	}
	skipped := make(map[string]bool)
	for _, e := range ch.Entries {
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	if slices.ContainsFunc(ch.Entries, func(e *olm.Entry) bool { return e.Rank() < 0 && !skipped[e.Name] }) {
		count["stranded for the resolver"]++
	}
	leadsDown := false
	for i, e := range ch.Ordered {
		for _, below := range ch.Ordered[i+1:] {
			leadsDown = leadsDown || below.Updates(e.Name, e.Bundle.Version)
		}
	}
	if leadsDown {
		count["ranges that lead back down"]++
	}
}

func TestCommunityUpdatesEnd(t *testing.T) {
	// Whatever candidate is taken, updates never come to an operator twice.
	for _, p := range community(t).Packages() {
		for _, ch := range p.Channels {
			above := make(map[string]int, len(ch.Ordered))
			for i, e := range ch.Ordered {
				above[e.Name] = i
			}
			for i, e := range ch.Ordered {
				for _, u := range ch.Updates(e.Name, e.Bundle.Version) {
					if above[u.Name] >= i {
						t.Errorf("%s %s: %s is updated to %s", p.Name, ch.Name, e.Name, u.Name)
					}
				}
			}
		}
	}
}

func TestCommunityProperties(t *testing.T) {
	c := community(t)
	got := make(map[string]int)
	for _, p := range c.Packages() {
		for _, b := range p.Bundles {
			if b.Err != nil {
				t.Error(b.Err)
			}
			if b.Version == nil {
				t.Errorf("%s has no version", b.Name)
			}
			for _, r := range b.Requires {
				got[r.Property.Type]++
				if r.Constraint.Kind == "cel" {
					t.Errorf("%s has a cel constraint", b.Name)
				}
			}
			got[olm.PropertyMaxOpenShift] += len(b.MaxOpenShift)
		}
	}
	want := map[string]int{
		olm.PropertyPackageRequired: 131, olm.PropertyGVKRequired: 121, olm.PropertyConstraint: 1, olm.PropertyMaxOpenShift: 566,
	}
	checktest.Same(t, want, got)
}
