package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// drainRetry is the time between two attempts to empty a node.
const drainRetry = 5 * time.Second

// drainState is how far a step is that drains a node.
type drainState struct {
	attempt *rollout.Drain // nil: the next one starts at next
	next    time.Time
	why     string // pods are left
	empty   bool   // no pod was left on the cordoned node
}

// lookAtDrain empties a node, which it cordons if need be.
func (x *pass) lookAtDrain(i int, s *Step, sp StepProgress) (look, error) {
	if sp.State != stepRunning {
		return look{change: recordFirst}, nil
	}
	l, n, err := x.lookAtCordon(i, s.Args.Node)
	if err != nil || !l.done || n == nil {
		return l, err // without a node its pods are gone too
	}
	return x.lookAtPods(i, s, n)
}

// lookAtPods evicts the pods of a node that is cordoned, for a step that drains it or
// needs it empty. It is done only when the node is cordoned after no pod was left.
func (x *pass) lookAtPods(i int, s *Step, n *corev1.Node) (look, error) {
	if mcp.NodeStateOf(n).Topology == mcp.TopologySingleReplica {
		return look{done: true}, nil // there is nowhere to go
	}
	d := x.r.work.drain
	if d == nil {
		d = &drainState{}
		x.r.work.drain = d
	}
	if d.attempt == nil && x.now.Before(d.next) && d.next.Sub(x.now) <= drainRetry {
		return look{why: d.why, at: d.next}, nil
	}
	if d.attempt == nil {
		d.attempt = &rollout.Drain{Node: n.Name}
	}
	d.attempt.Blocked = func(pod types.NamespacedName, text string, err *rollout.DrainError) {
		text = fmt.Sprintf("node %s: pod %s may not be evicted now: %s", n.Name, pod, text)
		x.warnOnce(EventDrainBlocked, s, n.Name, text, err)
	}
	at, done, err := d.attempt.Advance(x.ctx, x.r.api, x.now)
	switch {
	case err != nil && x.ctx.Err() != nil:
		return look{}, err
	case err != nil:
		x.warnOnce(EventError, s, n.Name, fmt.Sprintf("node %s: drain failed, trying again: %v", n.Name, err), err)
		d.attempt = nil
		d.next = x.now.Add(drainRetry)
		return look{why: d.why, at: d.next}, nil
	case !done:
		d.why = fmt.Sprintf("node %s: %d pods are to leave", n.Name, d.attempt.Left())
		return look{why: d.why, at: at, more: []reconcile.Watch{rollout.PodsOf(n.Name, x.r.key)}}, nil
	}
	x.v = x.r.newView(x.ctx) // it may have been uncordoned meanwhile
	l, _, err := x.lookAtCordon(i, n.Name)
	d.empty = l.done
	return l, err
}

// warnOnce reports something about a node of a step, once until the step is done.
func (x *pass) warnOnce(t clusterapi.EventType, s *Step, node, text string, err error) {
	if x.r.work.reported[text] {
		return
	}
	x.r.work.reported[text] = true
	x.emit(t, EventData{Step: s.ID, Kind: s.Kind, Node: node, Warning: true}, text, err)
}

// cordon is what a runner knows of a node that it cordons.
type cordon struct {
	// fresh is set until a look after the write has found that the pool may lose the node.
	fresh bool
	// next is when to cordon a node again that was put back.
	next time.Time
}

// putBackAtMost is the longest wait, drawn at random, before a node that was put back is
// cordoned again: of two plans that contend for one place, one comes first.
const putBackAtMost = 30 * time.Second

// lookAtCordon makes a node unschedulable when its pool may lose it and its machine-config
// daemon is not at work on it. Another plan may have found the same place at the same time:
// each looks again after its write, and puts the node back if too many are down. It is done
// if the node is unschedulable and left to the plan, or does not exist: then it is nil.
func (x *pass) lookAtCordon(i int, name string) (look, *corev1.Node, error) {
	n, err := x.v.node(name)
	if err != nil || n == nil {
		return look{done: true}, nil, err
	}
	c, cordoned, busy := x.r.cordons[name], n.Spec.Unschedulable, updating(n)
	if cordoned && !c.fresh && (busy == "" || x.r.hasCordoned(n)) {
		return look{done: true}, n, nil
	}
	pool, full, err := x.v.full(n)
	if err != nil {
		return look{}, n, err
	}
	l := look{why: cmp.Or(busy, full), wait: []string{pool}}
	switch {
	case cordoned && !c.fresh: // by the daemon's request
	case cordoned && l.why == "":
		delete(x.r.cordons, name)
		return look{done: true}, n, nil
	case cordoned:
		next := x.now.Add(pace + time.Duration(x.rand.Int64N(int64(putBackAtMost))))
		l.change, err = x.setUnschedulable(i, name, nil, cordon{next: next})
	case l.why != "":
	case x.now.Before(c.next):
		l.why = fmt.Sprintf("node %s was put back", name)
		l.at = c.next
	default:
		l = look{why: fmt.Sprintf("node %s is schedulable", name)}
		l.change, err = x.setUnschedulable(i, name, true, cordon{fresh: true})
	}
	return l, n, err
}

// setUnschedulable returns what writes the field of a node and notes what follows from
// it; nil if the node does not exist any more.
func (x *pass) setUnschedulable(i int, name string, value any, c cordon) (func() error, error) {
	u, m, err := x.marked(nodeKind, name)
	if err != nil || u == nil {
		return nil, err
	}
	return func() error {
		err := x.update(i, u, m, []field{{pathUnschedulable, value}})
		if err == nil || c.fresh { // it may have been written all the same
			x.r.cordons[name] = c
		}
		return err
	}, nil
}

// lookAtFirstCordon is the step that cordons a node.
func (x *pass) lookAtFirstCordon(i int, s *Step) (look, error) {
	l, err := x.lookAtFields(i, s)
	if err != nil || l.change == nil && !l.done {
		return l, err
	}
	if l.ours { // also if another runner wrote it
		x.r.cordons[s.Args.Node] = cordon{fresh: true}
	}
	c, n, err := x.lookAtCordon(i, s.Args.Node)
	c.writes = l.writes
	c.ours = l.ours || n != nil && x.r.hasCordoned(n) // a later state of the node
	return c, err
}

// hasCordoned reports whether the plan has cordoned a node, as its mark on the node says.
func (r *reconciler) hasCordoned(n *corev1.Node) bool {
	var m mark
	return n.Annotations[annotationPlan] == r.plan.ID &&
		json.Unmarshal([]byte(n.Annotations[annotationBefore]), &m) == nil &&
		m.Fields[pointer(pathUnschedulable)].Set == true
}

// updating returns why a node is left to its machine-config daemon: that is at work on it,
// or about to be. It is empty if the daemon has reached its target, has failed, or is down
// with the node.
func updating(n *corev1.Node) string {
	state := mcp.NodeStateOf(n)
	phase, _ := mcp.PhaseOf(state)
	state.Unschedulable = false
	if !state.Ready() || !state.Managed() || !state.Unavailable() || phase == mcp.PhaseFailed {
		return ""
	}
	return fmt.Sprintf("node %s is being updated: %s", n.Name, phase)
}

// full returns a node's pool and why it may not lose the node: as many other nodes are
// down as its maxUnavailable allows, whoever took them down. A node that is down itself,
// cordoned or not, is lost already.
func (v *view) full(n *corev1.Node) (pool, why string, err error) {
	member, err := v.membership()
	if err != nil {
		return "", "", err
	}
	pool = member.Of(n.Labels).Primary
	p, err := v.pool(pool)
	state := mcp.NodeStateOf(n)
	state.Unschedulable = false
	if err != nil || p == nil || state.Unavailable() {
		return pool, "", err
	}
	nodes, err := v.nodesOf(pool)
	if err != nil {
		return pool, "", err
	}
	limit, _, err := mcp.MaxUnavailable(p, len(nodes))
	if err != nil {
		return pool, "", failf("pool %s: %w", pool, err)
	}
	var down []string
	for _, other := range nodes {
		if other.Name != n.Name && mcp.NodeStateOf(other).Unavailable() {
			down = append(down, other.Name)
		}
	}
	if len(down) < limit {
		return pool, "", nil
	}
	return pool, fmt.Sprintf("node %s stays up while %d of the %d nodes are down that pool %s may lose: %s",
		n.Name, len(down), limit, pool, strings.Join(down[:min(len(down), shownNodes)], ", ")), nil
}

// cordoned reports whether the plan holds the node of a step cordoned: an earlier step
// cordons or drains it, and none between them uncordons it. drained reports whether one
// drains it.
func (p *Plan) cordoned(step *Step) (cordoned, drained bool) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s == step {
			break
		}
		if s.Args.Node != step.Args.Node {
			continue
		}
		switch s.Kind {
		case Cordon:
			cordoned = true
		case Drain:
			cordoned = true
			drained = true
		case Uncordon:
			cordoned = false
			drained = false
		}
	}
	return cordoned, drained
}

// keepCordoned finds out whether the node of a step that does something to it is still
// cordoned and empty, as far as earlier steps have made it so. A node that somebody has
// uncordoned is cordoned again. Pods can have come to it before; they are evicted before
// the step continues, unless the node is down: what the step does may have to bring it up.
// A runner that has just begun does not know, and looks.
func (x *pass) keepCordoned(i int, s *Step) (look, error) {
	kept := look{done: true}
	if s.Kind != Hook && s.Kind != Manual || s.Args.Node == "" || x.r.rec.confirmed[s.ID] {
		return kept, nil
	}
	held, drained := x.r.plan.cordoned(s)
	if !held {
		return kept, nil
	}
	l, n, err := x.lookAtCordon(i, s.Args.Node)
	if err != nil {
		return l, err
	}
	if !l.done {
		x.r.work.drain = nil
		return l, nil
	}
	d := x.r.work.drain
	if !drained || n == nil || mcp.NodeStateOf(n).Problem != "" || d != nil && d.empty {
		return l, nil
	}
	return x.lookAtPods(i, s, n)
}
