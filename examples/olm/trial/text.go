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
