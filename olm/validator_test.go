package olm_test

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// validate finds what a resolution does not check itself (see TestCheck): whether
// all that is installed has a slot, each Subscription has one and gets what it asks
// for, and what was added for a requirement satisfies it and gets a Subscription.
func validate(s olm.Snapshot, g *olm.Generation) (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	subs := map[string]*olmapi.Subscription{}
	for i := range s.Subscriptions {
		subs[s.Subscriptions[i].Name] = &s.Subscriptions[i]
	}
	before, after := map[string]bool{}, map[*olm.Bundle]bool{}
	added := 0
	for i := range g.Slots {
		slot := &g.Slots[i]
		after[slot.Current] = true
		if slot.Previous != nil {
			before[slot.Previous.Name] = true
		}
		for _, b := range slot.AlsoReplaced {
			before[b.Name] = true
		}
		for _, name := range slot.Subscriptions {
			sub, op := subs[name], slot.Operator
			delete(subs, name)
			switch {
			case sub == nil:
				fail("there is no Subscription %s, or it has two slots", name)
			case op == nil:
			case sub.Spec.Package != op.Package, sub.Spec.Channel != "" && sub.Spec.Channel != op.Channel, sub.Spec.Source != op.Catalog.Name:
				fail("%s is not what Subscription %s asks for", op.Name, name)
			}
		}
	}
	for _, slot := range g.Slots {
		if slot.Outcome != "AddedForRequirement" {
			continue
		}
		added++
		by := slot.RequiredBy
		if ok, err := by.Requirement.Matches(slot.Current, nil); !ok || err != nil || !after[by.Bundle] {
			fail("%s is there for %s, which is not, or it does not satisfy %s: %v", slot.Current.Name, by.Bundle.Name, by.Requirement, err)
		}
	}
	if len(before) != len(s.Installed) || len(subs) > 0 || added != len(g.NewSubscriptions) {
		fail("%d of %d installed operators and all but %d Subscriptions are in slots; %d operators were added, and %d Subscriptions",
			len(before), len(s.Installed), len(subs), added, len(g.NewSubscriptions))
	}
	return errs
}
