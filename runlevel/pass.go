package runlevel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Pass is one pass over the tasks of a release: a [reconcile.Reconciler] whose keys
// are the nodes of the task graph. It has no goroutine and never waits. [Run] drives
// one to its end. A program that hosts reconcilers adds it to a process, or drives it
// by a loop of its own:
//
//	for keys := pass.Keys(); len(keys) > 0; keys = keys[1:] {
//		... call Reconcile for keys[0], and again at Result.At; append what Result.Wake names
//	}
//
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
	stepped func(settled bool) []reconcile.Wake
	limit   int // nodes at work at a time
	graph   *manifest.Graph
	journal *journal

	mu       sync.Mutex // guards what follows
	schedule *schedule
	nodes    map[int]*node // those handed out that have not ended
	begun    bool
	looks    int   // under way
	stalled  int   // nodes
	stopped  error // why no look starts any more; nil: they do
	off      bool  // Stop was called
	over     bool  // PassDone was emitted
}

// The name of a [Pass], and the kind of its keys.
const (
	passName = "pass"
	nodeKind = "node"
)

// NewPass returns a pass that has not started. Its errors are faults of the
// options.
func NewPass(tasks []*manifest.Task, o Options) (*Pass, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	p := &Pass{
		state: o.State, attempt: max(o.Attempt, 0), stay: o.Stay, filter: o.Filter,
		clock: o.Clock, tracker: o.Tracker, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), stepped: o.Stepped,
		nodes: make(map[int]*node),
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
	p.journal = newJournal(o.Observe, p.clock, tasks)
	switch {
	case o.API == nil && o.Wrap == nil:
		return nil, errors.New("runlevel: neither an API nor a Wrap that makes an Applier")
	case o.API != nil:
		included := func(m *manifest.Manifest) bool { return p.filter.Judge(m).Included }
		a := &applier{
			api: o.API, mode: o.Mode, managers: o.Adopt, owner: o.Owner, tracker: p.tracker, log: p.log,
			awaitJobs: o.AwaitJobs, skipChecks: o.SkipChecks, tell: p.journal.tell,
			reports: p.state == Reconciling && !o.ApplyAlways && p.tracker.isWatching(),
			created: createdOnly(tasks, included), definitions: definitionsOf(tasks, included),
			doubles: doublesOf(tasks, included), deletes: deletionsOf(tasks, included),
		}
		if a.managers == nil {
			a.managers = defaultAdopt
		}
		a.trusts = a.reports && p.tracker.trusting()
		p.applier = a.Apply
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

// Name implements [reconcile.Reconciler]: it is "pass".
func (p *Pass) Name() string { return passName }

// Watches implements [reconcile.Reconciler]. A pass that stays watches
// ClusterOperators; the nodes of one that ends are tried again a few times.
func (p *Pass) Watches() []reconcile.Watch {
	if !p.stay {
		return nil
	}
	return []reconcile.Watch{OperatorWatch(func() *Pass { return p })}
}

// OperatorWatch returns the watch of ClusterOperators that wakes the nodes of a pass
// that wait for one which has changed. It is for a host of passes that follow one
// another: current returns the one under way, nil if absent.
func OperatorWatch(current func() *Pass) reconcile.Watch {
	return reconcile.Watch{GVK: clusterOperatorKind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		p := current()
		if p == nil || old == nil || new == nil {
			return nil
		}
		return wakes(p.resume(func(n *node) bool { return n.awaits == new.Name() }))
	}}
}

// Workers implements [reconcile.Concurrent].
func (p *Pass) Workers() int { return p.limit }

// Keys implements [reconcile.Lister]. It returns the nodes at work; the first call
// starts the pass.
func (p *Pass) Keys() []reconcile.Key {
	if p.begin() {
		p.journal.emit(EventPassStarted, nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.handOut()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []reconcile.Key
	for _, i := range slices.Sorted(maps.Keys(p.nodes)) {
		if n := p.nodes[i]; !n.stalled || n.woken {
			keys = append(keys, nodeKey(i))
		}
	}
	return keys
}

// begin reports whether the pass starts with this call.
func (p *Pass) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun || p.stopped != nil {
		return false
	}
	p.begun = true
	if p.attempt == 0 {
		p.tracker.reset()
	}
	return true
}

// handOut makes nodes that are ready start, as far as there is room.
func (p *Pass) handOut() []reconcile.Key {
	var ready []reconcile.Key
	for p.schedule.Running()-p.stalled < p.limit {
		i, ok := p.schedule.Next()
		if !ok {
			break
		}
		tasks := p.graph.Nodes[i].Tasks
		if len(tasks) == 0 {
			p.schedule.Done(i)
			continue
		}
		p.nodes[i] = &node{pass: p, index: i, tasks: tasks}
		ready = append(ready, nodeKey(i))
	}
	return ready
}

// Reconcile implements [reconcile.Reconciler]: it works on a node until it ends or
// has to wait. A node that waits continues with the task at which it waited. The pass
// starts no look after one during which ctx ended, and one of them returns the error
// of ctx.
func (p *Pass) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	index, err := strconv.Atoi(r.Key.Name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("runlevel: there is no node %q", r.Key.Name)
	}
	look, n, at := p.enter(ctx, index, r.Now)
	if n == nil {
		return reconcile.Result{At: at}, nil
	}
	wait, over, err := n.run(look)
	cut := ctx.Err()
	return p.leave(ctx, n, outcome{wait: wait, over: over, ended: look.Err() != nil, err: err}), cut
}

// enter starts a look at a node; nil: there is nothing to look at before at. A clock
// that was set back makes a look start early.
func (p *Pass) enter(ctx context.Context, index int, now time.Time) (look context.Context, _ *node, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nodes[index]
	if n == nil || n.stalled && !n.woken || p.stopped != nil {
		return nil, nil, time.Time{}
	}
	if early := n.at.Sub(now); early > 0 && early <= n.wait && !n.woken {
		return nil, nil, n.at
	}
	p.looks++
	if n.stalled {
		p.stalled--
	}
	n.stalled, n.woken, n.trouble = false, false, nil
	look, n.cancel = context.WithCancelCause(ctx)
	return look, n, time.Time{}
}

// outcome is the result of a look at a node: the node waits, or it is over with
// err.
type outcome struct {
	wait  time.Duration
	over  bool
	ended bool // the context of the look
	err   error
}

// leave records the outcome of a look at a node. ctx is the driver's.
func (p *Pass) leave(ctx context.Context, n *node, o outcome) reconcile.Result {
	p.mu.Lock()
	result := reconcile.Result{}
	n.cancel(nil)
	n.cancel = nil
	p.looks--
	switch {
	case !o.over:
		n.wait, n.at = o.wait, p.clock.Now().Add(o.wait)
		result.At = n.at
	case o.err == nil:
		delete(p.nodes, n.index)
		p.schedule.Done(n.index)
	case p.stay && !o.ended:
		n.stalled, n.trouble = true, o.err
		p.stalled++
	default:
		delete(p.nodes, n.index)
		p.schedule.Fail(n.index, o.err)
	}
	n.awaits = n.operator()
	if n.woken { // what it waits for has changed while it was looked at
		result.At = p.clock.Now()
	}
	if p.stopped == nil {
		p.stopped = ended(ctx)
	}
	if p.stopped == nil {
		result.Wake = wakes(p.handOut())
	}
	last := p.off && p.looks == 0
	settled := p.settled()
	p.mu.Unlock()
	if last {
		p.end()
	}
	if p.stepped != nil {
		result.Wake = append(result.Wake, p.stepped(settled)...)
	}
	return result
}

// Settled reports whether no node is at work or about to continue: all have ended, or
// are stalled, or the pass was stopped and no look is under way.
func (p *Pass) Settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n.woken && p.stopped == nil {
			return false
		}
	}
	return p.settled()
}

// settled reports whether all nodes have ended or are stalled.
func (p *Pass) settled() bool {
	if p.stopped != nil {
		return p.looks == 0
	}
	return p.schedule.Finished() || p.begun && p.schedule.Running() == p.stalled
}

// Finished reports whether no node is left to work on: all have ended, or the pass was
// stopped and no look is under way.
func (p *Pass) Finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped != nil && p.looks == 0 || p.schedule.Finished()
}

// Resume makes stalled nodes continue, and returns them, in order. Their tasks have
// all their attempts again.
func (p *Pass) Resume() []reconcile.Key {
	return p.resume(func(n *node) bool { return n.stalled })
}

// resume makes the nodes that which selects continue, and returns them in order.
func (p *Pass) resume(which func(*node) bool) []reconcile.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	var keys []reconcile.Key
	for _, i := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.nodes[i]
		if !which(n) {
			continue
		}
		n.woken = true
		keys = append(keys, nodeKey(i))
	}
	return keys
}

// Stop ends the pass, because of why, unless it has ended: no look starts any more,
// and the context of looks under way ends. What waits is incomplete. It reports
// whether the pass has ended with that; else it ends with its last look.
func (p *Pass) Stop(why error) bool {
	p.mu.Lock()
	if p.schedule.Finished() {
		defer p.mu.Unlock()
		return true
	}
	p.off = true
	if p.stopped == nil {
		p.stopped = why
	}
	for _, n := range p.nodes {
		if n.cancel != nil {
			n.cancel(why)
		}
	}
	stopped := p.looks == 0
	p.mu.Unlock()
	if stopped {
		p.end()
	}
	return stopped
}

// end ends the nodes of a stopped pass that wait.
func (p *Pass) end() {
	p.mu.Lock()
	why := p.stopped
	var waiting []*node
	for _, i := range slices.Sorted(maps.Keys(p.nodes)) {
		if n := p.nodes[i]; n.started {
			waiting = append(waiting, n)
		}
	}
	clear(p.nodes)
	p.stalled = 0
	p.mu.Unlock()
	for _, n := range waiting {
		err := n.stop(why)
		p.mu.Lock()
		p.schedule.Fail(n.index, err)
		p.mu.Unlock()
	}
	_, _ = p.Result()
}

// Result is the outcome of a pass that has ended, and what [Run] returns, with its
// errors. Of a pass that stays it is how things are now.
func (p *Pass) Result() (*Result, error) {
	p.mu.Lock()
	errs := p.errors()
	done := !p.over && (p.off && p.looks == 0 || p.schedule.Finished())
	p.over = p.over || done
	p.mu.Unlock()
	res, failures, err := p.result(errs)
	if done {
		p.journal.emit(EventPassDone, err)
	}
	if _, now := p.journal.observerError(); now > failures {
		res, _, err = p.result(errs)
	}
	return res, err
}

// errors are those of the graph; a stalled node has failed, for now.
func (p *Pass) errors() []error {
	var errs []error
	for _, i := range slices.Sorted(maps.Keys(p.nodes)) {
		if n := p.nodes[i]; n.trouble != nil {
			errs = append(errs, n.trouble)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return p.schedule.Result(p.stopped)
}

// result makes the outcome of a pass from the errors of its graph and of its
// observer. failures is how often the latter has failed.
func (p *Pass) result(errs []error) (res *Result, failures int, err error) {
	te, failures := p.journal.observerError()
	if te != nil {
		errs = append(slices.Clip(errs), te)
	}
	done, skipped := p.journal.counts()
	res = &Result{Done: done, Skipped: skipped, Total: p.journal.total, Errors: errs}
	res.Failure, res.Report = summarize(errs), p.journal.report()
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

func nodeKey(index int) reconcile.Key {
	return reconcile.Key{Kind: nodeKind, Name: strconv.Itoa(index)}
}

// wakes are those of the nodes of a pass, for reconcilers of the same process.
func wakes(keys []reconcile.Key) []reconcile.Wake {
	var out []reconcile.Wake
	for _, key := range keys {
		out = append(out, reconcile.Wake{Key: key})
	}
	return out
}
