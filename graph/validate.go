package graph

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/graph/internal/scc"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
)

// Problem is something in a graph that decodes and is still wrong.
type Problem struct {
	Path    string // e.g. conditionalEdges[3].edges[0]
	Message string
}

// String is the place and the message.
func (p Problem) String() string { return p.Path + ": " + p.Message }

// Validate reports what decoding accepts and an update service should not serve:
// self edges, cycles, conditional edges from or to releases that the graph does not
// have, risks that a ClusterVersion cannot hold, one risk name for different
// contents, metadata that make no release or name another image than the payload,
// and edges that skip a minor version that the graph has, or one within a major.
// Problems come in the order of nodes, edges, conditional entries.
func (g *Graph) Validate() []Problem {
	var problems []Problem
	report := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	releases := g.queries().releases
	for i := range releases {
		if err := releases[i].err; err != nil {
			report(fmt.Sprintf("nodes[%d].metadata", i), "%s: %v", g.nodes[i].Version.Original(), err)
		}
		n := g.nodes[i]
		if ref := n.Metadata.Text(MetadataManifestRef); ref != "" && n.Image != "" && !strings.HasSuffix(n.Image, "@"+ref) {
			report(fmt.Sprintf("nodes[%d].metadata", i), "%s: the manifest reference %s is not that of the payload %s", n.Version.Original(), ref, n.Image)
		}
	}
	minors := g.minors()
	for i := range g.nodes {
		for _, to := range g.out(i) {
			if to < 0 {
				report("edges", "from %s to a node that does not exist", g.nodes[i].Version.Original())
				continue
			}
			g.validateEdge("edges", int32(i), to, minors, report)
		}
	}
	for _, version := range g.cycles() {
		report("edges", "%s is on a cycle", version)
	}
	g.validateConditional(minors, report)
	g.validateSizes(report)
	return problems
}

// validateEdge reports an update that no cluster should take.
func (g *Graph) validateEdge(path string, from, to int32, minors []openshift.Minor, report func(path, format string, args ...any)) {
	a, b := g.nodes[from].Version, g.nodes[to].Version
	switch {
	case from == to:
		report(path, "%s leads to itself", a.Original())
	case openshift.Skips(minors, openshift.MinorOf(a), openshift.MinorOf(b)):
		report(path, "%s to %s skips a minor version", a.Original(), b.Original())
	}
}

func (g *Graph) validateConditional(minors []openshift.Minor, report func(path, format string, args ...any)) {
	type definition struct {
		risk configv1.ConditionalUpdateRisk
		path string
	}
	defined := map[string]definition{}
	for i, entry := range g.conditional {
		for j, e := range entry.Edges {
			path := fmt.Sprintf("conditionalEdges[%d].edges[%d]", i, j)
			from, okFrom := g.byVersion[e.From]
			to, okTo := g.byVersion[e.To]
			if !okFrom {
				report(path, "no node for %q, from which it leads", e.From)
			}
			if !okTo {
				report(path, "no node for %q, to which it leads", e.To)
			}
			if okFrom && okTo {
				g.validateEdge(path, from, to, minors, report)
			}
		}
		if len(entry.Risks) == 0 {
			report(fmt.Sprintf("conditionalEdges[%d].risks", i), "no risk, so nothing can say whether the updates are recommended")
		}
		for j, risk := range entry.Risks {
			path := fmt.Sprintf("conditionalEdges[%d].risks[%d]", i, j)
			for _, field := range [...]struct{ name, value string }{{"name", risk.Name}, {"url", risk.URL}, {"message", risk.Message}} {
				if field.value == "" {
					report(path, "%s is empty", field.name)
				}
			}
			if u, err := url.Parse(risk.URL); risk.URL != "" && (err != nil || u.Scheme == "") {
				report(path, "url %q is not a URI", risk.URL)
			}
			if len(risk.MatchingRules) == 0 {
				report(path, "no matching rule")
			}
			if first, ok := defined[risk.Name]; !ok {
				defined[risk.Name] = definition{risk, path}
			} else if !schema.EqualRisks(first.risk, risk) {
				report(path, "risk %q differs from that of %s", risk.Name, first.path)
			}
		}
	}
}

// validateSizes reports what is more than a ClusterVersion can hold.
func (g *Graph) validateSizes(report func(path, format string, args ...any)) {
	for i, entry := range g.conditional {
		if len(entry.Risks) > schema.MaxRisks {
			report(fmt.Sprintf("conditionalEdges[%d].risks", i), "%d risks, of which a ClusterVersion can hold %d", len(entry.Risks), schema.MaxRisks)
		}
		for j, risk := range entry.Risks {
			if n := utf8.RuneCountInString(risk.Name); n > schema.MaxRiskName {
				report(fmt.Sprintf("conditionalEdges[%d].risks[%d]", i, j), "the name has %d characters, of which a ClusterVersion can hold %d", n, schema.MaxRiskName)
			}
		}
	}
	for i := range g.nodes {
		version := g.nodes[i].Version.Original()
		if n := len(g.outConditional(version)); n > schema.MaxConditionalUpdates {
			report("conditionalEdges", "%d updates of %s, of which a ClusterVersion can hold %d", n, version, schema.MaxConditionalUpdates)
		}
	}
}

// minors lists the minor versions of the graph's releases, each once.
func (g *Graph) minors() []openshift.Minor {
	seen := map[openshift.Minor]bool{}
	var minors []openshift.Minor
	for i := range g.nodes {
		if m := openshift.MinorOf(g.nodes[i].Version); !seen[m] {
			seen[m] = true
			minors = append(minors, m)
		}
	}
	return minors
}

// cycles returns the versions that lie on a cycle of unconditional or
// conditional edges, self edges apart, in the order of nodes.
func (g *Graph) cycles() []string {
	next := make([][]int32, len(g.nodes))
	for i := range next {
		targets := slices.Clone(g.out(i))
		for _, ref := range g.outConditional(g.nodes[i].Version.Original()) {
			targets = append(targets, ref.to)
		}
		next[i] = slices.DeleteFunc(targets, func(to int32) bool { return to < 0 })
	}
	component := scc.Components(next)
	size := map[int32]int{}
	for _, c := range component {
		size[c]++
	}
	var versions []string
	for i, c := range component {
		if size[c] > 1 {
			versions = append(versions, g.nodes[i].Version.Original())
		}
	}
	return versions
}
