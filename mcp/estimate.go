package mcp

import (
	"cmp"
	"time"
)

// EstimateInput is what [EstimateDocumented] is made from.
type EstimateInput struct {
	// ClusterVersion is how long the cluster-version operator works before the pools are
	// given their new configs; zero means 60 minutes, and ClusterVersionDone that it is
	// over.
	ClusterVersion     time.Duration
	ClusterVersionDone bool
	// Node is how long a node takes; zero means 5 minutes.
	Node time.Duration
	// Pools are those that are updated, in parallel.
	Pools []EstimatePool
}

// EstimatePool is a pool in an estimate: how many of its nodes are not done, and how many
// may be unavailable at a time, as [MaxUnavailable] returns it; less than 1 means 1.
type EstimatePool struct {
	Nodes, MaxUnavailable int
}

// EstimateDocumented is the estimate of the OpenShift documentation: the time of the
// cluster-version operator, and the time of a node as often as the pool that needs
// most turns is updated. Control plane and compute nodes are updated in parallel.
// It knows of no drains, and of no nodes that differ: a rehearsal does.
func EstimateDocumented(in EstimateInput) time.Duration {
	turns := 0
	for _, p := range in.Pools {
		slots := max(p.MaxUnavailable, 1)
		turns = max(turns, (p.Nodes+slots-1)/slots)
	}
	total := time.Duration(turns) * cmp.Or(in.Node, 5*time.Minute)
	if !in.ClusterVersionDone {
		total += cmp.Or(in.ClusterVersion, time.Hour)
	}
	return total
}
