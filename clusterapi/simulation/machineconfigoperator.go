package simulation

import (
	"context"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// machineConfigOperator is the operator that does more than others.
const machineConfigOperator = "machine-config"

// poolReport is what the machine-config operator found out about the pools.
type poolReport struct {
	pools    []*pool
	hold     bool
	problem  string // why it waits
	degraded string // the same, once it has waited too long
	again    time.Duration
}

// report lays the pools' state onto the operator's status.
func (p *poolReport) report(status *configv1.ClusterOperatorStatus, now metav1.Time) {
	status.Extension = runtime.RawExtension{Raw: poolsExtension(p.pools, p.problem)}
	reason, message, on := "AsExpected", "", configv1.ConditionTrue
	for _, pool := range p.pools {
		if pool.is("Degraded") {
			on, reason = configv1.ConditionFalse, "DegradedPool"
			message = "One or more machine config pools are degraded, please see `oc get mcp` for further details and resolve before upgrading"
		}
	}
	if c := condition(status.Conditions, configv1.OperatorUpgradeable); c == nil || c.Status != on || message != "" {
		setCondition(&status.Conditions, configv1.OperatorUpgradeable, on, reason, message, now)
	}
}

// machineConfigWork does what the machine-config operator does in addition to
// reporting: it describes the release to the renderer, and awaits the pools
// that an update needs.
func (p *process) machineConfigWork(ctx context.Context, r *release, status *configv1.ClusterOperatorStatus, worked bool, after time.Duration, now time.Time) (*poolReport, error) {
	if worked || reports(status.Versions, r.operators[machineConfigOperator].Versions) {
		if err := p.ensureControllerConfig(ctx, r); err != nil {
			return nil, err
		}
	}
	pools, err := p.pools(ctx)
	if err != nil {
		return nil, err
	}
	configs := make(map[string]*unstructured.Unstructured)
	for _, pool := range pools {
		name := pool.Status.Configuration.Name
		if name == "" || configs[name] != nil {
			continue
		}
		o, err := clusterapi.GetShared(ctx, p.api, kindMachineConfig, clusterapi.Key("", name))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		configs[name] = o.Unstructured()
	}
	problem, fatal := requiredPools(pools, configs, r)
	report := &poolReport{pools: pools, hold: problem != "", problem: problem}
	if !worked || problem == "" {
		return report, nil
	}
	machines := 0
	for _, pool := range pools {
		if pool.required() {
			machines += int(pool.Status.MachineCount)
		}
	}
	c := condition(status.Conditions, configv1.OperatorProgressing)
	limit := c.LastTransitionTime.Add(after).Add(time.Duration(machines) * p.c.timing.PoolLimit)
	if fatal || !now.Before(limit) {
		report.degraded = "Unable to apply " + r.Version + ": error during syncRequiredMachineConfigPools: " + problem
	} else {
		report.again = limit.Sub(now)
	}
	return report, nil
}

// ensureControllerConfig describes r to the code that renders configs.
func (p *process) ensureControllerConfig(ctx context.Context, r *release) error {
	o, err := clusterapi.GetShared(ctx, p.api, kindControllerConfig, clusterapi.Key("", mcp.ControllerConfigName))
	if apierrors.IsNotFound(err) {
		topology, err := readTopology(ctx, p.api)
		if err != nil {
			return err
		}
		return p.create(ctx, controllerConfig(r, topology))
	}
	if err != nil || describes(o.Unstructured(), r) {
		return err
	}
	u := o.Unstructured().DeepCopy()
	describeRelease(u, r)
	_, err = p.api.Update(ctx, u, update)
	return err
}
