// Package controllers runs processes of package reconcile in a Manager of
// controller-runtime, alongside its own controllers.
//
//	mgr, err := manager.New(config, manager.Options{
//		LeaderElection: true, LeaderElectionID: "updates", LeaderElectionNamespace: "my-operator",
//	})
//	...
//	err = controllers.Add(mgr, controllers.Options{}, updater.Process(), rollout.Process())
//	...
//	err = mgr.Start(ctx)
//
// # What is the Manager's
//
// Cache: objects that are watched without a selection come from the informers
// of the Manager's cache, which other controllers share. Watches that select,
// by namespace, labels or node, and those of [Options].Direct go to the server
// themselves: an informer would watch the kind in the whole cluster, which may
// not be allowed, and would keep what a Trim leaves out. Reads and writes go to
// the server; a cache would show objects older than one's own writes.
//
// Work queue: each reconciler has a controller named "process-reconciler",
// with the queue, the workers, the metrics (controller_runtime_reconcile_total
// and others, workqueue_depth) and the log lines that controllers have. What is
// due, and when, stays with package reconcile: times, back-off and jobs are as
// everywhere, and a failed look counts as a terminal error, since the queue
// does not try it again.
//
// Leader election: processes run in the leader alone, unless [Options].EveryReplica
// is set. Process.New is called when it is elected. A program must exit when
// Manager.Start returns, and its Deployment starts it again. A leader that stood
// still for longer than its lease ends the call that was under way when it
// continues, and starts none: see [Options].MaxPause. Writes that matter are
// conditional on what was read.
//
// Health: each process has a readiness check, which fails while a kind that it
// watches cannot be, and a liveness check, which fails when it has ended.
//
// Events: [Record] makes Kubernetes Events of the events of this module's
// packages, where the host wants them.
package controllers
