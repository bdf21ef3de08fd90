package clusterupdate

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// applier works on the nodes of the pass under way: each is a key. What it
// waits for wakes it, and the pass goes on where it waited.
type applier struct{ *core }

const applierName = "pass"

// Name implements [reconcile.Reconciler].
func (r *applier) Name() string { return applierName }

// Watches implements [reconcile.Reconciler]: a ClusterOperator that a node
// waits for wakes it.
func (r *applier) Watches() []reconcile.Watch {
	return []reconcile.Watch{{GVK: operatorKind, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		if p := r.current(); p != nil && old != nil && new != nil {
			return p.awaiting(new.Name())
		}
		return nil
	}}}
}

// Workers implements [reconcile.Concurrent].
func (r *applier) Workers() int {
	if r.o.Workers == 1 {
		return 1
	}
	return max(r.o.Workers, 64) // how many nodes are at work at once is the pass's decision
}

func nodeKey(node int) reconcile.Key {
	return reconcile.Key{Kind: "node", Name: strconv.Itoa(node)}
}

// Reconcile implements [reconcile.Reconciler].
func (r *applier) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	node, err := strconv.Atoi(q.Key.Name)
	p := r.current()
	if err != nil || p == nil {
		return reconcile.Result{}, err
	}
	call, early, ok := p.enter(ctx, node, q.Now)
	if !ok {
		return reconcile.Result{At: early}, nil
	}
	step := p.run.Step(call, node)
	decide := reconcile.Wake{Reconciler: deciderName, Key: decideKey, After: r.o.StatusInterval}
	if p.left(node, step, ctx.Err() != nil) {
		decide.After = 0
	}
	return reconcile.Result{At: step.At, Wake: append(p.hand(step.Ready), decide)}, ctx.Err()
}

// pass is one application of a release's manifests that is under way.
type pass struct {
	*core
	sync  *syncWork
	run   *runlevel.Pass
	start passReport
	began time.Time     // to be at work
	limit time.Duration // of being at work

	mu      sync.Mutex
	live    map[int]*liveNode
	working int        // nodes at which a step is
	raw     passReport // of this pass alone
	report  passReport // what to tell
	settled bool       // no node is at work, and decisions do not know yet
	ended   error      // why it was called off
	cut     bool       // the driver's calls were: it cannot go on
	done    bool
	closed  bool // after it was called off
}

// liveNode is a node that was handed out.
type liveNode struct {
	cancel  context.CancelCauseFunc // of the step at it; nil: there is none
	at      time.Time               // not before
	stalled bool
	awaits  string // the ClusterOperator that it waits for
}

// begin begins a pass over what is on record as the cluster's release, in the
// place of one that waits. One that only keeps the cluster as it is ends with
// its failures, so that the next one looks at everything again.
func (r *decider) begin(q reconcile.Request, start *passStart) ([]reconcile.Wake, error) {
	s := &r.s
	if p := r.current(); p != nil && !p.retire() {
		return nil, nil // it has just gone on
	}
	w := s.sync
	tasks := w.payload.Tasks()
	p := &pass{core: r.core, sync: w, start: s.report, began: q.Now, live: make(map[int]*liveNode),
		limit: passLimit(start.state, r.interval(q))}
	p.raw = passReport{
		Version: w.release.Version, Image: w.release.Image, Hash: w.payload.Hash, Total: len(tasks),
		Reconciling: start.state == runlevel.Reconciling, Initial: start.state == runlevel.Initializing,
		LastProgress: s.report.LastProgress,
	}
	p.report = p.start
	p.updateReport(q.Now)
	run, err := runlevel.NewPass(tasks, runlevel.Options{
		API: r.o.API, State: start.state, Attempt: start.attempt, Workers: r.o.Workers, Filter: w.filter(), Owner: ownerOf(r.cv),
		Clock: r.o.Clock, Tracker: r.tracker, Logger: r.o.Logger, Stay: start.state != runlevel.Reconciling, Observe: p.observe, ApplyAlways: r.o.ApplyAlways,
		Mode: r.o.ApplyMode, Adopt: r.o.Adopt,
	})
	if err != nil {
		return nil, err
	}
	p.run, s.pass, s.begun, s.applied = run, true, q.Now, w.loaded
	r.accepts.Forget() // somebody may have changed it since the last pass
	r.setPass(p)
	nodes := run.Start()
	r.startClocks()
	return p.hand(nodes), nil
}

// observe takes an event of the pass.
func (p *pass) observe(e clusterapi.Event) {
	at, _ := e.Data.(*runlevel.Progress)
	if at.Task != nil && at.Task.Manifest.Identity().Name == versionDefinition {
		p.accepts.Forget()
	}
	p.emit(clusterapi.Event{Type: EventTask, Time: e.Time, Message: e.Message, Err: e.Err}, EventData{Release: p.sync.release, Pass: &e})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raw.Done = at.Done
	p.updateReport(e.Time)
}

// updateReport brings the report up to date.
func (p *pass) updateReport(now time.Time) {
	if next, ok := nextReport(p.start, p.raw, now); ok {
		p.report = next
	}
}

// reported is how far the pass has come.
func (p *pass) reported() passReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// hand lets nodes be worked on, those that wait too.
func (p *pass) hand(nodes []int) []reconcile.Wake {
	p.mu.Lock()
	defer p.mu.Unlock()
	wakes := make([]reconcile.Wake, len(nodes))
	for i, node := range nodes {
		if n := p.live[node]; n == nil {
			p.live[node] = &liveNode{}
		} else if n.cancel == nil { // else a step at it has just begun, which what it waits for woke
			n.at, n.stalled = time.Time{}, false
		}
		wakes[i] = reconcile.Wake{Reconciler: applierName, Key: nodeKey(node)}
	}
	return wakes
}

// awaiting are the nodes that wait for an operator.
func (p *pass) awaiting(operator string) (wakes []reconcile.Wake) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(p.live)) {
		if n := p.live[node]; n.awaits == operator {
			n.at, n.stalled = time.Time{}, false
			wakes = append(wakes, reconcile.Wake{Key: nodeKey(node)})
		}
	}
	return wakes
}

// again are all nodes that are stalled: the time of the next pass has come.
func (p *pass) again(now time.Time) []reconcile.Wake {
	p.mu.Lock()
	p.began = now
	p.mu.Unlock()
	return p.hand(p.run.Stalled())
}

// enter begins a step, unless the pass is over, the node is of another one, or it
// is too early: then at is when to come again. A clock that was set back makes
// a look come early.
func (p *pass) enter(ctx context.Context, node int, now time.Time) (call context.Context, at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.live[node]
	switch {
	case n == nil || n.stalled || p.ended != nil || p.cut:
		return nil, at, false
	case now.Before(n.at) && n.at.Sub(now) < p.limit:
		return nil, n.at, false
	}
	p.working++
	call, n.cancel = context.WithCancelCause(ctx)
	return call, at, true
}

// left takes note of a step, and reports whether decisions depend on it. cut
// says that the driver ended it.
func (p *pass) left(node int, step runlevel.Step, cut bool) bool {
	stop, news := p.note(node, step, cut)
	if stop {
		p.finish()
	}
	return news
}

// note is left's part under the lock, and reports whether a pass that was
// called off has ended with the step.
func (p *pass) note(node int, step runlevel.Step, cut bool) (stop, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.live[node]
	n.cancel(nil)
	n.cancel, n.at, n.stalled, n.awaits = nil, step.At, step.Stalled, ""
	if step.Awaits.Kind == operatorKind.Kind {
		n.awaits = step.Awaits.Name
	}
	if step.At.IsZero() && !step.Stalled {
		delete(p.live, node)
	}
	p.working--
	p.done, p.settled, p.cut = p.done || step.Done, step.Settled, p.cut || cut
	stop = p.working == 0 && p.ended != nil
	return stop, p.done || p.settled || p.cut || stop
}

// stop calls the pass off, with the calls under way, and reports whether none
// is any more.
func (p *pass) stop(why error) bool {
	p.mu.Lock()
	if p.ended == nil {
		p.ended = why
	}
	for _, n := range p.live {
		if n.cancel != nil {
			n.cancel(why)
		}
	}
	stopped := p.working == 0
	p.mu.Unlock()
	if stopped {
		p.finish()
	}
	return stopped
}

// retire calls off a pass of which all that is left waits, and reports whether
// that is so: one that has just gone on stays.
func (p *pass) retire() bool {
	p.mu.Lock()
	idle := p.working == 0
	for _, n := range p.live {
		idle = idle && n.stalled
	}
	if idle && p.ended == nil {
		p.ended = context.Canceled
	}
	p.mu.Unlock()
	if idle {
		p.finish()
	}
	return idle
}

// finish closes a pass that was called off.
func (p *pass) finish() {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(p.ended)
	p.run.Stop(ctx)
	_, _ = p.run.Result() // which tells the observer
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

// draining reports whether calls of a pass that was called off are under way.
func (p *pass) draining() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

// look brings decisions up to date with the pass under way.
func (r *decider) look(q reconcile.Request) {
	p, s := r.current(), &r.s
	if p == nil {
		return
	}
	p.mu.Lock()
	s.report = p.report
	done, settled, cut, working := p.done, p.settled, p.cut, p.working > 0
	if q.Now.Before(p.began) {
		p.began = q.Now // the clock was set back
	}
	late := !q.Now.Before(p.began.Add(p.limit))
	p.settled = false
	p.mu.Unlock()
	switch {
	case cut && !working:
		r.callOff()
		s.nextPass = q.Now // it was made to end: not a failure
	case done:
		r.setPass(nil)
		s.pass = false
		r.passEnded(q, p)
	case settled:
		r.passEnded(q, p) // for now: it goes on where it waits
		s.waits = true
	case s.waits: // for the time of the next pass
	case late && p.stop(context.DeadlineExceeded):
		r.setPass(nil)
		s.pass = false
		r.passEnded(q, p)
	}
}

// passEnded takes note of the end of a pass, or that all that is left of it has
// to wait, and sets the time of the next.
func (r *decider) passEnded(q reconcile.Request, p *pass) {
	s := &r.s
	s.waits = false
	res, err := p.run.Result()
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.raw
	s.passErr = err
	if err != nil {
		next.Completed = 0
		next.Failure = err
		if res != nil {
			next.Failure = res.Failure // a pass that merely ended with its time has none
		}
		s.attempt++
		s.failures++
		s.nextPass = q.Now.Add(passDelay(s.failures, r.interval(q), q.Rand.Float64()))
		if text := err.Error(); text != s.toldFailure {
			s.toldFailure = text
			r.emit(clusterapi.Event{Type: troubleOf(res.Errors), Time: q.Now, Message: text, Err: err}, EventData{Release: p.sync.release})
		}
	} else {
		s.toldFailure = ""
		next.Failure, next.Completed, next.Initial, next.Reconciling = res.Report, p.start.Completed+1, false, true
		s.attempt, s.failures, s.changed = 0, 0, false
		s.nextPass = q.Now.Add(r.interval(q))
	}
	if report, ok := nextReport(p.start, next, q.Now); ok {
		s.report = report
	} else {
		s.report = p.start // earlier trouble shows until a pass gets past it
	}
	p.report, p.start = s.report, s.report
	if err == nil && p.state() != runlevel.Reconciling {
		r.emit(clusterapi.Event{Type: EventCompleted, Time: q.Now, Message: "Done applying " + versionText(p.sync.release)}, EventData{Release: p.sync.release})
	}
}

// troubleOf tells a pass that waits for operators which are being updated, as
// they should be, from one that failed.
func troubleOf(errs []error) clusterapi.EventType {
	for _, err := range errs {
		if te, ok := err.(*runlevel.TaskError); !ok || te.Effect != runlevel.EffectNone {
			return EventPassFailed
		}
	}
	return EventWaiting
}

func (p *pass) state() runlevel.State {
	switch {
	case p.raw.Reconciling:
		return runlevel.Reconciling
	case p.raw.Initial:
		return runlevel.Initializing
	}
	return runlevel.Updating
}

// ownerOf makes the ClusterVersion the owner of what it applies.
func ownerOf(cv *configv1.ClusterVersion) *metav1.OwnerReference {
	controller := true
	return &metav1.OwnerReference{
		APIVersion: configv1.GroupVersion.String(),
		Kind:       "ClusterVersion",
		Name:       cv.Name,
		UID:        cv.UID,
		Controller: &controller,
	}
}

// versionText names a release in conditions.
func versionText(r configv1.Release) string {
	switch {
	case r.Version != "":
		return r.Version
	case r.Image != "":
		return r.Image
	}
	return "<unknown>"
}

func joinLines(lines []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return s == "" }), "\n")
}
