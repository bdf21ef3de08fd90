package clusterupdate

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// statusInput is all that a status is written from, beside the status as read.
type statusInput struct {
	now         metav1.Time
	generation  int64
	spec        configv1.ClusterVersionSpec
	d           decision
	lists       lists
	noGraph     bool // updates are not retrieved at all
	upgradeable *configv1.ClusterOperatorStatusCondition
	load        loadState
	work        *work // nil: nothing is accepted yet
	report      runlevel.Report
	tracker     *runlevel.Tracker
}

func (l *loop) statusInput() statusInput {
	in := statusInput{
		now:        metav1.NewTime(l.o.Clock.Now()),
		generation: l.cv.Generation,
		spec:       l.cv.Spec,
		d:          l.d,
		lists:      l.s.lists,
		noGraph:    l.o.Graph == nil,
		load:       l.s.load,
		work:       l.s.work,
		report:     l.s.report,
		tracker:    l.s.tracker,
	}
	if l.pass != nil && l.pass.work.same(l.s.work) {
		in.report = l.pass.current()
	}
	return in
}

// nextStatus returns the status of a ClusterVersion. Nothing else decides what
// it says; old is not changed.
func nextStatus(old configv1.ClusterVersionStatus, in statusInput) configv1.ClusterVersionStatus {
	s := *old.DeepCopy()
	s.ObservedGeneration = in.generation
	conds := &s.Conditions
	set := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
		setCondition(conds, configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: reason, Message: message}, in.now)
	}

	publishLists(&s, in, set)
	if in.upgradeable != nil {
		set(configv1.OperatorUpgradeable, in.upgradeable.Status, in.upgradeable.Reason, in.upgradeable.Message)
	} else {
		removeCondition(conds, configv1.OperatorUpgradeable)
	}
	removeCondition(conds, obsoleteConditions...)
	if len(in.d.faults) > 0 {
		set(ConditionInvalid, configv1.ConditionTrue, "InvalidClusterVersion", invalidMessage(in.d.faults))
	} else {
		removeCondition(conds, ConditionInvalid)
	}
	if in.work != nil {
		mergeRelease(&s, in)
		if names := sets.List(in.work.caps.Implicit); len(names) > 0 {
			set(ConditionImplicitlyEnabledCapabilities, configv1.ConditionTrue, "CapabilitiesImplicitlyEnabled",
				"The following capabilities could not be disabled: "+strings.Join(names, ", "))
		} else {
			set(ConditionImplicitlyEnabledCapabilities, configv1.ConditionFalse, "AsExpected", "Capabilities match configured spec")
		}
	}
	setAccepted(in.load, set)

	if in.report.Completed > 0 {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+versionText(in.work.release))
	}
	if in.work != nil {
		w := runlevel.Status{
			Failure: in.report.Failure, Version: in.work.release.Version, Image: in.work.release.Image,
			Reconciling: in.report.Reconciling, History: len(s.History) > 0, Invalid: len(in.d.faults) > 0,
			Done: in.report.Done, Total: in.report.Total, Starts: in.tracker.COStart, Now: in.now.Time,
		}
		failing, progressing := runlevel.Failing(w), runlevel.Progressing(w)
		set(failing.Type, failing.Status, failing.Reason, failing.Message)
		set(progressing.Type, progressing.Status, progressing.Reason, progressing.Message)
	}
	if in.work == nil && in.d.want.Image == "" {
		set(ConditionFailing, configv1.ConditionTrue, "NoDesiredImage", "No configured operator version, unable to update cluster")
	}
	for _, t := range []configv1.ClusterStatusConditionType{configv1.OperatorAvailable, ConditionFailing, configv1.OperatorProgressing} {
		if findCondition(*conds, t) == nil {
			set(t, configv1.ConditionFalse, "", "")
		}
	}
	if findCondition(*conds, configv1.RetrievedUpdates) == nil {
		set(configv1.RetrievedUpdates, configv1.ConditionFalse, "", "")
	}
	return s
}

// mergeRelease writes what the status says of the release being applied.
func mergeRelease(s *configv1.ClusterVersionStatus, in statusInput) {
	w := in.work
	current := graph.FillRelease(w.release, in.d.own, nil)
	current = graph.FillRelease(current, in.lists.Current(), in.lists.retrieved())
	completed := in.report.Image == w.release.Image && in.report.Completed > 0
	s.History = MergeHistory(s.History, HistoryChange{
		Release: current, Completed: completed, Verified: w.verified, AcceptedRisks: w.acceptedRisks, Now: in.now,
	})
	s.Desired = current
	if !in.d.gates.architecture {
		s.Desired.Architecture = ""
	}
	if w.payload.Hash != "" {
		s.VersionHash = w.payload.Hash
	}
	s.Capabilities = w.caps.Status()
}

func setAccepted(load loadState, set func(configv1.ClusterStatusConditionType, configv1.ConditionStatus, string, string)) {
	status := configv1.ConditionUnknown
	switch {
	case load.step == "":
		return
	case load.err != nil:
		status = configv1.ConditionFalse
	case load.step == PayloadLoaded:
		status = configv1.ConditionTrue
	}
	set(ConditionReleaseAccepted, status, string(load.step), load.message)
}
