package olm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// PlanOptions say what a [Plan] is to answer.
type PlanOptions struct {
	// Resolve are the options of each resolution.
	Resolve Options
	// Target is the version of OpenShift that the cluster is to be updated to,
	// such as "4.19". Empty: no question about that.
	Target string
}

// ClusterPlan is what would become of the operators of a cluster.
type ClusterPlan struct {
	// Namespaces in the order of the snapshots.
	Namespaces []NamespacePlan
	// Target describes what is in the way of the cluster's update; nil without
	// [PlanOptions].Target.
	Target *TargetPlan
}

// NamespacePlan is what would become of the operators of a namespace, if every
// InstallPlan were approved and went well.
type NamespacePlan struct {
	Namespace string
	// Generations are those that follow each other. The last one changes
	// nothing, unless there is an error.
	Generations []*Generation
	// Err is why the generations end early: see [Sequence].
	Err error
}

// TargetPlan determines which operators must move before the cluster is updated.
type TargetPlan struct {
	Target OpenShiftVersion
	// Operators are those installed that are in the way, by the order of
	// namespaces, then name.
	Operators []TargetOperator
	// Introduced are operators that updates bring and that are then in the way.
	Introduced []BlockingOperator
	// Generations is how many generations it takes until nothing is in the way: 0 if nothing is, -1 if that does not come.
	Generations int
	// Warnings are about limits that others may read differently.
	Warnings []string
}

// The answers for an operator: see [TargetOperator].
const (
	targetMoves        = "Moves"
	targetWithheld     = "Withheld"
	targetOtherChannel = "OtherChannel"
	targetNoPath       = "NoPath"
	targetFreestanding = "Freestanding"
)

// TargetOperator is an installed operator that does not support the target.
type TargetOperator struct {
	BlockingOperator
	Subscriptions []string // that have it installed, by name
	// Answer reports whether the operator gets out of the way:
	//
	//	Moves         the resolutions that follow bring a version that supports
	//	              the target
	//	Withheld      its channel leads to such a version, but other operators
	//	              keep it from being taken, or it is passed over
	//	OtherChannel  only another channel of its package leads there
	//	NoPath        the catalogs know no way
	//	Freestanding  no Subscription updates it
	Answer string
	// Generations is the number of generations after which it is out of the
	// way, and By the operator that has then taken its place, empty if it just
	// went. Both are set if Answer is Moves.
	Generations int
	By          string
	// Path is the shortest way through its channel, the need of other operators
	// aside; nil if absent.
	Path []PathStep
	// Channels are further ones of the package that lead to such a version, by name.
	Channels []string
}

// Plan says, for snapshots of the namespaces of a cluster, what updates follow
// each other, and which operators must move before the cluster can be updated.
// It changes nothing. An error is the context's, or about the target; faults of
// one namespace are part of its plan.
//
// For the question about a target, the snapshots should be those of all
// namespaces with installed operators: see install.ReadSnapshots.
func Plan(ctx context.Context, snapshots []*Snapshot, o PlanOptions) (*ClusterPlan, error) {
	out := &ClusterPlan{}
	if o.Target != "" {
		target, err := ParseOpenShiftVersion(o.Target)
		if err != nil {
			return nil, err
		}
		out.Target = &TargetPlan{Target: target}
	}
	for _, s := range snapshots {
		n := NamespacePlan{Namespace: s.Namespace}
		n.Generations, n.Err = Sequence(ctx, *s, o.Resolve)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if out.Target != nil {
			if err := out.Target.add(s, &n); err != nil {
				return nil, err
			}
		}
		out.Namespaces = append(out.Namespaces, n)
	}
	return out, nil
}

// add looks for what is in the way in one namespace, now and after each
// generation.
func (t *TargetPlan) add(s *Snapshot, n *NamespacePlan) error {
	states := []Snapshot{*s}
	changing := n.Generations
	if n.Err == nil {
		changing = changing[:len(changing)-1] // the last one changes nothing
	}
	for _, g := range changing {
		next, err := states[len(states)-1].Apply(g)
		if err != nil {
			return err
		}
		states = append(states, next)
	}
	checks := make([]*Compatibility, len(states))
	for i := range states {
		checks[i] = checkTarget(OpenShiftVersion{}, t.Target, ownCSVs(&states[i]))
	}
	t.Warnings = append(t.Warnings, checks[0].Warnings...)

	free := slices.IndexFunc(checks, func(c *Compatibility) bool { return len(c.Blocking) == 0 })
	if free < 0 || t.Generations < 0 {
		t.Generations = -1
	} else {
		t.Generations = max(t.Generations, free)
	}
	before := map[string]bool{}
	for _, b := range checks[0].Blocking {
		before[b.Name] = true
		t.Operators = append(t.Operators, targetOperator(s, b, t.Target, states, checks, n.Generations))
	}
	for _, c := range checks[1:] {
		for _, b := range c.Blocking {
			if !before[b.Name] {
				before[b.Name] = true
				t.Introduced = append(t.Introduced, b)
			}
		}
	}
	return nil
}

// ownCSVs returns the CSVs of the snapshot's namespace by name.
func ownCSVs(s *Snapshot) []olmapi.ClusterServiceVersion {
	var out []olmapi.ClusterServiceVersion
	for _, csv := range s.PresentCSVs() {
		own := *csv
		own.Namespace = s.Namespace
		out = append(out, own)
	}
	return out
}

func targetOperator(
	s *Snapshot, b BlockingOperator, target OpenShiftVersion,
	states []Snapshot, checks []*Compatibility, generations []*Generation,
) TargetOperator {
	o := TargetOperator{BlockingOperator: b}
	owners := owningSubscriptions(b.Name, objects.In(s.Namespace, s.Subscriptions))
	for _, sub := range owners {
		o.Subscriptions = append(o.Subscriptions, sub.Name)
	}
	channels := map[string]bool{}
	for _, sub := range owners {
		o.findPaths(s, sub, target, channels)
	}
	o.Channels = slices.Sorted(maps.Keys(channels))

	name := b.Name
	for i := 1; i < len(states); i++ {
		name = successor(generations[i-1], name)
		stillThere := slices.ContainsFunc(checks[i].Blocking, func(x BlockingOperator) bool { return x.Name == name })
		if !stillThere {
			o.Answer, o.Generations, o.By = targetMoves, i, name
			return o
		}
	}
	switch {
	case len(owners) == 0:
		o.Answer = targetFreestanding
	case o.Path != nil:
		o.Answer = targetWithheld
	case len(o.Channels) > 0:
		o.Answer = targetOtherChannel
	default:
		o.Answer = targetNoPath
	}
	return o
}

// successor is what a generation replaces an operator with.
func successor(g *Generation, name string) string {
	for _, u := range g.InProgress {
		if u.Old == name {
			return u.Last
		}
	}
	for i := range g.Slots {
		slot := &g.Slots[i]
		named := func(b *Bundle) bool { return b != nil && b.Name == name }
		if slot.Current != nil && (named(slot.Previous) || slices.ContainsFunc(slot.AlsoReplaced, named)) {
			return slot.Current.Name
		}
	}
	return name
}

// findPaths looks in the Subscription's catalogs for versions that support the
// target, in all channels.
func (o *TargetOperator) findPaths(
	s *Snapshot, sub *olmapi.Subscription, target OpenShiftVersion, channels map[string]bool,
) {
	supports := func(e *Entry) bool {
		highest, _, err := e.Bundle.MaxOpenShiftVersion()
		return err == nil && (highest == nil || highest.Allows(target))
	}
	installed, _, err := readInstalled(s.Namespace, s.Installed, nil, nil)
	if err != nil {
		return
	}
	from := Origin{Name: o.Name}
	for _, b := range installed {
		if b.Name == o.Name {
			from.Version = b.Version
		}
	}
	for i := range s.Catalogs {
		c := &s.Catalogs[i]
		if c.Contents == nil || !sub.Spec.Takes(c.Key) {
			continue
		}
		p := c.Contents.Package(sub.Spec.Package)
		if p == nil {
			continue
		}
		path, err := c.Contents.PathTo(p.Name, sub.Spec.Channel, from, supports)
		if err == nil && (o.Path == nil || len(path) < len(o.Path)) {
			o.Path = path
		}
		for _, ch := range p.Channels {
			if sub.Spec.Channel == "" || ch.Name == sub.Spec.Channel {
				continue
			}
			if _, err := c.Contents.PathTo(p.Name, ch.Name, from, supports); err == nil {
				channels[ch.Name] = true
			}
		}
	}
}

// String says in one line what an administrator has to know of the operator.
func (o TargetOperator) String() string {
	what := o.BlockingOperator.String() + ": "
	switch o.Answer {
	case targetMoves:
		plural := "s"
		if o.Generations == 1 {
			plural = ""
		}
		return fmt.Sprintf("%sgoes on to %s after %d generation%s", what, o.By, o.Generations, plural)
	case targetWithheld:
		return fmt.Sprintf("%scould go on to %s, but that is withheld", what, o.Path[len(o.Path)-1].To)
	case targetOtherChannel:
		return what + "needs another channel: " + strings.Join(o.Channels, ", ")
	case targetFreestanding:
		return what + "no Subscription updates it"
	}
	return what + "its catalog has no update that supports the target"
}

// Complete reports whether every namespace has a plan that holds nothing back, and
// no operator stays in the way of the target.
func (p *ClusterPlan) Complete() bool {
	for _, n := range p.Namespaces {
		if n.Err != nil || len(n.Generations[len(n.Generations)-1].HeldBack) > 0 {
			return false
		}
	}
	return p.Target == nil || p.Target.Generations >= 0
}

// String lists what the generations of each namespace install, one line for each operator,
// what is not as it should be in the end, and what is then in the way of the target.
func (p *ClusterPlan) String() string {
	var b strings.Builder
	for i := range p.Namespaces {
		p.Namespaces[i].write(&b)
	}
	if p.Target != nil {
		p.Target.write(&b)
	}
	return b.String()
}

func (n *NamespacePlan) write(b *strings.Builder) {
	fmt.Fprintf(b, "Namespace %s:\n", n.Namespace)
	for i, g := range n.Generations {
		for _, u := range g.InProgress {
			if i < len(n.Generations)-1 || n.Err != nil { // else it is among the remarks
				fmt.Fprintf(b, "  %d: %s\n", i+1, u)
			}
		}
		for j := range g.Slots {
			if g.Slots[j].Operator != nil {
				fmt.Fprintf(b, "  %d: %s\n", i+1, &g.Slots[j])
			}
		}
	}
	if n.Err != nil {
		fmt.Fprintf(b, "  failed: %v\n", n.Err)
		return
	}
	if len(n.Generations) == 1 {
		b.WriteString("  nothing changes\n")
	}
	b.WriteString(n.Generations[len(n.Generations)-1].Remarks())
}

func (t *TargetPlan) write(b *strings.Builder) {
	fmt.Fprintf(b, "Update of the cluster to OpenShift %s:\n", t.Target)
	for _, op := range t.Operators {
		fmt.Fprintf(b, "  %s\n", op)
	}
	for _, op := range t.Introduced {
		fmt.Fprintf(b, "  on the way: %s\n", op)
	}
	switch {
	case t.Generations < 0:
		b.WriteString("  operators stay in the way\n")
	case t.Generations == 0:
		b.WriteString("  no operator is in the way\n")
	default:
		fmt.Fprintf(b, "  possible after generation %d\n", t.Generations)
	}
}
