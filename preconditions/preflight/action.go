package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Action returns an action for a plan's steps CheckAll and Gate: it holds while checks
// block an update, or the cluster is not reached, and names what blocks. The step's
// parameters "version" and "image" are the release of the update; without them that is
// to, of which the version or the image is enough. Another parameter is an error; the other
// errors of the action are those of [Run]. It is safe for concurrent use.
func Action(to configv1.Release, o Options) plan.Action {
	return plan.ActionFunc(func(ctx context.Context, c plan.Call) (plan.Outcome, error) {
		target, named := to, c.Step.Args.Parameters
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if name != "version" && name != "image" {
				return plan.Outcome{}, fmt.Errorf("parameter %s has no meaning for the checks of an update", bounded.Quote(name))
			}
		}
		if named["version"] != "" || named["image"] != "" {
			target = configv1.Release{Version: named["version"], Image: named["image"]}
		}
		report, err := Run(ctx, c.API, target, o)
		if _, unreachable := errors.AsType[net.Error](err); unreachable {
			return plan.Outcome{Text: err.Error()}, nil
		}
		if err != nil {
			return plan.Outcome{}, err
		}
		decision := report.Decide(o.Policy)
		return plan.Outcome{Done: !decision.Blocked, Text: decision.Summary}, nil
	})
}
