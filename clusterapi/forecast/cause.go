package forecast

import (
	"strings"
	"time"
)

// Cause is why an update does not proceed.
type Cause struct {
	// Time is when it was first seen.
	Time time.Time `json:"time"`
	// Chain leads to it, outermost first: the cluster operator and the condition, or
	// the pool, the node, the pod and the budget.
	Chain []string `json:"chain"`
	// Text is what the last one of the chain reports, in the words of the status views.
	Text string `json:"text"`
	// Assumed reports whether the cause rests on something that was made up.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns the chain and the text in one line.
func (c Cause) String() string { return strings.Join(c.Chain, " > ") + ": " + c.Text }
