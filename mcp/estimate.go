package mcp

import (
	"cmp"
	"time"
)

// Span is a duration that is not known exactly. The zero value is the default of the
// place where it stands.
type Span struct{ Min, Expected, Max time.Duration }

// Exactly is a duration that is known.
func Exactly(d time.Duration) Span { return Span{d, d, d} }

func (s Span) add(o Span) Span {
	return Span{s.Min + o.Min, s.Expected + o.Expected, s.Max + o.Max}
}

// less takes what is over from a span; nothing is left at least.
func (s Span) less(d time.Duration) Span {
	return Span{max(s.Min-d, 0), max(s.Expected-d, 0), max(s.Max-d, 0)}
}

// or is the span, or what is to be used for a zero one.
func (s Span) or(o Span) Span {
	if s == (Span{}) {
		return o
	}
	return s
}

// EstimateInput is what an estimate is made from. It is plain data, and only what
// differs from the usual needs to be given.
type EstimateInput struct {
	// ClusterVersion is how long the cluster-version operator works before the
	// pools are given their new configs; zero: 60 minutes, up to 120.
	// ClusterVersionDone says that it is over.
	ClusterVersion     Span
	ClusterVersionDone bool
	// Node is how long one node takes in all, where that is known, as from earlier
	// updates of the same cluster. Zero: [EstimateDocumented] takes 5 minutes, and
	// [EstimateUpdate] adds up Steps.
	Node Span
	// Steps are how long the parts of a node's update take; see [StepTimes].
	Steps StepTimes
	// Pools are updated in parallel, the pool arbiter after master.
	Pools []EstimatePool
}

// EstimatePool is a pool in an estimate.
type EstimatePool struct {
	Name string
	// MaxUnavailable is how many nodes may be unavailable, as [MaxUnavailable]
	// returns it; less than 1 means 1.
	MaxUnavailable int
	// Nodes are those that are not done, in the order in which they are updated;
	// those on their way first. Size is how many nodes are meant where more than
	// are listed: the others come last and take their usual time. It is the way to
	// ask about a pool of which only its size is known.
	Nodes []EstimateNode
	Size  int
	// Stuck are nodes that hold a unit of MaxUnavailable and are not on their way:
	// cordoned, failing, not ready; and, without a node, what keeps the whole pool from
	// being updated. Each is a [Blocker].
	Stuck []Blocker
	// Paused pools are left out, and named.
	Paused bool
	// SameContent says that nodes are only moved to a config of equal content, as
	// between a custom pool and worker: 20 s each. Others are drained and rebooted.
	SameContent bool
}

// EstimateNode is a node in an estimate.
type EstimateNode struct {
	Name string
	// Time is how long this node takes in all; zero: what EstimateInput says.
	Time Span
	// Phase is how far it has come and In how long it has been in that phase. Empty
	// and [PhaseDone]: it waits for its turn.
	Phase Phase
	In    time.Duration
	// Drain is what its drain is predicted to do; nil: not predicted.
	Drain *Drain
}

// Estimate says how long an update takes, from now on.
type Estimate struct {
	// Min and Expected are when it is over, provided that what blocks it is done
	// away with as soon as it is met.
	Min, Expected time.Duration
	// Max is when it is over at the latest; nil: nobody can tell, since of Unbounded.
	Max *time.Duration
	// Unbounded are what the update would wait for without end.
	Unbounded []Blocker
	// PerPool are the pools in the order given, paused ones too.
	PerPool []PoolEstimate
	// Critical is the chain of steps that decides Expected, each beginning when the
	// one before it ends.
	Critical []CriticalStep
	// Assumptions say what was taken for granted, and Warnings what the estimate
	// does not account for.
	Assumptions, Warnings []string
}

// Blocker is what an update would wait for without end.
type Blocker struct {
	Pool, Node string
	Text       string
}

// PoolEstimate is how long one pool takes.
type PoolEstimate struct {
	Pool   string
	Paused bool // it is not updated, and has no times
	// Slots are how many nodes are updated at a time.
	Slots int
	// Begin and End are counted from now. End.Max means nothing if Unbounded.
	Begin, End Span
	Unbounded  bool
	// Nodes are when each node is updated, in the order of updates.
	Nodes []NodeTimes
}

// NodeTimes are when a node is updated, counted from now.
type NodeTimes struct {
	Node        string
	Start, Done Span
}

// CriticalStep is one step of the chain that decides how long an update takes.
type CriticalStep struct {
	Pool, Node  string // both empty: the cluster-version operator
	Start, Done time.Duration
}

// What the documentation says of durations: see "Understanding cluster update
// duration" in https://docs.openshift.com/.
var (
	documentedClusterVersion = Span{60 * time.Minute, 60 * time.Minute, 120 * time.Minute}
	documentedNode           = 5 * time.Minute
)

// EstimateDocumented is the estimate of the OpenShift documentation: the time of the
// cluster-version operator, and the time of a node as often as the pool that needs
// most turns is updated. Control plane and compute nodes are updated in parallel.
// It takes the expected times, and knows of no drains and nodes that differ; paused
// pools do not count.
func EstimateDocumented(in EstimateInput) time.Duration {
	turns := 0
	for _, p := range in.Pools {
		if p.Paused {
			continue
		}
		slots := max(p.MaxUnavailable, 1)
		turns = max(turns, (p.size()+slots-1)/slots)
	}
	total := time.Duration(turns) * cmp.Or(in.Node.Expected, documentedNode)
	if !in.ClusterVersionDone {
		total += in.ClusterVersion.or(documentedClusterVersion).Expected
	}
	return total
}

func (p *EstimatePool) size() int { return max(p.Size, len(p.Nodes)) }
