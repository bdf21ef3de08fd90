package action

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/annotation"
)

// Action is what is done to a node. It keeps nothing in memory: what it has to
// know after a crash is in the progress that it returns, and the rest it sees by
// looking at what it drives. It must be safe for concurrent use if several
// nodes are acted on at a time.
type Action interface {
	// Name is a short word for records, such as "rhel".
	Name() string
	// Step does one thing that is due and returns. n is the node as it was just
	// read, and progress what the last Step returned, "" at first. It is called
	// again after a crash, so what it does must be safe to do twice. An error is
	// tried again for 30 minutes; one that is [hosts.Permanent] fails the plan's step at
	// once.
	Step(ctx context.Context, n *corev1.Node, progress string) (Step, error)
}

// Checker is optional: an [Action] that has it is asked whether a node needs the
// action before anything is done to it. Errors are those of Step. It must be as
// safe for concurrent use as the Action.
type Checker interface {
	Needed(ctx context.Context, n *corev1.Node) (bool, error)
}

// Step is how far an [Action] is with a node.
type Step struct {
	// Done: nothing is left to do.
	Done bool
	// Progress is recorded on the node before the next Step; at most
	// 4 KiB. An empty one is recorded too.
	Progress string
	// After is how long to wait before the next Step.
	After time.Duration
	// Waiting describes what the node waits for, for people: "its host to return".
	Waiting string
	// Person: it waits for somebody to do something, so it may take any time. Else
	// waiting for an hour without progress fails the plan's step.
	Person bool
}

// maxProgress is the most bytes of [Step].Progress.
const maxProgress = 4 << 10

// Confirmed reports whether a person has confirmed that an action has been done
// to a node: see [hosts.Confirm].
func Confirmed(n *corev1.Node, action string) bool {
	return n.Annotations[annotation.Confirmed+action] != ""
}

// Started reports whether a node is Ready and has been started since it had the
// boot ID before, or else what is waited for. Where before is empty, as for nodes
// that report none, Ready is enough.
func Started(n *corev1.Node, before string) (started bool, waiting string) {
	if before != "" && n.Status.NodeInfo.BootID == before {
		return false, "the node to start anew"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return true, ""
		}
	}
	return false, "the node to become Ready"
}
