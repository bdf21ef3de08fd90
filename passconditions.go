package clusterupdate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// reasonSlowClusterOperator is the reason of an unknown Failing.
const reasonSlowClusterOperator = "SlowClusterOperator"

// passStatus is what the conditions of a ClusterVersion are worded from.
type passStatus struct {
	// Failure is the worker's trouble, nil when there is none.
	Failure error
	// Version and Image are the release at work; either may be empty.
	Version, Image string
	// Reconciling says that the release is complete and being kept.
	Reconciling bool
	// History says that the ClusterVersion has a history.
	History bool
	// Invalid says that the spec of the ClusterVersion is invalid.
	Invalid bool
	// Done and Total count the tasks of the pass.
	Done, Total int
	// Starts tells since when operators are awaited; nil: not known.
	Starts runlevel.Starts
	// Now is the present.
	Now time.Time
}

// judge applies [runlevel.Judge] where it is due.
func (s *passStatus) judge() runlevel.Judgement {
	if s.Reconciling || !s.History {
		return runlevel.Judgement{Failure: s.Failure}
	}
	return runlevel.Judge(s.Failure, s.Starts, s.Now)
}

// release returns the name of the release for messages.
func (s *passStatus) release() string {
	switch {
	case s.Version != "":
		return s.Version
	case s.Image != "":
		return s.Image
	}
	return "<unknown>"
}

// failingCondition returns the condition Failing: False, True with the reason and
// message of the failure, or Unknown while an operator takes longer than
// expected. The message has at most 32 KiB. The time of the transition is left
// to the caller.
func failingCondition(s passStatus) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: clusterversion.ConditionFailing, Status: configv1.ConditionFalse}
	j := s.judge()
	switch {
	case j.Failure != nil:
		c.Status, c.Message = configv1.ConditionTrue, j.Failure.Error()
		c.Reason, _ = reasonOf(j.Failure)
	case j.Slow:
		c.Status, c.Reason, c.Message = configv1.ConditionUnknown, reasonSlowClusterOperator, j.Progress
	}
	c.Message = bounded.Text(c.Message, clusterversion.MaxMessage)
	return c
}

// progressingCondition returns the condition Progressing, with the percentage of tasks
// done and what is waited for or wrong, in at most 32 KiB. The time of the
// transition is left to the caller.
func progressingCondition(s passStatus) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue}
	j, v := s.judge(), s.release()
	if s.Reconciling {
		c.Status = configv1.ConditionFalse
	}
	if s.Invalid {
		c.Reason = "InvalidClusterVersion"
	}
	switch {
	case j.Failure != nil:
		reason, name := reasonOf(j.Failure)
		why := j.Progress
		if why == "" && reason != "" {
			why = reasonSummary(reason, name)
		}
		if why == "" {
			why = "an error occurred"
		}
		c.Reason = reason
		if s.Reconciling {
			c.Message = fmt.Sprintf("Error while reconciling %s: %s", v, why)
		} else {
			c.Message = fmt.Sprintf("Unable to apply %s: %s", v, why)
		}
	case s.Reconciling && s.Invalid:
		c.Message = fmt.Sprintf("Stopped at %s: the cluster version is invalid", v)
	case s.Reconciling:
		c.Message = "Cluster version is " + v
	case s.Invalid:
		c.Message = fmt.Sprintf("Reconciling %s: the cluster version is invalid", v)
	default:
		c.Message = "Working towards " + v
		if s.Done > 0 {
			c.Message += fmt.Sprintf(": %d of %d done (%d%% complete)", s.Done, s.Total, 100*s.Done/max(s.Total, 1))
		}
		if j.Progress != "" {
			c.Reason = j.Reason
			if s.Done > 0 {
				c.Message += ", " + j.Progress
			} else {
				c.Message += ": " + j.Progress
			}
		}
	}
	c.Message = bounded.Text(c.Message, clusterversion.MaxMessage)
	return c
}

// reasonOf returns the reason and name of an error of a task or a payload;
// others have none.
func reasonOf(err error) (reason, name string) {
	if te, ok := errors.AsType[*runlevel.TaskError](err); ok {
		return te.Reason, te.Name
	}
	if me, ok := errors.AsType[*manifest.Error](err); ok {
		return me.Reason, ""
	}
	return "", ""
}

// Summary words a reason for the message of Progressing. The name of the
// object in trouble may be empty. It never returns an empty text; where there
// is no reason at all, callers say "an error occurred".
func reasonSummary(reason, name string) string {
	if text, ok := plainSummaries[reason]; ok {
		return text
	}
	if texts, ok := namedSummaries[reason]; ok {
		if name == "" {
			return texts.without
		}
		return fmt.Sprintf(texts.with, name)
	}
	if strings.HasPrefix(reason, "UpdatePayload") {
		return "the update could not be applied"
	}
	if name == "" {
		return "an unknown error has occurred: " + reason
	}
	return name + " has an unknown error: " + reason
}

var plainSummaries = map[string]string{
	runlevel.ReasonResourceNotFound:    "some resources could not be updated",
	runlevel.ReasonResourceConflict:    "some resources could not be updated",
	runlevel.ReasonClusterDown:         "the control plane is down or not responding",
	runlevel.ReasonClusterError:        "the control plane is reporting an internal error",
	runlevel.ReasonClusterOverloaded:   "the control plane is overloaded and is not accepting updates",
	runlevel.ReasonClusterUnauthorized: "could not authenticate to the server",
	"UpdatePayloadRetrievalFailed":     "could not download the update",
	runlevel.ReasonResourceForbidden:   "the server is rejecting updates",
	runlevel.ReasonResourceTypeMissing: "a required extension is not available to update",
	runlevel.ReasonResourceInvalid:     "some cluster configuration is invalid",
	"UpdatePayloadIntegrity":           "the contents of the update are invalid",
	"ImageVerificationFailed":          "the image may not be safe to use",
	"UpgradePreconditionCheckFailed":   "it may not be safe to apply this update",
	"ClusterOperatorsNotAvailable":     "some cluster operators are not available",
}

var namedSummaries = map[string]struct{ with, without string }{
	runlevel.ReasonOperatorDegraded:       {"the cluster operator %s is degraded", "a cluster operator is degraded"},
	runlevel.ReasonOperatorNotAvailable:   {"the cluster operator %s is not available", "a cluster operator is not available"},
	runlevel.ReasonOperatorNoVersions:     {"the cluster operator %s does not declare expected versions", "a cluster operator does not declare expected versions"},
	runlevel.ReasonWorkloadNotAvailable:   {"the workload %s has not yet successfully rolled out", "a workload has not yet rolled out"},
	runlevel.ReasonWorkloadNotProgressing: {"the workload %s cannot roll out", "a workload cannot roll out"},
}
