package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// The levels.
const (
	levelInfo     = "Info"
	levelWarning  = "Warning"
	levelError    = "Error"
	levelCritical = "Critical"
)

// levelOrder is how insights are sorted.
var levelOrder = []string{levelCritical, levelError, levelWarning, levelInfo}

// The impacts.
const (
	impactNone            = "None"
	impactUnknown         = "Unknown"
	impactAPIAvailability = "API Availability"
	impactUpdateSpeed     = "Update Speed"
	impactUpdateStalled   = "Update Stalled"
)

// The scopes.
const (
	scopeControlPlane = "ControlPlane"
	scopeWorkerPool   = "WorkerPool"
	scopeCluster      = "Cluster"
)

// Insight is something that an administrator of the update should know. It is
// plain data.
type Insight struct {
	// Since is when it began, nil if that is unknown.
	Since *time.Time `json:"since,omitempty"`
	// Level is how much it matters: Info, Warning, Error or Critical.
	Level string `json:"level"`
	// Impact is what suffers: None, Unknown, API Availability, Update Speed or
	// Update Stalled.
	Impact string `json:"impact"`
	// Scope is the part of the cluster: ControlPlane, WorkerPool or Cluster.
	Scope       string     `json:"scope"`
	Summary     string     `json:"summary"`
	Description string     `json:"description"`
	Reference   string     `json:"reference"` // where to read on, mostly a URL
	Resources   []Resource `json:"resources"`
}

const (
	docsURL     = "https://docs.openshift.com/container-platform/latest/"
	runbooksURL = "https://github.com/openshift/runbooks/blob/master/alerts/cluster-monitoring-operator/"

	downRunbook     = runbooksURL + "ClusterOperatorDown.md"
	degradedRunbook = runbooksURL + "ClusterOperatorDegraded.md"
	historyDocs     = docsURL + "updating/troubleshooting_updates/gathering-data-cluster-update.html#gathering-clusterversion-history-cli_troubleshooting_updates"
	nodeDocs        = docsURL + "post_installation_configuration/machine-configuration-tasks.html#understanding-the-machine-config-operator"
	pausedDocs      = docsURL + "support/troubleshooting/troubleshooting-operator-issues.html#troubleshooting-disabling-autoreboot-mco_troubleshooting-operator-issues"

	unknown = "unknown"
)

// insightInput is the time that insights use.
type insightInput struct{ now, started time.Time }

// known is a time in UTC, nil for one that is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// ofVersion are the insights from the conditions of the ClusterVersion.
func (in insightInput) ofVersion(cv *configv1.ClusterVersion) []Insight {
	i := Insight{Level: levelWarning, Impact: impactUpdateStalled, Scope: scopeControlPlane, Reference: degradedRunbook, Resources: []Resource{versionResource(cv)}}
	failing := openshift.FindCondition(cv.Status.Conditions, "Failing")
	switch {
	case failing == nil:
		i.Since = &in.now
		i.Summary = fmt.Sprintf("Cluster Version %s has no Failing condition", cv.Name)
		i.Description = "Current status of Cluster Version reconciliation is unclear.  See 'oc -n openshift-cluster-version logs -l k8s-app=cluster-version-operator --tail -1' to debug."
	case failing.Status == configv1.ConditionFalse:
		return nil
	default:
		verb := "is"
		if failing.Status == configv1.ConditionUnknown {
			verb = "may be"
		}
		i.Since = known(failing.LastTransitionTime.Time)
		i.Summary = fmt.Sprintf("Cluster Version %s %s failing to proceed with the update (%s)", cv.Name, verb, failing.Reason)
		i.Description = failing.Message
	}
	return []Insight{i}
}

// How long an operator may be in trouble before that is shown, and before that is
// an error.
const (
	operatorPatience    = 5 * time.Minute
	unavailablePatience = 20 * time.Minute
	degradedPatience    = 40 * time.Minute
)

// ofOperator are the insights from the conditions of a ClusterOperator.
func (in insightInput) ofOperator(co *configv1.ClusterOperator) []Insight {
	var insights []Insight
	add := func(t configv1.ClusterStatusConditionType, bad configv1.ConditionStatus, what string, patience time.Duration, runbook string) {
		c := openshift.FindCondition(co.Status.Conditions, t)
		if c == nil || c.Status != bad {
			return
		}
		lasted := in.now.Sub(c.LastTransitionTime.Time)
		if lasted <= operatorPatience {
			return
		}
		level := levelWarning
		if lasted > patience {
			level = levelError
		}
		insights = append(insights, Insight{
			Since: known(c.LastTransitionTime.Time), Level: level, Impact: impactAPIAvailability, Scope: scopeControlPlane,
			Summary:     fmt.Sprintf("Cluster Operator %s is %s (%s)", co.Name, what, c.Reason),
			Description: cmp.Or(c.Message, "<no message>"),
			Reference:   runbook, Resources: []Resource{operatorResource(co.Name)},
		})
	}
	add(configv1.OperatorAvailable, configv1.ConditionFalse, "unavailable", unavailablePatience, downRunbook)
	add(configv1.OperatorDegraded, configv1.ConditionTrue, "degraded", degradedPatience, degradedRunbook)
	return insights
}

// ofHistory is the insight that the update before did not end.
func (in insightInput) ofHistory(cv *configv1.ClusterVersion) []Insight {
	history := cv.Status.History
	if len(history) < 2 || history[1].State != configv1.PartialUpdate {
		return nil
	}
	last := unknown
	if i := slices.IndexFunc(history[2:], completed); i >= 0 {
		last = history[2+i].Version
	}
	return []Insight{{
		Since: known(in.started), Level: levelWarning, Impact: impactNone, Scope: scopeControlPlane,
		Summary:     fmt.Sprintf("Previous update to %s never completed, last complete update was %s", history[1].Version, last),
		Description: fmt.Sprintf("Current update to %s was initiated while the previous update to version %s was still in progress", history[0].Version, history[1].Version),
		Reference:   historyDocs, Resources: []Resource{versionResource(cv)},
	}}
}

// ofNode are the insights about a node of a pool.
func (in insightInput) ofNode(n *Node, reasons []nodeReason, node *corev1.Node, pool string) []Insight {
	i := Insight{Scope: poolScope(pool), Reference: nodeDocs, Resources: []Resource{nodeResource(n.Name)}}
	var insights []Insight
	if n.Unavailable && !n.updating() && slices.ContainsFunc(reasons, in.isSerious) {
		u := i
		u.Level, u.Impact = levelWarning, impactUpdateSpeed
		u.Summary = joinReasons(reasons, func(r nodeReason) string { return r.summary })
		u.Description = joinReasons(reasons, func(r nodeReason) string { return r.description })
		if n.Degraded {
			u.Description = node.Annotations[daemonReason]
		}
		u.Since = n.Since
		insights = append(insights, u)
	}
	if n.Degraded {
		i.Level, i.Impact = levelError, impactUpdateStalled
		i.Summary = fmt.Sprintf("Node %s is degraded", n.Name)
		i.Description = node.Annotations[daemonReason]
		insights = append(insights, i)
	}
	return insights
}

// isSerious reports that a node has been unavailable for longer than a restart
// explains.
func (in insightInput) isSerious(r nodeReason) bool {
	return r.patience >= 0 && (r.since.IsZero() || in.now.Sub(r.since) >= r.patience)
}

func poolScope(pool string) string {
	if pool == masterPool {
		return scopeControlPlane
	}
	return scopeWorkerPool
}

// ofPool is the insight that a pool is paused.
func (in insightInput) ofPool(p *Pool) []Insight {
	if p.Excluded == 0 || !p.Paused {
		return nil
	}
	return []Insight{{
		Level: levelWarning, Impact: impactUpdateStalled, Scope: scopeWorkerPool,
		Summary:     fmt.Sprintf("Outdated nodes in a paused pool '%s' will not be updated", p.Name),
		Description: "Pool is paused, which stops all changes to the nodes in the pool, including updates. The nodes will not be updated until the pool is unpaused by the administrator.",
		Reference:   pausedDocs, Resources: []Resource{poolResource(p.Name)},
	}}
}

// ofAlert is the insight that an alert began to fire in the update, or fires and
// is known to slow updates.
func (in insightInput) ofAlert(a *openshift.Alert) []Insight {
	i := Insight{Since: known(a.ActiveAt), Impact: impactUnknown, Scope: scopeCluster, Reference: a.Runbook()}
	switch severity := a.Labels["severity"]; {
	case !a.Counts():
		return nil
	case severity == "warning":
		i.Level = levelWarning
	case severity == "critical":
		i.Level = levelCritical
	default:
		return nil
	}
	budget := a.Name() == openshift.BudgetLimit || a.Name() == openshift.BudgetAtLimit
	during := a.ActiveAt.After(in.started)
	switch {
	case budget && during:
		i.Description = "Alert known to affect updates started firing during the update."
	case budget:
		i.Description = "Alert known to affect updates has been firing since before the update started."
	case during:
		i.Description = "Alert started firing during the update."
	default:
		return nil
	}
	i.Description += " " + a.Description()
	i.Summary = "Alert is firing: " + a.Summary()
	i.Resources = []Resource{{Group: configv1.GroupName, Kind: kindAlert, Namespace: a.Labels["namespace"], Name: a.Name()}}
	return []Insight{i}
}

// sortInsights drops those that say too little, and puts first what matters most
// and is newest.
func sortInsights(insights []Insight) []Insight {
	kept := slices.DeleteFunc(insights, func(i Insight) bool { return i.Summary == "" || i.Description == "" || i.Reference == "" })
	slices.SortStableFunc(kept, func(a, b Insight) int {
		if c := slices.Index(levelOrder, a.Level) - slices.Index(levelOrder, b.Level); c != 0 {
			return c
		}
		switch {
		case a.Since != nil && b.Since != nil:
			return b.Since.Compare(*a.Since)
		case a.Since != nil:
			return -1
		case b.Since != nil:
			return 1
		}
		return 0
	})
	return kept
}

// writeHealth writes the section about what an administrator should know.
func writeHealth(out *text.Writer, s *Status, o StatusText) {
	out.Print("\n= Update Health =\n")
	insights, detailed := s.Health, o.Details.shows(detailsHealth)
	if len(insights) == 0 {
		var since *time.Time
		if s.Started != nil {
			since = known(s.Now.Add(-s.UpdatingFor.Duration))
		}
		insights, detailed = []Insight{{Since: since, Level: levelInfo, Impact: impactNone, Summary: "Update is proceeding well"}}, false
	}
	if detailed {
		for i := range insights {
			if i > 0 {
				out.Print("\n")
			}
			writeInsight(out, &insights[i], s.Now)
		}
		return
	}
	t := text.NewTable(out, 0, 3)
	t.Row("SINCE", "LEVEL", "IMPACT", "MESSAGE")
	for _, i := range insights {
		t.Row(sinceText(i.Since, s.Now), i.Level, i.Impact, i.Summary)
	}
	t.Flush()
	if len(insights) > 1 || insights[0].Level != levelInfo {
		out.Print("\nRun with --details=health for additional description and links to related online documentation\n")
	}
}

func writeInsight(out *text.Writer, i *Insight, now time.Time) {
	fmt.Fprintf(out, "Message: %s\n  Since:       %s\n  Level:       %s\n  Impact:      %s\n  Reference:   %s\n  Resources:\n",
		i.Summary, sinceText(i.Since, now), i.Level, i.Impact, i.Reference)
	byKind := map[string][]string{}
	width := 0
	for _, r := range i.Resources {
		kind := r.kind()
		byKind[kind] = append(byKind[kind], r.path())
		width = max(width, len(kind))
	}
	kinds := make([]string, 0, len(byKind))
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		slices.Sort(byKind[kind])
		fmt.Fprintf(out, "    %-"+strconv.Itoa(width+1)+"s %s\n", kind+":", strings.Join(byKind[kind], ", "))
	}
	// Lines after the first start with what the command line tool has there.
	fmt.Fprintf(out, "  Description: %s\n", strings.ReplaceAll(i.Description, "\n", "\n               , "))
}

// kind names the kind of an object as the API's URLs do.
func (r Resource) kind() string {
	kind := strings.ToLower(r.Kind) + "s"
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind
}

// sinceText describes how long ago a time was, in whole seconds. One that is later
// than now, as a recording may have, was now.
func sinceText(since *time.Time, now time.Time) string {
	if since == nil {
		return "-"
	}
	return text.Short(max(now.Sub(*since), 0))
}
