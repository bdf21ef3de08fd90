package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// Names of the checks that the cluster-version operator runs.
const (
	checkRollback    = "ClusterVersionRollback"
	checkGiantHop    = "ClusterVersionGiantHop"
	checkUpgradeable = "ClusterVersionUpgradeable"
	checkRecommended = "ClusterVersionRecommendedUpdate"
)

// Operator returns exactly the checks of the cluster-version operator, in its
// order: ClusterVersionRollback, ClusterVersionGiantHop, ClusterVersionUpgradeable and
// ClusterVersionRecommendedUpdate. They read one object, the ClusterVersion "version"; if
// there is none they pass. An unreadable one is Unknown, which blocks in the first three.
func Operator() []Check {
	return []Check{
		operatorCheck(checkRollback, rollback),
		operatorCheck(checkGiantHop, giantHop),
		operatorCheck(checkUpgradeable, upgradeable),
		operatorCheck(checkRecommended, recommendedUpdate),
	}
}

// AtLoad returns the checks for a payload that has just been loaded: those of
// [Operator], then ReleasePrevious, SkipsMinors and ReleaseNewer, which look at the
// release itself, then MultiArch, without which an image could take a cluster back from
// several architectures to one.
func AtLoad() []Check {
	return append(Operator(), releasePreviousCheck(false), skipsMinorsCheck(), releaseNewerCheck(), multiArchCheck())
}

// clusterVersionObject points at a field of the ClusterVersion.
func clusterVersionObject(field, value string) Object {
	return Object{GVK: gvkOf[configv1.ClusterVersion](), Name: facts.ClusterVersionName, FieldPath: field, Value: value}
}

// gvkOf returns the kind of a Go type; an unregistered one has none.
func gvkOf[T any]() schema.GroupVersionKind {
	gvk, _ := clusterapi.KindOf[T]()
	return gvk
}

func hasUnmanagedOverride(cv *configv1.ClusterVersion) bool {
	return slices.ContainsFunc(cv.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged })
}

func isOperatorCheck(name string) bool {
	switch name {
	case checkRollback, checkGiantHop, checkUpgradeable, checkRecommended:
		return true
	}
	return false
}

// operatorCheck makes a check of a decision about a ClusterVersion and the text of the
// target's version; nil means that it passes.
func operatorCheck(name string, decide func(cv *configv1.ClusterVersion, target string) *Finding) check {
	rule := Rule{
		Name: name, Severities: []Severity{Warning, Blocking}, Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
		Source: "cluster-version operator, precondition " + name,
	}
	return check{rule, func(ctx context.Context, in *Input) ([]Finding, error) {
		cv, err := facts.ClusterVersion(ctx, in.Reader)
		if cv == nil {
			return nil, err
		}
		f := decide(cv, in.targetVersion())
		if f == nil {
			return nil, nil
		}
		f.Objects = []Object{clusterVersionObject("", "")}
		return []Finding{*f}, nil
	}}
}

// parseBoth parses the versions that a check compares. A bad current version
// only warns: a cluster must be able to leave it.
func parseBoth(current, target string) (c, t *semver.Version, f *Finding) {
	c, err := facts.ParseVersion(current)
	if err != nil {
		return nil, nil, &Finding{Severity: Warning, Reason: "InvalidCurrentVersion", Message: err.Error()}
	}
	t, err = facts.ParseVersion(target)
	if err != nil {
		return nil, nil, &Finding{Severity: Blocking, Reason: "InvalidDesiredVersion", Message: err.Error(),
			Remedy: "ask for a release whose version is a semantic version"}
	}
	return c, t, nil
}

// rollback lets an older version pass only if it is the one that the cluster
// ran before, within one minor version.
func rollback(cv *configv1.ClusterVersion, targetText string) *Finding {
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	if !target.LessThan(current) {
		return nil
	}
	previous, entry := previousVersion(cv)
	f := &Finding{Severity: Blocking, Reason: "LowDesiredVersion", Remedy: "ask for a version that is not older than " + currentText}
	switch {
	case previous == nil:
		f.Message = fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", targetText, currentText)
	case !target.Equal(previous):
		f.Message = fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the cluster's previous version %s (%s)", targetText, currentText, entry.Version, entry.Image)
	case openshift.MinorOf(previous) == openshift.MinorOf(current):
		return nil
	default:
		f.Message = fmt.Sprintf("%s is less than the current target %s and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended", targetText, currentText)
	}
	return f
}

// previousVersion returns the newest history entry of another release than the
// current one. If its version is not a semantic version there is none; older
// entries are not tried.
func previousVersion(cv *configv1.ClusterVersion) (*semver.Version, configv1.UpdateHistory) {
	for _, entry := range cv.Status.History {
		if entry.Version != cv.Status.Desired.Version || entry.Image != cv.Status.Desired.Image {
			return facts.VersionOrNil(entry.Version), entry
		}
	}
	return nil, configv1.UpdateHistory{}
}

// giantHop stops updates that skip a minor version, or change the major one
// otherwise than from 4 to 5.0. The minor that such a step starts from is not
// looked at.
func giantHop(cv *configv1.ClusterVersion, targetText string) *Finding {
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	if target.Major() > current.Major() {
		fromFourToFive := current.Major() == 4 && target.Major() == 5
		supported := "within the current major version"
		if fromFourToFive {
			if target.Minor() == 0 {
				return nil
			}
			supported += " or to 5.0"
		}
		return &Finding{
			Severity: Blocking, Reason: "MajorVersionUpdate",
			Message: fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and only updates %s are supported.",
				targetText, currentText, target.Major(), current.Major(), supported),
			Remedy: "ask for a version of a supported step first",
		}
	}
	if target.Minor() > current.Minor() && target.Minor()-current.Minor() > 1 {
		remedy := fmt.Sprintf("update to %s first", openshift.MinorOf(current).Next()[0])
		if target.Major() < current.Major() { // majors are not compared downward
			remedy = "ask for a version that is not older than " + currentText
		}
		return &Finding{
			Severity: Blocking, Reason: "MultipleMinorVersionsUpdate",
			Message: fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.",
				targetText, currentText, target.Major(), target.Minor(), current.Major(), current.Minor()),
			Remedy: remedy,
		}
	}
	return nil
}

// upgradeable stops updates to another minor or major version while the
// condition Upgradeable is False. Others pass, some with a warning.
func upgradeable(cv *configv1.ClusterVersion, targetText string) *Finding {
	c := openshift.FindCondition(cv.Status.Conditions, configv1.OperatorUpgradeable)
	if !facts.IsFalse(c) {
		return nil
	}
	currentText := cv.Status.Desired.Version
	current, target, fault := parseBoth(currentText, targetText)
	if fault != nil {
		return fault
	}
	same := openshift.MinorOf(target) == openshift.MinorOf(current)
	harmless := same || !target.GreaterThan(current)

	if harmless && hasUnmanagedOverride(cv) {
		return &Finding{
			Severity: Warning, Reason: "ClusterVersionOverridesSet",
			Message: fmt.Sprintf("Retarget from %s to %s is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is not managing these resources; they are currently the responsibility of the agent that set the overrides: %s",
				currentText, targetText, overridesPreventUpgrades),
			Remedy: "remove spec.overrides",
		}
	}
	if same && facts.IsTrue(openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing)) {
		if step, from := stepInProgress(cv, current); step != "" {
			return &Finding{
				Severity: Warning, Reason: strings.ToUpper(step[:1]) + step[1:] + "VersionClusterUpdateInProgress",
				Message: fmt.Sprintf("Retarget to %s while a %s version update from %s to %s is in progress", targetText, step, from, currentText),
			}
		}
	}
	if harmless {
		return nil
	}
	return &Finding{
		Severity: Blocking, Reason: c.Reason, Message: c.Message, Risk: riskOfReason(c.Reason),
		Remedy: "resolve what the message names; updates within the current minor version are not affected",
	}
}

// overridesPreventUpgrades is worded differently in the Upgradeable condition
// itself ("updates"): both texts are in use.
const overridesPreventUpgrades = "Disabling ownership via cluster version overrides prevents upgrades between minor or major versions. Please remove overrides before requesting a minor or major version update."

// stepInProgress returns whether the update that is going on changes the
// "major" or the "minor" version, and from what version; "" if neither.
func stepInProgress(cv *configv1.ClusterVersion, current *semver.Version) (step, from string) {
	from, ok := facts.CompletedVersion(cv.Status.History)
	if n := len(cv.Status.History); !ok && n > 0 {
		from = cv.Status.History[n-1].Version
	}
	completed := facts.VersionOrNil(from)
	switch {
	case completed == nil:
		return "", ""
	case completed.Major() < current.Major():
		return "major", from
	case completed.Major() == current.Major() && completed.Minor() < current.Minor():
		return "minor", from
	}
	return "", ""
}

// riskOfReason returns the name of the one risk that a reason of the condition
// Upgradeable stands for. Reasons that stand for several, or for a whole
// source, name none.
func riskOfReason(reason string) string {
	switch reason {
	case sourceUpdating, sourceOverrides, sourceDeletions, sourceDeletions + "Unknown", sourceAdminAck + "Unknown", sourceOperators + "Unknown":
		return reason
	}
	return ""
}

// recommendedUpdate warns where the update service does not recommend the
// target. Versions are compared as text; images are not compared.
func recommendedUpdate(cv *configv1.ClusterVersion, target string) *Finding {
	for _, release := range cv.Status.AvailableUpdates {
		if release.Version == target {
			return nil
		}
	}
	from := fmt.Sprintf("from %s to %s", cv.Status.Desired.Version, target)
	warn := func(reason, format string, args ...any) *Finding {
		return &Finding{Severity: Warning, Reason: reason, Message: fmt.Sprintf(format, args...), Remedy: recommendedRemedy(cv, target)}
	}
	for _, update := range cv.Status.ConditionalUpdates {
		if update.Release.Version == target {
			return judgeConditional(update, from, warn)
		}
	}
	if cv.Spec.Channel == "" {
		return warn("NoChannel", "Configured channel is unset, so the recommended status of updating %s is unknown.", from)
	}
	retrieved := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return warn("UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating %s is unknown.", from)
	case retrieved.Status == configv1.ConditionTrue:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the update %s is probably neither recommended nor supported.", retrieved.Status, retrieved.Reason, from)
	default:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the recommended status of updating %s is unknown.", retrieved.Status, retrieved.Reason, from)
	}
}

func judgeConditional(update configv1.ConditionalUpdate, from string, warn func(string, string, ...any) *Finding) *Finding {
	c := meta.FindStatusCondition(update.Conditions, "Recommended")
	switch {
	case c == nil:
		return warn("UnknownConditionType", "Update %s has a status.conditionalUpdates entry, but no Recommended condition.", from)
	case c.Status == metav1.ConditionTrue:
		return nil
	case c.Status == metav1.ConditionFalse:
		f := warn(c.Reason, "Update %s is not recommended:\n\n%s", from, c.Message)
		for _, risk := range update.Risks {
			if risk.Name == c.Reason {
				f.Risk = risk.Name
			}
		}
		return f
	default:
		return warn(c.Reason, "Update %s is Recommended=%s: %s: %s", from, c.Status, c.Reason, c.Message)
	}
}

// recommendedRemedy names what is offered on the way to the target, and the offer that
// comes nearest to it.
func recommendedRemedy(cv *configv1.ClusterVersion, target string) string {
	current, wanted := facts.VersionOrNil(cv.Status.Desired.Version), facts.VersionOrNil(target)
	offers := offersOf(cv)
	remedy := "Prefer a recommended update; there is none now"
	if nearest := offers.nearest(current, wanted); nearest != nil {
		remedy = fmt.Sprintf("Prefer %s, the nearest recommended update", nearest.version.Original())
	}
	var way []string
	for _, o := range offers {
		if current != nil && wanted != nil && o.version.GreaterThan(current) && o.version.LessThan(wanted) {
			way = append(way, o.version.Original()+" ("+o.text()+")")
		}
	}
	if len(way) > 0 {
		remedy += ". On the way: " + strings.Join(way, ", ")
	}
	return remedy
}

// offer is an update that the update service knows.
type offer struct {
	version *semver.Version
	status  metav1.ConditionStatus // of the condition Recommended; empty if absent
	reason  string
}

func (o offer) text() string {
	switch o.status {
	case metav1.ConditionTrue:
		return "recommended"
	case metav1.ConditionFalse:
		return "not recommended: " + o.reason
	default:
		return "not known to be recommended: " + cmp.Or(o.reason, "no condition says so")
	}
}

// offers are sorted by version.
type offers []offer

// offersOf returns what both lists have: of one version the first, recommended
// ones first.
func offersOf(cv *configv1.ClusterVersion) offers {
	var all offers
	seen := map[string]bool{}
	add := func(version string, status metav1.ConditionStatus, reason string) {
		if v := facts.VersionOrNil(version); v != nil && !seen[version] {
			seen[version] = true
			all = append(all, offer{v, status, reason})
		}
	}
	for _, r := range cv.Status.AvailableUpdates {
		add(r.Version, metav1.ConditionTrue, "")
	}
	for _, u := range cv.Status.ConditionalUpdates {
		c := meta.FindStatusCondition(u.Conditions, "Recommended")
		if c == nil {
			c = &metav1.Condition{}
		}
		add(u.Release.Version, c.Status, c.Reason)
	}
	slices.SortStableFunc(all, func(a, b offer) int { return a.version.Compare(b.version) })
	return all
}

// nearest returns the recommended update that is closest to the target: the next
// one below in its minor version, else the next one above in it, else the greatest
// below it, else the least. Nil if absent.
func (all offers) nearest(current, target *semver.Version) *offer {
	var best *offer
	var rank int
	for i := range all {
		o := &all[i]
		if o.status != metav1.ConditionTrue || current != nil && !o.version.GreaterThan(current) {
			continue
		}
		r := 1
		if target != nil {
			same := openshift.MinorOf(o.version) == openshift.MinorOf(target)
			below := !o.version.GreaterThan(target)
			switch {
			case same && below:
				r = 4
			case same:
				r = 3
			case below:
				r = 2
			}
		}
		// Ascending: the later is nearer below the target, the first above it.
		if best == nil || r > rank || r == rank && r%2 == 0 {
			best, rank = o, r
		}
	}
	return best
}
