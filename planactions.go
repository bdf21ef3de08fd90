package clusterupdate

import (
	"context"
	"errors"
	"net"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	mcpplan "github.com/clusterupdate/clusterupdate/mcp/plan" // plan is a function here
)

// PlanUpdate is the action of a plan's steps UpdateCluster: it requests the
// update to the version of the step, or to its image, of whoever updates the
// cluster. The plan sees by itself when the update is done.
//
// A version that the cluster is not offered yet is waited for, and so is a
// cluster that is invalid, failing, updating or not reached. Any other refusal
// fails the step: the error is a [*clusterversion.RefusedError]. Asking again for what was
// requested changes nothing. It is plain data, and safe for concurrent use.
type PlanUpdate struct {
	// Allow has the allowances of requests. Its targets are not looked at.
	Allow clusterversion.UpdateRequest
	// Checks must not block an update that is requested; nil: none are run.
	Checks *PreflightOptions
}

// Do implements [mcpplan.Action].
func (a PlanUpdate) Do(ctx context.Context, c mcpplan.Call) (mcpplan.Outcome, error) {
	want := configv1.Update{Version: c.Step.Args.Version, Image: c.Step.Args.Image}
	cv, err := clusterversion.Get(ctx, c.API)
	if err != nil {
		return waitForNetwork(err)
	}
	if isRequested(cv, want) {
		return mcpplan.Outcome{Done: true}, nil
	}
	r := a.Allow
	r.To, r.ToImage, r.ToLatest, r.ToMultiArch, r.Clear = want.Version, want.Image, false, false, false
	if r.ToImage != "" {
		r.To = ""
	}
	if a.Checks == nil {
		_, err = clusterversion.Submit(ctx, c.API, r)
	} else {
		_, _, err = SubmitChecked(ctx, c.API, r, *a.Checks)
	}
	if refused := (*clusterversion.RefusedError)(nil); errors.As(err, &refused) {
		switch refused.Reason {
		case clusterversion.RefusedUnavailable, clusterversion.RefusedCannotRefresh, clusterversion.RefusedClusterState:
			return mcpplan.Outcome{Text: refused.Message}, nil
		}
	}
	if err != nil {
		return waitForNetwork(err)
	}
	return mcpplan.Outcome{Done: true}, nil
}

// waitForNetwork makes an error of the network something to wait for: API servers
// come and go while a cluster is updated.
func waitForNetwork(err error) (mcpplan.Outcome, error) {
	if _, is := errors.AsType[net.Error](err); is {
		return mcpplan.Outcome{Text: err.Error()}, nil
	}
	return mcpplan.Outcome{}, err
}

// isRequested reports whether a cluster is at a release, or was asked to go there.
func isRequested(cv *configv1.ClusterVersion, want configv1.Update) bool {
	is := func(version, image string) bool {
		return (want.Version == "" || version == want.Version) && (want.Image == "" || image == want.Image)
	}
	if u := cv.Spec.DesiredUpdate; u != nil && is(u.Version, u.Image) && clusterversion.Asks(cv, u.Version, u.Image) {
		return true
	}
	return len(cv.Status.History) > 0 && is(cv.Status.History[0].Version, cv.Status.History[0].Image)
}

// PlanChecks is an action for a plan's steps CheckAll and Gate: it holds while
// checks block an update, or the cluster is not reached, and says why. Its other
// errors are those of [Preflight]. It is plain data, and safe for concurrent use.
type PlanChecks struct {
	// To is the release of the update where the step's parameters "version" and
	// "image" name none. The version or the image is enough.
	To      configv1.Release
	Options PreflightOptions
}

// Do implements [mcpplan.Action].
func (a PlanChecks) Do(ctx context.Context, c mcpplan.Call) (mcpplan.Outcome, error) {
	to, named := a.To, c.Step.Args.Parameters
	if named["version"] != "" || named["image"] != "" {
		to = configv1.Release{Version: named["version"], Image: named["image"]}
	}
	report, err := Preflight(ctx, c.API, to, a.Options)
	if err != nil {
		return waitForNetwork(err)
	}
	decision := report.Decide(a.Options.Policy)
	return mcpplan.Outcome{Done: !decision.Blocked, Text: decision.Summary}, nil
}
