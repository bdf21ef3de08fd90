// Package payload makes a simulated release of a real one: a cluster that
// simulation.New builds from it has its operators, workloads and objects, and
// behaves as if it ran that release.
//
//	p, err := manifest.Load(ctx, os.DirFS("release"), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
//	cluster, err := simulation.New(simulation.Options{Release: payload.Release(p)})
//
// A ClusterOperator's workloads are known from the names of the payload's files:
// those with the same component.
package payload
