package simulation

import "time"

// WorkKind is a kind of work that takes time.
type WorkKind string

// The kinds of work.
const (
	// WorkOperator is an operator's on a release; For is the release's version.
	WorkOperator WorkKind = "Operator"
	// WorkApply is a node's that writes a configuration; For is its name.
	WorkApply WorkKind = "Apply"
	// WorkReboot is a node's reboot; For is the id of the boot that ends.
	WorkReboot WorkKind = "Reboot"
	// WorkPodStop is a pod's end; Name is namespace/name, For its UID.
	WorkPodStop WorkKind = "PodStop"
)

// Work is a piece of work that takes time.
type Work struct {
	Kind WorkKind
	// Name is the operator, node or pod that does it.
	Name string
	// For distinguishes one piece of work of Name from the next.
	For string
}

// takes is how long a piece of work takes, as drawn or else as Timing has it.
func (c *Cluster) takes(kind WorkKind, name, what string, otherwise time.Duration) time.Duration {
	if c.draw == nil {
		return otherwise
	}
	if d := c.draw(Work{kind, name, what}); d > 0 {
		return d
	}
	return otherwise
}
