package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// The phases of a node.
const (
	phaseDraining  = "Draining"
	phaseUpdating  = "Updating"
	phaseRebooting = "Rebooting"
	phasePaused    = "Paused"
	phasePending   = "Pending"
	phaseUpdated   = "Updated"
)

// Node is how far the update of a node is. It is plain data.
type Node struct {
	Name string `json:"name"`
	// Assessment is Degraded, Unavailable, Progressing, Excluded, Outdated or
	// Completed.
	Assessment string `json:"assessment"`
	// Phase is Draining, Updating, Rebooting, Paused, Pending or Updated.
	Phase string `json:"phase"`
	// Version is what the node runs, empty if that is unknown.
	Version string `json:"version,omitempty"`
	// Estimate is a rough idea of the time to go: "-" for none, "?" for unknown.
	Estimate string `json:"estimate"`
	// Message describes what is wrong.
	Message string `json:"message,omitempty"`

	Updated     bool `json:"updated"`
	Unavailable bool `json:"unavailable"`
	Degraded    bool `json:"degraded"`
	// Since is when a node that is not available began not to be, nil if that is
	// unknown.
	Since *time.Time `json:"since,omitempty"`
}

// updating reports that the node is being updated. One whose daemon is done with
// that, and has not yet said which config it runs, is in the phase Updated.
func (n *Node) updating() bool {
	return !n.Updated && n.Phase != phasePaused && n.Phase != phasePending
}

// isUnknown reports that the version of the node is not known since MachineConfigs could
// not be read.
func (n *Node) isUnknown(o *Objects) bool {
	return n.Version == "" && o.missing(kindConfig) != ""
}

// nodeReason is why a node is not available.
type nodeReason struct {
	short, summary, description string
	since                       time.Time     // zero if it is unknown
	patience                    time.Duration // serious when it has lasted so long; negative: never
}

// unhealthy are the conditions of a node that make it unavailable.
var unhealthy = []struct {
	condition corev1.NodeConditionType
	good      corev1.ConditionStatus
	reason    string
	summary   string // of a node
	patience  time.Duration
}{
	{corev1.NodeReady, corev1.ConditionTrue, "Not ready", "Node %s is not ready", 5 * time.Minute},
	{corev1.NodeDiskPressure, corev1.ConditionFalse, "Disk pressure", "Node %s has disk pressure", time.Minute},
	{corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "Network unavailable", "Node %s has unavailable network", time.Minute},
}

const (
	mcoPrefix       = "machineconfiguration.openshift.io/"
	currentConfig   = mcoPrefix + "currentConfig"
	desiredConfig   = mcoPrefix + "desiredConfig"
	currentImage    = mcoPrefix + "currentImage"
	desiredImage    = mcoPrefix + "desiredImage"
	desiredDrain    = mcoPrefix + "desiredDrain"
	appliedDrain    = mcoPrefix + "lastAppliedDrain"
	daemonState     = mcoPrefix + "state"
	daemonReason    = mcoPrefix + "reason"
	releaseVersion  = mcoPrefix + "release-image-version"
	layeringEnabled = mcoPrefix + "layering-enabled"
	newestImage     = mcoPrefix + "newestImageEquivalentConfig"
)

// rollout is what nodes are compared with.
type rollout struct {
	versions  map[string]string // of MachineConfigs by name
	target    string
	multiArch bool // a migration to multi-architecture is in progress
}

func newRollout(o *Objects) rollout {
	r := rollout{versions: make(map[string]string, len(o.MachineConfigs))}
	for _, mc := range o.MachineConfigs {
		if mc == nil {
			continue
		}
		if _, ok := r.versions[mc.Name]; !ok {
			r.versions[mc.Name] = mc.Annotations[releaseVersion]
		}
	}
	if history := o.ClusterVersion.Status.History; len(history) > 0 {
		r.target = history[0].Version
		progressing := openshift.FindCondition(o.ClusterVersion.Status.Conditions, configv1.OperatorProgressing)
		r.multiArch = isMultiArch(history) && progressing != nil && progressing.Status == configv1.ConditionTrue
	}
	return r
}

// assessNode describes how far a node of a pool is, and why it is not available if
// it is not.
func (r *rollout) assessNode(node *corev1.Node, pool *mcfgv1.MachineConfigPool) (Node, []nodeReason) {
	a := node.Annotations
	current, desired, state := a[currentConfig], a[desiredConfig], a[daemonState]
	wanted := pool.Spec.Configuration.Name
	n := Node{Name: node.Name, Version: r.versions[current]}

	n.Updated = n.Version != "" && n.Version == r.target
	if _, asked := a[desiredConfig]; n.Updated && r.multiArch && asked {
		n.Updated = current == desired && desired == wanted
	}
	target := r.versions[desired]
	updating := !n.Updated && n.Version != "" && target != "" && target == r.target && current != desired && desired == wanted
	n.Degraded = desired != "" && isDegradedState(state)
	reasons := unavailability(node)
	n.Unavailable = len(reasons) > 0 && fitsImage(a, pool)
	if n.Unavailable {
		n.Since = earliest(reasons)
	}

	switch {
	case updating && isDraining(a):
		n.Phase, n.Assessment, n.Estimate = phaseDraining, assessmentProgressing, "+10m"
	case updating && state == "Rebooting":
		n.Phase, n.Assessment, n.Estimate = phaseRebooting, assessmentProgressing, "+5m"
	case updating && state != "Done":
		n.Phase, n.Assessment, n.Estimate = phaseUpdating, assessmentProgressing, "+5m"
	case updating || n.Updated:
		n.Phase, n.Assessment, n.Estimate = phaseUpdated, assessmentCompleted, "-"
	case pool.Spec.Paused:
		n.Phase, n.Assessment, n.Estimate = phasePaused, assessmentExcluded, "-"
	default:
		n.Phase, n.Assessment, n.Estimate = phasePending, assessmentOutdated, "?"
	}
	troubled := func(as string, message string) {
		n.Assessment, n.Message, n.Estimate = as, message, "?"
		if n.Updated {
			n.Estimate = "-"
		}
	}
	if n.Unavailable && !updating {
		troubled(assessmentUnavailable, joinReasons(reasons, func(r nodeReason) string { return r.short }))
	}
	if n.Degraded {
		troubled(assessmentDegraded, a[daemonReason])
	}
	return n, reasons
}

func isDegradedState(state string) bool { return state == "Degraded" || state == "Unreconcilable" }

// isDraining reports that a node which is being updated is drained, or will be as
// soon as its daemon has seen that.
func isDraining(a map[string]string) bool {
	desired, applied := a[desiredDrain], a[appliedDrain]
	if desired == "" || applied == "" {
		return false
	}
	verb, _, _ := strings.Cut(desired, "-")
	return desired != applied && verb == "drain" || a[daemonState] == "Done"
}

// unavailability lists why a node is not available, nothing if it is.
func unavailability(node *corev1.Node) []nodeReason {
	var reasons []nodeReason
	for _, c := range node.Status.Conditions {
		for _, u := range unhealthy {
			if c.Type != u.condition || c.Status == u.good {
				continue
			}
			reasons = append(reasons, nodeReason{
				short:       u.reason,
				summary:     fmt.Sprintf(u.summary, node.Name),
				description: fmt.Sprintf("Node has a %s!=%s condition with Reason %q and message %q", u.condition, u.good, u.reason, c.Message),
				since:       c.LastTransitionTime.Time,
				patience:    u.patience,
			})
		}
	}
	patient := func(text string) nodeReason {
		return nodeReason{short: text, summary: text, description: text, patience: -1}
	}
	if node.Spec.Unschedulable {
		reasons = append(reasons, patient("Node is marked unschedulable"))
	}
	if len(reasons) == 0 && !isDone(node.Annotations) && !isDegradedState(node.Annotations[daemonState]) {
		reasons = append(reasons, patient("Machine Config Daemon is processing the node"))
	}
	return reasons
}

// isDone reports that a node's daemon has nothing to do.
func isDone(a map[string]string) bool {
	current, hasCurrent := a[currentImage]
	desired, hasDesired := a[desiredImage]
	sameImage := !hasCurrent && !hasDesired || current != "" && current == desired
	return a[currentConfig] != "" && a[currentConfig] == a[desiredConfig] && sameImage && a[daemonState] == "Done"
}

// fitsImage reports that a node has been asked for the image of its pool.
func fitsImage(a map[string]string, pool *mcfgv1.MachineConfigPool) bool {
	wanted := ""
	if _, layered := pool.Labels[layeringEnabled]; layered {
		wanted = pool.Annotations[newestImage]
	}
	return a[desiredImage] == wanted
}

// earliest is when a node's first problem began, as far as that is known.
func earliest(reasons []nodeReason) *time.Time {
	var first time.Time
	for _, r := range reasons {
		if !r.since.IsZero() && (first.IsZero() || r.since.Before(first)) {
			first = r.since
		}
	}
	return known(first)
}

// joinReasons joins what is wrong with a node.
func joinReasons(reasons []nodeReason, text func(nodeReason) string) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = text(r)
	}
	return strings.Join(texts, " | ")
}

// The order in which nodes are shown.
var (
	assessmentOrder = []string{assessmentDegraded, assessmentUnavailable, assessmentProgressing, assessmentExcluded, assessmentOutdated, assessmentCompleted}
	phaseOrder      = []string{phaseDraining, phaseUpdating, phaseRebooting, phasePaused, phasePending, phaseUpdated}
)

// sortNodes puts those in front that need attention.
func sortNodes(nodes []Node) {
	slices.SortStableFunc(nodes, func(a, b Node) int {
		return cmp.Or(
			cmp.Compare(slices.Index(assessmentOrder, a.Assessment), slices.Index(assessmentOrder, b.Assessment)),
			cmp.Compare(slices.Index(phaseOrder, a.Phase), slices.Index(phaseOrder, b.Phase)),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// maxNodes is how many nodes of a pool are shown for certain, and minName the
// length of a name that messages have shortened, in bytes.
const (
	maxNodes = 10
	minName  = 8
)

// writeNodes writes the nodes of a pool.
func writeNodes(out *text.Writer, p *Pool, o StatusText) {
	if p.Total == 0 {
		return
	}
	if p.Name == masterPool {
		if p.complete() {
			fmt.Fprintf(out, "\nAll control plane nodes successfully updated to %s\n", p.Nodes[0].Version)
			return
		}
		out.Print("\nControl Plane Nodes\n")
	} else {
		fmt.Fprintf(out, "\nWorker Pool Nodes: %s\n", p.Name)
	}
	var skipped omitted
	t := text.NewTable(out, 0, 3)
	t.Row("NAME", "ASSESSMENT", "PHASE", "VERSION", "EST", "MESSAGE")
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if i >= maxNodes && !o.Details.shows(detailsNodes) && !n.Degraded && (!n.Unavailable || n.updating()) {
			skipped.count(n)
			continue
		}
		message := n.Message
		if len(n.Name) >= minName {
			message = strings.ReplaceAll(message, n.Name, "<node>")
		}
		t.Row(n.Name, n.Assessment, n.Phase, cmp.Or(n.Version, "?"), n.Estimate, message)
	}
	t.Flush()
	if s := skipped; s.total > 0 {
		fmt.Fprintf(out, "...\nOmitted additional %d Total, %d Completed, %d Available, %d Progressing, %d Outdated, %d Draining, %d Excluded, and 0 Degraded nodes.\n"+
			"Pass along --details=nodes to see all information.\n",
			s.total, s.completed, s.available, s.progressing, s.total-s.completed, s.draining, s.excluded)
	}
}

// omitted counts the nodes that a table leaves out.
type omitted struct{ total, completed, available, progressing, draining, excluded int }

func (s *omitted) count(n *Node) {
	add := func(count *int, is bool) {
		if is {
			*count++
		}
	}
	s.total++
	add(&s.completed, n.Updated)
	add(&s.available, !n.Unavailable)
	add(&s.progressing, n.Assessment == assessmentProgressing)
	add(&s.draining, n.Phase == phaseDraining)
	add(&s.excluded, n.Phase == phasePaused)
}
