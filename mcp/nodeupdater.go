package mcp

import (
	"context"
	"time"
)

// NodeUpdater brings nodes to their targets: it does what a machine-config
// daemon on a node would do. The node's annotations stay the truth: it writes
// them.
//
// Step takes one action for a node that has the target t and is in phase p, and returns:
// the phase that the node is in then, and after how long to step it again; zero: when the
// node has changed. It is called for a node that is not done, one step at a time, also
// after a restart, when p comes from the annotations. It may take its time, and must
// return when ctx ends; it waits by returning, or with the function Sleep of package
// reconcile. After an error, also a panic, it is called again after the rollout's
// Delays.RetryMax.
//
// It must be safe for concurrent use: several nodes are stepped at a time.
type NodeUpdater interface {
	Step(ctx context.Context, node string, t Target, p Phase) (next Phase, after time.Duration, err error)
}
