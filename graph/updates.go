package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
)

// UpdatesQuery asks for the updates of one cluster.
type UpdatesQuery struct {
	// Version is what the cluster reconciles now: strict SemVer.
	Version string
	// Channel is named in messages; nothing is filtered by it.
	Channel string
	// Architecture is the cluster's: "Multi", or a Go architecture name.
	Architecture string
	// DesiredArchitecture is what it shall be. Empty means as it is. "Multi"
	// where Architecture is another asks for the migration, of which the graph
	// then is the multi-architecture one.
	DesiredArchitecture string
	// Rules are the types of matching rules that the cluster knows; nil means
	// Always and PromQL. A risk with no other rules hides its updates.
	Rules *Rules
	// UnionDuplicates merges several conditional entries for one target into
	// one with the risks of all, instead of dropping the target. Entries that
	// give one name to different risks are dropped all the same.
	UnionDuplicates bool
	// Compat answers as the cluster-version operator does, faults included:
	// one bad target fails the query, a release can be its own update, equal
	// edges repeat it. For comparisons only.
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
	// offered, each with its cause.
	Dropped []Dropped
}

// Dropped is a target that is not offered.
type Dropped struct {
	Release configv1.Release
	// Risks are those of a conditional edge, before pruning.
	Risks []configv1.ConditionalUpdateRisk
	Cause DropCause
	// Err details UnrecognizedRules and InvalidMetadata, else nil.
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
)

// Updates lists the updates of a cluster. The error is an [*Error] of reason
// NoCurrentVersion, InvalidCurrentVersion, VersionNotFound (with a
// [*NotFoundError]) or ResponseInvalid. It costs no more than the edges that
// leave the version.
func (g *Graph) Updates(q UpdatesQuery) (*Updates, error) {
	version, err := parseCurrent(q.Version)
	if err != nil {
		return nil, err
	}
	current, ok := g.Find(version)
	if !ok {
		return nil, g.notFound(version, q.Channel)
	}
	l := lister{g: g, q: q, current: current, version: version.Original()}
	l.room = make([]string, 0, l.channels())
	u := &Updates{}
	if u.Current, err = l.release(current); err != nil {
		return nil, &Error{Reason: string(ErrResponseInvalid), Message: "invalid current node: " + err.Error(), Err: err}
	}
	if strings.EqualFold(q.DesiredArchitecture, "Multi") && !strings.EqualFold(q.Architecture, "Multi") {
		// The same release for several architectures is the only step.
		self, _ := l.release(current)
		u.Available = []configv1.Release{self}
		return u, nil
	}
	if err := l.list(u); err != nil {
		return nil, err
	}
	return u, nil
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

// lister lists the updates of one release.
type lister struct {
	g       *Graph
	q       UpdatesQuery
	current int
	version string   // as asked for: conditional edges are matched by it
	room    []string // for channels
}

// channels is how many channels the releases of an answer have at most.
func (l *lister) channels() int {
	n := len(l.g.releases[l.current].Channels)
	for _, to := range l.g.out(l.current) {
		if to >= 0 {
			n += len(l.g.releases[to].Channels)
		}
	}
	for _, ref := range l.g.outConditional(l.version) {
		if ref.to >= 0 {
			n += len(l.g.releases[ref.to].Channels)
		}
	}
	return n
}

// release returns a copy of a node's release. Its channels are cut from one
// piece of memory that all releases of an answer share.
func (l *lister) release(node int) (configv1.Release, error) {
	if l.q.Compat {
		return l.g.nodes[node].release(splitChannelsCompat)
	}
	r := l.g.releases[node]
	if n := len(r.Channels); n > 0 {
		if cap(l.room)-len(l.room) < n {
			l.room = make([]string, 0, max(n, 2*cap(l.room)))
		}
		start := len(l.room)
		l.room = append(l.room, r.Channels...)
		r.Channels = l.room[start:len(l.room):len(l.room)]
	}
	return r.Release, r.err
}

func (l *lister) list(u *Updates) error {
	if err := l.unconditional(u); err != nil {
		return err
	}
	guarded, err := l.conditional(u)
	if err != nil {
		return err
	}
	l.supersede(u, guarded)
	l.prune(u)
	l.duplicates(u)
	return nil
}

// unconditional lists the targets of edges.
func (l *lister) unconditional(u *Updates) error {
	targets := l.g.out(l.current)
	if len(targets) > 0 {
		u.Available = make([]configv1.Release, 0, len(targets))
	}
	for _, to := range targets {
		switch {
		case to < 0:
			return failure(ErrResponseInvalid, errors.New("an edge of the current node leads to a node that does not exist"))
		case int(to) == l.current && !l.q.Compat:
			continue
		}
		r, err := l.release(int(to))
		if err != nil {
			if l.q.Compat {
				return &Error{Reason: string(ErrResponseInvalid), Message: "invalid recommended update node: " + err.Error(), Err: err}
			}
			u.Dropped = append(u.Dropped, Dropped{Release: r, Cause: InvalidMetadata, Err: err})
			continue
		}
		u.Available = append(u.Available, r)
	}
	return nil
}

// conditional lists the targets of conditional edges. It returns the images
// that they guard, those of dropped targets included.
func (l *lister) conditional(u *Updates) (guarded map[string]bool, err error) {
	refs := l.g.outConditional(l.version)
	for _, ref := range refs {
		entry := &l.g.conditional[ref.entry]
		if ref.to < 0 {
			return nil, failure(ErrResponseInvalid, fmt.Errorf("no node for conditional update %s", entry.Edges[ref.pair].To))
		}
		if int(ref.to) == l.current && !l.q.Compat {
			continue
		}
		r, err := l.release(int(ref.to))
		if err != nil && l.q.Compat {
			return nil, &Error{Reason: string(ErrResponseInvalid), Message: "invalid conditional update node: " + err.Error(), Err: err}
		}
		if guarded == nil {
			guarded = make(map[string]bool, len(refs))
			u.Conditional = make([]configv1.ConditionalUpdate, 0, len(refs))
		}
		guarded[r.Image] = true
		if err != nil {
			u.Dropped = append(u.Dropped, Dropped{Release: r, Risks: copyRisks(entry.Risks), Cause: InvalidMetadata, Err: err})
			continue
		}
		u.Conditional = append(u.Conditional, configv1.ConditionalUpdate{Release: r, Risks: copyRisks(entry.Risks)})
	}
	return guarded, nil
}

// supersede takes what conditional edges guard off the available updates. It
// comes before pruning, so that a risk of an unknown kind fails closed.
func (l *lister) supersede(u *Updates, guarded map[string]bool) {
	if len(guarded) > 0 {
		u.Available = slices.DeleteFunc(u.Available, func(r configv1.Release) bool {
			if guarded[r.Image] {
				u.Dropped = append(u.Dropped, Dropped{Release: r, Cause: Superseded})
			}
			return guarded[r.Image]
		})
	}
	if len(u.Available) == 0 {
		u.Available = nil
	}
}

// prune keeps the rules that the cluster can evaluate, and the targets each of
// whose risks has one left.
func (l *lister) prune(u *Updates) {
	if len(u.Conditional) == 0 {
		u.Conditional = nil
		return
	}
	rules := l.q.Rules
	if rules == nil {
		rules = NewRules(Facts(nil)) // only the validity of rules is asked
	}
	kept := u.Conditional[:0]
	for _, c := range u.Conditional {
		pruned, err := pruneRisks(rules, c.Risks)
		if err != nil {
			u.Dropped = append(u.Dropped, Dropped{Release: c.Release, Risks: c.Risks, Cause: UnrecognizedRules, Err: err})
			continue
		}
		c.Risks = pruned
		kept = append(kept, c)
	}
	if u.Conditional = kept; len(kept) == 0 {
		u.Conditional = nil
	}
}

// pruneRisks keeps the rules that are known and valid; risks stays as it is.
// The error says which risks have none left.
func pruneRisks(rules *Rules, risks []configv1.ConditionalUpdateRisk) ([]configv1.ConditionalUpdateRisk, error) {
	pruned := risks
	var errs []error
	for i := range risks {
		kept, err := rules.Prune(risks[i].MatchingRules)
		if len(kept) == 0 {
			if err == nil {
				err = errors.New("no matching rules")
			}
			errs = append(errs, fmt.Errorf("risk %q: %w", risks[i].Name, err))
		}
		if len(kept) == len(risks[i].MatchingRules) {
			continue
		}
		if &pruned[0] == &risks[0] {
			pruned = slices.Clone(risks)
		}
		pruned[i].MatchingRules = kept
	}
	return pruned, aggregate(errs)
}

// duplicates drops targets to which several conditional entries are left.
func (l *lister) duplicates(u *Updates) {
	if len(u.Conditional) < 2 {
		return
	}
	count := make(map[string]int, len(u.Conditional))
	duplicate := false
	for _, c := range u.Conditional {
		count[c.Release.Image]++
		duplicate = duplicate || count[c.Release.Image] > 1
	}
	if !duplicate {
		return
	}
	var kept []configv1.ConditionalUpdate
	seen, merged := map[string]bool{}, map[string]bool{}
	for _, c := range u.Conditional {
		image := c.Release.Image
		if count[image] > 1 && l.q.UnionDuplicates && !seen[image] {
			if union, ok := unionRisks(u.Conditional, image); ok {
				c.Risks, merged[image] = union, true
				kept = append(kept, c)
			}
		}
		switch {
		case count[image] == 1:
			kept = append(kept, c)
		case !merged[image]:
			u.Dropped = append(u.Dropped, Dropped{Release: c.Release, Risks: c.Risks, Cause: DuplicateTarget})
		}
		seen[image] = true
	}
	u.Conditional = kept
}

// unionRisks merges the risks of all updates to an image; ok is false if one
// name stands for different risks.
func unionRisks(updates []configv1.ConditionalUpdate, image string) (union []configv1.ConditionalUpdateRisk, ok bool) {
	byName := map[string]configv1.ConditionalUpdateRisk{}
	for _, c := range updates {
		if c.Release.Image != image {
			continue
		}
		for _, risk := range c.Risks {
			old, known := byName[risk.Name]
			switch {
			case !known:
				byName[risk.Name] = risk
				union = append(union, risk)
			case !equalRisks(old, risk):
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

// notFound explains that a version is not in the graph.
func (g *Graph) notFound(v *semver.Version, channel string) error {
	e := &NotFoundError{Version: v.Original(), Channel: channel, Nodes: len(g.nodes)}
	var below, above *semver.Version
	minor := minorPrefix(v.Original())
	for i := range g.nodes {
		n := g.nodes[i].Version
		e.MinorKnown = e.MinorKnown || strings.HasPrefix(n.Original(), minor)
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
