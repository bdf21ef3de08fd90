package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// The condition types of conditional updates and of their risks.
const (
	ConditionRecommended = "Recommended"
	ConditionApplies     = "Applies"
)

// UpdatesQuery asks for the updates of one cluster.
type UpdatesQuery struct {
	// Version is what the cluster reconciles now: strict SemVer.
	Version string
	// Channel is named in messages; nothing is filtered by it.
	Channel string
	// Architecture is the cluster's: "Multi", or a Go architecture name.
	Architecture string
	// DesiredArchitecture is what it is to become. Empty means as it is. "Multi"
	// where Architecture is another asks for the migration, of which the graph
	// then is the multi-architecture one.
	DesiredArchitecture string
	// Rules are the types of matching rules that the cluster knows; nil means
	// Always and PromQL. A risk with no other rules hides its updates.
	Rules *Rules
	// UnionDuplicates merges several conditional entries for one target into
	// one with the risks of all, instead of dropping the target. Entries that
	// give one name to different risks are still dropped.
	UnionDuplicates bool
	// MaxBytes bounds both lists together, in bytes of JSON; zero means 1 MiB,
	// since an API server takes no object of more than 1.5 MiB. The highest
	// versions that fit stay.
	MaxBytes int
	// Compat answers as the cluster-version operator does, faults included; see
	// compat.go. MaxBytes still holds. For comparisons only.
	Compat bool
}

// Updates are the updates of a cluster as a graph lists them, before risks are
// evaluated. The lists are nil when empty, and the caller's to change.
type Updates struct {
	// Current is the release that the cluster reconciles.
	Current configv1.Release
	// Available are the targets of unconditional edges, in the graph's order.
	Available []configv1.Release
	// Conditional are the targets of conditional edges with their risks, in
	// the graph's order, without conditions.
	Conditional []configv1.ConditionalUpdate
	// Dropped are the targets that the graph has an edge to and that are not
	// offered, each with its cause: the first 1,000 of them. Those of one
	// conditional entry share their risks.
	Dropped []Dropped
	// DroppedMore is how many more there are.
	DroppedMore int
}

// Dropped is a target that is not offered.
type Dropped struct {
	Release configv1.Release
	// Risks are those of a conditional edge, before pruning.
	Risks []configv1.ConditionalUpdateRisk
	Cause DropCause
	// Err details UnrecognizedRules, InvalidMetadata, InvalidRisks and
	// ExceedsLimit (a [*LimitError]), else nil.
	Err error
}

// DropCause is why a target is not offered.
type DropCause string

// The causes.
const (
	// UnrecognizedRules: a risk has no rule that the cluster can evaluate.
	UnrecognizedRules DropCause = "UnrecognizedRules"
	// DuplicateTarget: several conditional entries lead to it.
	DuplicateTarget DropCause = "DuplicateTarget"
	// InvalidMetadata: its node makes no release.
	InvalidMetadata DropCause = "InvalidMetadata"
	// Superseded: a conditional edge leads to it as well, and wins. It may
	// still be listed as conditional.
	Superseded DropCause = "Superseded"
	// InvalidRisks: it has no risks, or such as the API server would refuse in a
	// ClusterVersion, with all its other fields.
	InvalidRisks DropCause = "InvalidRisks"
	// ExceedsLimit: there are more updates, or longer ones, than a ClusterVersion
	// can hold.
	ExceedsLimit DropCause = "ExceedsLimit"
)

// Updates lists the updates of a cluster. The error is an [*Error] of reason
// InvalidRequest (a MaxBytes below zero), NoCurrentVersion, InvalidCurrentVersion,
// VersionNotFound (with a [*NotFoundError]) or ResponseInvalid. It costs no more
// than the edges that leave the version.
func (g *Graph) Updates(q UpdatesQuery) (*Updates, error) {
	if q.MaxBytes < 0 {
		return nil, failure(ErrInvalidRequest, options.NonNegative(q))
	}
	version, err := parseCurrent(q.Version)
	if err != nil {
		return nil, err
	}
	current, ok := g.Find(version)
	if !ok {
		return nil, g.NotFound(version, q.Channel)
	}
	l := lister{g: g, q: q, releases: g.queries().releases, current: current, version: version.Original()}
	if err := l.broken(int32(current)); err != nil {
		return nil, &Error{Reason: string(ErrResponseInvalid), Message: "invalid current node: " + err.Error(), Err: err}
	}
	if strings.EqualFold(q.DesiredArchitecture, "Multi") && !strings.EqualFold(q.Architecture, "Multi") {
		// The same release for several architectures is the only step.
		l.available = []int32{int32(current)}
	} else if err := l.list(); err != nil {
		return nil, err
	}
	return l.answer(), nil
}

func parseCurrent(version string) (*semver.Version, error) {
	if version == "" {
		return nil, &Error{Reason: string(ErrNoCurrentVersion), Message: "The cluster version does not have a semantic version assigned and cannot calculate valid upgrades."}
	}
	v, err := ParseVersion(version)
	if err != nil {
		return nil, &Error{Reason: string(ErrInvalidCurrentVersion), Message: "The current cluster version is not a valid semantic version and cannot be used to calculate upgrades.", Err: err}
	}
	return v, nil
}

// lister lists the updates of one release. Until the end it deals in nodes and
// in risks that belong to the graph, and copies what it answers with alone.
type lister struct {
	g           *Graph
	q           UpdatesQuery
	releases    []release
	current     int
	version     string // as asked for: conditional edges are matched by it
	available   []int32
	conditional []guardedTarget
	dropped     []drop
	more        int      // that were dropped and are not listed
	room        []string // for channels
}

// guardedTarget is one end of a conditional edge.
type guardedTarget struct {
	node    int32
	entry   int32
	risks   []configv1.ConditionalUpdateRisk
	refused error // what a ClusterVersion cannot hold about the risks
}

type drop struct {
	node  int32
	entry int32 // -1 for an unconditional edge
	cause DropCause
	err   error
}

// maxDropped is how many dropped targets are listed.
const maxDropped = 1000

func (l *lister) drop(node, entry int32, cause DropCause, err error) {
	if len(l.dropped) == maxDropped {
		l.more++
		return
	}
	l.dropped = append(l.dropped, drop{node, entry, cause, err})
}

func (l *lister) list() error {
	if err := l.unconditional(); err != nil {
		return err
	}
	guarded, err := l.guarded()
	if err != nil {
		return err
	}
	l.supersede(guarded)
	l.prune()
	l.duplicates()
	l.refuse()
	l.limit()
	return nil
}

func (l *lister) image(node int32) string { return l.releases[node].Image }

// broken describes what is wrong with a node's metadata.
func (l *lister) broken(node int32) error {
	if l.q.Compat {
		_, err := l.g.nodes[node].release(splitChannelsCompat)
		return err
	}
	return l.releases[node].err
}

// unconditional lists the targets of edges.
func (l *lister) unconditional() error {
	targets := l.g.out(l.current)
	if len(targets) > 0 {
		l.available = make([]int32, 0, len(targets))
	}
	for _, to := range targets {
		switch {
		case to < 0:
			return failure(ErrResponseInvalid, errors.New("an edge of the current node leads to a node that does not exist"))
		case int(to) == l.current && !l.q.Compat:
			continue
		}
		if err := l.broken(to); err != nil {
			if l.q.Compat {
				return &Error{Reason: string(ErrResponseInvalid), Message: "invalid recommended update node: " + err.Error(), Err: err}
			}
			l.drop(to, -1, InvalidMetadata, err)
			continue
		}
		l.available = append(l.available, to)
	}
	return nil
}

// guarded lists the targets of conditional edges. It returns the images that
// they guard, those of dropped targets included.
func (l *lister) guarded() (images map[string]bool, err error) {
	refs := l.g.outConditional(l.version)
	for _, ref := range refs {
		entry := &l.g.conditional[ref.entry]
		if ref.to < 0 {
			return nil, failure(ErrResponseInvalid, fmt.Errorf("no node for conditional update %s", bounded.Text(entry.Edges[ref.pair].To, bounded.MaxQuoted)))
		}
		if int(ref.to) == l.current && !l.q.Compat {
			continue
		}
		err := l.broken(ref.to)
		if err != nil && l.q.Compat {
			return nil, &Error{Reason: string(ErrResponseInvalid), Message: "invalid conditional update node: " + err.Error(), Err: err}
		}
		if images == nil {
			images = make(map[string]bool, len(refs))
			l.conditional = make([]guardedTarget, 0, len(refs))
		}
		images[l.image(ref.to)] = true
		if err != nil {
			l.drop(ref.to, ref.entry, InvalidMetadata, err)
			continue
		}
		l.conditional = append(l.conditional, guardedTarget{node: ref.to, entry: ref.entry, risks: entry.Risks})
	}
	return images, nil
}

// supersede takes what conditional edges guard off the available updates. It
// comes before pruning, so that a risk of an unknown kind fails closed.
func (l *lister) supersede(guarded map[string]bool) {
	if len(guarded) == 0 {
		return
	}
	l.available = slices.DeleteFunc(l.available, func(node int32) bool {
		if guarded[l.image(node)] {
			l.drop(node, -1, Superseded, nil)
			return true
		}
		return false
	})
}

// prune keeps the rules that the cluster can evaluate, and the targets each of
// whose risks has one left.
func (l *lister) prune() {
	if len(l.conditional) == 0 {
		return
	}
	rules := l.q.Rules
	if rules == nil {
		rules = NewRules(Facts(nil)) // only the validity of rules is asked
	}
	kept := l.conditional[:0]
	last := int32(-1) // the entry that was pruned last: its pairs follow each other
	var risks []configv1.ConditionalUpdateRisk
	var refused, err error
	for _, t := range l.conditional {
		if t.entry != last {
			last = t.entry
			risks, err = rules.PruneRisks(t.risks)
			if err == nil && !l.q.Compat {
				refused = schema.RefusedRisks(risks)
			}
		}
		if err != nil {
			l.drop(t.node, t.entry, UnrecognizedRules, err)
			continue
		}
		t.risks, t.refused = risks, refused
		kept = append(kept, t)
	}
	l.conditional = kept
}

// answer copies the lists out of the graph.
func (l *lister) answer() *Updates {
	channels := len(l.releases[l.current].Channels)
	for _, node := range l.available {
		channels += len(l.releases[node].Channels)
	}
	for _, t := range l.conditional {
		channels += len(l.releases[t.node].Channels)
	}
	for _, d := range l.dropped {
		channels += len(l.releases[d.node].Channels)
	}
	l.room = make([]string, 0, channels)
	u := &Updates{Current: l.release(int32(l.current)), DroppedMore: l.more}
	if len(l.available) > 0 {
		u.Available = make([]configv1.Release, len(l.available))
		for i, node := range l.available {
			u.Available[i] = l.release(node)
		}
	}
	if len(l.conditional) > 0 {
		u.Conditional = make([]configv1.ConditionalUpdate, len(l.conditional))
		for i, t := range l.conditional {
			u.Conditional[i] = configv1.ConditionalUpdate{Release: l.release(t.node), Risks: copyRisks(t.risks)}
		}
	}
	if len(l.dropped) > 0 {
		u.Dropped = make([]Dropped, len(l.dropped))
		risks := map[int32][]configv1.ConditionalUpdateRisk{}
		for i, d := range l.dropped {
			u.Dropped[i] = Dropped{Release: l.release(d.node), Cause: d.cause, Err: d.err}
			if d.entry < 0 {
				continue
			}
			if _, ok := risks[d.entry]; !ok {
				risks[d.entry] = copyRisks(l.g.conditional[d.entry].Risks)
			}
			u.Dropped[i].Risks = risks[d.entry]
		}
	}
	return u
}

// release returns a copy of a node's release. Its channels are cut from one
// piece of memory that all releases of an answer share.
func (l *lister) release(node int32) configv1.Release {
	if l.q.Compat {
		r, _ := l.g.nodes[node].release(splitChannelsCompat)
		return r
	}
	r := l.releases[node].Release
	if n := len(r.Channels); n > 0 {
		start := len(l.room)
		l.room = append(l.room, r.Channels...)
		r.Channels = l.room[start:len(l.room):len(l.room)]
	}
	return r
}

// duplicates drops targets to which several conditional entries are left.
func (l *lister) duplicates() {
	if len(l.conditional) < 2 {
		return
	}
	count := make(map[string]int, len(l.conditional))
	duplicate := false
	for _, t := range l.conditional {
		image := l.image(t.node)
		count[image]++
		duplicate = duplicate || count[image] > 1
	}
	if !duplicate {
		return
	}
	var same map[string][]guardedTarget
	if l.q.UnionDuplicates {
		same = make(map[string][]guardedTarget, len(count))
		for _, t := range l.conditional {
			same[l.image(t.node)] = append(same[l.image(t.node)], t)
		}
	}
	var kept []guardedTarget
	seen, merged := map[string]bool{}, map[string]bool{}
	for _, t := range l.conditional {
		image := l.image(t.node)
		if count[image] > 1 && l.q.UnionDuplicates && !seen[image] {
			if union, ok := unionRisks(same[image]); ok {
				united := t
				united.risks = union
				if !l.q.Compat {
					united.refused = schema.RefusedRisks(union)
				}
				merged[image] = true
				kept = append(kept, united)
			}
		}
		switch {
		case count[image] == 1:
			kept = append(kept, t)
		case !merged[image]:
			l.drop(t.node, t.entry, DuplicateTarget, nil)
		}
		seen[image] = true
	}
	l.conditional = kept
}

// unionRisks merges the risks of all entries for one target; ok is false if one
// name stands for different risks, or a ClusterVersion cannot hold one's.
func unionRisks(targets []guardedTarget) (union []configv1.ConditionalUpdateRisk, ok bool) {
	byName := map[string]configv1.ConditionalUpdateRisk{}
	for _, t := range targets {
		if t.refused != nil {
			return nil, false
		}
		for _, risk := range t.risks {
			old, known := byName[risk.Name]
			switch {
			case !known:
				byName[risk.Name] = risk
				union = append(union, risk)
			case !schema.EqualRisks(old, risk):
				return nil, false
			}
		}
	}
	return union, true
}

func copyRisks(risks []configv1.ConditionalUpdateRisk) []configv1.ConditionalUpdateRisk {
	if risks == nil {
		return nil
	}
	copied := make([]configv1.ConditionalUpdateRisk, len(risks))
	for i := range risks {
		risks[i].DeepCopyInto(&copied[i])
	}
	return copied
}
