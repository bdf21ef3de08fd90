package clusterversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Request is something that an administrator asks of a ClusterVersion, with the
// decisions and the words of oc adm upgrade and its commands: [UpdateRequest],
// [ChannelRequest], [UpstreamRequest], [RollbackRequest] and [AcceptRequest]; and those of
// a preflight, [PreflightRequest] and [ClearPreflight]. Requests are plain data, safe for
// concurrent use.
type Request interface {
	// Edit decides about the request and returns what becomes of a
	// ClusterVersion, which it does not change. It is pure. A nil ClusterVersion
	// stands for one that does not exist. The error is a [*RefusedError]; the
	// answer then has what was warned of before.
	Edit(cv *configv1.ClusterVersion) (Answer, error)

	// failed is what precedes the error of a write.
	failed() string
	// replaces reports whether the request replaces an earlier one for a release.
	replaces() bool
}

// Answer is what becomes of a [Request]. It is plain data.
type Answer struct {
	// ClusterVersion is the edited copy, nil if nothing is to be changed.
	ClusterVersion *configv1.ClusterVersion
	// Out is what the command line tool prints, and Err what it warns of: whole
	// lines, or empty.
	Out, Err string
}

func (a *Answer) printf(format string, args ...any) { a.Out += fmt.Sprintf(format, args...) + "\n" }
func (a *Answer) warnf(format string, args ...any) {
	a.Err += "warning: " + fmt.Sprintf(format, args...) + "\n"
}

// Why a request is refused: the Reason of a [RefusedError].
const (
	RefusedUsage          = "Usage"               // options that do not go together, or no valid value
	RefusedNoVersion      = "NoClusterVersion"    // there is no ClusterVersion
	RefusedByTag          = "ByTag"               // an image by tag cannot be verified
	RefusedNotRecommended = "NotRecommended"      // the update has known issues
	RefusedUnavailable    = "Unavailable"         // the update is not among those that the cluster has been offered
	RefusedCannotRefresh  = "CannotRefresh"       // the updates that there are are not known
	RefusedClusterState   = "ClusterState"        // the cluster is invalid, failing or updating already
	RefusedRequested      = "AlreadyRequested"    // the same was requested before
	RefusedChannel        = "UnknownChannel"      // the channel is not one of the release
	RefusedRollback       = "RollbackUnsupported" // there is nothing to roll back to
	RefusedMode           = "ModeUnsupported"     // the cluster does not know the mode Preflight
	RefusedPreconditions  = "Preconditions"       // checks block the update
	RefusedHosted         = "HostedControlPlane"  // the cluster is updated elsewhere: see ErrHostedControlPlane
)

// RefusedError explains why a request is refused. It is plain data.
type RefusedError struct {
	Reason string // one of the constants
	// Waiver is the option that lets the request pass, as the command line tool
	// names it. Empty: none does.
	Waiver string
	// Message is what the command line tool prints. It may end in a line feed.
	Message string
}

// Error returns the message.
func (e *RefusedError) Error() string { return e.Message }

func refuse(reason, waiver, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Waiver: waiver, Message: fmt.Sprintf(format, args...)}
}

// noVersion is what a command says if there is no ClusterVersion.
func noVersion(no, server string) *RefusedError {
	return refuse(RefusedNoVersion, "", "%s cluster version information available - you must be connected to an %s server to fetch the current version", no, server)
}

// Submit decides about a request and carries it out, provided that the
// ClusterVersion has not changed since the decision; else it decides again. The
// answer is the last decision's, with the ClusterVersion as stored. The error is a
// [*RefusedError], and nothing was written, or one of reading or writing the
// ClusterVersion, or of ctx. It can be called concurrently.
func Submit(ctx context.Context, api clusterapi.ReadWriter, r Request) (Answer, error) {
	return SubmitIf(ctx, api, r, func(_, _ *configv1.ClusterVersion) error { return nil })
}

// SubmitIf is [Submit] with a last look: allow gets the ClusterVersion as it is and
// as it will be, and its error, which SubmitIf returns, refuses the write.
func SubmitIf(ctx context.Context, api clusterapi.ReadWriter, r Request, allow func(cv, edited *configv1.ClusterVersion) error) (Answer, error) {
	// Who may not read the Infrastructure may still ask.
	if err := RefuseHosted(ctx, api); errors.Is(err, ErrHostedControlPlane) {
		return Answer{}, &RefusedError{Reason: RefusedHosted, Message: err.Error()}
	}
	var out Answer
	decided := false
	stored, err := Modify(ctx, api, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		decided = true
		var err error
		out, err = r.Edit(cv)
		if err != nil || out.ClusterVersion == nil {
			return false, err
		}
		if err := refuseMode(ctx, api, out.ClusterVersion.Spec.DesiredUpdate); err != nil {
			out.ClusterVersion = nil
			return false, err
		}
		if err := allow(cv, out.ClusterVersion); err != nil {
			out.ClusterVersion = nil
			return false, &checkError{err}
		}
		cv.Spec = *out.ClusterVersion.Spec.DeepCopy()
		return r.replaces(), nil
	})
	_, refused := err.(*RefusedError)
	checked, failed := err.(*checkError)
	switch {
	case failed:
		return Answer{Err: out.Err}, checked.error
	case refused:
		return out, err
	case !decided && (clusterapi.IsMissing(err)):
		return r.Edit(nil)
	case err != nil && decided:
		return Answer{Err: out.Err}, fmt.Errorf("%s: %w", r.failed(), err)
	case err != nil:
		return Answer{}, fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	if out.ClusterVersion != nil {
		out.ClusterVersion = stored
	}
	return out, nil
}

// checkError is what the last look failed with, which is not an error of writing.
type checkError struct{ error }

// because is the reason and the message of a condition, below what it is about.
func because(c *configv1.ClusterOperatorStatusCondition) string {
	return "  Reason: " + c.Reason + "\n  Message: " + strings.ReplaceAll(c.Message, "\n", "\n  ")
}

// guards returns what is against an update in the state of the cluster itself,
// whichever update that is.
func guards(cv *configv1.ClusterVersion) []string {
	target := cmp.Or(cv.Status.Desired.Version, cv.Status.Desired.Image, "ClusterVersion status.desired has neither a version nor image; please open a bug")
	var texts []string
	for _, g := range []struct {
		t    configv1.ClusterStatusConditionType
		text string
	}{
		{ConditionInvalid, "the cluster version object is invalid, you must correct the invalid state first:"},
		{ConditionFailing, fmt.Sprintf("the cluster is experiencing an error reconciling %q:", target)},
		{configv1.OperatorProgressing, "the cluster is already upgrading:"},
	} {
		if c := openshift.FindCondition(cv.Status.Conditions, g.t); c != nil && c.Status == configv1.ConditionTrue {
			texts = append(texts, g.text+"\n\n"+because(c))
		}
	}
	return texts
}
