package preconditions

import (
	"context"
	"errors"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Require returns a function that runs the checks of the version operator on a
// cluster, [Operator], and refuses an update that they block with the decision's
// summary. It fits Preconditions of the upgrade package's Options. Errors are
// the refusal, and those of [Run].
func Require(r clusterapi.Reader) func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error {
	return func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error {
		in := &Input{Reader: r, Transition: NewTransition(cv, target, false, Full)}
		report, err := Run(ctx, Operator(), in, Options{})
		if err != nil {
			return err
		}
		if decision := report.Decide(Policy{}); decision.Blocked {
			return errors.New(decision.Summary)
		}
		return nil
	}
}
