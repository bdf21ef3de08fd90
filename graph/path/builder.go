package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/bounded"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// builder puts a Network together.
type builder struct {
	n      *Network
	o      NetworkOptions
	guards map[guardKey]int32
	known  map[string]int32 // content of a risk → verdict
	same   map[*configv1.ConditionalUpdateRisk]int32
	risks  []*carriedRisk // by verdict
	// carried are the targets of each risk.
	carried []map[int32]bool
}

// carriedRisk is a risk and the targets that carry it.
type carriedRisk struct {
	risk     *configv1.ConditionalUpdateRisk
	highest  string
	versions []string // the highest first
}

// choose sorts the channels and leaves out those without nodes.
func (b *builder) choose(graphs []ChannelGraph) error {
	if len(graphs) == 0 {
		return errors.New("no graph")
	}
	var empty []string
	seen := map[string]bool{}
	for _, g := range graphs {
		if seen[g.Channel] {
			return fmt.Errorf("two graphs of channel %q", g.Channel)
		}
		seen[g.Channel] = true
		switch {
		case g.Arch == "":
		case b.n.arch == "":
			b.n.arch = g.Arch
		case b.n.arch != g.Arch:
			return fmt.Errorf("graphs of the architectures %q and %q do not go together", b.n.arch, g.Arch)
		}
		if g.Graph == nil || g.Graph.Len() == 0 {
			empty = append(empty, g.Channel)
			continue
		}
		b.n.channels = append(b.n.channels, channelNodes{Channel: g.Channel, Graph: g.Graph})
	}
	if len(b.n.channels) == 0 {
		return fmt.Errorf("%s: %w", quoteList(empty), ErrChannelEmpty)
	}
	for _, name := range empty {
		b.n.notes = append(b.n.notes, fmt.Sprintf("channel %q is left out: its graph is empty", name))
	}
	slices.SortStableFunc(b.n.channels, func(x, y channelNodes) int {
		return graph.CompareChannels(y.Channel, x.Channel)
	})
	for i, c := range b.n.channels {
		if c.Channel == b.o.Present && b.o.Present != "" {
			b.n.present = i
		}
	}
	b.n.away = b.n.present < 0 && b.o.Present != ""
	return nil
}

// nodes unites the nodes by version.
func (b *builder) nodes() error {
	b.n.index = make(map[string]int32, b.n.channels[0].Graph.Len())
	for c := range b.n.channels {
		for _, node := range b.n.channels[c].Graph.Nodes() {
			text := node.Version.Original()
			if _, ok := b.n.index[text]; !ok {
				b.n.index[text] = 0
				b.n.versions = append(b.n.versions, node.Version)
			}
		}
	}
	if len(b.n.versions) > maxNetworkNodes {
		return &graph.LimitError{What: "releases in all channels", Max: maxNetworkNodes}
	}
	slices.SortFunc(b.n.versions, func(x, y *semver.Version) int {
		return cmp.Or(x.Compare(y), cmp.Compare(x.Original(), y.Original()))
	})
	for i, v := range b.n.versions {
		b.n.index[v.Original()] = int32(i)
	}
	b.n.releases, b.n.broken = make([]configv1.Release, len(b.n.versions)), make([]error, len(b.n.versions))
	from := make([]int, len(b.n.versions)) // the channel that the release is from, +1
	var errs []error
	for c := range b.n.channels {
		ch := &b.n.channels[c]
		ch.local = slices.Repeat([]int32{-1}, len(b.n.versions))
		for i := range ch.Graph.Nodes() {
			r, err := ch.Graph.Release(i)
			at := b.n.index[r.Version]
			if ch.local[at] >= 0 {
				continue // a repeated version, which only Compat decodes: the first counts
			}
			ch.local[at] = int32(i)
			if b.n.broken[at] == nil {
				b.n.broken[at] = err
			}
			if from[at] == 0 {
				from[at], b.n.releases[at] = c+1, r
			} else if known := b.n.releases[at]; !graph.SameDigest(known.Image, r.Image) {
				errs = append(errs, fmt.Errorf("release %s is %s in channel %q and %s in channel %q",
					r.Version, known.Image, b.n.channels[from[at]-1].Channel, r.Image, ch.Channel))
			}
		}
	}
	return bounded.Errors(errs...)
}

// judge asks the matcher about the risks and sums up for each guard.
func (b *builder) judge(ctx context.Context) error {
	e := risk.Evaluator{Matcher: b.o.Matcher, Rules: b.o.Rules}
	blind := b.o.Matcher == nil && b.o.Rules == nil
	if blind {
		e.Rules = &graph.Rules{}
	}
	order := make([]int32, len(b.risks))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		r, s := b.risks[x], b.risks[y]
		return cmp.Or(graph.CompareVersions(s.highest, r.highest), cmp.Compare(r.risk.Name, s.risk.Name))
	})
	b.n.verdicts = make([]risk.Verdict, len(b.risks))
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.n.verdicts[i] = e.Judge(ctx, b.risks[i].risk, b.risks[i].versions)
		if blind {
			b.n.verdicts[i].Err = errNoMatcher
			b.n.verdicts[i].Applies.Message = errNoMatcher.Error()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range b.n.guards {
		b.n.guards[i].judgement = b.judgeGuard(i)
	}
	return nil
}

var errNoMatcher = errors.New("nothing is known about the cluster")

func (b *builder) judgeGuard(i int) judgement {
	g := &b.n.guards[i]
	switch {
	case i == 0:
		return recommended
	case g.withheld != "":
		return unknown
	case len(g.verdicts) == 0:
		return unknown
	}
	j := recommended
	for _, v := range g.verdicts {
		switch b.n.verdicts[v].Applies.Status {
		case metav1.ConditionTrue:
			return notRecommended
		case metav1.ConditionUnknown:
			j = unknown
		}
	}
	return j
}
