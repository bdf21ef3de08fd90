package runlevel

import (
	"cmp"
	"context"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// API is what [Run] asks of a cluster; [clusterapi.ClusterAPI] has it. It is safe
// for concurrent use.
type API interface {
	clusterapi.Reader
	clusterapi.Writer
}

// Applier makes one manifest true in a cluster and reports whether it is. [Run]
// uses one that works on [Options.API]; another may log, compare or rehearse
// instead (see [Options.Wrap]).
//
// A [*TaskError] ends the task, every other error is tried again. An Applier is
// called by several goroutines at once, and must return when ctx ends. With
// [Precreating] it gets ClusterOperators only, and its error is ignored.
//
// A panic, also in [Options.API] and [Options.Logger], ends the task with a
// [*TaskError] in which errors.As finds the [clusterapi.PanicError] with the
// stack; runtime.Goexit counts as one.
type Applier func(ctx context.Context, t *manifest.Task, state State) error

// Options are the options of [Run].
type Options struct {
	// API is the cluster. It is required unless Wrap is set.
	API API
	// State is what the pass is for; empty means Updating. Precreating is an
	// error.
	State State
	// Mode is how an object that exists is brought in line with its manifest; the
	// default, its zero value, is [ApplyServerSide]. An unknown one is an error.
	Mode Mode
	// Adopt names the field managers whose updates [ApplyServerSide] takes over:
	// before it applies an object in whose metadata.managedFields it finds them, it
	// moves their fields to its own manager, so that what the manifest does not name
	// goes. nil means cluster-version-operator and what ApplyMerge writes as; empty
	// means none. What they own of subresources stays theirs.
	Adopt []string
	// Attempt is the number of this pass since the last success or change of
	// the work, from 0. The pass with number 0 starts the clocks of
	// ClusterOperators again.
	Attempt int
	// Workers is how many nodes run at once in Updating; 0 means 16. The
	// other states have their own number: one per node in Initializing, 2 in
	// Reconciling. 1 means one at a time in every state, for runs that must
	// repeat exactly.
	Workers int
	// Filter holds gates, capabilities and overrides of the cluster. Manifests
	// that it excludes are skipped. The zero value still skips manifests
	// without annotations.
	Filter manifest.Filter
	// Owner is the ClusterVersion that owns what is applied (only name and
	// UID are used); nil adds no owner.
	Owner *metav1.OwnerReference
	// Clock is used for waits and the times of events; nil means the real
	// one.
	Clock clock.WithTicker
	// Tracker keeps what passes remember; nil means a new one, for a single
	// pass.
	Tracker *Tracker
	// Stay makes a task that has failed as often as a pass tries stall its node,
	// instead of failing it. The node continues when the ClusterOperator that it
	// awaits has changed, or by [Pass.Resume]. [Run] does not look at it.
	Stay bool
	// Stepped is called after each look at a node and returns what else to look at;
	// settled reports whether no node is at work. nil: nothing. [Run] does not
	// look at it.
	Stepped func(settled bool) []reconcile.Wake
	// Backoff describes how often a task is tried, in every state; nil means the
	// cluster-version operator's: attempts at 0, 1, 3 and 7 seconds while
	// Initializing, at 0 and 10 seconds otherwise.
	Backoff *Backoff
	// ApplyAlways makes a pass in state Reconciling apply every object, as the
	// cluster-version operator does. By default it makes no call for one that is as
	// it was applied, where watches show that ([Tracker.Watch]); once an hour it
	// applies everything anyway. What has drifted is then not reported.
	ApplyAlways bool
	// AwaitJobs makes the task of a Job (batch/v1) wait until the Job has
	// completed, except while Initializing. By default, as in the
	// cluster-version operator, a Job that runs is good enough.
	AwaitJobs bool
	// SkipChecks takes what was written as done: nothing looks at workloads, Jobs,
	// definitions and ClusterOperators afterwards, and so nothing waits. It is
	// for rehearsals, which have nobody who would make them ready.
	SkipChecks bool
	// Wrap gets the Applier of the pass, nil without an API, and returns the one that
	// it calls, which may look at each manifest, and at its error, or keep that to
	// itself, or take the place of the cluster. nil means the Applier as it is.
	Wrap func(Applier) Applier
	// Observe gets the events of the pass, in order and never two at a time, all of
	// them before Run returns. The worker whose event it is waits for it to return;
	// others continue, and it gets their events afterwards from the same worker. It
	// must not wait for the pass. nil means no events.
	//
	// A panic of it stops no task, but fails the pass with a [*TaskError];
	// runtime.Goexit also ends the node of the worker.
	Observe func(clusterapi.Event)
	// Logger gets what does not interest users; nil means no log.
	Logger *slog.Logger
}

// Result is the outcome of a pass.
type Result struct {
	// Done counts the tasks that succeeded, Skipped those that do not apply
	// to this cluster, Total all.
	Done, Skipped, Total int
	// Errors are the errors of the graph in the order of its nodes: one for each
	// failed node: a [*TaskError], or an error that reports that the context ended.
	// If there is none and tasks have not run, one reports how many nodes are
	// incomplete, and is followed by the context's error.
	Errors []error
	// Failure is what to report as the trouble of the pass: Errors put
	// together. It is nil for a good pass, and for one that
	// merely ended with its context.
	Failure error
	// Report puts together what is worth telling though it did not block
	// (see [EffectReport]), even when the pass is good; nil when there is
	// nothing.
	Report error
}

// Run makes one pass over the tasks: each manifest applied once, in the order
// that the state demands, and checked.
//
// An error of one component does not stop those that do not depend on it. The
// returned error is nil for a good pass, else Result.Failure, or, when the
// context merely ended, the first of Result.Errors, which errors.Is finds to
// be the context's. The result is never nil unless the options are at fault.
//
// When ctx ends, nothing new is started, calls to the API that are under way
// get the ended context, and Run returns as soon as they do; no goroutine
// outlives it. The next pass continues from whatever is in the cluster.
func Run(ctx context.Context, tasks []*manifest.Task, o Options) (*Result, error) {
	driven, cancel := context.WithCancel(ctx)
	defer cancel()
	var p *Pass
	o.Stay = false
	o.Stepped = func(bool) []reconcile.Wake {
		if p.Finished() {
			cancel()
		}
		return nil
	}
	p, err := NewPass(tasks, o)
	if err != nil {
		return nil, err
	}
	p.Keys()
	if !p.Finished() {
		process := reconcile.Process{Name: passName, New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { return []reconcile.Reconciler{p} }}
		if err := reconcile.Run(driven, reconcile.Options{Clock: p.clock, Logger: p.log, Resync: reconcile.Never}, process); err != nil {
			return nil, err
		}
		p.Stop(cmp.Or(ended(ctx), context.Canceled))
	}
	return p.Result()
}
