package upgrade

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Capacity adds worker nodes for the time of an upgrade, so that workloads have
// room while others restart. Both methods are called again and again, after a
// crash too, and must be idempotent. An error fails the step, which is tried
// again. One Controller makes no concurrent calls.
type Capacity interface {
	// Reserve asks for the extra nodes, and reports how far they are.
	Reserve(ctx context.Context, c *upgradeconfig.UpgradeConfig) (CapacityState, error)
	// Release removes them, and reports whether they are gone. It is called whether
	// or not there are any, and with the UpgradeConfig of the upgrade if that is
	// deleted by then.
	Release(ctx context.Context, c *upgradeconfig.UpgradeConfig) (done bool, err error)
}

// CapacityState is how far a reservation is.
type CapacityState string

// The states of a reservation.
const (
	// CapacityPending: the nodes are not ready yet.
	CapacityPending CapacityState = "Pending"
	// CapacityReady: they are.
	CapacityReady CapacityState = "Ready"
	// CapacityNone: the cluster has nothing that could be scaled. The upgrade
	// continues without.
	CapacityNone CapacityState = "None"
	// CapacityTimedOut: the nodes did not become ready in time. The upgrade continues
	// without.
	CapacityTimedOut CapacityState = "TimedOut"
)

// Plane is a part of the cluster that is upgraded as a whole.
type Plane string

// The planes.
const (
	ControlPlane Plane = "ControlPlane"
	Workers      Plane = "Workers"
)

// Maintenance silences the alerts that the upgrade of a plane causes. Both
// methods must be idempotent; an error fails the step, which is tried again. End is
// called for windows that were never started too, and with the UpgradeConfig of
// the upgrade if that is deleted by then. One Controller makes no concurrent
// calls.
type Maintenance interface {
	Start(ctx context.Context, c *upgradeconfig.UpgradeConfig, p Plane) error
	End(ctx context.Context, c *upgradeconfig.UpgradeConfig, p Plane) error
}

// OperatorHealth returns a function for Health of [Options]: it names the
// ClusterOperators that are unavailable or degraded, in the order of their names.
// Its errors are those of the cluster.
func OperatorHealth(api clusterapi.Reader) func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
	return func(ctx context.Context, _ *upgradeconfig.UpgradeConfig) ([]string, error) {
		operators, err := clusterapi.List[configv1.ClusterOperator](ctx, api, clusterapi.ListOptions{})
		if err != nil {
			return nil, err
		}
		var failing []string
		for _, o := range operators {
			for _, c := range o.Status.Conditions {
				switch {
				case c.Type == configv1.OperatorAvailable && c.Status == configv1.ConditionFalse:
					failing = append(failing, "ClusterOperator "+o.Name+" is not available")
				case c.Type == configv1.OperatorDegraded && c.Status == configv1.ConditionTrue:
					failing = append(failing, "ClusterOperator "+o.Name+" is degraded")
				}
			}
		}
		return failing, nil
	}
}
