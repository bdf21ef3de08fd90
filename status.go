package clusterupdate

import (
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
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
		if clusterapi.FindCondition(*conds, t) == nil {
			set(t, configv1.ConditionFalse, "", "")
		}
	}
	if in.report.Completed > 0 {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+versionText(in.sync.release))
	}
	unset(configv1.OperatorAvailable)
	if in.sync != nil {
		w := passStatus{
			Failure: in.report.Failure, Version: in.sync.release.Version, Image: in.sync.release.Image,
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
	current := graph.FillRelease(w.release, in.d.own, nil)
	current = graph.FillRelease(current, in.updates.Current(), in.updates.retrieved())
	if !in.accepts && (len(s.History) == 0 || !clusterversion.SameRelease(&s.History[0], current)) {
		return // only what was accepted is on record
	}
	s.History = clusterversion.MergeHistory(s.History, clusterversion.HistoryChange{
		Release: current, Completed: in.completed, Verified: w.verified, AcceptedRisks: w.acceptedRisks, Now: in.now,
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

// setAccepted tells how far the wanted release came. What the cluster is at
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
	old := clusterapi.FindCondition(*conds, c.Type)
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
