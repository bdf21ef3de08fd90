package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// everyRelease is the key of the operators as a whole: another release is
// expected.
var everyRelease = reconcile.Key{Kind: "releases"}

// operators plays the operators behind the ClusterOperators.
func (p *process) operators() *behaviour {
	o := &operatorBehaviour{p: p, met: make(map[*expectation]metState)}
	onNotice := func(part reconcile.Key) []reconcile.Wake {
		if part.Name == "" {
			return []reconcile.Wake{{Key: everyRelease}}
		}
		return []reconcile.Wake{{Key: part}}
	}
	watches := append([]reconcile.Watch{
		p.watch(kindClusterOperator, wakeChanged(0)),
		p.watch(kindClusterVersion, func(old, new *clusterapi.Object) []reconcile.Wake {
			if old != nil && new != nil && desiredOf(old) == desiredOf(new) {
				return nil // the many writes that only report progress
			}
			return o.all()
		}),
		p.watch(kindMachineConfigPool, func(_, _ *clusterapi.Object) []reconcile.Wake {
			return []reconcile.Wake{{Key: reconcile.Key{Name: machineConfigOperator}}}
		}),
	}, o.workloads()...)
	return &behaviour{name: partOperators, look: o.look, onNotice: onNotice, watches: watches}
}

// operatorBehaviour also knows which stored workloads have a wanted form.
type operatorBehaviour struct {
	p   *process
	met map[*expectation]metState
	// concerned are the operators that a workload belongs to, in the releases
	// that were known when there were so many.
	concerned map[workload][]string
	releases  []*release
}

type metState struct {
	stored *clusterapi.Object
	met    bool
}

type workload struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
}

// desiredOf is the release that a ClusterVersion says it goes to.
func desiredOf(o *clusterapi.Object) [2]string {
	image, _, _ := unstructured.NestedString(o.Unstructured().Object, "status", "desired", "image")
	version, _, _ := unstructured.NestedString(o.Unstructured().Object, "status", "desired", "version")
	return [2]string{image, version}
}

// workloads are watches of the kinds of all operators' workloads.
func (o *operatorBehaviour) workloads() []reconcile.Watch {
	var kinds []schema.GroupVersionKind
	var watches []reconcile.Watch
	for _, r := range o.p.c.newestFirst() {
		for _, op := range r.Operators {
			for _, w := range r.operators[op.Name].workloads {
				if slices.Contains(kinds, w.gvk) {
					continue
				}
				kinds = append(kinds, w.gvk)
				watches = append(watches, o.p.watch(w.gvk, unless(sameSpec, func(old, new *clusterapi.Object) []reconcile.Wake {
					return o.of(either(old, new))
				})))
			}
		}
	}
	return watches
}

// of returns the operators that a workload belongs to.
func (o *operatorBehaviour) of(w *clusterapi.Object) (wakes []reconcile.Wake) {
	releases := o.p.c.newestFirst()
	if o.concerned == nil || !slices.Equal(releases, o.releases) {
		o.concerned, o.releases = make(map[workload][]string), releases
		for _, r := range releases {
			for _, op := range r.Operators {
				for _, e := range r.operators[op.Name].workloads {
					id := workload{e.gvk, e.key}
					if !slices.Contains(o.concerned[id], op.Name) {
						o.concerned[id] = append(o.concerned[id], op.Name)
					}
				}
			}
		}
	}
	for _, name := range o.concerned[workload{w.Kind(), w.Key()}] {
		wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Name: name}})
	}
	return wakes
}

// all are the operators of all releases.
func (o *operatorBehaviour) all() (wakes []reconcile.Wake) {
	known := make(map[string]bool)
	for _, r := range o.p.c.newestFirst() {
		for _, op := range r.Operators {
			if !known[op.Name] {
				known[op.Name] = true
				wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Name: op.Name}})
			}
		}
	}
	return wakes
}

func (o *operatorBehaviour) look(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if r.Key == everyRelease {
		return reconcile.Result{Wake: o.all(), Watches: o.workloads()}, nil
	}
	return o.step(ctx, r)
}

// target returns the release that an operator's stored workloads belong to,
// nil when they belong to none as a whole.
func (o *operatorBehaviour) target(ctx context.Context, name string) (*release, error) {
	var matched []*release
	for _, r := range o.p.c.newestFirst() {
		op, ok := r.operators[name]
		if !ok {
			continue
		}
		all, err := true, error(nil)
		for _, w := range op.workloads {
			all, err = o.isMet(ctx, w)
			if !all || err != nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		if all {
			matched = append(matched, r)
		}
	}
	switch len(matched) {
	case 0:
		return nil, nil
	case 1:
		return matched[0], nil
	}
	// The workloads are the same in all of them.
	cv, err := clusterapi.GetShared(ctx, o.p.api, kindClusterVersion, clusterapi.Key("", "version"))
	if err != nil {
		if clusterapi.IsMissing(err) {
			return matched[0], nil
		}
		return nil, err
	}
	desired := desiredOf(cv)
	for _, r := range matched {
		if r.Image == desired[0] || r.Version == desired[1] {
			return r, nil
		}
	}
	return matched[0], nil
}

// isMet reports whether a workload is stored in the wanted form.
func (o *operatorBehaviour) isMet(ctx context.Context, w *expectation) (bool, error) {
	stored, err := clusterapi.GetShared(ctx, o.p.api, w.gvk, w.key)
	if clusterapi.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	last, known := o.met[w]
	if known && (last.stored == stored || sameSpec(last.stored, stored)) {
		return last.met, nil
	}
	met := w.metBy(stored.Unstructured())
	o.met[w] = metState{stored, met}
	return met, nil
}

// sameSpec reports whether two states are of one object and have the same spec, as
// far as the generation shows.
func sameSpec(a, b *clusterapi.Object) bool {
	g := a.Unstructured().GetGeneration()
	return g != 0 && g == b.Unstructured().GetGeneration() && a.UID() == b.UID()
}

// step takes one operator a step further.
func (o *operatorBehaviour) step(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name, now, none := req.Key.Name, req.Now, reconcile.Result{}
	r, err := o.target(ctx, name)
	if r == nil || err != nil {
		return none, err
	}
	op := r.operators[name]
	stored, co, err := read[configv1.ClusterOperator](ctx, o.p, kindClusterOperator, clusterapi.Key("", name))
	if err != nil {
		return none, err
	}
	if stored == nil { // operators make theirs where they find none
		return none, o.p.create(ctx, object(kindClusterOperator, "", name, map[string]any{"spec": map[string]any{}}))
	}
	step := operatorStep{
		version: r.Version,
		wanted:  op.Versions,
		after:   op.After,
		fault:   o.p.c.faults.of("operator/"+name, op.Fault, now),
		now:     now,
	}
	if step.after == 0 {
		step.after = o.p.c.takes(WorkOperator, name, r.Version, o.p.c.timing.Operator)
	}
	var pools *poolReport
	if name == machineConfigOperator {
		worked := step.fault == nil && step.worked(&co.Status)
		pools, err = o.p.machineConfigWork(ctx, r, &co.Status, worked, step.after, now)
		if err != nil {
			return none, err
		}
		step.hold, step.problem = pools.hold, pools.degraded
	}
	var again time.Duration
	var shown bool
	_, err = change(ctx, o.p, stored, true, func(co *configv1.ClusterOperator) {
		again, shown = step.advance(&co.Status)
		if pools != nil {
			pools.report(&co.Status, metav1.NewTime(now))
		}
	})
	if err != nil {
		return none, err
	}
	if shown {
		again = shorter(again, o.p.c.faults.shows(step.fault, now))
	}
	if pools != nil {
		again = shorter(again, pools.again)
	}
	return later(req, again), nil
}

// shorter is the shorter of two waits of which zero means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// operatorStep is what an operator knows when it decides about its status.
type operatorStep struct {
	version string
	wanted  []configv1.OperandVersion
	after   time.Duration
	fault   *Fault
	hold    bool   // something else is awaited before the versions are reported
	problem string // what makes it Degraded in the meantime
	now     time.Time
}

// workingTowards starts the message while an operator goes to a version, which
// distinguishes one target from another.
const workingTowards = "Working towards "

func (s *operatorStep) working() string { return workingTowards + s.version }

// worked reports whether the time that the operator works is over.
func (s *operatorStep) worked(status *configv1.ClusterOperatorStatus) bool {
	p := condition(status.Conditions, configv1.OperatorProgressing)
	return s.works(p) && !s.now.Before(p.LastTransitionTime.Add(s.after))
}

// works reports whether an operator is at work on the version, or on something that
// a recording has in its own words.
func (s *operatorStep) works(p *configv1.ClusterOperatorStatusCondition) bool {
	return p != nil && p.Status == configv1.ConditionTrue &&
		(p.Message == s.working() || !strings.HasPrefix(p.Message, workingTowards))
}

// atRest reports whether an operator is well and does nothing.
func atRest(status *configv1.ClusterOperatorStatus) bool {
	for t, want := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
		configv1.OperatorAvailable:   configv1.ConditionTrue,
		configv1.OperatorProgressing: configv1.ConditionFalse,
		configv1.OperatorDegraded:    configv1.ConditionFalse,
	} {
		if c := condition(status.Conditions, t); c == nil || c.Status != want {
			return false
		}
	}
	return true
}

// advance changes the status to what holds now. It returns after how long to
// look again (zero: not before something happens) and whether the fault shows.
func (s *operatorStep) advance(status *configv1.ClusterOperatorStatus) (again time.Duration, shown bool) {
	now := metav1.NewTime(s.now)
	set := func(t configv1.ClusterStatusConditionType, on configv1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, t, on, reason, message, now)
	}
	// What is so already keeps its reason and message: they may be recorded.
	ensure := func(t configv1.ClusterStatusConditionType, on configv1.ConditionStatus, message string) {
		if c := condition(status.Conditions, t); c == nil || c.Status != on {
			set(t, on, "AsExpected", message)
		}
	}
	reached := reports(status.Versions, s.wanted)
	if reached && s.fault == nil && atRest(status) {
		return 0, false
	}
	if !reached {
		if p := condition(status.Conditions, configv1.OperatorProgressing); !s.works(p) {
			if p != nil && p.Status == configv1.ConditionTrue {
				p.LastTransitionTime = now // another target: the work starts again
			}
			set(configv1.OperatorProgressing, configv1.ConditionTrue, "RollingOut", s.working())
			if condition(status.Conditions, configv1.OperatorAvailable) == nil {
				set(configv1.OperatorAvailable, configv1.ConditionFalse, "Starting", "the operator has just been installed")
			}
			if condition(status.Conditions, configv1.OperatorDegraded) == nil {
				set(configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "")
			}
		}
	}
	if p := condition(status.Conditions, configv1.OperatorProgressing); s.works(p) {
		if left := p.LastTransitionTime.Add(s.after).Sub(s.now); left > 0 {
			return left, false
		}
	}
	switch {
	case s.fault.is(FaultDegraded):
		set(configv1.OperatorDegraded, configv1.ConditionTrue, s.fault.reason(), s.fault.message())
		return 0, true
	case s.fault.is(FaultUnavailable):
		set(configv1.OperatorAvailable, configv1.ConditionFalse, s.fault.reason(), s.fault.message())
		return 0, true
	case s.fault.is(FaultStuck) && !reached:
		return 0, true
	case s.hold && !reached:
		if s.problem != "" {
			set(configv1.OperatorDegraded, configv1.ConditionTrue, "RequiredPoolsFailed", s.problem)
		}
		return 0, false
	}
	if !reached {
		status.Versions = slices.Clone(s.wanted)
	}
	ensure(configv1.OperatorProgressing, configv1.ConditionFalse, "Cluster operator is at "+s.version)
	if s.fault.is(FaultFlaps) {
		return s.flap(status, now), true
	}
	ensure(configv1.OperatorAvailable, configv1.ConditionTrue, "")
	ensure(configv1.OperatorDegraded, configv1.ConditionFalse, "")
	return 0, false
}

// flap turns Degraded over when its time has come.
func (s *operatorStep) flap(status *configv1.ClusterOperatorStatus, now metav1.Time) time.Duration {
	every := s.fault.Every
	if every <= 0 {
		every = time.Minute
	}
	d := condition(status.Conditions, configv1.OperatorDegraded)
	switch {
	case d == nil || d.Status != configv1.ConditionTrue && !s.now.Before(d.LastTransitionTime.Add(every)):
		setCondition(&status.Conditions, configv1.OperatorDegraded, configv1.ConditionTrue, s.fault.reason(), s.fault.message(), now)
	case d.Status == configv1.ConditionTrue && !s.now.Before(d.LastTransitionTime.Add(every)):
		setCondition(&status.Conditions, configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "", now)
	}
	d = condition(status.Conditions, configv1.OperatorDegraded)
	return max(d.LastTransitionTime.Add(every).Sub(s.now), time.Millisecond)
}

// reports reports whether have are the wanted versions and no others: an operand
// that only an older release had has to go.
func reports(have, want []configv1.OperandVersion) bool {
	if len(have) != len(want) {
		return false
	}
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}
