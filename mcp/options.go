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
	// of 4.18 and older does not have. It is also written if the stored
	// status has it.
	PoolSynchronizers bool
}

// Order refines the order in which nodes are updated.
type Order struct {
	// Last names nodes that go after all others, such as the etcd leader or
	// the node that runs the program itself. They are never skipped.
	Last []string
	// Budgets orders the nodes of the zone that comes first by what disruption
	// budgets make of their drains: those with no blocked pod first, then those
	// with the fewest waves, then as otherwise. The nodes that may be targeted, and
	// how many, stay the same. It returns the cluster's pods and budgets as they are
	// now, and is called for each decision. Nil: budgets do not matter.
	//
	// It costs a prediction for each of the first BudgetWindow nodes of that zone;
	// 0 means 50.
	Budgets      func() DrainView
	BudgetWindow int
}

func (o Options) holdFailing() bool {
	if o.HoldFailing != nil {
		return *o.HoldFailing
	}
	return !o.Compat
}
