package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func listCatalog(c *catalog.Catalog, o options) error {
	if len(o.args) == 1 {
		return listPackage(c, o)
	}
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tDEFAULT CHANNEL\tHEAD\tCHANNELS")
	for _, p := range c.Packages() {
		head := "-"
		if ch := p.Channel(p.DefaultChannel); ch != nil {
			head = heads(ch)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", p.Name, p.DefaultChannel, head, len(p.Channels))
	}
	return w.Flush()
}

func heads(ch *olm.Channel) string {
	var names []string
	for _, e := range ch.Heads {
		names = append(names, e.Name)
	}
	if len(names) > 3 {
		return fmt.Sprintf("%d heads", len(names))
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}

func listPackage(c *catalog.Catalog, o options) error {
	p := c.Package(o.args[0])
	if p == nil {
		return fmt.Errorf("the catalog has no package %q", o.args[0])
	}
	fmt.Fprintf(o.stdout, "Package %s\n", p.Name)
	if p.Description != "" {
		fmt.Fprintf(o.stdout, "  %s\n", strings.Join(strings.Fields(p.Description), " "))
	}
	if p.Deprecation != "" {
		fmt.Fprintf(o.stdout, "  deprecated: %s\n", p.Deprecation)
	}
	for _, ch := range p.Channels {
		title := "Channel " + ch.Name
		if ch.Default {
			title += " (default)"
		}
		fmt.Fprintln(o.stdout, title)
		if ch.Err != nil {
			fmt.Fprintf(o.stdout, "  cannot be installed from: %v\n", ch.Err)
			continue
		}
		for _, e := range ch.Ordered {
			fmt.Fprintf(o.stdout, "  %s\n", describe(e))
		}
	}
	return nil
}

// describe is an operator with what it provides and needs.
func describe(e *olm.Entry) string {
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

func validate(c *catalog.Catalog, o options) error {
	packages, channels := 0, 0
	for _, p := range c.Packages() {
		packages++
		channels += len(p.Channels)
	}
	problems := c.Problems()
	for i := range problems {
		fmt.Fprintln(o.stdout, problems[i].Error())
	}
	warnings := c.Warnings()
	for i := range warnings {
		fmt.Fprintf(o.stdout, "warning: %s\n", warnings[i].Error())
	}
	fmt.Fprintf(o.stdout, "Packages: %d, channels: %d, problems: %d, warnings: %d\n", packages, channels, len(problems), len(warnings))
	if len(problems) > 0 {
		return errNoAnswer
	}
	return nil
}

func resolve(ctx context.Context, s *olm.Snapshot, o options) error {
	plan, err := olm.Plan(ctx, []*olm.Snapshot{s}, olm.PlanOptions{Resolve: o.resolve(), Target: o.openshift})
	if err != nil {
		return err
	}
	n := plan.Namespaces[0]
	for i, g := range n.Generations {
		if len(g.Operators) == 0 {
			break
		}
		fmt.Fprintf(o.stdout, "Generation %d:\n", i+1)
		printSlots(o, g)
	}
	if n.Err != nil {
		return n.Err
	}
	last := n.Generations[len(n.Generations)-1]
	if len(n.Generations) == 1 {
		fmt.Fprintln(o.stdout, "Nothing changes:")
		printSlots(o, last)
	}
	printRemarks(o, last)
	if plan.Target != nil {
		printTarget(o, plan.Target)
	}
	if len(last.HeldBack) > 0 || plan.Target != nil && plan.Target.Generations < 0 {
		return errNoAnswer
	}
	return nil
}

func (o *options) resolve() olm.Options {
	return olm.Options{AllOrNothing: o.allOrNothing, Greedy: o.greedy}
}

func printSlots(o options, g *olm.Generation) {
	for i := range g.Slots {
		s := &g.Slots[i]
		subs := strings.Join(s.Subscriptions, ", ")
		switch s.Outcome {
		case olm.Kept:
			fmt.Fprintf(o.stdout, "  %s stays\n", s.Current.Name)
		case olm.Updated:
			fmt.Fprintf(o.stdout, "  %s replaces %s\n", s.Current.Name, s.Previous.Name)
		case olm.AddedForSubscription:
			fmt.Fprintf(o.stdout, "  %s is installed for %s\n", s.Current.Name, subs)
		case olm.AddedForRequirement:
			fmt.Fprintf(o.stdout, "  %s is installed for %s, which requires an operator %s; new Subscription %s\n",
				s.Current.Name, s.RequiredBy.Bundle.Name, s.RequiredBy.Requirement, olm.NewSubscription(g.Namespace, s.Operator).Name)
		case olm.NotInstalled:
			fmt.Fprintf(o.stdout, "  nothing is installed for %s\n", subs)
		}
	}
}

// printRemarks says what is not as it should be.
func printRemarks(o options, g *olm.Generation) {
	for i := range g.HeldBack {
		fmt.Fprintln(o.stdout, g.HeldBack[i].String())
	}
	for i := range g.BrokenBefore {
		fmt.Fprintln(o.stdout, g.BrokenBefore[i].String())
	}
	for _, name := range g.Stuck {
		fmt.Fprintf(o.stdout, "stuck: nothing in the channel of subscription %s replaces its operator\n", name)
	}
	for _, u := range g.InProgress {
		fmt.Fprintf(o.stdout, "update in progress: %s replaces %s\n", u.New, u.Old)
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(o.stdout, "warning: %s\n", w)
	}
}

func printTarget(o options, t *olm.TargetPlan) {
	fmt.Fprintf(o.stdout, "Update of the cluster to OpenShift %s:\n", t.Target)
	for _, op := range t.Operators {
		fmt.Fprintf(o.stdout, "  %s\n", op)
	}
	for _, b := range t.Introduced {
		fmt.Fprintf(o.stdout, "  on the way: %s\n", b)
	}
	switch {
	case t.Generations < 0:
		fmt.Fprintln(o.stdout, "  operators stay in the way")
	case t.Generations == 0:
		fmt.Fprintln(o.stdout, "  no operator is in the way")
	default:
		fmt.Fprintf(o.stdout, "  possible after generation %d\n", t.Generations)
	}
}

func path(c *catalog.Catalog, o options) error {
	pkg := o.args[0]
	var steps []olm.PathStep
	if o.from != "" {
		var err error
		from := olm.Origin{Name: o.from}
		if o.to != "" {
			steps, err = c.PathTo(pkg, o.channel, from, func(e *olm.Entry) bool { return e.Name == o.to })
			var none *olm.PathError
			if errors.As(err, &none) {
				none.To = o.to
			}
		} else {
			steps, err = c.Path(pkg, o.channel, from)
		}
		if err != nil {
			return err
		}
	}
	if o.picture == "" {
		if o.from == "" {
			return listPackage(c, o)
		}
		if len(steps) == 0 {
			fmt.Fprintf(o.stdout, "Nothing replaces %s.\n", o.from)
		}
		for i, s := range steps {
			fmt.Fprintf(o.stdout, "%d. %s -> %s by %s in channel %s\n", i+1, s.From, s.To, s.Edge, s.Channel)
		}
		return nil
	}
	p := c.Package(pkg)
	if p == nil {
		return fmt.Errorf("the catalog has no package %q", pkg)
	}
	view := catalog.PictureOptions{AllEdges: o.all, Path: steps, MaxNodes: o.nodes}
	if o.channel != "" {
		view.Channels = []string{o.channel}
	}
	picture, err := catalog.NewPicture(p, view)
	if err != nil {
		return err
	}
	text := picture.DOT()
	if o.picture == "mermaid" {
		text = picture.Mermaid()
	}
	fmt.Fprint(o.stdout, text)
	return nil
}
