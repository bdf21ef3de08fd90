package install

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// Condition of an InstallPlan, and its reasons.
const (
	planInstalled            = "Installed"
	reasonInstallCheckFailed = "InstallCheckFailed"
	reasonComponentFailed    = "InstallComponentFailed"
	reasonPlanSuperseded     = "PlanSuperseded"
)

const (
	retryingText            = "retrying execution due to error: "
	planNamePrefix          = "install-"
	annotationGeneratedBy   = "olm.generated-by"
	annotationUnpackTimeout = "operatorframework.io/bundle-unpack-timeout"
	annotationUnpackRetry   = "operatorframework.io/bundle-unpack-min-retry-interval"

	plansKept, plansPerSweep  = 5, 5
	defaultExecutionRetryTime = time.Minute
	defaultUnpackTimeout      = 10 * time.Minute
	defaultUnpackRetry        = 5 * time.Minute
)

// planDecision is which InstallPlan carries out changes.
type planDecision struct {
	// Create is the plan to be created, with the status to be written then;
	// nil if there is nothing to do or a plan exists.
	Create *olmapi.InstallPlan
	// Reuse is the plan that carries out the changes already. Status is set if
	// it has none yet, because its creator was interrupted.
	Reuse  *olmapi.InstallPlan
	Status *olmapi.InstallPlanStatus
	// Wait is when a plan is to be created that would follow others too soon.
	// Zero if none has to wait.
	Wait time.Time
}

// decidePlan finds or makes the InstallPlan for changes, given all
// Subscriptions and InstallPlans of the namespace. Changes without steps need
// none. The newest plan serves if it holds what is wanted and is not complete,
// so that deciding again after an interruption makes no second one. A failed one
// serves, too: it is not tried again unless somebody deletes it, or it failed
// because it had been superseded. One of which some operators are there already
// serves while the rest is asked for, or is held back by nothing but the want of
// the others: what was to be installed together is.
//
// A plan that follows others too soon waits, see [nextPlanTime]. If the newest has
// the same operators, it serves meanwhile, whatever its steps are: the content of
// a bundle that differs each time it is read is installed as it was read first.
//
// A new plan is named after its generation, so that two which were decided from
// the same state are one.
func decidePlan(c *changeSet, subs []olmapi.Subscription, plans []olmapi.InstallPlan, now time.Time) planDecision {
	newest := newestPlan(plans)
	same := newest != nil && !c.Empty() && sameNames(newest.Spec.ClusterServiceVersionNames, c.CSVs)
	open := newest != nil && newest.DeletionTimestamp == nil &&
		newest.Status.Phase != olmapi.PlanPhaseComplete && !superseded(newest)
	if open {
		if same && planUnwritten(newest) {
			status := newPlanStatus(c, newest.Spec.Approval, newest.Spec.Approved)
			return planDecision{Reuse: newest, Status: &status}
		}
		if (same || planContinues(newest, c)) && planCovers(newest, c) {
			return planDecision{Reuse: newest}
		}
	}
	if c.Empty() {
		return planDecision{}
	}
	if next := nextPlanTime(c, plans, now); next.After(now) {
		d := planDecision{Wait: next}
		if open && same {
			d.Reuse = newest
		}
		return d
	}
	plan := newInstallPlan(c, subs, nextGeneration(subs, plans))
	plan.Name = fmt.Sprint(planNamePrefix, plan.Spec.Generation)
	return planDecision{Create: plan}
}

// nextPlanTime returns when another plan for changes may follow the ones that
// are there, so that what never comes to rest is bounded: an operator that
// somebody deletes, a catalog or a bundle that differs each time it is read.
// A plan for the very operators of the newest one waits five seconds if that was
// carried out; if the newest two have them, 15 seconds, and four times as long for
// each further one. One that supersedes the fifth in a row waits a minute.
func nextPlanTime(c *changeSet, plans []olmapi.InstallPlan, now time.Time) time.Time {
	old := byAge(plans)
	slices.Reverse(old)
	if len(old) == 0 {
		return now
	}
	same, vain := 0, 0
	for same < len(old) && sameNames(old[same].Spec.ClusterServiceVersionNames, c.CSVs) {
		same++
	}
	for vain < len(old) && (superseded(old[vain]) || vain == 0 && old[0].Status.Phase != olmapi.PlanPhaseComplete) {
		vain++
	}
	var pause time.Duration
	switch {
	case same > 1:
		pause = 15 * time.Second << (2 * min(same-2, plansKept-2))
	case vain >= plansKept:
		pause = time.Minute
	case same == 1 && old[0].Status.Phase == olmapi.PlanPhaseComplete:
		pause = soon
	}
	next := planTime(old[0]).Add(pause)
	if pause == 0 || next.Sub(now) > plansPauseMax {
		return now // the latter: the clock was set back
	}
	return next
}

// plansPauseMax is the longest pause of all, and an hour for clocks of server and
// controller that differ.
const plansPauseMax = 15*time.Second<<(2*(plansKept-2)) + time.Hour

// planTime is the last time that is known of a plan.
func planTime(p *olmapi.InstallPlan) time.Time {
	times := []time.Time{p.CreationTimestamp.Time}
	if p.Status.StartTime != nil {
		times = append(times, p.Status.StartTime.Time)
	}
	if c := installedCondition(p); c != nil && c.LastUpdateTime != nil {
		times = append(times, c.LastUpdateTime.Time)
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// newInstallPlan returns the plan for changes, owned by all Subscriptions of
// the namespace. One Subscription with manual approval makes the whole plan
// wait for approval.
func newInstallPlan(c *changeSet, subs []olmapi.Subscription, generation int64) *olmapi.InstallPlan {
	approval := approvalOf(subs)
	p := &olmapi.InstallPlan{}
	p.APIVersion, p.Kind = p.APIKind().ToAPIVersionAndKind()
	p.GenerateName = planNamePrefix
	p.Namespace = c.Namespace
	for _, sub := range objects.In(c.Namespace, subs) {
		p.OwnerReferences = append(p.OwnerReferences, ownerReference(sub))
	}
	p.Spec = olmapi.InstallPlanSpec{
		ClusterServiceVersionNames: slices.Clone(c.CSVs),
		Approval:                   approval,
		Approved:                   approval == olmapi.ApprovalAutomatic,
		Generation:                 generation,
	}
	p.Status = newPlanStatus(c, approval, p.Spec.Approved)
	return p
}

// approvalOf is the approval of plans: one Subscription with manual approval
// makes it manual.
func approvalOf(subs []olmapi.Subscription) olmapi.Approval {
	manual := func(s olmapi.Subscription) bool { return s.Spec.InstallPlanApproval == olmapi.ApprovalManual }
	if slices.ContainsFunc(subs, manual) {
		return olmapi.ApprovalManual
	}
	return olmapi.ApprovalAutomatic
}

func newPlanStatus(c *changeSet, approval olmapi.Approval, approved bool) olmapi.InstallPlanStatus {
	status := olmapi.InstallPlanStatus{
		Phase:          olmapi.PlanPhaseInstalling,
		CatalogSources: []string{},
		Plan:           c.Steps,
		BundleLookups:  c.Lookups,
	}
	if approval == olmapi.ApprovalManual && !approved {
		status.Phase = olmapi.PlanPhaseRequiresApproval
	}
	for _, s := range c.Steps {
		status.CatalogSources = append(status.CatalogSources, s.Resource.CatalogSource)
	}
	for _, l := range c.Lookups {
		status.CatalogSources = append(status.CatalogSources, l.CatalogSourceRef.Name)
	}
	slices.Sort(status.CatalogSources)
	status.CatalogSources = slices.Compact(status.CatalogSources)
	return status
}

func planUnwritten(p *olmapi.InstallPlan) bool {
	return p.Status.Phase == olmapi.PlanPhaseNone && len(p.Status.Plan) == 0 && len(p.Status.BundleLookups) == 0
}

// planContinues reports whether a plan is being carried out, and nothing but
// its rest is asked for.
func planContinues(p *olmapi.InstallPlan, c *changeSet) bool {
	names := p.Spec.ClusterServiceVersionNames
	wanted := func(name string) bool { return slices.Contains(c.CSVs, name) }
	stable := func(name string) bool { return c.stable[name] }
	return p.Status.Phase == olmapi.PlanPhaseInstalling && slices.ContainsFunc(names, stable) &&
		slices.ContainsFunc(names, func(name string) bool { return !stable(name) }) &&
		!slices.ContainsFunc(names, func(name string) bool { return !wanted(name) && !stable(name) && !c.heldBack[name] }) &&
		!slices.ContainsFunc(c.CSVs, func(name string) bool { return !slices.Contains(names, name) })
}

// planCovers reports whether a plan holds all steps that are wanted. Its
// lookups may have become steps meanwhile.
func planCovers(p *olmapi.InstallPlan, c *changeSet) bool {
	have := map[any]bool{}
	stepKey := func(s *olmapi.Step) any {
		r := &s.Resource
		return [...]string{s.Resolving, r.Group, r.Kind, r.Name, r.Manifest}
	}
	lookupKey := func(l olmapi.BundleLookup) any { return [...]string{l.Path, l.Identifier, l.Replaces} }
	for _, s := range p.Status.Plan {
		have[stepKey(s)] = true
	}
	for _, l := range p.Status.BundleLookups {
		have[lookupKey(l)] = true
	}
	return !slices.ContainsFunc(c.Steps, func(s *olmapi.Step) bool { return !have[stepKey(s)] }) &&
		!slices.ContainsFunc(c.Lookups, func(l olmapi.BundleLookup) bool { return !have[lookupKey(l)] })
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// newestPlan returns the plan of the highest generation, of equals the first by
// name; nil if absent.
func newestPlan(plans []olmapi.InstallPlan) *olmapi.InstallPlan {
	var newest *olmapi.InstallPlan
	for i := range plans {
		p := &plans[i]
		if newest == nil || p.Spec.Generation > newest.Spec.Generation ||
			p.Spec.Generation == newest.Spec.Generation && p.Name < newest.Name {
			newest = p
		}
	}
	return newest
}

// nextGeneration is one more than any that a Subscription or a plan knows.
func nextGeneration(subs []olmapi.Subscription, plans []olmapi.InstallPlan) int64 {
	var highest int64
	for i := range subs {
		highest = max(highest, subs[i].Status.InstallPlanGeneration)
	}
	for i := range plans {
		highest = max(highest, plans[i].Spec.Generation)
	}
	return highest + 1
}

// oldPlans returns the InstallPlans of a namespace that are to be deleted: of
// more than five the oldest, at most five at a time.
func oldPlans(plans []olmapi.InstallPlan) []*olmapi.InstallPlan {
	return byAge(plans)[:max(0, min(len(plans)-plansKept, plansPerSweep))]
}

// byAge sorts plans, the oldest generation first.
func byAge(plans []olmapi.InstallPlan) []*olmapi.InstallPlan {
	out := make([]*olmapi.InstallPlan, len(plans))
	for i := range plans {
		out[i] = &plans[i]
	}
	slices.SortStableFunc(out, func(a, b *olmapi.InstallPlan) int {
		return cmp.Or(
			cmp.Compare(a.Spec.Generation, b.Spec.Generation),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Name, b.Name),
		)
	})
	return out
}

// approvedStatus returns the status that a plan has as soon as it may be
// installed: one that waits for approval and got it goes to Installing. Other
// plans stay as they are.
func approvedStatus(p *olmapi.InstallPlan) olmapi.InstallPlanStatus {
	status := p.Status
	if status.Phase == olmapi.PlanPhaseRequiresApproval && p.Spec.Approved {
		status.Phase = olmapi.PlanPhaseInstalling
	}
	return status
}

// attemptedStatus returns the status of a plan in phase Installing after an
// attempt to carry out its steps, whose statuses are those of the result of
// the attempt. An error is tried again for retry (0 means a minute) from the
// first attempt on; what is forbidden is tried without end, since an administrator
// may allow it. Without an error the plan is complete once all steps are
// carried out.
func attemptedStatus(
	p *olmapi.InstallPlan, steps []*olmapi.Step, err error, now time.Time, retry time.Duration,
) olmapi.InstallPlanStatus {
	status := p.Status
	if status.Phase != olmapi.PlanPhaseInstalling {
		return status
	}
	if retry == 0 {
		retry = defaultExecutionRetryTime
	}
	at := metav1.NewTime(now)
	refused := (*Refusal)(nil)
	errors.As(err, &refused)
	if refused != nil && refused.waits() {
		status.Message = bounded.Text(err.Error(), maxMessage)
		setInstalled(&status, corev1.ConditionFalse, reasonInstallCheckFailed, at)
		return status
	}
	if status.StartTime == nil {
		status.StartTime = &at
	}
	status.Plan = steps
	if c := installedCondition(p); err == nil && c != nil && c.Status == corev1.ConditionFalse {
		status.Message = "" // nothing is in the way any more
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c olmapi.Condition) bool {
			return c.Type == planInstalled
		})
	}
	again := apierrors.IsForbidden(err) || now.Sub(status.StartTime.Time) < retry
	switch {
	case err != nil && again && (refused == nil || !refused.final()):
		status.Message = bounded.Text(retryingText+err.Error(), maxMessage)
	case err != nil:
		status.Phase = olmapi.PlanPhaseFailed
		status.Message = bounded.Text(err.Error(), maxMessage)
		setInstalled(&status, corev1.ConditionFalse, reasonComponentFailed, at)
	case stepsDone(steps) && !lookupsPending(status.BundleLookups):
		status.Phase = olmapi.PlanPhaseComplete
		status.Message = ""
		setInstalled(&status, corev1.ConditionTrue, "", at)
	}
	return status
}

func stepsDone(steps []*olmapi.Step) bool {
	return !slices.ContainsFunc(steps, func(s *olmapi.Step) bool { return !isDone(s) })
}

func lookupsPending(lookups []olmapi.BundleLookup) bool {
	return slices.ContainsFunc(lookups, func(l olmapi.BundleLookup) bool {
		return slices.ContainsFunc(l.Conditions, func(c olmapi.Condition) bool {
			return (c.Type == conditionLookupPending || c.Type == conditionNotPersisted) && c.Status == corev1.ConditionTrue
		})
	})
}

// installedCondition returns condition Installed of a plan; nil if it has none.
func installedCondition(p *olmapi.InstallPlan) *olmapi.Condition {
	return findCondition(p.Status.Conditions, planInstalled)
}

// setInstalled sets condition Installed of a plan, with the message of its status.
func setInstalled(status *olmapi.InstallPlanStatus, value corev1.ConditionStatus, reason string, now metav1.Time) {
	status.Conditions = withCondition(status.Conditions, olmapi.Condition{
		Type: planInstalled, Status: value, Reason: reason, Message: status.Message,
		LastUpdateTime: &now, LastTransitionTime: &now,
	})
}

// UnpackLimits are the times that rule the unpacking of bundle images.
type UnpackLimits struct {
	// Timeout ends an attempt. Zero: no limit.
	Timeout time.Duration
	// Retry is the time after a failure until the next attempt.
	Retry time.Duration
}

// unpackLimits returns the limits that the annotations of a namespace's
// OperatorGroups set: 10 and 5 minutes without. The error names an annotation
// that is not a duration, or is negative.
func unpackLimits(groups []olmapi.OperatorGroup) (UnpackLimits, error) {
	limits := UnpackLimits{Timeout: defaultUnpackTimeout, Retry: defaultUnpackRetry}
	if len(groups) == 0 {
		return limits, nil
	}
	if len(groups) > 1 {
		return limits, fmt.Errorf("found %d operatorGroups, expected 1", len(groups))
	}
	for _, l := range []struct {
		annotation string
		limit      *time.Duration
	}{{annotationUnpackTimeout, &limits.Timeout}, {annotationUnpackRetry, &limits.Retry}} {
		text, ok := groups[0].Annotations[l.annotation]
		if !ok {
			continue
		}
		parsed, err := time.ParseDuration(text)
		if err == nil && parsed < 0 {
			err = fmt.Errorf("negative duration %q", text)
		}
		if err != nil {
			group := groups[0].Namespace + "/" + groups[0].Name
			return limits, fmt.Errorf("operatorgroup %s: annotation %s: %w", group, l.annotation, err)
		}
		*l.limit = parsed
	}
	return limits, nil
}
