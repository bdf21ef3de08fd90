package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is all that a pass over a namespace is decided from.
type State struct {
	Now      time.Time
	Snapshot *olm.Snapshot
	// Plans are all InstallPlans of the namespace.
	Plans []olmapi.InstallPlan
	// Resolve are the options of the resolution.
	Resolve olm.Options
	// Unpack is true if bundle images are unpacked before their plan is made.
	// Unpacked is the result of it so far, by the identifier of the lookup.
	Unpack   bool
	Unpacked map[string]UnpackResult
	// PlanErr is why the InstallPlan could not be created a moment ago.
	PlanErr error
	// Execute is true if plans are carried out.
	Execute bool

	last *resolved // nil: each resolution is a new one
}

// UnpackResult is what an [Unpacker] returned.
type UnpackResult struct {
	Objects []*unstructured.Unstructured
	Err     error
}

// The types of an [Action]: see there.
const (
	actionUnpack            = "Unpack"
	actionCreatePlan        = "CreatePlan"
	actionApprovePlan       = "ApprovePlan"
	actionWritePlan         = "WritePlan"
	actionWriteSubscription = "WriteSubscription"
	actionDeletePlan        = "DeletePlan"
	actionExecutePlan       = "ExecutePlan"
)

// Action is one thing to be done, and why.
type Action struct {
	// Type is Unpack, CreatePlan (and write its status), ApprovePlan (its spec),
	// WritePlan or WriteSubscription (their status), DeletePlan or ExecutePlan: the
	// steps of Plan that belong to Operators.
	Type   string
	Reason string

	Unpack *UnpackRequest
	// Plan and Subscription are the objects as they were read, with the status
	// that they are to have. It is written only if the object is unchanged since.
	Plan         *olmapi.InstallPlan
	Subscription *olmapi.Subscription
	Operators    []string
}

// String returns "type name: reason", with the name of the bundle, of the Subscription,
// or of the plan and its phase.
func (a Action) String() string {
	text := a.Type
	switch {
	case a.Unpack != nil:
		text += " " + a.Unpack.Lookup.Identifier
	case a.Subscription != nil:
		text += " " + a.Subscription.Name
	case a.Plan != nil:
		text += fmt.Sprintf(" %s %s", a.Plan.Name, a.Plan.Status.Phase)
	}
	return text + ": " + a.Reason
}

// Decide returns what is to be done for a namespace now. It resolves, and returns
// the first of these that is not empty, since what comes later depends on it:
//
//  1. bundle images to be unpacked,
//  2. changes of InstallPlans: the one that carries out the generation is
//     created, and approved if no Subscription asks for an approval any more;
//     approved ones start, the rest are superseded,
//  3. the statuses of Subscriptions, and old plans to be deleted,
//  4. plans to be carried out, oldest first.
//
// So a plan is carried out only once all statuses say so. A plan that waits does
// not hold up the resolution. One that the resolution no longer asks for becomes
// Failed with reason PlanSuperseded. What belongs to operators of it that are there
// already is written before, and if that is all, the plan becomes Complete. While
// it is not known what is asked for, because the resolution failed or bundles are
// being unpacked, plans neither start nor are superseded.
//
// The result reports the result of the resolution, and the error why it failed or
// lacks a plan; actions write it to the Subscriptions. Without
// Subscriptions there is nothing to do. Decide has no side effects, and does not
// change s; ctx ends the search of the resolution.
func Decide(ctx context.Context, s *State) ([]Action, *SyncResult, error) {
	d := &decider{state: s, res: &SyncResult{Namespace: s.Snapshot.Namespace}}
	if len(s.Snapshot.Subscriptions) == 0 {
		return nil, d.res, nil
	}
	observed := *s.Snapshot
	observed.Subscriptions = slices.Clone(s.Snapshot.Subscriptions)
	for i := range observed.Subscriptions {
		sub := &observed.Subscriptions[i]
		sub.Status = observedStatus(sub, s)
		if sub.Status.State == olmapi.StateUpgradePending && sub.Status.InstallPlanRef != nil {
			d.res.Waiting = append(d.res.Waiting, sub.Status.InstallPlanRef.Name)
		}
	}
	slices.Sort(d.res.Waiting)
	d.res.Waiting = slices.Compact(d.res.Waiting)

	actions := d.resolve(ctx, &observed)
	if ctx.Err() != nil {
		return nil, d.res, ctx.Err()
	}
	err := d.err
	if len(actions) > 0 {
		return actions, d.res, err
	}
	executions := d.judgePlans(observed.Subscriptions)
	if len(d.plans) > 0 {
		return d.plans, d.res, err
	}
	actions = append(d.statuses(observed.Subscriptions), d.deletions()...)
	if len(actions) > 0 {
		return actions, d.res, err
	}
	return executions, d.res, err
}

type decider struct {
	state   *State
	res     *SyncResult
	r       resolution
	err     error      // why there is neither a generation nor a plan for it
	changes *changeSet // nil while it is not known what is asked for
	plans   []Action
}

// resolve finds what is asked for. It returns what has to be unpacked first.
func (d *decider) resolve(ctx context.Context, s *olm.Snapshot) []Action {
	g, held, err := d.state.last.resolve(ctx, s, d.state.Resolve)
	if err != nil {
		d.r.Err, d.err = err, err
		return nil
	}
	d.res.Generation = g
	d.r.HeldBack = held
	fail := func(reason string, err error) []Action {
		d.err = err
		d.r.Unpack, d.r.UnpackReason = err, reason
		d.r.Unpacking = false
		return nil
	}
	changes, err := newChanges(s, g)
	if err != nil {
		return fail(reasonErrorPreventedUnpacking, err)
	}
	if d.state.Unpack && len(changes.Lookups) > 0 {
		limits, err := unpackLimits(s.OperatorGroups)
		if err != nil {
			return fail(reasonErrorPreventedUnpacking, err)
		}
		var unpack []Action
		for _, lookup := range slices.Clone(changes.Lookups) {
			got, ok := d.state.Unpacked[lookup.Identifier]
			if !ok {
				unpack = append(unpack, Action{
					Type: actionUnpack, Reason: "the generation asks for " + lookup.Identifier,
					Unpack: &UnpackRequest{Namespace: s.Namespace, Lookup: lookup, Limits: limits},
				})
				continue
			}
			err := got.Err
			if err == nil {
				err = changes.Unpacked(lookup.Identifier, got.Objects)
			}
			reason := reasonErrorPreventedUnpacking
			if failed := (*UnpackError)(nil); errors.As(err, &failed) {
				reason = reasonBundleUnpackFailed
			}
			switch {
			case errors.Is(err, ErrUnpacking):
				d.r.Unpacking, d.res.Soon = true, true
			case err != nil:
				fail(reason, err)
				d.err = fmt.Errorf("bundle %s: %w", lookup.Identifier, err)
				return nil
			}
		}
		if len(unpack) > 0 || d.r.Unpacking {
			return unpack
		}
	}
	if d.state.PlanErr != nil {
		return fail(reasonEnsureInstallPlanFailed, d.state.PlanErr)
	}
	d.changes = changes
	return nil
}

// judgePlans finds the plan that serves, and what becomes of the rest. It
// returns those that are to be carried out.
func (d *decider) judgePlans(subs []olmapi.Subscription) []Action {
	serving := ""
	if d.changes != nil {
		decision := decidePlan(d.changes, subs, d.state.Plans, d.state.Now)
		asked := "the generation asks for " + strings.Join(d.changes.CSVs, ", ")
		d.res.At = decision.Wait
		switch {
		case decision.Create != nil:
			d.plans = append(d.plans, Action{Type: actionCreatePlan, Reason: asked, Plan: decision.Create})
		case decision.Status != nil:
			d.write(decision.Reuse, *decision.Status, "its creation was interrupted")
			serving = decision.Reuse.Name
		case decision.Reuse != nil:
			d.r.Plan, d.r.Current = decision.Reuse, d.changes.Current
			d.res.Plan, serving = decision.Reuse.Name, decision.Reuse.Name
		}
	}
	var executions []Action
	execute := func(p *olmapi.InstallPlan, operators []string, reason string) {
		if d.state.Execute && !lookupsPending(p.Status.BundleLookups) {
			executions = append(executions, Action{Type: actionExecutePlan, Reason: reason, Plan: p, Operators: operators})
		}
	}
	there := stableCSVs(d.state.Snapshot)
	for _, p := range byAge(d.state.Plans) {
		names := p.Spec.ClusterServiceVersionNames
		var begun []string
		for _, name := range names {
			if there[name] {
				begun = append(begun, name)
			}
		}
		installing := p.Status.Phase == olmapi.PlanPhaseInstalling
		switch {
		case p.DeletionTimestamp != nil, p.Status.Phase == olmapi.PlanPhaseComplete, p.Status.Phase == olmapi.PlanPhaseFailed:
		case p.Name == serving:
			status := approvedStatus(p)
			switch {
			case status.Phase != p.Status.Phase:
				d.write(p, status, "it was approved")
			case p.Status.Phase == olmapi.PlanPhaseRequiresApproval && approvalOf(subs) == olmapi.ApprovalAutomatic:
				approved := *p
				approved.Spec.Approval, approved.Spec.Approved = olmapi.ApprovalAutomatic, true
				const reason = "no Subscription asks for an approval"
				d.plans = append(d.plans, Action{Type: actionApprovePlan, Reason: reason, Plan: &approved})
			case installing:
				execute(p, names, "the generation asks for it")
			}
		case d.changes == nil:
			if installing && len(begun) > 0 {
				execute(p, names, "it has begun")
			}
		case installing && len(begun) > 0 && !d.state.Execute:
			// The program that carries it out knows how far it is.
		case installing && len(begun) > 0 && !lookupsPending(p.Status.BundleLookups) && !stepsDone(stepsOf(p, begun)):
			execute(p, begun, "these operators are there, and what belongs to them follows")
		default:
			d.write(p, supersededStatus(p, d.changes, metav1.NewTime(d.state.Now)), "the generation no longer asks for it")
		}
	}
	return executions
}

func (d *decider) write(p *olmapi.InstallPlan, status olmapi.InstallPlanStatus, reason string) {
	out := *p
	out.Status = status
	d.plans = append(d.plans, Action{Type: actionWritePlan, Reason: reason, Plan: &out})
}

// statuses writes those of Subscriptions that differ.
func (d *decider) statuses(observed []olmapi.Subscription) []Action {
	var out []Action
	for i := range observed {
		sub := observed[i]
		if !objects.Belongs(sub.Namespace, d.state.Snapshot.Namespace) {
			continue
		}
		before := d.state.Snapshot.Subscriptions[i].Status
		sub.Status = resolvedStatus(&sub, &d.r, metav1.NewTime(d.state.Now))
		if !equalStatus(&before, &sub.Status) {
			const reason = "its status differs from what is there"
			out = append(out, Action{Type: actionWriteSubscription, Reason: reason, Subscription: &sub})
		}
	}
	slices.SortStableFunc(out, func(a, b Action) int { return strings.Compare(a.Subscription.Name, b.Subscription.Name) })
	return out
}

func (d *decider) deletions() []Action {
	var out []Action
	reason := fmt.Sprintf("only the newest %d are kept", plansKept)
	for _, plan := range oldPlans(d.state.Plans) {
		out = append(out, Action{Type: actionDeletePlan, Reason: reason, Plan: plan})
	}
	return out
}

// stableCSVs returns the names of the CSVs that are there to stay: neither on
// their way out nor replaced by another. One that a Subscription records as
// installed and that is not there is stable too: the list may be older than the
// record, and a plan that was started is not given up for that.
func stableCSVs(s *olm.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, sub := range objects.In(s.Namespace, s.Subscriptions) {
		out[sub.Status.InstalledCSV] = sub.Status.InstalledCSV != ""
	}
	present := s.PresentCSVs()
	replaced := map[string]bool{}
	for _, csv := range present {
		replaced[csv.Spec.Replaces] = true
	}
	for _, csv := range present {
		out[csv.Name] = !replaced[csv.Name] && csv.DeletionTimestamp == nil &&
			csv.Status.Phase != olmapi.CSVPhaseReplacing && csv.Status.Phase != olmapi.CSVPhaseDeleting
	}
	return out
}

// unclaimedCSVs are those that are there to stay and that no Subscription speaks
// of.
func unclaimedCSVs(s *olm.Snapshot) []*olmapi.ClusterServiceVersion {
	stable, claimed := stableCSVs(s), map[string]bool{}
	for i := range s.Subscriptions {
		status := &s.Subscriptions[i].Status
		claimed[status.CurrentCSV], claimed[status.InstalledCSV] = true, true
	}
	return slices.DeleteFunc(s.PresentCSVs(), func(csv *olmapi.ClusterServiceVersion) bool {
		return claimed[csv.Name] || !stable[csv.Name]
	})
}

func stepsOf(p *olmapi.InstallPlan, operators []string) []*olmapi.Step {
	var out []*olmapi.Step
	for _, s := range p.Status.Plan {
		if slices.Contains(operators, s.Resolving) {
			out = append(out, s)
		}
	}
	return out
}

func supersededStatus(p *olmapi.InstallPlan, c *changeSet, now metav1.Time) olmapi.InstallPlanStatus {
	asked := "nothing"
	if len(c.CSVs) > 0 {
		asked = strings.Join(c.CSVs, ", ")
	}
	status := p.Status
	status.Phase = olmapi.PlanPhaseFailed
	status.Message = "superseded: the resolution no longer asks for this plan, but for " + asked
	setInstalled(&status, corev1.ConditionFalse, reasonPlanSuperseded, now)
	return status
}

// superseded reports whether a plan failed because it was no longer asked for.
func superseded(p *olmapi.InstallPlan) bool {
	c := installedCondition(p)
	return p.Status.Phase == olmapi.PlanPhaseFailed && c != nil && c.Reason == reasonPlanSuperseded
}
