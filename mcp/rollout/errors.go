package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// ErrControllerActive: a machine-config controller runs in this cluster, so
// a [Rollout] must not drive it.
var ErrControllerActive = errors.New("a machine-config controller is active in this cluster: use mode ReadOnly, or stop it first")

// TargetError reports that a node could not be given its desired config.
type TargetError struct {
	Node   string
	Config string
	Err    error
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("setting desired %s for node %s: %v", e.Config, e.Node, e.Err)
}

func (e *TargetError) Unwrap() error { return e.Err }

// The kinds of a [DrainError].
const (
	drainBudget   = "Budget"   // a PodDisruptionBudget refuses the eviction
	drainEviction = "Eviction" // the eviction failed for another reason
	drainTimeout  = "Timeout"  // the pod did not go within one attempt
	drainPods     = "Pods"     // the pods could not be listed or judged
	drainCordon   = "Cordon"   // the node could not be (un)cordoned
)

// DrainError is why one pod, or where Pod is empty the node as a whole, keeps a
// drain from its end. The drain continues: it is retried until it succeeds.
type DrainError struct {
	Node   string
	Pod    string // namespace/name
	Budget string // name of the PodDisruptionBudget, if the answer named it
	Kind   string // Budget, Eviction, Timeout, Pods or Cordon
	Err    error
}

func (e *DrainError) Error() string { return e.Err.Error() }

func (e *DrainError) Unwrap() error { return e.Err }

// StalledError reports that nothing has moved in a node's pool for so long that
// somebody should look.
type StalledError struct {
	Node  string
	Phase mcp.Phase
	Since time.Time // of the last change of a phase in the pool
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("node %s is in phase %s and nothing has changed in its pool since %s",
		e.Node, e.Phase, e.Since.UTC().Format(time.RFC3339))
}
