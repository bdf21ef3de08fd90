package trial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// Table lists the packages: name, default channel, its heads, and the number of
// channels.
func Table(c *catalog.Catalog) string {
	var b strings.Builder
	t := text.NewTable(&b, 0, 2)
	t.Row("PACKAGE", "DEFAULT CHANNEL", "HEAD", "CHANNELS")
	for _, p := range c.Packages() {
		t.Row(p.Name, p.DefaultChannel, heads(p.Channel(p.DefaultChannel)), strconv.Itoa(len(p.Channels)))
	}
	t.Flush() // to memory
	return b.String()
}

func heads(ch *olm.Channel) string {
	if ch == nil || len(ch.Heads) == 0 {
		return "-"
	}
	if len(ch.Heads) > 3 {
		return fmt.Sprintf("%d heads", len(ch.Heads))
	}
	var names []string
	for _, e := range ch.Heads {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}

// Report lists what breaks the rules of the format, in lines, and counts.
func Report(c *catalog.Catalog) string {
	var b strings.Builder
	packages, channels := c.Packages(), 0
	for _, p := range packages {
		channels += len(p.Channels)
	}
	problems, warnings := c.Problems(), c.Warnings()
	for i := range problems {
		fmt.Fprintln(&b, problems[i].Error())
	}
	for i := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", warnings[i].Error())
	}
	fmt.Fprintf(&b, "Packages: %d, channels: %d, problems: %d, warnings: %d\n", len(packages), channels, len(problems), len(warnings))
	return b.String()
}

// generation says in lines what becomes of the operators of the namespace: what is
// installed, replaced and kept.
func generation(g *olm.Generation) string {
	var b strings.Builder
	for i := range g.Slots {
		s := &g.Slots[i]
		subs := strings.Join(s.Subscriptions, ", ")
		switch s.Outcome {
		case "Kept":
			fmt.Fprintf(&b, "  %s stays\n", s.Current.Name)
		case "Updated":
			fmt.Fprintf(&b, "  %s replaces %s\n", s.Current.Name, s.Previous.Name)
		case "AddedForSubscription":
			fmt.Fprintf(&b, "  %s is installed for %s\n", s.Current.Name, subs)
		case "AddedForRequirement":
			fmt.Fprintf(&b, "  %s is installed for %s, which requires an operator %s; new Subscription %s\n",
				s.Current.Name, s.RequiredBy.Bundle.Name, s.RequiredBy.Requirement, s.Operator.Subscription(g.Namespace).Name)
		case "NotInstalled":
			fmt.Fprintf(&b, "  nothing is installed for %s\n", subs)
		}
	}
	return b.String()
}

// Plan says in lines what changes in each namespace, and what is then in the way
// of the target.
func Plan(p *olm.ClusterPlan) string {
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
	return b.String() + target(p.Target)
}

// Detail says in lines what each generation of the first namespace changes, and what is
// then in the way of the target.
func Detail(p *olm.ClusterPlan) string { return namespace(&p.Namespaces[0]) + target(p.Target) }

// target says in lines what is in the way of an update of the cluster; nothing for
// a nil plan.
func target(t *olm.TargetPlan) string {
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

// Package says in lines what the package's channels hold.
func Package(p *olm.Package) string {
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
			fmt.Fprintf(&b, "  %s\n", entry(e))
		}
	}
	return b.String()
}

// entry describes what the operator provides and needs.
func entry(e *olm.Entry) string {
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

// namespace says in lines what each generation changes, and what is not as it should
// be in the end.
func namespace(n *olm.NamespacePlan) string {
	var b strings.Builder
	for i, g := range n.Generations {
		if len(g.Operators) == 0 {
			break
		}
		fmt.Fprintf(&b, "Generation %d:\n%s", i+1, generation(g))
	}
	if n.Err != nil {
		return b.String()
	}
	last := n.Generations[len(n.Generations)-1]
	if len(n.Generations) == 1 {
		b.WriteString("Nothing changes:\n" + generation(last))
	}
	return b.String() + last.Remarks()
}

// Why explains subscriptions, packages or operators, or without names every
// Subscription of a snapshot: why they are as the next generation has them, or why
// there is none. held reports that something is held back, or that there is no
// generation. Errors are those of [olm.Resolve] and of the explanations.
func Why(ctx context.Context, s *olm.Snapshot, o olm.Options, names ...string) (text string, held bool, err error) {
	g, err := olm.Resolve(ctx, *s, o)
	if no := new(olm.NotSatisfiable); errors.As(err, &no) {
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
