package mcp

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Drain is what a drain of a node is predicted to do. It holds for the view as
// given: another drain, a change of a budget or a pod may turn it.
type Drain struct {
	Node string
	// NotRequired reports that the node is updated without a drain, as in clusters
	// with a single control plane node: all of its pods stay.
	NotRequired bool
	// Pods are all pods of the node, by namespace and name.
	Pods []PodDrain
	// Waves are the pods that leave, in the order that budgets permit: those of
	// a wave may go together, and the next ones once what replaces them is
	// Ready. Pods of one wave are by namespace and name. If several drains
	// were predicted together, their waves are the same moments, and one of
	// them may be empty here.
	Waves [][]types.NamespacedName
}

// PodDrain is what a drain is predicted to do with one pod.
type PodDrain struct {
	Pod     types.NamespacedName
	Verdict DrainVerdict
	// Text explains why, in the words of the drain or of the API server if these
	// have any.
	Text string
	// Budgets are the names of the PodDisruptionBudgets that decide, sorted:
	// several for [DrainTwoBudgets], none where budgets do not matter.
	Budgets []string
	// Before is how many pods of the budget go before this one; more than 0 only
	// for [DrainEvictsAfter].
	Before int
	// Kind describes what blocks the pod, and Fix what to do about it; both are
	// empty unless the verdict is [DrainBlocked].
	Kind DrainKind
	Fix  string
	// Unhealthy are the pods of the budget that are not Ready or are
	// terminating, by name; only for [DrainUnhealthy].
	Unhealthy []types.NamespacedName
	// Notes are what else is to be known. They do not stop the drain.
	Notes []DrainNote
}

// DrainVerdict describes what becomes of a pod.
type DrainVerdict string

// The verdicts of a drain on a pod.
const (
	DrainStays       DrainVerdict = "Stays"       // it is not evicted
	DrainEvicts      DrainVerdict = "Evicts"      // it goes at once
	DrainEvictsAfter DrainVerdict = "EvictsAfter" // it goes after others of its budget
	DrainBlocked     DrainVerdict = "Blocked"     // it does not go, so the drain does not end
)

// DrainKind names what blocks a pod, or what to know about it.
type DrainKind string

// The kinds of what blocks a pod, and of notes.
const (
	// DrainNeverAllows: the budget allows no disruption even with all of its pods
	// healthy.
	DrainNeverAllows DrainKind = "NeverAllows"
	// DrainUnhealthy: the budget would allow one if its pods were healthy.
	DrainUnhealthy DrainKind = "Unhealthy"
	// DrainTwoBudgets: more than one budget selects the pod, and the API server
	// refuses to evict it.
	DrainTwoBudgets DrainKind = "TwoBudgets"
	// DrainStale: the budget's status does not say what it allows.
	DrainStale DrainKind = "Stale"
	// DrainDaemonSetUnknown: it is not known whether the DaemonSet of a pod of the
	// node exists, and the drain stops before it evicts anything.
	DrainDaemonSetUnknown DrainKind = "DaemonSetUnknown"
	// DrainTerminating: the pod should have ended more than 90 s ago.
	DrainTerminating DrainKind = "Terminating"

	// DrainNowhereToGo, the first kind of notes: what replaces the pod fits no other node
	// with what replaces the other pods that leave. This is advice only: it does not know
	// affinity between pods, spreading and volumes.
	DrainNowhereToGo DrainKind = "NowhereToGo"
	// DrainSlow: the pod may take longer to end than an attempt to drain lasts.
	DrainSlow DrainKind = "Slow"
	// DrainDataLoss: data in an emptyDir volume is lost.
	DrainDataLoss DrainKind = "DataLoss"
	// DrainNotRecreated: nobody creates the pod again.
	DrainNotRecreated DrainKind = "NotRecreated"
)

// DrainNote is something to know about a pod that a drain evicts.
type DrainNote struct {
	Kind DrainKind
	Text string
	Fix  string
	// Expected is when the pod is gone at the latest, from the beginning of the
	// drain; zero unless Kind is [DrainSlow].
	Expected time.Duration
}

// Succeeds reports whether no pod blocks the drain. It ends then, provided that
// what replaces the evicted pods becomes Ready.
func (d Drain) Succeeds() bool { return len(d.Blocked()) == 0 }

// Blocked returns the pods that block the drain.
func (d Drain) Blocked() []PodDrain {
	var blocked []PodDrain
	for _, p := range d.Pods {
		if p.Verdict == DrainBlocked {
			blocked = append(blocked, p)
		}
	}
	return blocked
}
