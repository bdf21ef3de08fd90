package graphdata

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	configv1 "github.com/openshift/api/config/v1"
)

// addRaw adds the metadata of raw/metadata.json, behind what a release says.
func (b *builder) addRaw() error {
	for _, e := range b.tree.Raw {
		for _, i := range b.named(b.rawVersion(e.Version)) {
			b.reasons.raw[i] = append(b.reasons.raw[i], e)
			m := b.nodes[i].metadata
			if old, ok := m[e.Key]; ok {
				m[e.Key] = old + "," + e.Value
			} else {
				m[e.Key] = e.Value
			}
		}
	}
	for i, n := range b.nodes {
		own, ok := n.metadata[graph.MetadataPreviousRemoveRegex]
		if ok && own == "" {
			own = ".*" // an empty expression matches everything
		}
		b.reasons.own[i] = own
	}
	return nil
}

// named returns the nodes with a release that a version of the tree stands for:
// without a build those of every architecture.
func (b *builder) named(version string) []int32 {
	text, build, has := strings.Cut(version, "+")
	var found []int32
	for _, i := range b.byBase[text] {
		if b.nodes[i].metadata != nil && (!has || b.nodes[i].build == build) {
			found = append(found, i)
		}
	}
	return found
}

// names reports whether a version of the tree stands for a node.
func names(version string, n *node) bool { return version == n.base || version == n.version }

// targets returns the nodes with a release that a blocked edge is about.
func (b *builder) targets(e *BlockedEdge, to string) []int32 {
	nodes := b.named(to)
	if len(nodes) == 0 && !b.opts.Partial {
		b.report.UnknownTargets = append(b.report.UnknownTargets, e.File)
	}
	return nodes
}

// edgeRule is a blocked edge as it is applied.
type edgeRule struct {
	matcher *matcher
	risk    int32  // -1: a drop
	tally   *tally // nil: of metadata
}

// rule returns what a blocked edge does; nil if its expression does not compile,
// which is a problem.
func (b *builder) rule(e *BlockedEdge, risk int32) *edgeRule {
	m, err := b.matcher(e.From)
	if err != nil {
		b.problem(e.File, "from", ruleFrom, "error parsing %s as Regex: %v", e.From, err)
		return nil
	}
	t := &tally{file: e.File}
	b.tallies = append(b.tallies, t)
	return &edgeRule{m, risk, t}
}

// mark records in the metadata what is removed. It is for information alone.
func (b *builder) mark(i int32, from string) {
	m := b.nodes[i].metadata
	if old, ok := m[graph.MetadataPreviousRemoveRegex]; ok {
		from = old + "|" + from
	}
	m[graph.MetadataPreviousRemoveRegex] = from
}

func (b *builder) addDrops() error {
	for i := range b.tree.Drops {
		e := &b.tree.Drops[i]
		rule := b.rule(e, -1)
		if rule == nil {
			continue
		}
		targets := b.targets(e, inside.DropTarget(e.To))
		rule.tally.known = len(targets) > 0
		for _, t := range targets {
			if b.opts.Compat {
				b.forget(t)
			}
			b.drops[t] = append(b.drops[t], rule)
			b.reasons.drops[t] = append(b.reasons.drops[t], *e)
			b.mark(t, e.From)
		}
	}
	return nil
}

// servedRisk is a risk and its place among others.
type servedRisk struct {
	risk configv1.ConditionalUpdateRisk
	text string // as JSON that is served
}

// addRisks numbers the risks by name and then by text, and finds their targets.
func (b *builder) addRisks() error {
	risks := make([]servedRisk, len(b.tree.Risks))
	for i := range b.tree.Risks {
		risk := *b.tree.Risks[i].Risk
		risk.Conditions = nil
		if risk.MatchingRules == nil {
			risk.MatchingRules = []configv1.ClusterCondition{}
		}
		text, err := schema.JSON(risk) // escapes for HTML would put risks into another order
		if err != nil {
			return fmt.Errorf("%s: %w", b.tree.Risks[i].File, err)
		}
		risks[i] = servedRisk{risk, string(text)}
	}
	compare := func(x, y servedRisk) int {
		return cmp.Or(cmp.Compare(x.risk.Name, y.risk.Name), cmp.Compare(x.text, y.text))
	}
	b.riskTable = slices.Clone(risks)
	slices.SortFunc(b.riskTable, compare)
	b.riskTable = slices.CompactFunc(b.riskTable, func(x, y servedRisk) bool { return compare(x, y) == 0 })
	for i := range b.tree.Risks {
		e := &b.tree.Risks[i]
		id, _ := slices.BinarySearchFunc(b.riskTable, risks[i], compare)
		rule := b.rule(e, int32(id))
		if rule == nil {
			continue
		}
		targets := b.targets(e, b.riskTarget(e.To))
		rule.tally.known = len(targets) > 0
		for _, t := range targets {
			b.mark(t, e.From)
			if !names(e.To, &b.nodes[t]) { // under Compat: removed, and not conditional
				b.drops[t] = append(b.drops[t], rule)
				b.reasons.drops[t] = append(b.reasons.drops[t], *e)
			}
		}
		for _, t := range b.byBase[inside.WithoutBuild(e.To)] {
			if names(e.To, &b.nodes[t]) {
				b.risks[t] = append(b.risks[t], rule)
				b.reasons.risks[t] = append(b.reasons.risks[t], *e)
			}
		}
	}
	return nil
}

// addChannels records in the metadata which channels a release is in, sorted by
// what follows the first hyphen, then by name.
func (b *builder) addChannels() error {
	in := make([][]string, len(b.nodes))
	last := make([]int, len(b.nodes)) // channel of each node, from 1
	for at, c := range b.tree.Channels {
		for _, e := range c.Versions {
			nodes := b.named(e.Version)
			if len(nodes) == 0 && !b.opts.Partial {
				b.report.UnknownVersions = append(b.report.UnknownVersions, fmt.Sprintf("%s:%d: %s", c.File, e.Line, e.Version))
			}
			for _, i := range nodes {
				if last[i] <= at { // a file that lists it twice counts once
					in[i] = append(in[i], c.Name)
					last[i] = at + 1
				}
			}
		}
	}
	for i := range b.nodes {
		m := b.nodes[i].metadata
		names := append(inside.SplitList(m[graph.MetadataChannels]), in[i]...)
		if len(names) == 0 {
			continue
		}
		slices.SortFunc(names, compareChannelNames)
		if !b.opts.Compat {
			names = slices.Compact(names)
		} else if err := checkHyphens(names); err != nil {
			return fmt.Errorf("%s: %w", b.nodes[i].version, err)
		}
		m[graph.MetadataChannels] = strings.Join(names, ",")
	}
	return nil
}

func compareChannelNames(x, y string) int {
	return cmp.Or(cmp.Compare(afterHyphen(x), afterHyphen(y)), cmp.Compare(x, y))
}

// afterHyphen returns what follows the first hyphen, or the whole name.
func afterHyphen(name string) string {
	if _, after, ok := strings.Cut(name, "-"); ok {
		return after
	}
	return name
}
