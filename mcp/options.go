package mcp

// Options steer decisions. The zero value is what to use.
type Options struct {
	// Compat does as the machine-config controller does, its faults included:
	// one invalid selector empties every pool, a cordoned failing node counts
	// twice, a negative maxUnavailable stops a pool without a word, and more.
	// For comparisons only.
	Compat bool
	// HoldFailing makes a degraded node that may start to drain again hold a
	// unit of capacity and go first. Nil: on, and off under Compat.
	HoldFailing *bool
	// Order refines the order of candidates.
	Order Order
	// ImageModeStatusReporting counts updated and degraded machines from
	// MachineConfigNodes, as the feature gate of that name does.
	ImageModeStatusReporting bool
	// PoolSynchronizers writes status.poolSynchronizersStatus, which the API
	// of 4.18 and older does not have. It is also written where the stored
	// status has it.
	PoolSynchronizers bool
}

// Order refines the order in which nodes are updated.
type Order struct {
	// Last names nodes that go after all others, such as the etcd leader or
	// the node that runs the program itself. They are never skipped.
	Last []string
}

func (o Options) holdFailing() bool {
	if o.HoldFailing != nil {
		return *o.HoldFailing
	}
	return !o.Compat
}
