package olm

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check re-checks the promises that every generation keeps. An error is a fault
// of the resolver.
func (g *Generation) check() error {
	p := g.problem
	var before, after memberIndex
	for i := range p.installed {
		if b := p.installed[i].Bundle; !p.going[b.Name] {
			before.add(b)
		}
	}
	var members []*Slot
	for i := range g.Slots {
		s := &g.Slots[i]
		if s.Current != nil && !(s.Outcome == Kept && p.going[s.Current.Name]) {
			after.add(s.Current)
			members = append(members, s)
		}
	}
	var errs []error
	for _, s := range members {
		for i := range s.Current.Requires {
			r := &s.Current.Requires[i]
			if after.satisfies(r, p.options.CEL) {
				continue
			}
			switch {
			case s.Outcome != Kept:
				errs = append(errs, fmt.Errorf("%s would lack an operator %s", s.Current.Name, r))
			case before.satisfies(r, p.options.CEL):
				errs = append(errs, fmt.Errorf("%s would lose an operator %s", s.Current.Name, r))
			}
		}
		if e := s.Operator; e != nil && s.Previous != nil && !e.Entry.Updates(s.Previous.Name, s.Previous.Version) {
			errs = append(errs, fmt.Errorf("%s does not replace %s", e.Name, s.Previous.Name))
		}
		for _, b := range s.AlsoReplaced {
			if !s.Operator.Entry.Updates(b.Name, b.Version) {
				errs = append(errs, fmt.Errorf("%s does not replace %s", s.Current.Name, b.Name))
			}
		}
		if s.Operator != nil && s.Current.Deprecated {
			errs = append(errs, fmt.Errorf("%s is deprecated", s.Current.Name))
		}
	}
	errs = append(errs, clashes(members)...)
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", errInconsistent, errors.Join(errs...))
	}
	return nil
}

// clashes finds members that may not be together, unless both were before.
func clashes(members []*Slot) []error {
	type owners struct{ kept, changed string }
	var errs []error
	apis := make(map[schema.GroupVersionKind]owners, 4*len(members))
	packages := make(map[string]owners, len(members))
	names := make(map[string]owners, len(members))
	meet := func(o owners, s *Slot, what func() string) owners {
		rival := o.changed
		if s.Outcome == Kept {
			o.kept = s.Current.Name
		} else {
			if rival == "" {
				rival = o.kept
			}
			o.changed = s.Current.Name
		}
		if rival != "" {
			errs = append(errs, fmt.Errorf("%s and %s %s", rival, s.Current.Name, what()))
		}
		return o
	}
	for _, s := range members {
		for _, gvk := range s.Current.Provides {
			apis[gvk] = meet(apis[gvk], s, func() string { return "provide " + apiText(gvk) })
		}
		for _, pkg := range s.Current.packages() {
			packages[pkg] = meet(packages[pkg], s, func() string { return "originate from package " + pkg })
		}
		names[s.Current.Name] = meet(names[s.Current.Name], s, func() string { return "have one name" })
	}
	return errs
}
