package nodeaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// reconciler does the action. Its keys are the schedule, which takes nodes, and
// each node that is taken. It is called for one key at a time.
type reconciler struct {
	Options
	api   clusterapi.ClusterAPI
	ended func(error) // nil: nobody waits for the end
	now   time.Time

	nodes   map[string]*node // under way
	failure error            // what halted the run; nil: it is not halted
	holder  string           // this program's name in the claims
	held    bool             // they say so
	stopped bool             // another run has taken over
	done    bool             // told that all nodes are finished
	blocked string           // told last
	missing map[string]bool  // nodes that there are not, told
}

var scheduleKey = reconcile.Key{Kind: "schedule"}

func nodeKey(name string) reconcile.Key { return reconcile.Key{Kind: "node", Name: name} }

func (r *reconciler) Name() string { return "node action" }

// Keys implements [reconcile.Lister].
func (r *reconciler) Keys() []reconcile.Key { return []reconcile.Key{scheduleKey} }

func (r *reconciler) Watches() []reconcile.Watch {
	gvk, err := clusterapi.KindOf[corev1.Node]()
	if err != nil {
		panic(err) // the kind is known
	}
	return []reconcile.Watch{{GVK: gvk, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		const together = time.Second // nodes report often: one look for all
		wakes := []reconcile.Wake{{Key: scheduleKey, After: together}}
		name := ""
		if new != nil {
			name = new.Name()
		} else if old != nil {
			name = old.Name()
		}
		if r.nodes[name] != nil {
			wakes = append(wakes, reconcile.Wake{Key: nodeKey(name), After: together})
		}
		return wakes
	}}}
}

// Reconcile looks at the schedule, or goes on with a node.
func (r *reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	r.now = q.Now
	if r.holder == "" {
		r.holder = fmt.Sprintf("%016x", q.Rand.Uint64())
	}
	if r.stopped {
		return reconcile.Result{}, nil
	}
	n := r.nodes[q.Key.Name]
	switch {
	case q.Key == scheduleKey:
		return r.stop(r.schedule(ctx))
	case n == nil:
		return reconcile.Result{}, nil
	}
	res, err := n.advance(ctx)
	if !errors.Is(err, ErrTakenOver) {
		return res, err
	}
	if _, err := r.changeOurs(ctx, unchanged); err != nil {
		return r.stop(reconcile.Result{}, err)
	}
	// The other one is not the latest: it was about to stop.
	r.nodes[n.name] = &node{reconciler: r, name: n.name}
	return reconcile.Result{At: r.now}, nil
}

// stop ends all work where another program has taken the run over.
func (r *reconciler) stop(res reconcile.Result, err error) (reconcile.Result, error) {
	if !errors.Is(err, ErrTakenOver) {
		return res, err
	}
	r.stopped = true
	r.emit(EventFailed, "", EventData{Warning: true}, err.Error(), err)
	r.end(err)
	res = reconcile.Result{}
	for name := range r.nodes {
		res.Wake = append(res.Wake, reconcile.Wake{Key: nodeKey(name)}) // whose work ends
	}
	return res, nil
}

func (r *reconciler) end(err error) {
	if r.ended != nil {
		r.ended(err)
	}
}

// schedule takes the nodes whose turn it is.
func (r *reconciler) schedule(ctx context.Context) (res reconcile.Result, err error) {
	const lookAgain = 30 * time.Second // what blocks may be another run, whose end no node tells
	all, err := r.changeOurs(ctx, unchanged)
	if err != nil {
		return res, err
	}
	r.held = true
	taken, mine := all.Claims, ofRun(all.Claims, r.ID)
	for _, c := range mine {
		res.Wake = append(res.Wake, r.take(c.Node)...)
	}
	if r.failure == nil && (len(mine) >= r.Parallel || slices.ContainsFunc(mine, func(c claim) bool { return c.ControlPlane })) {
		r.block("")
		res.At = r.now.Add(lookAgain)
		return res, nil // no node is begun before one of these is finished
	}
	list, err := clusterapi.ReadAll[corev1.Node](ctx, r.api, clusterapi.ListOptions{})
	if err != nil {
		return res, err
	}
	s := &snapshot{Options: &r.Options, nodes: map[string]*corev1.Node{}, claims: taken}
	for _, n := range list {
		s.nodes[n.Name] = n
	}
	r.tellMissing(s)
	left, err := s.left()
	if err != nil {
		r.block(err.Error())
		res.At = r.now.Add(lookAgain)
		return res, nil
	}
	busy := len(mine) > 0 || len(r.nodes) > 0
	switch {
	case r.failure != nil:
		if !r.working() {
			r.end(r.failure)
		}
		return res, nil
	case len(left) == 0 && !busy:
		if !r.done {
			r.done = true
			r.emit(EventDone, "", EventData{}, "all nodes are finished", nil)
			r.end(nil)
		}
		return res, nil
	}
	r.done = false
	why := ""
	for _, n := range left {
		reason := s.refuses(n)
		if reason != "" {
			if why == "" {
				why = reason
			}
			continue
		}
		all, err := r.changeOurs(ctx, func(c *claims) error {
			mine := claim{Node: n.Name, Run: r.ID, ControlPlane: IsControlPlane(n)}
			if slices.Contains(c.Claims, mine) {
				return nil // the answer of an earlier try was lost
			}
			s.claims = c.Claims
			reason = s.refuses(n)
			if reason == "" {
				c.Claims = append(c.Claims, mine)
			}
			return nil
		})
		if err != nil {
			return res, err
		}
		s.claims = all.Claims
		if reason == "" {
			res.Wake = append(res.Wake, r.take(n.Name)...)
		}
	}
	if len(ofRun(s.claims, r.ID)) > 0 {
		why = "" // it goes on
	}
	r.block(why)
	res.At = r.now.Add(lookAgain)
	return res, nil
}

// tellMissing tells of named nodes that there are not, once.
func (r *reconciler) tellMissing(s *snapshot) {
	for _, name := range r.Options.Nodes {
		if gone := s.nodes[name] == nil; gone && !r.missing[name] {
			r.emit(EventNodeSkipped, "node/"+name, EventData{Warning: true}, fmt.Sprintf("node %s is not there", name), nil)
			r.missing[name] = true
		} else if !gone {
			delete(r.missing, name)
		}
	}
}

// block tells what keeps nodes from being begun, once.
func (r *reconciler) block(why string) {
	if why == r.blocked {
		return
	}
	r.blocked = why
	if why != "" {
		r.emit(EventBlocked, "", EventData{}, why, nil)
	}
}

// take begins to work on a node that the run has claimed.
func (r *reconciler) take(name string) []reconcile.Wake {
	if r.nodes[name] != nil {
		return nil
	}
	r.nodes[name] = &node{reconciler: r, name: name}
	return []reconcile.Wake{{Key: nodeKey(name)}}
}

// working reports whether a node is under way that nothing has halted.
func (r *reconciler) working() bool {
	for _, n := range r.nodes {
		if n.failure == nil || !n.noted {
			return true
		}
	}
	return false
}

// snapshot is what a decision is made from.
type snapshot struct {
	*Options
	nodes  map[string]*corev1.Node
	claims []claim
	order  []string
}

// left are the nodes of the run that are not finished, in order.
func (s *snapshot) left() ([]*corev1.Node, error) {
	s.order = s.nodeNames(s.nodes)
	var left []*corev1.Node
	for _, name := range s.order {
		record, _, err := RecordOf(s.nodes[name], s.ID)
		if err != nil {
			return nil, err
		}
		if record.Phase != phaseDone {
			left = append(left, s.nodes[name])
		}
	}
	if len(left) > 0 && IsControlPlane(left[0]) {
		left = slices.DeleteFunc(left, func(n *corev1.Node) bool { return !IsControlPlane(n) })
	}
	return left, nil
}

// refuses says why a node may not be begun now; "" if it may.
func (s *snapshot) refuses(n *corev1.Node) string {
	for _, c := range s.claims {
		if c.Node == n.Name {
			return fmt.Sprintf("node %s is being acted on by run %s", n.Name, c.Run)
		}
	}
	if other := s.unfinished(n); other != "" {
		return fmt.Sprintf("node %s has been begun by run %s, which has not finished it", n.Name, other)
	}
	state := mcp.NodeStateOf(n)
	if state.Managed() && !state.Done() && !state.MCDFailing() && !state.Degraded() && !s.DuringUpdates {
		return fmt.Sprintf("node %s is being updated by its machine-config daemon", n.Name)
	}
	if IsControlPlane(n) {
		return s.refusesControlPlane(n)
	}
	return s.refusesCompute(n, state)
}

// refusesControlPlane allows one node of the control plane, and only while all
// others are there.
func (s *snapshot) refusesControlPlane(n *corev1.Node) string {
	for _, c := range s.claims {
		if c.ControlPlane {
			return fmt.Sprintf("node %s waits: %s of the control plane is being acted on by run %s", n.Name, c.Node, c.Run)
		}
	}
	var down []string
	for name, other := range s.nodes {
		if name != n.Name && IsControlPlane(other) && unavailable(other) {
			down = append(down, name)
		}
	}
	if len(down) == 0 {
		return ""
	}
	slices.Sort(down)
	return fmt.Sprintf("node %s waits: of the control plane, %s is unavailable", n.Name, strings.Join(down, ", "))
}

// refusesCompute keeps no more of the run's compute nodes unavailable than it may
// act on at a time. One that is down anyhow costs nothing.
func (s *snapshot) refusesCompute(n *corev1.Node, state mcp.NodeState) string {
	busy, down := 0, 0
	taken := map[string]bool{}
	for _, c := range s.claims {
		if c.Run == s.ID && c.ControlPlane {
			return fmt.Sprintf("node %s waits for %s of the control plane", n.Name, c.Node)
		}
		if c.Run == s.ID {
			taken[c.Node] = true
			busy++
		}
	}
	if busy >= s.Parallel {
		return fmt.Sprintf("node %s waits: %d of at most %d nodes are being acted on", n.Name, busy, s.Parallel)
	}
	if state.Problem != "" {
		return ""
	}
	for _, name := range s.order {
		if other := s.nodes[name]; name != n.Name && !taken[name] && !IsControlPlane(other) && mcp.NodeStateOf(other).Problem != "" {
			down++
		}
	}
	if busy+down >= s.Parallel {
		return fmt.Sprintf("node %s waits: %d nodes of the run are not Ready", n.Name, down)
	}
	return ""
}

// unavailable reports whether a node of the control plane is out of service, or
// about to be.
func unavailable(n *corev1.Node) bool {
	state := mcp.NodeStateOf(n)
	if state.Managed() {
		return state.Unavailable()
	}
	return !state.Ready()
}

// unfinished returns the other run that has not finished a node, "" if none.
func (s *snapshot) unfinished(n *corev1.Node) string {
	var runs []string
	for name, value := range n.Annotations {
		id, ok := strings.CutPrefix(name, recordPrefix)
		if !ok || id == s.ID {
			continue
		}
		if record, err := parseRecord(value); err != nil || record.Phase != phaseDone {
			runs = append(runs, id)
		}
	}
	slices.Sort(runs)
	return strings.Join(runs, ", ")
}
