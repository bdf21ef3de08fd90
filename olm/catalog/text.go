package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/olm"
)

// Table lists the packages: name, default channel, its heads, and the number of
// channels.
func (c *Catalog) Table() string {
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
