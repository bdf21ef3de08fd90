package runlevel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// API is what [Run] asks of a cluster; [clusterapi.ClusterAPI] has it.
type API interface {
	clusterapi.Reader
	clusterapi.Writer
}

// Applier makes one manifest true in a cluster and says whether that has come
// about. [Run] uses one that works on [Options.API]; another one may log,
// compare or rehearse instead.
//
// A [*TaskError] ends the task, every other error is tried again. Apply is
// called by several goroutines at once, and must return when ctx ends. With
// [Precreating] it gets ClusterOperators only, and its error is ignored.
//
// A panic, also in [Options.API] and [Options.Logger], ends the task with a
// [*TaskError] in which errors.As finds the [clusterapi.PanicError] with the
// stack; runtime.Goexit counts as one.
type Applier interface {
	Apply(ctx context.Context, t *manifest.Task, state State) error
}

// ApplierFunc is a function as an [Applier].
type ApplierFunc func(ctx context.Context, t *manifest.Task, state State) error

// Apply calls f.
func (f ApplierFunc) Apply(ctx context.Context, t *manifest.Task, state State) error {
	return f(ctx, t, state)
}

// Options are the options of [Run].
type Options struct {
	// API is the cluster. It is required unless Applier is set.
	API API
	// Applier takes the place of the cluster; nil means one for API.
	Applier Applier
	// State is what the pass is for; empty means Updating. Precreating is an
	// error.
	State State
	// Attempt is the number of this pass since the last success or change of
	// the work, from 0. The pass with number 0 starts the clocks of
	// ClusterOperators anew.
	Attempt int
	// Workers is how many nodes run at once in Updating; 0 means 16. The
	// other states have their own number: one per node in Initializing, 2 in
	// Reconciling. 1 (or less than 0) means one at a time in every state, for
	// runs that must repeat exactly.
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
	// Backoff says how often a task is tried, in every state; nil means
	// [BackoffFor] the state.
	Backoff *Backoff
	// AwaitJobs makes the task of a Job (batch/v1) wait until the Job has
	// completed, except while Initializing. By default, as in the
	// cluster-version operator, a Job that runs is good enough.
	AwaitJobs bool
	// Observe gets the events of the pass, in order and never two at a time,
	// all of them before Run returns. The worker whose event it is waits for
	// it to return; others go on, and it gets their events afterwards from the
	// same worker. It must not wait for the pass. nil means nobody looks.
	//
	// A panic of it stops no task, but fails the pass with a [*TaskError];
	// runtime.Goexit ends the node of the worker besides.
	Observe func(Event)
	// Logger gets what is of no interest to users; nil means nobody.
	Logger *slog.Logger
}

// Result is the outcome of a pass.
type Result struct {
	// Done counts the tasks that succeeded, Skipped those that do not apply
	// to this cluster, Total all.
	Done, Skipped, Total int
	// Errors are the errors of the graph in the order of its nodes: one for
	// each failed node (a [*TaskError] or a [*ContextError]); see
	// [Schedule.Result].
	Errors []error
	// Failure is what to report as the trouble of the pass: Errors put
	// together by [Summarize]. It is nil for a good pass, and for one that
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
	p, err := newPass(tasks, o)
	if err != nil {
		return nil, err
	}
	if p.attempt == 0 {
		p.tracker.Reset()
	}
	g := GraphFor(p.state, tasks, p.attempt)
	p.emit(Event{Type: PassStarted, Node: -1})
	errs := p.run(ctx, g, workers(p.state, o.Workers, len(g.Nodes)))

	res, failures, err := p.result(errs)
	p.emit(Event{Type: PassDone, Node: -1, Err: err})
	if _, now := p.observerError(); now > failures {
		res, _, err = p.result(errs)
	}
	return res, err
}

// result makes the outcome of a pass from the errors of its graph and of its
// observer. failures is how often the latter has failed.
func (p *pass) result(errs []error) (res *Result, failures int, err error) {
	te, failures := p.observerError()
	if te != nil {
		errs = append(slices.Clip(errs), te)
	}
	res = &Result{
		Done: p.done, Skipped: p.skipped, Total: p.total,
		Errors: errs, Failure: Summarize(errs), Report: p.report(),
	}
	err = res.Failure
	if err == nil && len(errs) > 0 {
		err = errs[0]
		// "N incomplete …, beginning with …" comes with the context's error
		if _, ok := errors.AsType[*IncompleteError](err); ok && len(errs) > 1 {
			err = errors.Join(errs...)
		}
	}
	return res, failures, err
}

// pass is a run in progress.
type pass struct {
	state   State
	attempt int
	filter  manifest.Filter
	backoff Backoff
	clock   clock.WithTicker
	tracker *Tracker
	applier Applier
	log     *slog.Logger
	total   int

	mu            sync.Mutex // guards what follows
	events        stream
	done, skipped int
	reports       []*TaskError
	levels        map[string]*levelCount // only with an observer
}

func newPass(tasks []*manifest.Task, o Options) (*pass, error) {
	p := &pass{
		state: o.State, attempt: max(o.Attempt, 0), filter: o.Filter,
		clock: o.Clock, tracker: o.Tracker, applier: o.Applier,
		events: stream{observe: o.Observe}, log: o.Logger, total: len(tasks),
	}
	switch p.state {
	case "":
		p.state = Updating
	case Initializing, Updating, Reconciling:
	default:
		return nil, fmt.Errorf("runlevel: there is no pass of state %q", o.State)
	}
	p.backoff = BackoffFor(p.state)
	if o.Backoff != nil {
		p.backoff = *o.Backoff
	}
	if p.backoff.Steps < 1 {
		return nil, errNoSteps
	}
	for i, t := range tasks {
		if t == nil || t.Manifest == nil || t.Manifest.Object == nil {
			return nil, fmt.Errorf("runlevel: task %d of %d has no manifest", i+1, len(tasks))
		}
	}
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	if p.tracker == nil {
		p.tracker = NewTracker(p.clock)
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if o.Observe != nil {
		p.levels = make(map[string]*levelCount)
		for _, t := range tasks {
			p.level(t).total++
		}
	}
	if p.applier == nil {
		if o.API == nil {
			return nil, errors.New("runlevel: neither an API nor an Applier to work on")
		}
		p.applier = &applier{
			api: o.API, owner: o.Owner, tracker: p.tracker, clock: p.clock, log: p.log,
			awaitJobs: o.AwaitJobs, tell: p.tell,
			doubles: doublesOf(tasks, func(m *manifest.Manifest) bool { return p.filter.Judge(m).Included }),
		}
	}
	return p, nil
}

// run drives the schedule of g by goroutines, at most workers at a time.
func (p *pass) run(ctx context.Context, g *manifest.Graph, workers int) []error {
	type outcome struct {
		node int
		err  error
	}
	s := NewSchedule(g)
	nodes, finished := make(chan int), make(chan outcome)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(nodes)

	var work func()
	work = func() {
		n := nodeRun{pass: p, index: -1}
		defer func() {
			if n.index < 0 {
				return
			}
			// runtime.Goexit took this goroutine: another one replaces it
			wg.Go(work)
			finished <- outcome{n.index, n.broken(&panics.Error{})}
		}()
		for i := range nodes {
			n.index, n.tasks = i, g.Nodes[i].Tasks
			err := n.run(ctx)
			n.index = -1
			finished <- outcome{i, err}
		}
	}

	started := 0
	for {
		for s.Running() < workers && ctx.Err() == nil {
			node, ok := s.Next()
			if !ok {
				break
			}
			if len(g.Nodes[node].Tasks) == 0 {
				s.Done(node)
				continue
			}
			if started < s.Running() { // all others are busy
				started++
				wg.Go(work)
			}
			nodes <- node
		}
		if s.Running() == 0 {
			return s.Result(ended(ctx))
		}
		if o := <-finished; o.err != nil {
			s.Fail(o.node, o.err)
		} else {
			s.Done(o.node)
		}
	}
}

// report sums up what did not block, in the order of tasks.
func (p *pass) report() error {
	slices.SortStableFunc(p.reports, func(a, b *TaskError) int { return a.Task.Index - b.Task.Index })
	errs := make([]error, 0, len(p.reports))
	for _, te := range p.reports {
		errs = append(errs, te)
	}
	return Summarize(errs)
}

// doneSoFar returns how many tasks are done.
func (p *pass) doneSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}
