package olm

import (
	"cmp"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// check re-checks the promises that every generation keeps. An error is a fault
// of the resolver.
func (g *Generation) check() error {
	p := g.problem
	var before memberIndex
	for _, b := range p.installed {
		if !p.leaving[b.Name] {
			before.add(b)
		}
	}
	members, after := g.members()
	var errs []error
	for _, s := range members {
		for i := range s.Current.Requires {
			r := &s.Current.Requires[i]
			if after.satisfies(r, p.options.CEL) {
				continue
			}
			switch {
			case s.Outcome != outcomeKept:
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
		return fmt.Errorf("%w: %w", errInconsistent, bounded.Errors(errs...))
	}
	return nil
}

// clashes finds members that may not be together, unless both were before.
func clashes(members []*Slot) []error {
	type owners struct{ kept, changed string }
	var errs []error
	byTrait := make(map[trait]owners, 4*len(members))
	for _, s := range members {
		for _, t := range s.Current.traits() {
			o := byTrait[t]
			rival := o.changed
			if s.Outcome == outcomeKept {
				o.kept = s.Current.Name
			} else {
				rival, o.changed = cmp.Or(rival, o.kept), s.Current.Name
			}
			byTrait[t] = o
			if rival != "" {
				errs = append(errs, fmt.Errorf("%s and %s %s", rival, s.Current.Name, t.shared()))
			}
		}
	}
	return errs
}
