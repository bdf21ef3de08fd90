package olm_test

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/olm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// validate checks a generation against the snapshot that it came from, by the
// promises and not by how the resolver works. It knows requirements of APIs and
// of packages, as real catalogs have them.
func validate(s olm.Snapshot, g *olm.Generation) (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	before := map[string]*olm.Bundle{}
	after := map[string]*olm.Bundle{}
	isNew := map[string]bool{}
	for i := range g.Slots {
		slot := &g.Slots[i]
		if slot.Previous != nil {
			before[slot.Previous.Name] = slot.Previous
		}
		for _, b := range slot.AlsoReplaced {
			before[b.Name] = b
		}
		if slot.Current == nil {
			continue
		}
		if after[slot.Current.Name] != nil {
			fail("%s is there twice", slot.Current.Name)
		}
		after[slot.Current.Name] = slot.Current
		isNew[slot.Current.Name] = slot.Operator != nil
	}
	if len(before) != len(s.Installed) {
		fail("%d operators were installed, slots name %d", len(s.Installed), len(before))
	}

	// Everything installed stays or is replaced along an edge of its own channel.
	subs := map[string]*olm.Subscription{}
	for i := range s.Subscriptions {
		subs[s.Subscriptions[i].Name] = &s.Subscriptions[i]
	}
	for i := range g.Slots {
		slot := &g.Slots[i]
		if slot.Outcome == "Updated" {
			e := slot.Operator.Entry
			inRange := false
			if r, err := olm.ParseRange(e.SkipRange); err == nil && e.SkipRange != "" && slot.Previous.Version != nil {
				inRange = r.Contains(*slot.Previous.Version)
			}
			if e.Replaces != slot.Previous.Name && !slices.Contains(e.Skips, slot.Previous.Name) && !inRange {
				fail("%s may not replace %s", e.Name, slot.Previous.Name)
			}
		}
		for _, name := range slot.Subscriptions {
			sub := subs[name]
			if sub == nil {
				fail("there is no Subscription %s", name)
				continue
			}
			if slot.Operator != nil && (sub.Spec.Package != slot.Operator.Package || sub.Spec.Channel != "" && sub.Spec.Channel != slot.Operator.Channel || sub.Spec.Source != slot.Operator.Catalog.Name) {
				fail("%s is not what Subscription %s asks for", slot.Operator.Name, name)
			}
			delete(subs, name)
		}
	}
	if len(subs) > 0 {
		fail("%d Subscriptions are in no slot", len(subs))
	}

	// Requirements: those of new operators all, those of others if they were met.
	met := func(r *olm.Requirement, in map[string]*olm.Bundle) bool {
		for _, b := range in {
			switch r.Constraint.Kind {
			case "gvk":
				if slices.Contains(b.Provides, r.Constraint.GVK) {
					return true
				}
			case "label":
				if slices.Contains(b.Labels, r.Constraint.Label) {
					return true
				}
			case "package":
				for _, id := range b.Identities {
					if id.Package == r.Constraint.Package && id.Version != nil && r.Constraint.Range.Contains(*id.Version) {
						return true
					}
				}
			default:
				panic("a requirement that the validator does not know: " + r.String())
			}
		}
		return false
	}
	for _, b := range after {
		for i := range b.Requires {
			if r := &b.Requires[i]; !met(r, after) && (isNew[b.Name] || met(r, before)) {
				fail("%s lacks an operator %s", b.Name, r)
			}
		}
		if b.Deprecated && isNew[b.Name] {
			fail("%s is deprecated", b.Name)
		}
	}

	// One provider for each API, one operator for each package.
	providers := map[schema.GroupVersionKind][]string{}
	packages := map[string][]string{}
	for name, b := range after {
		for _, gvk := range b.Provides {
			providers[gvk] = append(providers[gvk], name)
		}
		for _, id := range b.Identities {
			packages[id.Package] = append(packages[id.Package], name)
		}
	}
	alone := func(what string, names []string) {
		for _, n := range names {
			if len(names) > 1 && isNew[n] {
				fail("%s beside others: %v of %s", n, names, what)
			}
		}
	}
	for gvk, names := range providers {
		alone(gvk.String(), names)
	}
	for pkg, names := range packages {
		alone(pkg, names)
	}

	// What was added for a requirement is asked for, and has a Subscription.
	added := 0
	for _, slot := range g.Slots {
		if slot.Outcome != "AddedForRequirement" {
			continue
		}
		added++
		by := slot.RequiredBy
		if after[by.Bundle.Name] != by.Bundle {
			fail("%s is there for %s, which is not", slot.Current.Name, by.Bundle.Name)
		}
		alone := map[string]*olm.Bundle{slot.Current.Name: slot.Current}
		if !met(by.Requirement, alone) {
			fail("%s does not satisfy %s", slot.Current.Name, by.Requirement)
		}
	}
	if added != len(g.NewSubscriptions) {
		fail("%d operators added, %d new Subscriptions", added, len(g.NewSubscriptions))
	}
	return errs
}
