// Package payload makes a simulated release of a real one: a cluster that
// simulation.New builds from it has its operators, workloads and objects, and
// behaves as if it ran that release.
//
//	p, err := manifest.Load(ctx, os.DirFS("release"), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
//	cluster, err := simulation.New(simulation.Options{Release: payload.Release(p)})
//
// Which workloads belong to which ClusterOperator is told by the names of the
// payload's files: those of the same component.
package payload
