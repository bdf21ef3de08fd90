package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

var modifyStatus = clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerOLM}

// pass is one pass over a namespace: it does what Decide says.
type pass struct {
	c     *Controller
	api   clusterapi.ReadWriter
	state State
	res   *SyncResult
	// Before retry no plan is carried out; it moves when an attempt has to be
	// made again.
	retry time.Time
}

func (c *Controller) newPass(api clusterapi.ReadWriter, namespace string, now time.Time) *pass {
	last, _ := c.resolved.LoadOrStore(namespace, &resolved{})
	return &pass{c: c, api: api, res: &SyncResult{Namespace: namespace}, state: State{
		Now: now, Resolve: c.o.Resolve, Unpack: c.o.Unpacker != nil, Execute: c.o.Execute, Unpacked: map[string]UnpackResult{},
		last: last.(*resolved),
	}}
}

// unpacking supplies what bundles hold. It returns false if that takes time: the
// pass ends then.
type unpacking func(ctx context.Context, requests []*UnpackRequest) (map[string]UnpackResult, bool)

func (c *Controller) unpackAll(ctx context.Context, requests []*UnpackRequest) (map[string]UnpackResult, bool) {
	out := map[string]UnpackResult{}
	for _, r := range requests {
		objects, err := c.o.Unpacker.Unpack(ctx, *r)
		out[r.Lookup.Identifier] = UnpackResult{Objects: objects, Err: err}
	}
	return out, true
}

// run makes the pass. cause is what stands in the statuses of objects already:
// why the resolution or a step failed.
func (p *pass) run(
	ctx context.Context, catalogs map[types.NamespacedName]olm.Catalog, unpack unpacking,
) (cause, err error) {
	o := p.c.o.SnapshotOptions
	o.Catalogs = catalogs
	p.state.Snapshot, err = ReadSnapshot(ctx, p.api, p.res.Namespace, o)
	if err != nil {
		return nil, err
	}
	if len(p.state.Snapshot.Subscriptions) == 0 {
		p.c.resolved.Delete(p.res.Namespace)
		return nil, nil
	}
	in := clusterapi.ListOptions{Namespace: p.res.Namespace}
	p.state.Plans, err = readAll[olmapi.InstallPlan](ctx, p.api, "installplans", in)
	if err != nil {
		return nil, err
	}
	for changed := false; ; changed = p.res.Changed {
		actions, result, cause := Decide(ctx, &p.state)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		*p.res = *result
		p.res.Changed = changed
		if len(actions) == 0 {
			return cause, nil
		}
		switch actions[0].Type {
		case actionUnpack:
			requests := make([]*UnpackRequest, len(actions))
			for i := range actions {
				requests[i] = actions[i].Unpack
			}
			results, ok := unpack(ctx, requests)
			if !ok {
				return nil, nil
			}
			for name, r := range results {
				p.state.Unpacked[name] = r
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		case actionCreatePlan, actionApprovePlan, actionWritePlan:
			if err := p.changePlans(ctx, actions); err != nil {
				return cause, err
			}
		case actionExecutePlan:
			if changed {
				return cause, nil // what was written is looked at first
			}
			if wait := p.retry.Sub(p.state.Now); wait > 0 && wait <= soon { // else the clock was set back
				p.res.Soon = true
				return cause, nil
			}
			cause := []error{cause}
			var errs []error
			for i := range actions {
				stepErr, err := p.executePlan(ctx, &actions[i])
				cause, errs = append(cause, stepErr), append(errs, err)
			}
			if p.res.Soon {
				p.retry = p.state.Now.Add(min(soon, p.c.o.Interval))
			}
			return errors.Join(cause...), errors.Join(errs...)
		default:
			err := p.writeStatuses(ctx, actions, cause)
			return cause, errors.Join(err, p.state.PlanErr)
		}
	}
}

// changePlans creates plans and writes their statuses, and keeps what is stored.
func (p *pass) changePlans(ctx context.Context, actions []Action) error {
	var errs []error
	for i := range actions {
		a := &actions[i]
		e := clusterapi.Event{Subject: planSubject(a.Plan)}
		switch {
		case a.Type == actionCreatePlan:
			created, err := clusterapi.Create(ctx, p.api, a.Plan, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerOLM})
			if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
				return err // it was decided from an old state
			}
			if err != nil {
				p.state.PlanErr = err
				continue
			}
			p.res.Changed = true
			e.Type, e.Message = EventPlanCreated, strings.Join(a.Plan.Spec.ClusterServiceVersionNames, ", ")
			p.observe(e)
			status := a.Plan.Status
			a.Plan = created
			e.Type = ""
			a.Plan.Status = status
		case superseded(a.Plan):
			e.Type, e.Message = EventPlanSuperseded, a.Plan.Status.Message
		case a.Type == actionApprovePlan, a.Plan.Spec.Approval == olmapi.ApprovalManual && a.Plan.Spec.Approved:
			e.Type = EventPlanApproved
		}
		o := modifyStatus
		o.Status = a.Type != actionApprovePlan
		stored, err := write(ctx, p.api, o, a.Plan, func(stored *olmapi.InstallPlan) {
			stored.Spec, stored.Status = a.Plan.Spec, a.Plan.Status
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("installplan %s: %w", planName(a.Plan), err))
			continue
		}
		p.res.Changed = true
		if at := slices.IndexFunc(p.state.Plans, func(x olmapi.InstallPlan) bool { return x.Name == stored.Name }); at < 0 {
			p.state.Plans = append(p.state.Plans, *stored)
		} else {
			p.state.Plans[at] = *stored
		}
		if e.Type != "" {
			p.observe(e)
		}
	}
	return errors.Join(errs...)
}

// writeStatuses writes the statuses of Subscriptions and deletes old plans.
// cause is why the resolution failed.
func (p *pass) writeStatuses(ctx context.Context, actions []Action, cause error) error {
	var errs []error
	failed := false
	for i := range actions {
		if a := &actions[i]; a.Type == actionDeletePlan {
			errs = append(errs, p.deletePlan(ctx, a.Plan))
			continue
		}
		sub := actions[i].Subscription
		at := slices.IndexFunc(p.state.Snapshot.Subscriptions, func(s olmapi.Subscription) bool { return s.Name == sub.Name })
		before := &p.state.Snapshot.Subscriptions[at]
		_, err := write(ctx, p.api, modifyStatus, sub, func(stored *olmapi.Subscription) { stored.Status = sub.Status })
		switch {
		case apierrors.IsNotFound(err):
			continue // deleted meanwhile
		case err != nil:
			errs = append(errs, fmt.Errorf("subscription %s/%s: %w", sub.Namespace, sub.Name, err))
			continue
		}
		p.res.Changed = true
		subject := "subscription/" + sub.Namespace + "/" + sub.Name
		if change := catalogsChange(before.Status.CatalogHealth, sub.Status.CatalogHealth); change != "" {
			p.observe(clusterapi.Event{Type: EventCatalogsChanged, Subject: subject, Message: change})
		}
		if current := sub.Status.CurrentCSV; current != "" && current != before.Status.CurrentCSV {
			p.observe(clusterapi.Event{Type: EventProgressing, Subject: subject, Message: current})
		}
		was := findCondition(before.Status.Conditions, subscriptionResolutionFailed)
		is := findCondition(sub.Status.Conditions, subscriptionResolutionFailed)
		if is == nil && was == nil || is != nil && was != nil && is.Message == was.Message {
			continue
		}
		failed = true
		if is != nil && p.res.Generation != nil {
			p.observe(clusterapi.Event{Type: EventResolutionFailed, Subject: subject, Message: is.Message})
		}
	}
	if failed {
		p.observeResolution(cause)
	}
	return errors.Join(errs...)
}

// observeResolution sends an event about the resolution of the namespace, unless
// everything that is asked for can be.
func (p *pass) observeResolution(cause error) {
	e := clusterapi.Event{Type: EventResolutionFailed, Subject: "namespace/" + p.res.Namespace}
	switch {
	case p.res.Generation != nil:
		e.Message = strings.TrimSpace(p.res.Generation.Remarks())
	case cause != nil:
		e.Message, e.Err = cause.Error(), cause
	}
	if e.Message != "" {
		p.observe(e)
	}
}

func (p *pass) deletePlan(ctx context.Context, plan *olmapi.InstallPlan) error {
	key := clusterapi.Key(plan.Namespace, plan.Name)
	err := p.api.Delete(ctx, plan.APIKind(), key, clusterapi.DeleteOptions{UID: plan.UID})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("installplan %s: %w", planName(plan), err)
	}
	p.res.Changed = true
	p.observe(clusterapi.Event{Type: EventPlanDeleted, Subject: planSubject(plan)})
	return nil
}

func planSubject(plan *olmapi.InstallPlan) string { return "installplan/" + planName(plan) }

func planName(plan *olmapi.InstallPlan) string { return plan.Namespace + "/" + plan.Name }

// observe sends an event with the time of the pass.
func (p *pass) observe(e clusterapi.Event) {
	e.Time = p.state.Now
	p.c.observe(e)
}

// write changes an object, unless somebody changed it since it was read: that is a
// conflict.
func write[T any](
	ctx context.Context, api clusterapi.ReadWriter, o clusterapi.ModifyOptions, decided *T, set func(*T),
) (*T, error) {
	from := any(decided).(metav1.Object)
	return clusterapi.Modify(ctx, api, clusterapi.Key(from.GetNamespace(), from.GetName()), o, func(stored *T) error {
		if err := unchanged(from, any(stored).(metav1.Object)); err != nil {
			return err
		}
		set(stored)
		return nil
	})
}
