package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// ControllerOptions configure a [Controller].
type ControllerOptions struct {
	// API is the cluster. Required. If it is a clusterapi.Watcher too,
	// [Controller.Run] is woken by changes.
	API clusterapi.ReadWriter

	// SnapshotOptions say where the content of catalogs comes from.
	SnapshotOptions

	// Resolve are the options of the resolution.
	Resolve Options

	// Unpacker reads bundle images before their InstallPlan is made. Nil: they
	// go into the plan as lookups, for the OLM of the cluster to unpack.
	Unpacker Unpacker

	// Execute makes the controller carry out InstallPlans without pending
	// lookups itself. Otherwise the OLM of the cluster does.
	Execute bool
	// Retry is how long a failing step is tried again. Zero means a minute.
	Retry time.Duration

	// Interval is the time between two looks at the cluster in Run. Zero means
	// a minute.
	Interval time.Duration

	// Clock is the time; nil means the real one.
	Clock clock.WithTicker

	// Observe is called with what happens, one call at a time; nil means
	// nobody.
	Observe func(Event)
}

// Unpacker reads the content of bundle images. It must be safe for concurrent
// use.
type Unpacker interface {
	// Unpack returns the objects of a bundle's manifests. It is asked again in
	// every pass until it has an answer, so it keeps what it began. [ErrUnpacking]
	// means that it is not done yet, an [*UnpackError] that the attempt failed;
	// when to begin another is its own business.
	Unpack(ctx context.Context, r UnpackRequest) ([]*unstructured.Unstructured, error)
}

// UnpackRequest is what an [Unpacker] is asked for.
type UnpackRequest struct {
	Namespace string
	Lookup    BundleLookup
	// Limits are those that the namespace's OperatorGroup sets.
	Limits UnpackLimits
}

// ErrUnpacking says that a bundle is still being unpacked.
var ErrUnpacking = errors.New("unpacking is in progress")

// UnpackError is a failed attempt to unpack a bundle, in the words of the job.
type UnpackError struct {
	Reason, Message string
}

// Error is REASON: MESSAGE.
func (e *UnpackError) Error() string { return e.Reason + ": " + e.Message }

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventResolutionFailed is the warning that OLM records on the Namespace;
	// Err is why. It comes when the reason changes.
	EventResolutionFailed EventType = "ResolutionFailed"
	// EventCatalogsChanged: a Subscription sees other catalogs, or others of
	// them answer. Text is the reason, such as CatalogSourcesAdded.
	EventCatalogsChanged EventType = "CatalogsChanged"
	// EventPlanCreated and the following speak of an InstallPlan.
	EventPlanCreated   EventType = "PlanCreated"
	EventPlanApproved  EventType = "PlanApproved"
	EventPlanCompleted EventType = "PlanCompleted"
	EventPlanFailed    EventType = "PlanFailed"
	EventPlanDeleted   EventType = "PlanDeleted"
	// EventProgressing: a Subscription progresses to another operator, which
	// Text names.
	EventProgressing EventType = "Progressing"
	// EventError: a pass over a namespace failed and is tried again.
	EventError EventType = "Error"
)

// Event is something that a [Controller] did or met.
type Event struct {
	Type         EventType
	Time         time.Time
	Namespace    string
	Subscription string // empty if it is about none
	Plan         string // empty if it is about none
	Text         string
	Err          error
}

// Controller keeps the operators of namespaces at what their Subscriptions ask
// for: it resolves, writes InstallPlans, and the status of Subscriptions. That
// is the work of OLM's catalog operator, beside which it must not run. It keeps
// no state of its own: a pass can be interrupted between any two writes,
// and the next one goes on. It is safe for concurrent use for different
// namespaces.
type Controller struct {
	o     ControllerOptions
	clock clock.WithTicker
	mu    sync.Mutex // around Observe
}

// NewController returns a controller. It does nothing yet.
func NewController(o ControllerOptions) (*Controller, error) {
	if o.API == nil {
		return nil, errors.New("olm: ControllerOptions.API is required")
	}
	if o.Interval < 0 || o.Retry < 0 {
		return nil, errors.New("olm: ControllerOptions has a negative duration")
	}
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	c := &Controller{o: o, clock: o.Clock}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	return c, nil
}

// SyncResult is what a pass over a namespace came to.
type SyncResult struct {
	Namespace string
	// Generation is the result of the resolution; nil where there was none.
	Generation *Generation
	// Waiting names the InstallPlans that every Subscription waits for, which
	// is why there was no resolution. By name.
	Waiting []string
	// Plan is the name of the InstallPlan that carries out the generation;
	// empty if it asks for nothing.
	Plan string
	// Changed says that something was written, so that another pass may find
	// more to do.
	Changed bool
	// Soon says that the next look is due in seconds: a bundle is being
	// unpacked, or a step is to be tried again.
	Soon bool
}

// Sync makes one pass over a namespace: it advances its InstallPlans, resolves
// unless all Subscriptions wait for plans, makes the plan for what is to
// change, and writes the status of Subscriptions where it differs. Without
// Subscriptions it does nothing.
//
// An error of the resolution is returned after it has been written to the
// Subscriptions; the result is valid then, too. A panic in the cluster's
// backend, a catalog or a hook is an error, a [clusterapi.PanicError].
func (c *Controller) Sync(ctx context.Context, namespace string) (*SyncResult, error) {
	p := &pass{c: c, res: &SyncResult{Namespace: namespace}}
	err := panics.Catch(func() error { return p.run(ctx, namespace) })
	return p.res, err
}

// SyncAll makes one pass over each namespace that has a Subscription, by name.
// The error joins those of the namespaces; one does not stop another.
func (c *Controller) SyncAll(ctx context.Context) ([]*SyncResult, error) {
	subs, err := clusterapi.List[Subscription](ctx, c.o.API, clusterapi.ListOptions{})
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for i := range subs {
		namespaces = append(namespaces, subs[i].Namespace)
	}
	slices.Sort(namespaces)
	var results []*SyncResult
	var errs []error
	for _, namespace := range slices.Compact(namespaces) {
		result, err := c.Sync(ctx, namespace)
		results = append(results, result)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("namespace %s: %w", namespace, err))
		}
	}
	return results, errors.Join(errs...)
}

// Run makes passes over all namespaces until the context ends, and returns its
// error: at once while something changes, after five seconds while bundles are
// unpacked or steps fail, else at intervals and when a watch reports a change.
// Errors are reported to Observe and tried again.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	wake := c.watch(ctx, &watches)
	const soon = 5 * time.Second
	const rounds = 10 // without a pause, in case something changes back and forth
	for round := 0; ; {
		results, err := c.SyncAll(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.observe(Event{Type: EventError, Err: err})
		}
		changed := slices.ContainsFunc(results, func(r *SyncResult) bool { return r.Changed })
		if round++; changed && err == nil && round < rounds {
			continue
		}
		round = 0
		interval := c.o.Interval
		if slices.ContainsFunc(results, func(r *SyncResult) bool { return r.Soon }) {
			interval = min(interval, soon)
		}
		timer := c.clock.NewTimer(interval)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// watch reports changes of the kinds that a pass reads.
func (c *Controller) watch(ctx context.Context, running *sync.WaitGroup) <-chan struct{} {
	wake := make(chan struct{}, 1)
	w, ok := c.o.API.(clusterapi.Watcher)
	if !ok {
		return wake
	}
	for _, gvk := range []schema.GroupVersionKind{
		(&Subscription{}).APIKind(), (&InstallPlan{}).APIKind(), (&ClusterServiceVersion{}).APIKind(),
		(&CatalogSource{}).APIKind(), (&OperatorGroup{}).APIKind(),
	} {
		running.Go(func() {
			// Where the watch ends, the interval takes its place.
			_ = panics.Isolate(func() error {
				synced := false
				for event, err := range w.Watch(ctx, gvk, clusterapi.ListOptions{}) {
					if err != nil {
						return err
					}
					if event.Type == clusterapi.Synced {
						synced = true
						continue
					}
					if synced {
						select {
						case wake <- struct{}{}:
						default:
						}
					}
				}
				return nil
			})
		})
	}
	return wake
}

func (c *Controller) observe(e Event) {
	if c.o.Observe == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Time = c.clock.Now()
	e.Text = bounded.Text(e.Text, maxMessage)
	// What goes on in the cluster does not depend on who looks on.
	_ = panics.Catch(func() error {
		c.o.Observe(e)
		return nil
	})
}

var modifyStatus = clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerOLM}

// pass is one pass over a namespace.
type pass struct {
	c        *Controller
	res      *SyncResult
	snapshot *Snapshot
	plans    []InstallPlan
	seen     Observation
}

func (p *pass) run(ctx context.Context, namespace string) error {
	var err error
	if p.snapshot, err = ReadSnapshot(ctx, p.c.o.API, namespace, p.c.o.SnapshotOptions); err != nil {
		return err
	}
	if len(p.snapshot.Subscriptions) == 0 {
		return nil
	}
	if p.plans, err = clusterapi.List[InstallPlan](ctx, p.c.o.API, clusterapi.ListOptions{Namespace: namespace}); err != nil {
		return fmt.Errorf("installplans: %w", err)
	}
	advanceErr := p.advancePlans(ctx)
	if p.res.Changed && p.c.o.Execute && advanceErr == nil {
		// What a plan created is part of the next pass.
		return nil
	}
	failForward, _ := failsForward(namespace, p.snapshot.OperatorGroups)
	p.seen = Observation{
		Now: metav1.NewTime(p.c.clock.Now()), CSVs: p.snapshot.Installed, Plans: p.plans,
		FailForward: failForward, Catalogs: p.snapshot.Catalogs,
	}
	observed := *p.snapshot
	observed.Subscriptions = slices.Clone(p.snapshot.Subscriptions)
	for i := range observed.Subscriptions {
		sub := &observed.Subscriptions[i]
		sub.Status = ObservedStatus(sub, &p.seen)
	}
	if WaitingForPlans(observed.Subscriptions) {
		for i := range observed.Subscriptions {
			p.res.Waiting = append(p.res.Waiting, observed.Subscriptions[i].Status.InstallPlanRef.Name)
		}
		slices.Sort(p.res.Waiting)
		p.res.Waiting = slices.Compact(p.res.Waiting)
		return errors.Join(advanceErr, p.writeStatuses(ctx, nil), p.deleteOldPlans(ctx))
	}
	r, err := p.resolve(ctx, &observed)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(advanceErr, err, p.writeStatuses(ctx, r), p.deleteOldPlans(ctx))
}

// resolve makes a generation and the plan for it.
func (p *pass) resolve(ctx context.Context, s *Snapshot) (*Resolution, error) {
	g, err := Resolve(ctx, *s, p.c.o.Resolve)
	if err != nil {
		return &Resolution{Err: err}, err
	}
	p.res.Generation = g
	r := &Resolution{Generation: g}
	changes, err := NewChanges(s, g)
	if err != nil {
		r.Unpack, r.UnpackReason = err, ReasonErrorPreventedUnpacking
		return r, err
	}
	if err := p.unpack(ctx, changes, r); err != nil || r.Unpacking {
		return r, err
	}
	plan, err := p.ensurePlan(ctx, changes, s.Subscriptions)
	if err != nil {
		r.Unpack, r.UnpackReason = err, ReasonEnsureInstallPlanFailed
		return r, err
	}
	if plan != nil {
		p.res.Plan = plan.Name
		r.Plan, r.Current = plan, changes.Current
	}
	return r, nil
}

// unpack turns lookups into steps, if there is an unpacker.
func (p *pass) unpack(ctx context.Context, changes *Changes, r *Resolution) error {
	if p.c.o.Unpacker == nil || len(changes.Lookups) == 0 {
		return nil
	}
	limits, err := UnpackLimitsOf(p.snapshot.OperatorGroups)
	if err != nil {
		r.Unpack, r.UnpackReason = err, ReasonErrorPreventedUnpacking
		return err
	}
	for _, lookup := range slices.Clone(changes.Lookups) {
		objects, err := p.c.o.Unpacker.Unpack(ctx, UnpackRequest{Namespace: changes.Namespace, Lookup: lookup, Limits: limits})
		if err == nil {
			err = changes.Unpacked(lookup.Identifier, objects)
		}
		var failed *UnpackError
		switch {
		case errors.Is(err, ErrUnpacking):
			r.Unpacking, p.res.Soon = true, true
		case errors.As(err, &failed):
			r.Unpack, r.UnpackReason = err, ReasonBundleUnpackFailed
			return fmt.Errorf("bundle %s: %w", lookup.Identifier, err)
		case err != nil:
			r.Unpack, r.UnpackReason = err, ReasonErrorPreventedUnpacking
			return fmt.Errorf("bundle %s: %w", lookup.Identifier, err)
		}
	}
	return nil
}

// ensurePlan finds or creates the plan for changes, with its status.
func (p *pass) ensurePlan(ctx context.Context, changes *Changes, subs []Subscription) (*InstallPlan, error) {
	d := DecidePlan(changes, subs, p.plans)
	plan, status := d.Reuse, d.Status
	if d.Create != nil {
		created, err := clusterapi.Create(ctx, p.c.o.API, d.Create, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerOLM})
		if err != nil {
			return nil, err
		}
		p.res.Changed = true
		plan, status = created, &d.Create.Status
		p.c.observe(Event{Type: EventPlanCreated, Namespace: plan.Namespace, Plan: plan.Name, Text: strings.Join(changes.CSVs, ", ")})
	}
	if plan == nil {
		return nil, nil
	}
	if status != nil {
		written, err := clusterapi.Modify(ctx, p.c.o.API, clusterapi.Key(plan.Namespace, plan.Name), modifyStatus, func(stored *InstallPlan) error {
			if planUnwritten(stored) {
				stored.Status = *status
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		p.res.Changed = true
		plan = written
	}
	i := slices.IndexFunc(p.plans, func(x InstallPlan) bool { return x.Name == plan.Name })
	if i < 0 {
		p.plans = append(p.plans, *plan)
	} else {
		p.plans[i] = *plan
	}
	p.seen.Plans = p.plans
	return plan, nil
}

// writeStatuses writes the status of each Subscription where it differs. r is
// nil if there was no resolution.
func (p *pass) writeStatuses(ctx context.Context, r *Resolution) error {
	var errs []error
	failed := false
	for _, sub := range subscriptionsIn(p.snapshot.Namespace, p.snapshot.Subscriptions) {
		next := p.statusOf(sub, r)
		if equalStatus(&sub.Status, &next) {
			continue
		}
		stored, err := clusterapi.Modify(ctx, p.c.o.API, clusterapi.Key(sub.Namespace, sub.Name), modifyStatus, func(stored *Subscription) error {
			if status := p.statusOf(stored, r); !equalStatus(&stored.Status, &status) {
				stored.Status = status
			}
			return nil
		})
		switch {
		case apierrors.IsNotFound(err):
			continue // deleted meanwhile
		case err != nil:
			errs = append(errs, fmt.Errorf("subscription %s/%s: %w", sub.Namespace, sub.Name, err))
			continue
		}
		p.res.Changed = true
		p.report(sub, stored)
		failed = failed || r != nil && r.Err != nil && conditionText(sub, SubscriptionResolutionFailed) != conditionText(stored, SubscriptionResolutionFailed)
	}
	if failed {
		p.c.observe(Event{Type: EventResolutionFailed, Namespace: p.snapshot.Namespace, Text: r.Err.Error(), Err: r.Err})
	}
	return errors.Join(errs...)
}

func (p *pass) statusOf(sub *Subscription, r *Resolution) SubscriptionStatus {
	observed := *sub
	observed.Status = ObservedStatus(sub, &p.seen)
	if r == nil {
		return observed.Status
	}
	return ResolvedStatus(&observed, r, p.seen.Now)
}

func (p *pass) report(before, after *Subscription) {
	e := Event{Namespace: after.Namespace, Subscription: after.Name}
	if change := CatalogsChange(before.Status.CatalogHealth, after.Status.CatalogHealth); change != "" {
		e.Type, e.Text = EventCatalogsChanged, change
		p.c.observe(e)
	}
	if current := after.Status.CurrentCSV; current != "" && current != before.Status.CurrentCSV {
		e.Type, e.Text = EventProgressing, current
		p.c.observe(e)
	}
}

func conditionText(sub *Subscription, typ string) string {
	for _, c := range sub.Status.Conditions {
		if c.Type == typ {
			return c.Reason + " " + c.Message
		}
	}
	return ""
}

// deleteOldPlans leaves the newest five.
func (p *pass) deleteOldPlans(ctx context.Context) error {
	var errs []error
	for _, name := range OldPlans(p.plans) {
		plan := findPlan(p.plans, name)
		err := p.c.o.API.Delete(ctx, plan.APIKind(), clusterapi.Key(p.snapshot.Namespace, name), clusterapi.DeleteOptions{UID: plan.UID})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("installplan %s/%s: %w", p.snapshot.Namespace, name, err))
			continue
		}
		p.res.Changed = true
		p.c.observe(Event{Type: EventPlanDeleted, Namespace: p.snapshot.Namespace, Plan: name})
	}
	return errors.Join(errs...)
}
