package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

const (
	interval = 30 * time.Second // between two looks at the cluster
	patience = 15 * time.Minute // how long the cluster may fail before it counts as stuck
)

// Request asks a cluster for an update as an administrator does, and follows it. An
// Updater or the operators of the cluster, which run elsewhere, carry it out. All
// fields are required.
type Request struct {
	API     clusterapi.ClusterAPI
	Version string
	Now     func() time.Time // the time of the cluster
	Wait    func(time.Duration) error
}

// Run waits until the version is among the recommended updates, requests it, and
// returns when the update has completed and every machine config pool has it. The
// answer is no, see [program.No], if the cluster refuses the update or is stuck: the
// error has the reason and the message of the condition. Other errors are those of
// reads and writes, and of Wait.
func (r Request) Run(ctx context.Context) error { return r.until(ctx, r.request, r.ended) }

// Start requests the version as Run does, and returns.
func (r Request) Start(ctx context.Context) error { return r.until(ctx, r.request) }

// until looks at the cluster until it is as each of the looks wants it.
func (r Request) until(ctx context.Context, looks ...func(context.Context, *configv1.ClusterVersion) (bool, error)) error {
	for _, look := range looks {
		for {
			cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r.API, clusterapi.Key("", "version"))
			if err != nil {
				return err
			}
			if done, err := look(ctx, cv); err != nil {
				return err
			} else if done {
				break
			}
			if err := r.Wait(interval); err != nil {
				return err
			}
		}
	}
	return nil
}

// request sets spec.desiredUpdate once the version is offered.
func (r Request) request(ctx context.Context, cv *configv1.ClusterVersion) (bool, error) {
	if !slices.ContainsFunc(cv.Status.AvailableUpdates, func(u configv1.Release) bool { return u.Version == r.Version }) {
		return false, nil
	}
	_, err := clusterversion.Modify(ctx, r.API, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		clusterversion.SetDesired(cv, configv1.Update{Version: r.Version})
		return true, nil
	})
	return true, err
}

// ended reports whether the update has completed, on all nodes.
func (r Request) ended(ctx context.Context, cv *configv1.ClusterVersion) (bool, error) {
	for _, c := range cv.Status.Conditions {
		switch {
		case c.Type == clusterversion.ConditionReleaseAccepted && c.Status == configv1.ConditionFalse:
			return false, program.No(fmt.Errorf("refused: %s: %s", c.Reason, c.Message))
		case c.Type == clusterversion.ConditionFailing && c.Status != configv1.ConditionFalse &&
			r.Now().Sub(c.LastTransitionTime.Time) > patience:
			return false, program.No(fmt.Errorf("stuck: %s: %s", c.Reason, c.Message))
		}
	}
	if len(cv.Status.History) == 0 {
		return false, nil
	}
	if h := cv.Status.History[0]; h.Version != r.Version || h.State != configv1.CompletedUpdate {
		return false, nil
	}
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, r.API, clusterapi.ListOptions{})
	if err != nil {
		return false, err
	}
	isUpdated := func(c mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == mcfgv1.MachineConfigPoolUpdated && c.Status == "True"
	}
	return !slices.ContainsFunc(pools, func(p mcfgv1.MachineConfigPool) bool {
		return p.Spec.Configuration.Name != p.Status.Configuration.Name ||
			!slices.ContainsFunc(p.Status.Conditions, isUpdated)
	}), nil
}
