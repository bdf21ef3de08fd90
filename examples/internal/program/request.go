package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Why [Request.Run] gives up. The errors continue with the reason and the message
// of the condition that says so.
var (
	ErrRefused = errors.New("refused") // ReleaseAccepted is False
	ErrStuck   = errors.New("stuck")   // Failing, for as long as StuckAfter
)

// Request asks a cluster for an update as an administrator does, and follows it.
// Whatever updates the cluster, an Updater or its own operators, runs
// elsewhere.
type Request struct {
	API     clusterapi.ClusterAPI
	Version string // required
	// StuckAfter is how long the cluster may fail before Run gives up. Zero means
	// 15 minutes.
	StuckAfter time.Duration
	// Interval is how long Run waits between two looks. Zero means 30 seconds.
	Interval time.Duration
	// Now and Wait are the time of the cluster. Nil means the real one.
	Now  func() time.Time
	Wait func(time.Duration) error
}

// Run waits until the version is among the recommended updates, requests it, and
// returns when the update has completed and every machine config pool has it.
// Errors wrap [ErrRefused] or [ErrStuck], name a field below zero, or are those
// of reads and writes, of Wait, or of ctx.
func (r Request) Run(ctx context.Context) error { return r.until(ctx, r.request, r.ended) }

// Start requests the version as Run does, and returns.
func (r Request) Start(ctx context.Context) error { return r.until(ctx, r.request) }

// until looks at the cluster until it is as each of the looks wants it.
func (r Request) until(ctx context.Context, looks ...func(context.Context, *configv1.ClusterVersion) (bool, error)) error {
	if err := options.NonNegative(r); err != nil {
		return err
	}
	r.Interval = cmp.Or(r.Interval, 30*time.Second)
	if r.Wait == nil {
		r.Wait = func(d time.Duration) error { return reconcile.Sleep(ctx, d) }
	}
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
			if err := r.Wait(r.Interval); err != nil {
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
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	for _, c := range cv.Status.Conditions {
		switch {
		case c.Type == clusterversion.ConditionReleaseAccepted && c.Status == configv1.ConditionFalse:
			return false, fmt.Errorf("%w: %s: %s", ErrRefused, c.Reason, c.Message)
		case c.Type == clusterversion.ConditionFailing && c.Status != configv1.ConditionFalse && now().Sub(c.LastTransitionTime.Time) > cmp.Or(r.StuckAfter, 15*time.Minute):
			return false, fmt.Errorf("%w: %s: %s", ErrStuck, c.Reason, c.Message)
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
	return !slices.ContainsFunc(pools, func(p mcfgv1.MachineConfigPool) bool {
		return p.Spec.Configuration.Name != p.Status.Configuration.Name || !slices.ContainsFunc(p.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
			return c.Type == mcfgv1.MachineConfigPoolUpdated && c.Status == "True"
		})
	}), nil
}
