package view

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// ErrNoPlatformOperators reports that none of the ClusterOperators belongs to the
// release, so that nothing can be said of the control plane.
var ErrNoPlatformOperators = errors.New("no ClusterOperator of the release was found")

// The assessments of a control plane, a pool and a node.
const (
	assessmentCompleted   = "Completed"
	assessmentProgressing = "Progressing"
	assessmentSlow        = "Progressing - Slow" // control plane
	assessmentStalled     = "Stalled"            // control plane
	assessmentPending     = "Pending"            // pool
	assessmentDegraded    = "Degraded"           // pool, node
	assessmentExcluded    = "Excluded"           // pool, node
	assessmentUnavailable = "Unavailable"        // node
	assessmentOutdated    = "Outdated"           // node
)

// ControlPlane is how far the operators of the control plane are. It is plain
// data.
type ControlPlane struct {
	// Assessment is Completed, Progressing, "Progressing - Slow" or Stalled.
	Assessment string `json:"assessment"`
	// Target is the version that the cluster updates to, and Previous the one
	// that it comes from.
	Target   string `json:"target"`
	Previous string `json:"previous,omitempty"`
	// NewInstall, Incomplete and MultiArch say what the update is: the first of
	// the cluster, one that began while another was running, one that changes
	// the architecture alone.
	NewInstall bool `json:"newInstall,omitempty"`
	Incomplete bool `json:"incomplete,omitempty"`
	MultiArch  bool `json:"multiArch,omitempty"`

	// Total, Updated and Waiting count operators. Updating are those that are being
	// updated. One whose progress is unknown counts in Total alone.
	Total    int                `json:"total"`
	Updated  int                `json:"updated"`
	Waiting  int                `json:"waiting"`
	Updating []UpdatingOperator `json:"updating"`
	// Completion is Updated of Total, in percent.
	Completion float64 `json:"completion"`

	Unavailable int `json:"unavailable"`
	Degraded    int `json:"degraded"` // and available
	Healthy     int `json:"healthy"`

	// Duration is the time that the update of the control plane took until now
	// or its end, CompletedAt. It is rounded to seconds, to minutes above ten of
	// them.
	Duration    metav1.Duration `json:"duration"`
	CompletedAt *time.Time      `json:"completedAt,omitempty"`
	// Remaining is an estimate of the time until its end. It is negative if that is
	// overdue, and says nothing in a migration to multi-architecture.
	Remaining metav1.Duration `json:"remaining"`
	// EstimatedDuration is an estimate of the whole, in minutes.
	EstimatedDuration metav1.Duration `json:"estimatedDuration"`
}

// UpdatingOperator is an operator that is being updated. It is plain data.
type UpdatingOperator struct {
	Name    string          `json:"name"`
	Since   *time.Time      `json:"since,omitempty"`
	Age     metav1.Duration `json:"age"` // since Since
	Reason  string          `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
}

// age is how long ago a time was, in whole seconds; zero for one that is not
// known.
func age(now, since time.Time) metav1.Duration {
	if since.IsZero() {
		return metav1.Duration{}
	}
	return metav1.Duration{Duration: max(now.Sub(since), 0).Truncate(time.Second)}
}

// done reports that all operators are updated.
func (c *ControlPlane) done() bool { return c.Updated == c.Total }

// operators are the ClusterOperators of a release with what the views ask of
// them.
type operators struct {
	platform []*configv1.ClusterOperator
	updated  map[string]bool
}

const (
	machineConfigOperator  = "machine-config"
	machineConfigNamespace = "openshift-machine-config-operator"
	machineConfigWorkload  = "machine-config-operator"
)

// platformOperators keeps the operators of the release, in the order given.
func platformOperators(o *Objects) operators {
	ops := operators{updated: map[string]bool{}}
	for _, co := range o.ClusterOperators {
		if co == nil || !isPlatform(co) {
			continue
		}
		ops.platform = append(ops.platform, co)
		ops.updated[co.Name] = isUpdated(o, co)
	}
	return ops
}

// isPlatform knows the operators of a release by the annotations that say which
// clusters have them.
func isPlatform(co *configv1.ClusterOperator) bool {
	for key := range co.Annotations {
		if strings.HasPrefix(key, "include.release.openshift.io/") || strings.HasPrefix(key, "exclude.release.openshift.io/") {
			return true
		}
	}
	return false
}

// isUpdated reports that an operator reports the version that the cluster updates
// to. The machine-config operator does so before its new image runs.
func isUpdated(o *Objects, co *configv1.ClusterOperator) bool {
	if !reportsVersion(co, o.ClusterVersion.Status.Desired.Version) {
		return false
	}
	if co.Name != machineConfigOperator {
		return true
	}
	image := machineConfigImage(o.Deployments)
	for _, v := range co.Status.Versions {
		if v.Name == "operator-image" && v.Version != image {
			return false
		}
	}
	return true
}

func reportsVersion(co *configv1.ClusterOperator, version string) bool {
	for _, v := range co.Status.Versions {
		if v.Name == "operator" && v.Version == version {
			return true
		}
	}
	return false
}

// machineConfigImage is the image that the machine-config operator should run,
// "" where its deployment is not known.
func machineConfigImage(deployments []*appsv1.Deployment) string {
	for _, d := range deployments {
		if d == nil || d.Namespace != machineConfigNamespace || d.Name != machineConfigWorkload {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Name == machineConfigWorkload {
				return c.Image
			}
		}
	}
	return ""
}

// assessControlPlane counts operators and estimates the rest of their update.
func assessControlPlane(cv *configv1.ClusterVersion, ops operators, now, started time.Time) (ControlPlane, error) {
	if len(ops.platform) == 0 {
		return ControlPlane{}, ErrNoPlatformOperators
	}
	c := describeTarget(cv.Status.History)
	c.Total = len(ops.platform)
	c.Updating = []UpdatingOperator{}
	for _, co := range ops.platform {
		progressing := openshift.FindCondition(co.Status.Conditions, configv1.OperatorProgressing)
		switch {
		case ops.updated[co.Name]:
			c.Updated++
		case progressing == nil:
		case progressing.Status == configv1.ConditionTrue:
			since := progressing.LastTransitionTime.Time
			c.Updating = append(c.Updating, UpdatingOperator{
				Name: co.Name, Since: known(since), Age: age(now, since), Reason: progressing.Reason, Message: progressing.Message,
			})
		case progressing.Status == configv1.ConditionFalse:
			c.Waiting++
		}
		switch {
		case !hasCondition(co, configv1.OperatorAvailable, configv1.ConditionTrue):
			c.Unavailable++
		case hasCondition(co, configv1.OperatorDegraded, configv1.ConditionTrue):
			c.Degraded++
		}
	}
	c.Healthy = c.Total - c.Unavailable - c.Degraded
	c.Completion = 100 * float64(c.Updated) / float64(c.Total)

	history := cv.Status.History
	end := now
	var elapsed, progress time.Duration // zero if it is not known when the update began
	if len(history) > 0 && completed(history[0]) {
		end = history[0].CompletionTime.Time
		c.CompletedAt = known(end)
	}
	if len(history) > 0 && !started.IsZero() {
		elapsed = max(end.Sub(started), 0)
		progress = max(lastProgress(ops, now, started).Sub(started), 0)
	}
	rest := estimateRest(elapsed, progress, usualDuration(history), float64(c.Updated)/float64(c.Total))
	c.Duration.Duration = rounded(elapsed)
	c.Remaining.Duration, c.EstimatedDuration.Duration = rest.remaining, rest.total
	switch {
	case c.done():
		c.Assessment = assessmentCompleted
	case rest.remaining < -coarse:
		c.Assessment = assessmentStalled
	case rest.remaining < 0:
		c.Assessment = assessmentSlow
	default:
		c.Assessment = assessmentProgressing
	}
	return c, nil
}

// describeTarget describes what the history calls the update.
func describeTarget(history []configv1.UpdateHistory) ControlPlane {
	switch len(history) {
	case 0:
		return ControlPlane{Target: unknown, Previous: unknown}
	case 1:
		return ControlPlane{Target: history[0].Version, NewInstall: true}
	}
	return ControlPlane{
		Target: history[0].Version, Previous: history[1].Version,
		Incomplete: history[1].State == configv1.PartialUpdate,
		MultiArch:  isMultiArch(history),
	}
}

// isMultiArch reports that the newest update changes the image and not the version.
func isMultiArch(history []configv1.UpdateHistory) bool {
	return len(history) > 1 && history[0].Version == history[1].Version && history[0].Image != history[1].Image
}

// target is the version with where it comes from.
func (c *ControlPlane) target() string {
	switch {
	case c.NewInstall:
		return c.Target + " (a new install)"
	case c.Incomplete:
		return c.Target + " (from incomplete " + c.Previous + ")"
	case c.MultiArch:
		return c.Target + " to Multi-Architecture"
	}
	return c.Target + " (from " + c.Previous + ")"
}

// lastProgress is when an operator last began or ended to progress. While
// machine-config alone is left, only it counts: the others come and go as the
// nodes restart.
func lastProgress(ops operators, now, started time.Time) time.Time {
	var latest time.Time
	var left []*configv1.ClusterOperator
	for _, co := range ops.platform {
		if !ops.updated[co.Name] {
			left = append(left, co)
		}
		p := openshift.FindCondition(co.Status.Conditions, configv1.OperatorProgressing)
		if p != nil && p.LastTransitionTime.After(latest) {
			latest = p.LastTransitionTime.Time
		}
	}
	if len(left) == 1 && left[0].Name == machineConfigOperator {
		p := openshift.FindCondition(left[0].Status.Conditions, configv1.OperatorProgressing)
		if p != nil && p.Status == configv1.ConditionTrue {
			latest = p.LastTransitionTime.Time
		}
	}
	if !latest.After(started) {
		return now
	}
	return latest
}

// remainingText is the estimate as it is shown.
func (c *ControlPlane) remainingText() string {
	rest := c.Remaining.Duration
	switch {
	case c.MultiArch:
		return "N/A for Multi-Architecture Migration"
	case rest < -coarse:
		return "N/A; estimate duration was " + text.Short(c.EstimatedDuration.Duration)
	case rest < coarse:
		return "<10m"
	}
	return text.Short(rest)
}

// writeControlPlane writes the section of the control plane.
func writeControlPlane(out *text.Writer, c *ControlPlane, now time.Time, o StatusText) {
	out.Print("= Control Plane =\n")
	if c.done() {
		end := now
		if c.CompletedAt != nil {
			end = *c.CompletedAt
		}
		fmt.Fprintf(out, "Update to %s successfully completed at %s (duration: %s)\n", c.Target, end.UTC().Format(time.RFC3339), text.Short(c.Duration.Duration))
		return
	}
	fmt.Fprintf(out, "Assessment:      %s\n", c.Assessment)
	fmt.Fprintf(out, "Target Version:  %s\n", c.target())
	if len(c.Updating) > 0 {
		names := make([]string, len(c.Updating))
		for i, u := range c.Updating {
			names[i] = u.Name
		}
		fmt.Fprintf(out, "Updating:        %s\n", strings.Join(names, ", "))
	}
	fmt.Fprintf(out, "Completion:      %.0f%% (%d operators updated, %d updating, %d waiting)\n", c.Completion, c.Updated, len(c.Updating), c.Waiting)
	out.Print("Duration:        ", text.Short(c.Duration.Duration))
	if c.Remaining.Duration != 0 {
		out.Print(" (Est. Time Remaining: ", c.remainingText(), ")")
	}
	label := "Operator Health: "
	if o.Docs418 {
		label = "Operator Status: "
	}
	fmt.Fprintf(out, "\n%s%d Healthy", label, c.Healthy)
	if c.Unavailable > 0 {
		fmt.Fprintf(out, ", %d Unavailable", c.Unavailable)
	}
	if c.Degraded > 0 {
		fmt.Fprintf(out, ", %d Available but degraded", c.Degraded)
	}
	out.Print("\n")
	if o.Details.shows(detailsOperators) && len(c.Updating) > 0 {
		writeUpdating(out, c.Updating)
	}
}

// maxReason is the longest reason of an operator that is shown in full, in
// characters.
const maxReason = 20

func writeUpdating(out *text.Writer, updating []UpdatingOperator) {
	out.Print("\nUpdating Cluster Operators\n")
	t := text.NewTable(out, 0, 3)
	t.Row("NAME", "SINCE", "REASON", "MESSAGE")
	for _, u := range updating {
		reason := cmp.Or(u.Reason, "-")
		if r := []rune(reason); len(r) > maxReason {
			reason = string(r[:maxReason-3]) + "..."
		}
		lines := strings.Split(u.Message, "\n")
		since := "-"
		if u.Since != nil {
			since = text.Short(u.Age.Duration)
		}
		t.Row(u.Name, since, reason, lines[0])
		for _, line := range lines[1:] {
			t.Row("", "", "", line)
		}
	}
	t.Flush()
}
