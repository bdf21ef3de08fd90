package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// execute does what a step asks for, and reports whether it is done. Each step can
// be repeated.
func (p *pass) execute(ctx context.Context, t upgradeconfig.ConditionType) (bool, error) {
	commenced, err := p.commenced()
	if err != nil {
		return false, err
	}
	if commenced && (t == upgradeconfig.StartedNotificationSent || gate(t)) {
		return true, nil // too late for these
	}
	switch t {
	case upgradeconfig.StartedNotificationSent:
		return p.notified(ctx, upgradeconfig.StateStarted)
	case upgradeconfig.IsClusterUpgradable:
		err := checkUpgradeable(p.config.Spec, p.cv)
		return err == nil, err
	case upgradeconfig.ClusterHealthyBeforeUpgrade:
		failing, err := p.healthy(ctx)
		if len(failing) > 0 {
			p.log(p.notifyOnce(ctx, upgradeconfig.StateHealthCheckSL, failing))
		}
		return err == nil, err
	case upgradeconfig.ExternalDependenciesAvailable:
		_, err := failing(ctx, p.c.o.Dependencies, p.config, "external dependencies are not available")
		return err == nil, err
	case upgradeconfig.ComputeCapacityReserved:
		return p.reserve(ctx)
	case upgradeconfig.ControlPlaneMaintenanceWindowCreated:
		return p.openWindow(ctx, ControlPlane)
	case upgradeconfig.UpgradeCommenced:
		return p.commence(ctx)
	case upgradeconfig.ControlPlaneUpgraded:
		if !controlPlaneUpgraded(p.config.Spec.Desired, p.cv, p.entry.StartTime) {
			return false, nil
		}
		return p.logged(ctx, upgradeconfig.StateControlPlaneFinishedSL)
	case upgradeconfig.ControlPlaneMaintenanceWindowRemoved:
		return p.closeWindow(ctx, ControlPlane)
	case upgradeconfig.WorkersMaintenanceWindowCreated:
		return p.openWindow(ctx, Workers)
	case upgradeconfig.WorkerNodesUpgraded:
		return p.workers(ctx)
	case upgradeconfig.ComputeCapacityRemoved:
		return p.release(ctx)
	case upgradeconfig.WorkersMaintenanceWindowRemoved:
		return p.closeWindow(ctx, Workers)
	case upgradeconfig.ClusterHealthyAfterUpgrade:
		_, err := p.healthy(ctx)
		return err == nil, err
	case upgradeconfig.PostUpgradeTasksCompleted:
		if p.c.o.PostUpgrade == nil {
			return true, nil
		}
		return p.c.o.PostUpgrade(ctx, p.config)
	}
	return false, fmt.Errorf("upgradeconfig: there is no step %q", t)
}

// notified notifies the provider; the step is done once that has succeeded.
func (p *pass) notified(ctx context.Context, s upgradeconfig.State) (bool, error) {
	err := p.notify(ctx, s, nil)
	return err == nil, err
}

func (p *pass) healthy(ctx context.Context) ([]string, error) {
	return failing(ctx, p.c.o.Health, p.config, "the cluster is not healthy")
}

// failing runs a check; findings are an error too.
func failing(ctx context.Context, check func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error), c *upgradeconfig.UpgradeConfig, what string) ([]string, error) {
	if check == nil {
		return nil, nil
	}
	found, err := check(ctx, c)
	if err == nil && len(found) > 0 {
		err = errors.New(what + ": " + strings.Join(found, ", "))
	}
	return found, err
}

// reserve reserves extra capacity, or reports that the upgrade continues without.
func (p *pass) reserve(ctx context.Context) (bool, error) {
	if !p.config.Spec.CapacityReservation {
		return true, nil
	}
	state := CapacityNone
	if p.c.o.Capacity != nil {
		err := p.noteOpen(ctx)
		if err != nil {
			return false, err
		}
		state, err = p.c.o.Capacity.Reserve(ctx, p.config)
		if err != nil {
			return false, err
		}
	}
	switch state {
	case CapacityReady:
		return true, nil
	case CapacityPending:
		return false, nil
	case CapacityNone:
		p.log(p.notifyOnce(ctx, upgradeconfig.StateScaleSkipped, nil))
		return true, nil
	case CapacityTimedOut:
		err := p.notifyOnce(ctx, upgradeconfig.StateSkipped, nil)
		return err == nil, err
	}
	return false, fmt.Errorf("upgradeconfig: the capacity hook answers %q, which does not exist", state)
}

func (p *pass) openWindow(ctx context.Context, plane Plane) (bool, error) {
	if p.c.o.Maintenance == nil {
		return true, nil
	}
	err := p.noteOpen(ctx)
	if err == nil {
		err = p.c.o.Maintenance.Start(ctx, p.config, plane)
	}
	return err == nil, err
}

func (p *pass) closeWindow(ctx context.Context, plane Plane) (bool, error) {
	if p.c.o.Maintenance == nil {
		return true, nil
	}
	err := p.c.o.Maintenance.End(ctx, p.config, plane)
	return err == nil, err
}

// errNotOffered reports that a release is not among the updates any more.
var errNotOffered = errors.New("the release is not among the updates")

// commence tells the cluster to update. It is not an error that the cluster's
// updates do not list the version yet.
func (p *pass) commence(ctx context.Context) (bool, error) {
	commenced, err := p.commenced()
	if err != nil {
		return false, err
	}
	if commenced {
		return p.logged(ctx, upgradeconfig.StateControlPlaneStartedSL)
	}
	desired := p.config.Spec.Desired
	if desired.Image == "" && p.cv.Spec.Channel != desired.Channel {
		if err := p.modify(ctx, func(cv *configv1.ClusterVersion) (bool, error) {
			cv.Spec.Channel = desired.Channel
			return false, nil
		}); err != nil {
			return false, err
		}
	}
	release, ok := target(desired, p.cv)
	if !ok {
		return false, nil
	}
	if p.c.o.Preconditions != nil {
		if err := p.c.o.Preconditions(ctx, p.cv, release); err != nil {
			return false, err
		}
	}
	// The checks may have taken long, so what was read may be old. A write on
	// condition of it proves that the policy still stands.
	c, _ := p.entry.Condition(upgradeconfig.UpgradeCommenced)
	p.entry.SetCondition(c, p.c.now())
	if err := p.store(ctx); err != nil {
		return false, err
	}
	err = p.modify(ctx, func(cv *configv1.ClusterVersion) (bool, error) {
		if done, err := hasCommenced(desired, cv); err != nil || done {
			return false, err
		}
		if r, ok := target(desired, cv); !ok || r.Image != release.Image {
			return false, errNotOffered
		}
		return request(desired, cv), nil
	})
	if errors.Is(err, errNotOffered) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return p.logged(ctx, upgradeconfig.StateControlPlaneStartedSL)
}

func (p *pass) modify(ctx context.Context, f func(*configv1.ClusterVersion) (requested bool, err error)) error {
	cv, err := clusterversion.Modify(ctx, p.c.o.API, clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}, f)
	if err == nil {
		p.cv = cv
	}
	return err
}

// workers reports whether all pools but the control plane's have their new
// configuration, and helps with nodes that cannot be drained. It does not wait for
// paused pools: somebody updates them later.
func (p *pass) workers(ctx context.Context) (bool, error) {
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, p.c.o.API, clusterapi.ListOptions{})
	if err != nil && !meta.IsNoMatchError(err) {
		return false, err
	}
	var open []string
	for _, pool := range pools {
		if pool.Name != mcp.PoolMaster && !pool.Spec.Paused && !poolUpgraded(pool) {
			open = append(open, pool.Name)
		}
	}
	if len(open) == 0 {
		return p.logged(ctx, upgradeconfig.StateWorkerPlaneFinishedSL)
	}
	p.waitsFor = "machine config pools that are not updated: " + bounded.Join(open, ", ", maxPools)
	if p.c.o.Drain == nil {
		return false, nil
	}
	return false, p.c.o.Drain(ctx, p.config, time.Duration(p.config.Spec.PDBForceDrainTimeout)*time.Minute)
}

// maxPools bounds the names of pools in a message, in bytes.
const maxPools = 1024

func poolUpgraded(m *mcfgv1.MachineConfigPool) bool {
	return m.Status.ObservedGeneration >= m.Generation && m.Status.Configuration.Name == m.Spec.Configuration.Name &&
		m.Status.UpdatedMachineCount == m.Status.MachineCount
}
