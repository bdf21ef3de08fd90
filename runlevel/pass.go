package runlevel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Pass is one pass over the tasks of a release, driven from outside: it has no
// goroutine and never waits. [Run] drives one to its end; a program with a loop
// of its own steps it:
//
//	pass, err := runlevel.NewPass(tasks, options)
//	for _, node := range pass.Start() {
//		... call Step(ctx, node) now
//	}
//
// Each [Step] says when to step the node again, and which nodes became ready.
// It is safe for concurrent use, with different nodes.
type Pass struct {
	state   State
	attempt int
	stay    bool
	filter  manifest.Filter
	backoff Backoff
	clock   clock.WithTicker
	tracker *Tracker
	applier Applier
	log     *slog.Logger
	total   int
	limit   int // nodes at work at a time
	graph   *manifest.Graph

	scheduling sync.Mutex // guards what follows
	schedule   *schedule
	nodes      map[int]*nodeRun // those handed out that have not ended
	stalled    int              // of them
	stopped    error            // why the pass was called off
	over       bool             // PassDone was told

	mu            sync.Mutex // guards what follows
	events        stream
	done, skipped int
	failed        int // attempts
	reports       []*TaskError
	levels        map[string]*levelCount // only with an observer
}

// Step is what a step of a node came to.
type Step struct {
	// At is when to step the node again; zero: it has ended or is stalled.
	At time.Time
	// Ready are nodes to step now, for the first time.
	Ready []int
	// Stalled says that the node's task has failed as often as a pass tries
	// (only with [Options].Stay). Step it again when Awaits may have changed,
	// or at the time of the next pass.
	Stalled bool
	// Awaits is the object on which the node waits, with At or Stalled; the
	// zero Identity: none.
	Awaits manifest.Identity
	// Settled says that no node is at work: all have ended or are stalled.
	// [Pass.Result] says what is wrong then.
	Settled bool
	// Done says that the pass has ended.
	Done bool
}

// NewPass returns a pass that has not begun. Its errors are faults of the
// options.
func NewPass(tasks []*manifest.Task, o Options) (*Pass, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	p := &Pass{
		state: o.State, attempt: max(o.Attempt, 0), stay: o.Stay, filter: o.Filter,
		clock: o.Clock, tracker: o.Tracker, applier: o.Applier,
		events: stream{observe: o.Observe}, log: o.Logger, total: len(tasks),
		nodes: make(map[int]*nodeRun),
	}
	switch p.state {
	case "":
		p.state = Updating
	case Initializing, Updating, Reconciling:
	default:
		return nil, fmt.Errorf("runlevel: there is no pass of state %q", o.State)
	}
	if err := o.Mode.Validate(); err != nil {
		return nil, err
	}
	p.backoff = backoffFor(p.state)
	if o.Backoff != nil {
		if err := options.NonNegative(*o.Backoff, "Steps"); err != nil {
			return nil, err
		}
		p.backoff = *o.Backoff
	}
	if p.backoff.Steps < 1 {
		return nil, errNoSteps
	}
	for i, t := range tasks {
		if t == nil || t.Manifest == nil || t.Manifest.Raw == nil {
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
		p.tracker.keepOnly(tasks)
		included := func(m *manifest.Manifest) bool { return p.filter.Judge(m).Included }
		a := &applier{
			api: o.API, mode: o.Mode, managers: o.Adopt, owner: o.Owner, tracker: p.tracker, log: p.log,
			awaitJobs: o.AwaitJobs, skipChecks: o.SkipChecks, tell: p.tell,
			reports: p.state == Reconciling && !o.ApplyAlways && p.tracker.isWatching(),
			created: createdOnly(tasks, included), definitions: definitionsOf(tasks, included),
			doubles: doublesOf(tasks, included), deletes: deletionsOf(tasks, included),
		}
		if a.managers == nil {
			a.managers = defaultAdopt
		}
		a.trusts = a.reports && p.tracker.trusting()
		p.applier = a
	}
	if o.Wrap != nil {
		p.applier = o.Wrap(p.applier)
		if p.applier == nil {
			return nil, errors.New("runlevel: Wrap has returned no Applier")
		}
	}
	p.graph = graphFor(p.state, tasks, p.attempt)
	p.schedule = newSchedule(p.graph)
	p.limit = workers(p.state, o.Workers, len(p.graph.Nodes))
	return p, nil
}

// Start begins the pass and returns the nodes to step first.
func (p *Pass) Start() []int {
	if p.attempt == 0 {
		p.tracker.reset()
	}
	p.emit(EventPassStarted, nil)
	p.scheduling.Lock()
	defer p.scheduling.Unlock()
	return p.handOut()
}

// Finished reports whether no node is left to step: the pass has ended, or was
// called off.
func (p *Pass) Finished() bool {
	p.scheduling.Lock()
	defer p.scheduling.Unlock()
	return p.stopped != nil || p.schedule.Finished()
}

// handOut makes nodes that are ready begin, as far as there is room.
func (p *Pass) handOut() []int {
	var ready []int
	for p.schedule.Running()-p.stalled < p.limit {
		node, ok := p.schedule.Next()
		if !ok {
			break
		}
		tasks := p.graph.Nodes[node].Tasks
		if len(tasks) == 0 {
			p.schedule.Done(node)
			continue
		}
		p.nodes[node] = &nodeRun{Pass: p, index: node, tasks: tasks}
		ready = append(ready, node)
	}
	return ready
}

// Step works on a node until it ends or has to wait. A node that waits goes on
// with the task at which it waited. When ctx ends, the node does; a node that
// has ended already is left alone.
func (p *Pass) Step(ctx context.Context, node int) Step {
	p.scheduling.Lock()
	n := p.nodes[node]
	if n == nil || p.stopped != nil {
		defer p.scheduling.Unlock()
		return p.settle(Step{})
	}
	if n.stalled != nil {
		n.stalled = nil
		p.stalled--
	}
	p.scheduling.Unlock()

	wait, ended, err := n.step(ctx)

	p.scheduling.Lock()
	defer p.scheduling.Unlock()
	out := Step{}
	switch {
	case !ended:
		out.At, out.Awaits = p.clock.Now().Add(wait), n.awaits()
	case err == nil:
		delete(p.nodes, node)
		p.schedule.Done(node)
	case p.stay && ctx.Err() == nil:
		n.stalled = err
		p.stalled++
		out.Stalled, out.Awaits = true, n.awaits()
	default:
		delete(p.nodes, node)
		p.schedule.Fail(node, err)
	}
	if ctx.Err() == nil {
		out.Ready = p.handOut()
	}
	return p.settle(out)
}

// settle says of a step whether others are at work.
func (p *Pass) settle(s Step) Step {
	s.Done = p.schedule.Finished()
	s.Settled = s.Done || len(s.Ready) == 0 && p.schedule.Running() == p.stalled
	return s
}

// Stalled returns the nodes that are stalled, in order.
func (p *Pass) Stalled() []int {
	p.scheduling.Lock()
	defer p.scheduling.Unlock()
	var out []int
	for i, n := range p.nodes {
		if n.stalled != nil {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// Stop calls the pass off, unless it has ended: ctx, which has ended, says why.
// No Step may be under way. What waits is incomplete then.
func (p *Pass) Stop(ctx context.Context) {
	p.scheduling.Lock()
	defer p.scheduling.Unlock()
	if p.stopped != nil || p.schedule.Finished() {
		return
	}
	p.stopped = ended(ctx)
	if p.stopped == nil {
		p.stopped = context.Canceled
	}
	waiting := make([]int, 0, len(p.nodes))
	for i := range p.nodes {
		waiting = append(waiting, i)
	}
	slices.Sort(waiting)
	for _, i := range waiting {
		if n := p.nodes[i]; n.started {
			delete(p.nodes, i)
			p.schedule.Fail(i, n.stop(ctx))
		}
	}
	p.stalled = 0
}

// Result is the outcome of a pass that has ended or was called off, and what
// [Run] returns, with its errors. Of a pass that stays it is how things are now.
func (p *Pass) Result() (*Result, error) {
	p.scheduling.Lock()
	errs := p.errors()
	told := p.over
	p.over = told || p.stopped != nil || p.schedule.Finished()
	tell := p.over && !told
	p.scheduling.Unlock()
	res, failures, err := p.result(errs)
	if tell {
		p.emit(EventPassDone, err)
	}
	if _, now := p.observerError(); now > failures {
		res, _, err = p.result(errs)
	}
	return res, err
}

// errors are those of the graph; a stalled node has failed, for now.
func (p *Pass) errors() []error {
	if p.stalled == 0 {
		return p.schedule.Result(p.stopped)
	}
	var errs []error
	for i := range p.graph.Nodes {
		if n := p.nodes[i]; n != nil && n.stalled != nil {
			errs = append(errs, n.stalled)
		}
	}
	return errs
}

// result makes the outcome of a pass from the errors of its graph and of its
// observer. failures is how often the latter has failed.
func (p *Pass) result(errs []error) (res *Result, failures int, err error) {
	te, failures := p.observerError()
	if te != nil {
		errs = append(slices.Clip(errs), te)
	}
	p.mu.Lock()
	res = &Result{Done: p.done, Skipped: p.skipped, Total: p.total, Errors: errs}
	p.mu.Unlock()
	res.Failure, res.Report = summarize(errs), p.report()
	err = res.Failure
	if err == nil && len(errs) > 0 {
		err = errs[0]
		// "N incomplete …, beginning with …" comes with the context's error
		if _, ok := errors.AsType[*incompleteError](err); ok && len(errs) > 1 {
			err = errors.Join(errs...)
		}
	}
	return res, failures, err
}

// report sums up what did not block, in the order of tasks.
func (p *Pass) report() error {
	p.mu.Lock()
	reports := slices.Clone(p.reports)
	p.mu.Unlock()
	slices.SortStableFunc(reports, func(a, b *TaskError) int { return a.Task.Index - b.Task.Index })
	errs := make([]error, 0, len(reports))
	for _, te := range reports {
		errs = append(errs, te)
	}
	return summarize(errs)
}

// attemptFailed counts an attempt at a task that failed.
func (p *Pass) attemptFailed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
}

// doneSoFar returns how many tasks are done.
func (p *Pass) doneSoFar() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}
