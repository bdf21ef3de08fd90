package mcp

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// NodeState is all that decisions need of a node, taken from its annotations,
// conditions and spec. It is comparable: states that are equal (==) lead to the
// same decisions. Its methods are the predicates by which the
// machine-config controller judges nodes; those about a pool take its [Goal].
type NodeState struct {
	Name string

	Zone    string
	HasZone bool  // the zone label is there, perhaps empty
	Created int64 // creation, microseconds since 1970

	Annotated                        bool // has any annotation
	CurrentConfig, DesiredConfig     string
	CurrentImage, DesiredImage       string
	HasCurrentImage, HasDesiredImage bool // the annotation is there, perhaps empty
	State, Reason                    string
	DesiredDrain, LastAppliedDrain   string
	PostConfigAction                 string
	Topology                         string
	FirstPivotConfig                 string
	PoolLabelsApplied                bool

	// Problem is the first condition that makes the node unready, as in
	// "NotReady=Unknown"; empty if none does.
	Problem       string
	ReadyStatus   corev1.ConditionStatus // of condition Ready; empty if absent
	Unschedulable bool
	Deleting      bool
	Windows       bool
	UpdateTaint   bool   // has the taint UpdateInProgress
	Taints        string // all of the node's, to see that they changed
}

// NodeStateOf reads the state of a node.
func NodeStateOf(n *corev1.Node) NodeState {
	a := n.Annotations
	s := NodeState{
		Name:             n.Name,
		Created:          n.CreationTimestamp.UnixMicro(),
		Annotated:        len(a) > 0,
		CurrentConfig:    a[AnnotationCurrentConfig],
		DesiredConfig:    a[AnnotationDesiredConfig],
		State:            a[AnnotationState],
		Reason:           a[AnnotationReason],
		DesiredDrain:     a[AnnotationDesiredDrain],
		LastAppliedDrain: a[AnnotationLastAppliedDrain],
		PostConfigAction: a[AnnotationPostConfigAction],
		Topology:         a[AnnotationControlPlaneTopology],
		FirstPivotConfig: a[AnnotationFirstPivotConfig],
		Unschedulable:    n.Spec.Unschedulable,
		Deleting:         n.DeletionTimestamp != nil,
		Windows:          n.Labels[LabelOS] == "windows",
	}
	s.Zone, s.HasZone = n.Labels[LabelZone]
	s.CurrentImage, s.HasCurrentImage = a[AnnotationCurrentImage]
	s.DesiredImage, s.HasDesiredImage = a[AnnotationDesiredImage]
	_, s.PoolLabelsApplied = a[AnnotationCustomPoolLabelsApplied]
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && s.ReadyStatus == "" {
			s.ReadyStatus = c.Status
		}
		if s.Problem == "" {
			s.Problem = problem(c)
		}
	}
	var taints strings.Builder
	for _, t := range n.Spec.Taints {
		if t.Key == TaintUpdateInProgress && t.Effect == corev1.TaintEffectPreferNoSchedule {
			s.UpdateTaint = true
		}
		fmt.Fprintf(&taints, "%s=%s:%s,", t.Key, t.Value, t.Effect)
	}
	s.Taints = taints.String()
	return s
}

func problem(c corev1.NodeCondition) string {
	switch {
	case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
		return fmt.Sprintf("NotReady=%v", c.Status)
	case c.Type == corev1.NodeDiskPressure && c.Status != corev1.ConditionFalse:
		return fmt.Sprintf("OutOfDisk=%v", c.Status) // the name that users know
	case c.Type == corev1.NodeNetworkUnavailable && c.Status != corev1.ConditionFalse:
		return fmt.Sprintf("NetworkUnavailable=%v", c.Status)
	}
	return ""
}

// Managed reports that a machine-config daemon has run on the node.
func (n NodeState) Managed() bool { return !n.Windows && n.CurrentConfig != "" }

// ConfigDone reports that the desired config is on disk.
func (n NodeState) ConfigDone() bool {
	return n.CurrentConfig != "" && n.CurrentConfig == n.DesiredConfig
}

// ImageDone reports that the desired OS image is booted, or that there is none.
func (n NodeState) ImageDone() bool {
	if !n.HasCurrentImage && !n.HasDesiredImage {
		return true
	}
	return n.CurrentImage != "" && n.CurrentImage == n.DesiredImage
}

// Done reports that the daemon has reached what is desired.
func (n NodeState) Done() bool {
	return n.Annotated && n.ConfigDone() && n.ImageDone() && n.State == StateDone
}

// Ready reports that nothing that the node reports speaks against it: a condition
// that is absent does not make it unready, and memory or PID pressure, taints and
// deletion do not matter.
func (n NodeState) Ready() bool { return n.Problem == "" && !n.Unschedulable }

// NotReadyText is why the node is not Ready, in the controller's words; empty
// if it is.
func (n NodeState) NotReadyText() string {
	switch {
	case n.Problem != "":
		return fmt.Sprintf("node %s is reporting %s", n.Name, n.Problem)
	case n.Unschedulable:
		return fmt.Sprintf("node %s is reporting Unschedulable", n.Name)
	}
	return ""
}

// Degraded reports that the daemon's last step failed.
func (n NodeState) Degraded() bool { return n.State == StateDegraded }

// Unreconcilable reports that the daemon cannot apply its desired config.
func (n NodeState) Unreconcilable() bool { return n.State == StateUnreconcilable }

// MCDFailing reports that the daemon failed on its way to another config.
func (n NodeState) MCDFailing() bool {
	return n.CurrentConfig != n.DesiredConfig && (n.Degraded() || n.Unreconcilable())
}

// Unavailable reports that the node takes a unit of maxUnavailable. A node that
// fails on its way to another config does not, while it is Ready: it may be given a
// new target.
func (n NodeState) Unavailable() bool {
	return !n.Ready() || (!n.Done() && !n.MCDFailing())
}

// TargetsPool reports that the node's target is the pool's config.
func (n NodeState) TargetsPool(g Goal) bool { return n.DesiredConfig == g.Config }

// TargetsBuild reports that the node's target is the pool's image.
func (n NodeState) TargetsBuild(g Goal) bool {
	return g.Image != "" && n.DesiredImage == g.Image && g.HasBuild && n.DesiredConfig == g.BuildConfig
}

// Updated reports that the node has what its pool wants.
func (n NodeState) Updated(g Goal) bool {
	if !n.Done() || !n.TargetsPool(g) {
		return false
	}
	if g.Layered {
		return n.TargetsBuild(g)
	}
	return !n.HasDesiredImage
}

// Candidate reports that the node has yet to get its pool's target; one that is
// being deleted never is. Whether it may get it now is another question: see
// [State.Explain].
func (n NodeState) Candidate(g Goal) bool { return !n.Deleting && n.lacksTarget(g) }

// lacksTarget is Candidate as the controller has it: deletion does not matter.
func (n NodeState) lacksTarget(g Goal) bool {
	if g.Layered {
		return !n.TargetsBuild(g)
	}
	return !n.TargetsPool(g) || n.HasDesiredImage
}

// WantsTaint reports that the node should have the taint UpdateInProgress.
func (n NodeState) WantsTaint(g Goal) bool {
	if g.Layered {
		return !n.TargetsBuild(g)
	}
	return !n.TargetsPool(g) || (n.HasCurrentImage && n.HasDesiredImage)
}

// holds reports that the node, a Ready candidate, may go down by itself because its
// daemon keeps retrying its old target.
func (n NodeState) holds() bool {
	if n.Unavailable() {
		return false
	}
	if n.Degraded() {
		return true
	}
	// The state outlives the failure. If the reason does not speak of the
	// config now desired, the daemon is at work on that one. It is at work on
	// nothing if none is desired.
	return n.Unreconcilable() && n.DesiredConfig != "" && !names(n.Reason, n.DesiredConfig)
}

// names reports that text contains name as a whole word.
func names(text, name string) bool {
	if name == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(name)
		rest := text[end:]
		inner := strings.HasPrefix(rest, ".") && len(rest) > 1 && nameByte(rest[1])
		if (start == 0 || !nameByte(text[start-1])) && (rest == "" || !nameByte(rest[0])) && !inner {
			return true
		}
		at = start + 1
	}
}

func nameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

// CompareNodes orders nodes as their pool updates them: those with a zone first, by
// zone; then the oldest first; then by name.
func CompareNodes(a, b NodeState) int {
	if a.HasZone != b.HasZone {
		if a.HasZone {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
}

func byOrder(a, b *nodeRecord) int { return CompareNodes(a.state, b.state) }

func byName(a, b *nodeRecord) int { return cmp.Compare(a.state.Name, b.state.Name) }
