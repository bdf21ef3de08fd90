package simulation

import (
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// operatorReaction plays the operators behind the ClusterOperators.
func (c *Cluster) operatorReaction() reaction {
	return reaction{
		name: loopOperators,
		kinds: func() []schema.GroupVersionKind {
			kinds := []schema.GroupVersionKind{kindClusterOperator, kindClusterVersion, kindMachineConfigPool}
			for _, r := range c.newestFirst() {
				for _, o := range r.Operators {
					for _, w := range r.operators[o.Name].workloads {
						if !slices.Contains(kinds, w.gvk) {
							kinds = append(kinds, w.gvk)
						}
					}
				}
			}
			return kinds
		},
		keys: c.operatorsOf,
		react: func(ctx context.Context, name string) (time.Duration, error) {
			return c.reactOperator(ctx, name)
		},
	}
}

// operatorsOf returns the operators that an object's event concerns.
func (c *Cluster) operatorsOf(u *unstructured.Unstructured) []string {
	gvk := u.GroupVersionKind()
	switch gvk {
	case kindClusterOperator:
		return []string{u.GetName()}
	case kindMachineConfigPool:
		return []string{machineConfigOperator}
	case kindClusterVersion:
		image, _, _ := unstructured.NestedString(u.Object, "status", "desired", "image")
		version, _, _ := unstructured.NestedString(u.Object, "status", "desired", "version")
		c.mu.Lock()
		same := c.desired == image+" "+version
		c.desired = image + " " + version
		c.mu.Unlock()
		if same {
			return nil // the many writes that only report progress
		}
	}
	var names []string
	key := clusterapi.KeyOf(u)
	for _, r := range c.newestFirst() {
		for _, o := range r.Operators {
			if slices.Contains(names, o.Name) {
				continue
			}
			if gvk == kindClusterVersion || slices.ContainsFunc(r.operators[o.Name].workloads, func(e *expectation) bool {
				return e.gvk == gvk && e.key == key
			}) {
				names = append(names, o.Name)
			}
		}
	}
	return names
}

// target returns the release that an operator's stored workloads belong to,
// nil when they belong to none as a whole.
func (c *Cluster) target(ctx context.Context, name string) (*release, error) {
	var matched []*release
	for _, r := range c.newestFirst() {
		op, ok := r.operators[name]
		if !ok {
			continue
		}
		all := true
		for _, w := range op.workloads {
			stored, err := c.Get(ctx, w.gvk, w.key)
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				all = false
				break
			}
			if err != nil {
				return nil, err
			}
			if !w.metBy(stored) {
				all = false
				break
			}
		}
		if all {
			matched = append(matched, r)
		}
	}
	if len(matched) < 2 {
		if len(matched) == 0 {
			return nil, nil
		}
		return matched[0], nil
	}
	// The workloads do not tell them apart.
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, c, clusterapi.Key("", "version"))
	if err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return matched[0], nil
		}
		return nil, err
	}
	for _, r := range matched {
		if r.Image == cv.Status.Desired.Image || r.Version == cv.Status.Desired.Version {
			return r, nil
		}
	}
	return matched[0], nil
}

// reactOperator brings one operator a step forward.
func (c *Cluster) reactOperator(ctx context.Context, name string) (time.Duration, error) {
	r, err := c.target(ctx, name)
	if r == nil || err != nil {
		return 0, err
	}
	op := r.operators[name]
	if err := c.ensureClusterOperator(ctx, name); err != nil {
		return 0, err
	}
	co, err := clusterapi.Get[configv1.ClusterOperator](ctx, c, clusterapi.Key("", name))
	if err != nil {
		return 0, err
	}
	now := c.clock.Now()
	step := operatorStep{
		version: r.Version,
		wanted:  op.Versions,
		after:   op.After,
		fault:   c.faults.of("operator/"+name, op.Fault, now),
		now:     now,
	}
	if step.after == 0 {
		step.after = c.timing.Operator
	}
	var pools *poolReport
	if name == machineConfigOperator {
		work := step.fault == nil && step.worked(&co.Status)
		if pools, err = c.machineConfigWork(ctx, r, &co.Status, work, step.after, now); err != nil {
			return 0, err
		}
		step.hold, step.problem = pools.hold, pools.degraded
	}
	var again time.Duration
	var shown bool
	_, err = clusterapi.Modify(ctx, c, clusterapi.Key("", name), modifyStatus, func(co *configv1.ClusterOperator) error {
		again, shown = step.advance(&co.Status)
		if pools != nil {
			pools.report(&co.Status, metav1.NewTime(now))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if shown {
		if left := c.faults.shows(step.fault, now); left > 0 && (again == 0 || left < again) {
			again = left
		}
	}
	if pools != nil && pools.again > 0 && (again == 0 || pools.again < again) {
		again = pools.again
	}
	return again, nil
}

// ensureClusterOperator makes the object, as operators do that find none.
func (c *Cluster) ensureClusterOperator(ctx context.Context, name string) error {
	_, err := c.Get(ctx, kindClusterOperator, clusterapi.Key("", name))
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = c.Create(ctx, object(kindClusterOperator, "", name, map[string]any{"spec": map[string]any{}}), create)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// operatorStep is what an operator knows when it decides about its status.
type operatorStep struct {
	version string
	wanted  []configv1.OperandVersion
	after   time.Duration
	fault   *Fault
	hold    bool   // something else is awaited before the versions are reported
	problem string // what makes it Degraded meanwhile
	now     time.Time
}

// working is the message while an operator goes to a version; it tells one
// target from another.
func (s *operatorStep) working() string { return "Working towards " + s.version }

// worked says whether the time that the operator works is over.
func (s *operatorStep) worked(status *configv1.ClusterOperatorStatus) bool {
	p := condition(status.Conditions, configv1.OperatorProgressing)
	return p != nil && p.Status == configv1.ConditionTrue && p.Message == s.working() &&
		!s.now.Before(p.LastTransitionTime.Add(s.after))
}

// advance changes the status to what holds now. It returns after how long to
// look again (zero: not before something happens) and whether the fault shows.
func (s *operatorStep) advance(status *configv1.ClusterOperatorStatus) (again time.Duration, shown bool) {
	now := metav1.NewTime(s.now)
	set := func(t configv1.ClusterStatusConditionType, on configv1.ConditionStatus, reason, message string) {
		setCondition(&status.Conditions, t, on, reason, message, now)
	}
	calm := func() {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, "AsExpected", "")
		set(configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "")
	}
	reached := reports(status.Versions, s.wanted)
	if !reached {
		if p := condition(status.Conditions, configv1.OperatorProgressing); p == nil || p.Status != configv1.ConditionTrue || p.Message != s.working() {
			if p != nil && p.Status == configv1.ConditionTrue {
				p.LastTransitionTime = now // another target: the work begins anew
			}
			set(configv1.OperatorProgressing, configv1.ConditionTrue, "RollingOut", s.working())
			if condition(status.Conditions, configv1.OperatorAvailable) == nil {
				set(configv1.OperatorAvailable, configv1.ConditionFalse, "Starting", "the operator has just been installed")
			}
			if condition(status.Conditions, configv1.OperatorDegraded) == nil {
				set(configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "")
			}
		}
		p := condition(status.Conditions, configv1.OperatorProgressing)
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
	set(configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "Cluster operator is at "+s.version)
	if s.fault.is(FaultFlaps) {
		return s.flap(status, now), true
	}
	calm()
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

// reports says whether have are the wanted versions and no others: an operand
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

// machineConfigOperator is the operator that does more than others.
const machineConfigOperator = "machine-config"

// poolReport is what the machine-config operator found out about the pools.
type poolReport struct {
	pools    []pool
	hold     bool
	problem  string // why it waits
	degraded string // the same, once it has waited too long
	again    time.Duration
}

// report lays the pools' state onto the operator's status.
func (p *poolReport) report(status *configv1.ClusterOperatorStatus, now metav1.Time) {
	status.Extension = runtime.RawExtension{Raw: poolsExtension(p.pools, p.problem)}
	reason, message, on := "AsExpected", "", configv1.ConditionTrue
	for i := range p.pools {
		if p.pools[i].is("Degraded") {
			on, reason = configv1.ConditionFalse, "DegradedPool"
			message = "One or more machine config pools are degraded, please see `oc get mcp` for further details and resolve before upgrading"
		}
	}
	setCondition(&status.Conditions, configv1.OperatorUpgradeable, on, reason, message, now)
}

// machineConfigWork does what the machine-config operator does beside
// reporting: it describes the release to the renderer, and awaits the pools
// that an update needs.
func (c *Cluster) machineConfigWork(ctx context.Context, r *release, status *configv1.ClusterOperatorStatus, work bool, after time.Duration, now time.Time) (*poolReport, error) {
	report := &poolReport{hold: true}
	if work || reports(status.Versions, r.operators[machineConfigOperator].Versions) {
		if err := c.ensureControllerConfig(ctx, r); err != nil {
			return nil, err
		}
	}
	pools, err := c.pools(ctx)
	if err != nil {
		return nil, err
	}
	report.pools = pools
	configs := make(map[string]*unstructured.Unstructured)
	for i := range pools {
		name := pools[i].Status.Configuration.Name
		if name == "" || configs[name] != nil {
			continue
		}
		u, err := c.Get(ctx, kindMachineConfig, clusterapi.Key("", name))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		configs[name] = u
	}
	problem, fatal := requiredPools(pools, configs, r)
	report.hold, report.problem = problem != "", problem
	if !work || problem == "" {
		return report, nil
	}
	machines := 0
	for i := range pools {
		if pools[i].required() {
			machines += int(pools[i].Status.MachineCount)
		}
	}
	p := condition(status.Conditions, configv1.OperatorProgressing)
	limit := p.LastTransitionTime.Add(after).Add(time.Duration(machines) * c.timing.PoolLimit)
	if fatal || !now.Before(limit) {
		report.degraded = "Unable to apply " + r.Version + ": error during syncRequiredMachineConfigPools: " + problem
	} else {
		report.again = limit.Sub(now)
	}
	return report, nil
}

// ensureControllerConfig describes r to whoever renders configs.
func (c *Cluster) ensureControllerConfig(ctx context.Context, r *release) error {
	u, err := c.Get(ctx, kindControllerConfig, clusterapi.Key("", mcp.ControllerConfigName))
	if apierrors.IsNotFound(err) {
		_, err = c.Create(ctx, controllerConfig(r), create)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if describes(u, r) {
		return nil
	}
	describeRelease(u, r)
	_, err = c.Update(ctx, u, update)
	return err
}
