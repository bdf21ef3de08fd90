package graph

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// NotFound returns the error that reports that a version is not in the graph, and
// which versions are near: of reason VersionNotFound, with a [*NotFoundError].
func (g *Graph) NotFound(v *semver.Version, channel string) *Error {
	e := &NotFoundError{Version: v.Original(), Channel: channel, Nodes: len(g.nodes)}
	var below, above *semver.Version
	prefix := openshift.Prefix(v.Original())
	for i := range g.nodes {
		n := g.nodes[i].Version
		e.MinorKnown = e.MinorKnown || strings.HasPrefix(n.Original(), prefix)
		if n.LessThan(v) {
			if below == nil || below.LessThan(n) {
				below = n
			}
		} else if above == nil || n.LessThan(above) {
			above = n
		}
	}
	if below != nil {
		e.Below = below.Original()
	}
	if above != nil {
		e.Above = above.Original()
	}
	return &Error{
		Reason:  string(ErrVersionNotFound),
		Message: fmt.Sprintf("currently reconciling cluster version %s not found in the %q channel", v.Original(), channel),
		Err:     e,
	}
}

// NotFoundError details why a version is not in a graph.
type NotFoundError struct {
	Version string
	Channel string
	// Nodes is the size of the graph. Zero means that the channel is empty or
	// unknown: the service does not distinguish them.
	Nodes int
	// MinorKnown reports whether the graph has another version of the same minor.
	MinorKnown bool
	// Below and Above are the nearest versions in the graph, empty if none.
	Below, Above string
}

// Error explains in one sentence.
func (e *NotFoundError) Error() string {
	if e.Nodes == 0 {
		return fmt.Sprintf("the graph of channel %q is empty: the channel is empty or unknown", e.Channel)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %s is not among the %d releases of channel %q", e.Version, e.Nodes, e.Channel)
	if !e.MinorKnown {
		b.WriteString(", which has none of its minor")
	}
	switch {
	case e.Below != "" && e.Above != "":
		fmt.Fprintf(&b, "; nearest are %s and %s", e.Below, e.Above)
	case e.Below != "":
		fmt.Fprintf(&b, "; the highest below is %s", e.Below)
	case e.Above != "":
		fmt.Fprintf(&b, "; the lowest above is %s", e.Above)
	}
	return b.String()
}
