package clusterupdate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// statusInput is all that a status is written from, besides the status as read.
type statusInput struct {
	now         metav1.Time
	generation  int64
	spec        configv1.ClusterVersionSpec
	d           intent
	updates     availableUpdates
	noGraph     bool // updates are not retrieved at all
	upgradeable *configv1.ClusterOperatorStatusCondition
	load        attempt
	loading     *loadRequest // of a request that is being loaded
	accepted    string       // what ReleaseAccepted says of sync
	accepts     bool         // sync becomes an entry of the history
	hooks       func(history []configv1.UpdateHistory) hookTrouble
	completed   bool      // a pass over sync got through
	sync        *syncWork // nil: nothing is loaded yet
	report      passReport
	starts      func(operator string) (time.Time, bool) // since when operators are awaited
}

func newStatusInput(now time.Time, cv *configv1.ClusterVersion, d intent, m *memory, set *settings) statusInput {
	return statusInput{
		now: metav1.NewTime(now), generation: cv.Generation, spec: cv.Spec, d: d, updates: m.updates, noGraph: set.o.Graph == nil,
		load: m.loads.wanted, accepted: m.loads.accepted, completed: m.work.completed(), sync: m.work.sync, report: m.work.report, starts: set.starts,
		hooks: func(history []configv1.UpdateHistory) hookTrouble { return m.hookTrouble(cv.UID, history, set.o.Hooks) },
	}
}

// nextStatus returns the status of a ClusterVersion. Nothing else decides what
// it says; old is not changed.
func nextStatus(old configv1.ClusterVersionStatus, in statusInput) configv1.ClusterVersionStatus {
	s := *old.DeepCopy()
	clusterversion.RemovePreflights(&s)
	s.ObservedGeneration = in.generation
	conds := &s.Conditions
	set := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
		setCondition(conds, configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: reason, Message: message}, in.now)
	}

	publishUpdates(&s, in, set)
	if in.upgradeable != nil {
		set(configv1.OperatorUpgradeable, in.upgradeable.Status, in.upgradeable.Reason, in.upgradeable.Message)
	}
	removeCondition(conds, obsoleteConditions...)
	if len(in.d.faults) > 0 {
		set(clusterversion.ConditionInvalid, configv1.ConditionTrue, "InvalidClusterVersion", invalidMessage(in.d.faults))
	} else {
		removeCondition(conds, clusterversion.ConditionInvalid)
	}
	if in.sync != nil {
		mergeRelease(&s, in)
		if names := sets.List(in.sync.caps.Implicit); len(names) > 0 {
			set(clusterversion.ConditionImplicitlyEnabledCapabilities, configv1.ConditionTrue, "CapabilitiesImplicitlyEnabled",
				"The following capabilities could not be disabled: "+strings.Join(names, ", "))
		} else {
			set(clusterversion.ConditionImplicitlyEnabledCapabilities, configv1.ConditionFalse, "AsExpected", "Capabilities match configured spec")
		}
	}
	setAccepted(in, set)

	unset := func(t configv1.ClusterStatusConditionType) {
		if openshift.FindCondition(*conds, t) == nil {
			set(t, configv1.ConditionFalse, "", "")
		}
	}
	if in.report.Completed > 0 {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+versionText(in.sync.loaded.release))
	}
	unset(configv1.OperatorAvailable)
	if in.sync != nil {
		w := passStatus{
			Failure: in.report.Failure, Version: in.sync.loaded.release.Version, Image: in.sync.loaded.release.Image,
			Reconciling: in.report.Reconciling, History: len(s.History) > 0, Invalid: len(in.d.faults) > 0,
			Done: in.report.Done, Total: in.report.Total, Starts: in.starts, Now: in.now.Time,
		}
		failing, progressing := failingCondition(w), progressingCondition(w)
		in.hooks(s.History).show(&failing, &progressing)
		set(failing.Type, failing.Status, failing.Reason, failing.Message)
		set(progressing.Type, progressing.Status, progressing.Reason, progressing.Message)
	}
	switch {
	case in.sync != nil:
	case in.d.lost != nil:
		set(clusterversion.ConditionFailing, configv1.ConditionTrue, "UnknownRelease", in.d.lost.Error())
	case in.d.want.Image == "":
		set(clusterversion.ConditionFailing, configv1.ConditionTrue, "NoDesiredImage", "No configured operator version, unable to update cluster")
	}
	unset(clusterversion.ConditionFailing)
	unset(configv1.OperatorProgressing)
	unset(configv1.RetrievedUpdates)
	return s
}

// mergeRelease writes what the status says of the release being applied.
func mergeRelease(s *configv1.ClusterVersionStatus, in statusInput) {
	w := in.sync
	current := graph.FillRelease(w.loaded.release, in.d.own, nil)
	current = graph.FillRelease(current, in.updates.Current(), in.updates.retrieved())
	if !in.accepts && (len(s.History) == 0 || !clusterversion.SameRelease(&s.History[0], current)) {
		return // only what was accepted is on record
	}
	s.History = clusterversion.MergeHistory(s.History, clusterversion.HistoryChange{
		Release: current, Completed: in.completed, Verified: w.loaded.verified, AcceptedRisks: w.loaded.acceptedRisks, Now: in.now,
	})
	s.Desired = current
	if !in.d.gates.architecture {
		s.Desired.Architecture = ""
	}
	if w.loaded.payload.Hash != "" {
		s.VersionHash = w.loaded.payload.Hash
	}
	s.Capabilities = w.caps.Status()
}

// setAccepted reports how far the wanted release has got. What the cluster is at
// already was accepted before: that it is loaded again is not news.
func setAccepted(in statusInput, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	switch {
	case in.loading != nil && in.loading.origin == requested:
		set(clusterversion.ConditionReleaseAccepted, configv1.ConditionUnknown, string(RetrievePayload), "Retrieving and verifying payload "+quoted(in.loading.release))
	case in.loading != nil:
	case in.load.err != nil:
		set(clusterversion.ConditionReleaseAccepted, configv1.ConditionFalse, string(in.load.err.Step), in.load.err.Message)
	case in.accepted != "":
		set(clusterversion.ConditionReleaseAccepted, configv1.ConditionTrue, string(PayloadLoaded), in.accepted)
	}
}

// versionDefinition is the name of the definition of ClusterVersion.
const versionDefinition = "clusterversions.config.openshift.io"

// invalidMessage is the message of the condition Invalid.
func invalidMessage(errs field.ErrorList) string {
	if len(errs) == 1 {
		return "The cluster version is invalid: " + errs[0].Error()
	}
	var b strings.Builder
	b.WriteString("The cluster version is invalid:\n")
	for _, err := range errs {
		b.WriteString("* " + err.Error() + "\n")
	}
	return b.String()
}

// obsoleteConditions were set by older releases and are removed on sight.
var obsoleteConditions = []configv1.ClusterStatusConditionType{
	"UpgradeableAdminAckRequired", "UpgradeableDeletesInProgress", "UpgradeableClusterOperators",
	"UpgradeableClusterVersionOverrides", "UpgradeableUpgradeInProgress", "ImplicitlyEnabled",
}

// setCondition sets a condition in place, or appends it. The transition time
// moves with the status only. A message that is too long is cut and says so.
func setCondition(conds *[]configv1.ClusterOperatorStatusCondition, c configv1.ClusterOperatorStatusCondition, now metav1.Time) {
	c.Message = bounded.Text(c.Message, clusterversion.MaxMessage)
	old := openshift.FindCondition(*conds, c.Type)
	if old == nil {
		c.LastTransitionTime = now
		*conds = append(*conds, c)
		return
	}
	if old.Status != c.Status {
		old.LastTransitionTime = now
	}
	old.Status, old.Reason, old.Message = c.Status, c.Reason, c.Message
}

func removeCondition(conds *[]configv1.ClusterOperatorStatusCondition, types ...configv1.ClusterStatusConditionType) {
	*conds = slices.DeleteFunc(*conds, func(c configv1.ClusterOperatorStatusCondition) bool {
		return slices.Contains(types, c.Type)
	})
}

// reasonSlowClusterOperator is the reason of an unknown Failing.
const reasonSlowClusterOperator = "SlowClusterOperator"

// passStatus is what the conditions of a ClusterVersion are worded from.
type passStatus struct {
	// Failure is the worker's trouble, nil if absent.
	Failure error
	// Version and Image are the release at work; either may be empty.
	Version, Image string
	// Reconciling reports that the release is complete and being kept.
	Reconciling bool
	// History reports that the ClusterVersion has a history.
	History bool
	// Invalid reports that the spec of the ClusterVersion is invalid.
	Invalid bool
	// Done and Total count the tasks of the pass.
	Done, Total int
	// Starts tells since when operators are awaited; nil: not known.
	Starts runlevel.Starts
	// Now is the present.
	Now time.Time
}

// judge applies [runlevel.Judge] if it is due.
func (s *passStatus) judge() runlevel.Judgement {
	if s.Reconciling || !s.History {
		return runlevel.Judgement{Failure: s.Failure}
	}
	return runlevel.Judge(s.Failure, s.Starts, s.Now)
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
	j, v := s.judge(), versionText(configv1.Release{Version: s.Version, Image: s.Image})
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
		c.Reason = reason
		doing := "Unable to apply"
		if s.Reconciling {
			doing = "Error while reconciling"
		}
		c.Message = fmt.Sprintf("%s %s: %s", doing, v, cmp.Or(why, "an error occurred"))
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

// reasonSummary words a reason for the message of Progressing. The name of the object in
// trouble may be empty. It never returns an empty text; if there is no reason at
// all, callers say "an error occurred".
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
