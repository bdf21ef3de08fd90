package runlevel

import "github.com/clusterupdate/clusterupdate/manifest"

// State is what a pass is for. It decides the order of tasks, the number of
// workers, the back-off and what is checked after an object was applied.
type State string

// The states of a pass, and of one manifest within it.
const (
	// Initializing installs: no order between components, many attempts, and
	// almost no checks, since everything comes up at once.
	Initializing State = "Initializing"
	// Updating moves a cluster to another release: strict order of run
	// levels, each awaited. The empty State means this one, the most careful.
	Updating State = "Updating"
	// Reconciling keeps a cluster as its release says: no order between
	// components, few workers, nothing is deleted.
	Reconciling State = "Reconciling"
	// Precreating is for single manifests, not for passes: an [Applier] gets it
	// when a node starts, for ClusterOperators that are only to be created.
	Precreating State = "Precreating"
)

const (
	updatingWorkers    = 16
	reconcilingWorkers = 2
)

// graphFor returns the graph of a pass: the tasks cut at Jobs, which are
// barriers in every state, then made parallel as the state allows.
//
// Updating runs buckets of components strictly one after another
// ([manifest.UpdateGraph]). Initializing and Reconciling run all
// components side by side; Reconciling orders them by attempt, reproducibly.
// A negative attempt counts as 0.
func graphFor(state State, tasks []*manifest.Task, attempt int) *manifest.Graph {
	switch state {
	case Initializing:
		return manifest.FlatGraph(tasks)
	case Reconciling:
		return manifest.AttemptGraph(tasks, attempt)
	}
	return manifest.UpdateGraph(tasks)
}

// workers returns how many nodes run at once.
func workers(state State, configured, nodes int) int {
	if configured == 1 {
		return 1
	}
	switch state {
	case Initializing:
		return max(nodes, 1)
	case Reconciling:
		return reconcilingWorkers
	}
	if configured == 0 {
		return updatingWorkers
	}
	return configured
}
