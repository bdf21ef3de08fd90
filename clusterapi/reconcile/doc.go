// Package reconcile drives reconcilers: what makes one kind of thing true, and
// says when to look at it again.
//
// # Reconcilers
//
// All that happens in time (an update, a drain, the behaviour of a simulated
// kubelet) is a [Reconciler]. It has keys, each the name of one thing. Reconcile
// looks at what is, does what is due for one key, and returns; it never waits. Its
// [Result] explains why to look again:
//
//   - At: at a time;
//   - Wake: other keys, now or after a delay;
//   - Watches: when objects change, besides those that the reconciler watches
//     at all times;
//   - Jobs: when work that takes time (a download, a hook) reports or ends.
//
// A reconciler has no goroutine, timer or clock: the time is Request.Now, and calls
// in parallel go through [Each]. What must survive a restart is in the cluster;
// what it keeps in memory is a cache, and a new instance that starts without it
// comes to the same end.
//
// A [Watch] fills caches: [Objects] with the objects of a kind, and Cache takes a
// change into one of your own, that several reconcilers may read. Changed reports
// which keys to look at. Both get how an object was at the call before and how it
// is now, not what happened between. A cache lags behind the cluster and behind
// one's own writes, so a write is made on condition of the resourceVersion that was
// decided from.
//
// Waits and retries that a subject knows are results. An error is for what it
// does not know: the driver tries again after 10 ms, then 20 ms and so on up to
// 30 s; a conflict at once, up to 5 times in a row; and when the server asked to
// be left alone, not before that time, or 2 minutes.
//
// A [Process] is a set of reconcilers that live and crash together, and may
// share state and wake one another.
//
// # Drivers
//
// The same processes run in three ways. What a result, an error, a job, a watch
// and a wake mean is the same in all of them:
//
//   - [Run] drives them until its context ends. Each reconciler has its
//     own dispatcher, so that none waits for another; what waits is keys, not
//     events, so that nothing grows with the number of changes.
//   - [Syncer] is for programs with a loop of their own: Sync lists what is
//     watched, does all that is due now, and says when something is due next.
//   - [Virtual] plays them in virtual time, in one goroutine, with faults if
//     asked: the same seed gives the same run. Its cluster and its [Clock] are
//     made first.
//
// Run and Syncer give every call of the API a deadline ([Options].CallTimeout),
// in jobs too. A kind that the cluster does not serve counts as listed and
// empty, and is looked for again every minute. A panic, or a runtime.Goexit, in
// anything that a reconciler or an embedder supplied is an error like another.
// A [clusterapi.Event] reports failures that last: at first, after 10 seconds, after
// 100 seconds, and so on.
//
// # Virtual time
//
// A [Virtual] driver has a heap of due items: looks at keys, changes on their way
// to a watch, results of jobs. It takes one after another, and time jumps to the
// next. Nothing waits: a job runs at once and counts what it sleeps, and its
// results come that much later; the timers of a [Clock] panic, but for AfterFunc. A
// panic in Observe passes through, so that a rehearsal does not hide it.
//
// Its [Faults] strike the processes, not the cluster: calls that fail before or
// after they took effect, conflicts, stale reads, late, double and merged events,
// outages, crashes at any call, clocks that are set back. Each is drawn from the
// seed and from its own name, so that leaving one out moves no other: a seed
// that fails can be played again with fewer and fewer of them ([Faults].Only).
//
// # Hosting
//
// A program of one's own calls Run in a goroutine, or keeps a Syncer:
//
//	for {
//		after, err := syncer.Sync(ctx)
//		if err != nil {
//			log.Print(err)
//		}
//		if after == 0 || after > interval {
//			after = interval // changes in the cluster are seen by the next Sync
//		}
//		if err := reconcile.Sleep(ctx, after); err != nil {
//			return err
//		}
//	}
//
// In a controller-runtime Manager a process runs with the Manager's cache, work
// queues, leader election, health and metrics: see the nested module
// clusterapi/kubernetes/runtimeclient, package controllers.
package reconcile
