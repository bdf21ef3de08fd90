package olm

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Text says in lines what becomes of the operators of the namespace: what is
// installed, replaced and kept.
func (g *Generation) Text() string {
	var b strings.Builder
	for i := range g.Slots {
		s := &g.Slots[i]
		subs := strings.Join(s.Subscriptions, ", ")
		switch s.Outcome {
		case outcomeKept:
			fmt.Fprintf(&b, "  %s stays\n", s.Current.Name)
		case outcomeUpdated:
			fmt.Fprintf(&b, "  %s replaces %s\n", s.Current.Name, s.Previous.Name)
		case addedForSubscription:
			fmt.Fprintf(&b, "  %s is installed for %s\n", s.Current.Name, subs)
		case addedForRequirement:
			fmt.Fprintf(&b, "  %s is installed for %s, which requires an operator %s; new Subscription %s\n",
				s.Current.Name, s.RequiredBy.Bundle.Name, s.RequiredBy.Requirement, NewSubscription(g.Namespace, s.Operator).Name)
		case outcomeNotInstalled:
			fmt.Fprintf(&b, "  nothing is installed for %s\n", subs)
		}
	}
	return b.String()
}

// Remarks says in lines what is not as it should be.
func (g *Generation) Remarks() string {
	var b strings.Builder
	for i := range g.HeldBack {
		fmt.Fprintln(&b, g.HeldBack[i].String())
	}
	for i := range g.BrokenBefore {
		fmt.Fprintln(&b, g.BrokenBefore[i].String())
	}
	for _, name := range g.Stuck {
		fmt.Fprintf(&b, "subscription %s is stuck: nothing in its channel replaces what is installed\n", name)
	}
	for _, u := range g.InProgress {
		fmt.Fprintf(&b, "update in progress: %s replaces %s\n", u.New, u.Old)
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// Text says in lines what changes in each namespace, and what is then in the way
// of the target.
func (p *ClusterPlan) Text() string {
	var b strings.Builder
	for i := range p.Namespaces {
		n := &p.Namespaces[i]
		fmt.Fprintf(&b, "Namespace %s:\n", n.Namespace)
		for _, c := range n.Changes {
			fmt.Fprintf(&b, "  %s\n", c)
		}
		if n.Err != nil {
			fmt.Fprintf(&b, "  then: %v\n", n.Err)
			continue
		}
		if len(n.Changes) == 0 {
			b.WriteString("  nothing changes\n")
		}
		b.WriteString(n.Generations[len(n.Generations)-1].Remarks())
	}
	return b.String() + p.Target.Text()
}

// Detail is Text with every generation of every namespace.
func (p *ClusterPlan) Detail() string {
	var b strings.Builder
	for i := range p.Namespaces {
		if len(p.Namespaces) > 1 {
			fmt.Fprintf(&b, "Namespace %s:\n", p.Namespaces[i].Namespace)
		}
		b.WriteString(p.Namespaces[i].Text())
	}
	return b.String() + p.Target.Text()
}

// Complete says whether every namespace has a plan that holds nothing back, and
// no operator stays in the way of the target.
func (p *ClusterPlan) Complete() bool {
	for _, n := range p.Namespaces {
		if n.Err != nil || len(n.Generations[len(n.Generations)-1].HeldBack) > 0 {
			return false
		}
	}
	return p.Target == nil || p.Target.Generations >= 0
}

// Text says in lines what is in the way of an update of the cluster; nothing for
// a nil plan.
func (t *TargetPlan) Text() string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Update of the cluster to OpenShift %s:\n", t.Target)
	for _, op := range t.Operators {
		fmt.Fprintf(&b, "  %s\n", op)
	}
	for _, i := range t.Introduced {
		fmt.Fprintf(&b, "  on the way: %s\n", i)
	}
	switch {
	case t.Generations < 0:
		b.WriteString("  operators stay in the way\n")
	case t.Generations == 0:
		b.WriteString("  no operator is in the way\n")
	default:
		fmt.Fprintf(&b, "  possible after generation %d\n", t.Generations)
	}
	return b.String()
}

// Text says in lines what the package's channels hold.
func (p *Package) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Package %s\n", p.Name)
	if p.Description != "" {
		fmt.Fprintf(&b, "  %s\n", strings.Join(strings.Fields(p.Description), " "))
	}
	if p.Deprecation != "" {
		fmt.Fprintf(&b, "  deprecated: %s\n", p.Deprecation)
	}
	for _, ch := range p.Channels {
		fmt.Fprintf(&b, "Channel %s", ch.Name)
		if ch.Default {
			b.WriteString(" (default)")
		}
		b.WriteByte('\n')
		if ch.Err != nil {
			fmt.Fprintf(&b, "  cannot be installed from: %v\n", ch.Err)
			continue
		}
		for _, e := range ch.Ordered {
			fmt.Fprintf(&b, "  %s\n", e.Text())
		}
	}
	return b.String()
}

// Text says what the operator provides and needs.
func (e *Entry) Text() string {
	parts := []string{e.Name}
	if e.Bundle.RawVersion != "" {
		parts[0] += " " + e.Bundle.RawVersion
	}
	for _, gvk := range e.Bundle.Provides {
		parts = append(parts, fmt.Sprintf("provides %s (%s/%s)", gvk.Kind, gvk.Group, gvk.Version))
	}
	for i := range e.Bundle.Requires {
		parts = append(parts, "requires an operator "+e.Bundle.Requires[i].String())
	}
	if e.Bundle.Err != nil {
		parts = append(parts, e.Bundle.Err.Error())
	}
	switch v, _, err := e.Bundle.MaxOpenShiftVersion(); {
	case err != nil:
		parts = append(parts, err.Error())
	case v != nil:
		parts = append(parts, "up to OpenShift "+v.String())
	}
	if e.Bundle.Deprecated {
		parts = append(parts, "may not be installed")
	}
	if e.Bundle.Deprecation != "" {
		parts = append(parts, "deprecated: "+e.Bundle.Deprecation)
	}
	return strings.Join(parts, "; ")
}

// Text says in lines what each generation changes, and what is not as it should
// be in the end.
func (n *NamespacePlan) Text() string {
	var b strings.Builder
	for i, g := range n.Generations {
		if len(g.Operators) == 0 {
			break
		}
		fmt.Fprintf(&b, "Generation %d:\n%s", i+1, g.Text())
	}
	if n.Err != nil {
		return b.String()
	}
	last := n.Generations[len(n.Generations)-1]
	if len(n.Generations) == 1 {
		b.WriteString("Nothing changes:\n" + last.Text())
	}
	return b.String() + last.Remarks()
}

// Why explains subscriptions, packages or operators, or without names every
// Subscription of a snapshot: why they are as the next generation has them, or why
// there is none. held says that something is held back, or that there is no
// generation. Errors are those of [Resolve] and of the explanations.
func Why(ctx context.Context, s *Snapshot, o Options, names ...string) (text string, held bool, err error) {
	g, err := Resolve(ctx, *s, o)
	if no := new(NotSatisfiable); errors.As(err, &no) {
		why, err := no.Explain(ctx, *s, o)
		if err != nil {
			return "", true, err
		}
		return why.String(), true, nil
	}
	if err != nil {
		return "", false, err
	}
	if len(names) == 0 {
		for i := range s.Subscriptions {
			names = append(names, s.Subscriptions[i].Name)
		}
	}
	var b strings.Builder
	for _, name := range names {
		why, err := g.Explain(ctx, name)
		if err != nil {
			return "", false, err
		}
		b.WriteString(why.String())
	}
	return b.String(), len(g.HeldBack) > 0, nil
}
