package source

import (
	"fmt"
	"io"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
)

// WriteText writes what the snapshot holds, a channel a line. The error is w's.
func (l Last) WriteText(w io.Writer) error {
	report := l.Snapshot.Report()
	if _, err := fmt.Fprintf(w, "revision %s: %d releases; %d updates recommended, %d conditional, %d blocked\n",
		l.Revision, l.Snapshot.Nodes(), report.Edges, report.Conditional, report.Removed); err != nil {
		return err
	}
	for _, arch := range l.Snapshot.Arches() {
		for _, channel := range slices.SortedFunc(slices.Values(l.Snapshot.Channels(arch)), graph.CompareChannels) {
			g := l.Snapshot.Graph(channel, arch)
			conditional := 0
			for _, group := range g.ConditionalEdges() {
				conditional += len(group.Edges)
			}
			if _, err := fmt.Fprintf(w, "%s %s: %d releases, %d updates recommended, %d conditional\n", channel, arch, g.Len(), g.EdgeCount(), conditional); err != nil {
				return err
			}
		}
	}
	return nil
}
