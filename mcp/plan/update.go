package plan

import (
	"context"
	"errors"
	"net"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
)

// update is the action UpdateCluster: it requests the update to the version of the
// step, or to its image, of whoever updates the cluster. The plan sees by itself when the
// update is done.
//
// It waits for a version that the cluster is not offered yet, and for a cluster that is
// invalid, failing, updating or not reached. Any other refusal fails the step.
type update struct {
	allow clusterversion.UpdateRequest // its targets do not count
}

// Do implements [Action].
func (u update) Do(ctx context.Context, c Call) (Outcome, error) {
	want := configv1.Update{Version: c.Step.Args.Version, Image: c.Step.Args.Image}
	cv, err := clusterversion.Get(ctx, c.API)
	if err != nil {
		return waitForNetwork(err)
	}
	if isRequested(cv, want) {
		return Outcome{Done: true}, nil
	}
	r := u.allow
	r.To, r.ToImage = want.Version, want.Image
	r.ToLatest, r.ToMultiArch, r.Clear = false, false, false
	if r.ToImage != "" {
		r.To = ""
	}
	_, err = clusterversion.Submit(ctx, c.API, r)
	if refused, is := errors.AsType[*clusterversion.RefusedError](err); is {
		switch refused.Reason {
		case clusterversion.RefusedUnavailable, clusterversion.RefusedCannotRefresh, clusterversion.RefusedClusterState:
			return Outcome{Text: refused.Message}, nil
		}
	}
	if err != nil {
		return waitForNetwork(err)
	}
	return Outcome{Done: true}, nil
}

// waitForNetwork makes an error of the network something to wait for: API servers
// come and go while a cluster is updated.
func waitForNetwork(err error) (Outcome, error) {
	if _, is := errors.AsType[net.Error](err); is {
		return Outcome{Text: err.Error()}, nil
	}
	return Outcome{}, err
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
