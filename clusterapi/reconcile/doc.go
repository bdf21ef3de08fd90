// Package reconcile drives reconcilers, which make one kind of thing true and say
// when to look at it again.
//
// All that happens in time (an update, a drain, the behaviour of a simulated
// kubelet) is a [Reconciler]. It has keys, each the name of one thing. Reconcile
// looks at what is, does what is due for one key, and returns; it never waits. Its
// [Result] says when to look again: at a time, with other keys, when objects change,
// or when a [Job] (a download, a hook) reports or ends.
//
// A reconciler has no goroutine, timer or clock: the time is Request.Now, and calls
// in parallel go through [Each]. What must survive a restart is in the cluster;
// what it keeps in memory is a cache, and a new instance that starts without it
// comes to the same end. A [Watch] fills caches, such as [Objects]. A cache lags
// behind the cluster and behind the writes of the reconciler itself, so a write is
// conditional on the resourceVersion that was decided from.
//
// Waits and retries that a subject knows are results. An error is for what it
// does not know: the host tries again after 10 ms, then 20 ms and so on up to
// 30 s; a conflict at once, up to 5 times in a row; and if the server asked to
// be left alone, not before that time, or 2 minutes.
//
// A [Process] is a set of reconcilers that live and crash together, and may
// share state and wake one another. The same processes run on three hosts, and a
// result, an error, a job, a watch and a wake mean the same on all of them:
//
//   - [Run] drives them until its context ends. Each reconciler has its
//     own dispatcher, so that none waits for another; what waits is keys, not
//     events, so that nothing grows with the number of changes.
//   - [Syncer] is for programs with a loop of their own: Sync lists what is
//     watched, does all that is due now, and says when something is due next.
//   - [Virtual] plays them in virtual time, in one goroutine: the same seed gives
//     the same run. [Faults] strike the processes: failed calls, stale reads, late
//     events, outages, crashes.
//
// Run and Syncer give every call of the API a deadline ([Options].CallTimeout),
// in jobs too. A kind that the cluster does not serve counts as listed and
// empty, and is looked for again every minute. A panic, or a runtime.Goexit, in
// anything that a reconciler or an embedder supplied is an error.
// A [clusterapi.Event] reports failures that last: at first, after 10 seconds, after
// 100 seconds, and so on.
//
// The nested module clusterapi/kubernetes/runtimeclient, package controllers, hosts
// processes in a controller-runtime Manager.
package reconcile
