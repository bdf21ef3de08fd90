package catalog

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/clusterupdate/clusterupdate/olm"
)

// Table lists the packages: name, default channel, its heads, and the number of
// channels.
func (c *Catalog) Table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tDEFAULT CHANNEL\tHEAD\tCHANNELS")
	for _, p := range c.Packages() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", p.Name, p.DefaultChannel, heads(p.Channel(p.DefaultChannel)), len(p.Channels))
	}
	w.Flush()
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
func (c *Catalog) Report() string {
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
