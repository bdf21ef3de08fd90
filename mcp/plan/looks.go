package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// look finds out how a step stands.
func (x *pass) look(i int, s *Step, sp StepProgress) (look, error) {
	switch s.Kind {
	case CheckAll:
		return x.lookAtChecks(s, sp)
	case SetPaused, SetMaxUnavailable, SetChannel, Uncordon:
		return x.lookAtFields(i, s)
	case SetHealthChecksPaused:
		return x.lookAtHealthChecks(i, s)
	case Cordon:
		return x.lookAtFirstCordon(i, s)
	case CreatePool:
		return x.lookAtNewPool(i, s)
	case DeletePool:
		return x.lookAtOldPool(s)
	case LabelNodes:
		return x.lookAtLabels(i, s)
	case ApplyObject:
		return x.lookAtObject(i, s)
	case UpdateCluster, WaitCluster:
		why, err := x.v.clusterAt(s.Args.Version)
		l := look{done: why == "", why: why, writes: s.Kind == UpdateCluster, ours: true}
		if err != nil || l.done || s.Kind == WaitCluster {
			return l, err
		}
		return x.lookAtAction(s, sp, l)
	case UpdateOperators, Gate, Hook:
		return x.lookAtAction(s, sp, look{})
	case Manual:
		out := x.confirmed(s)
		return look{done: out.Done, why: s.Args.Text}, nil
	case WaitPools:
		return x.lookAtPools(s)
	case Drain:
		return x.lookAtDrain(i, s, sp)
	}
	return look{}, failf("kind %s is not known", s.Kind)
}

// lookAtChecks asks all checks, so that all that is wrong comes together.
func (x *pass) lookAtChecks(s *Step, sp StepProgress) (look, error) {
	var wrong []string
	for _, c := range s.Args.Checks {
		why, err := x.v.check(c)
		if err != nil {
			return look{}, err
		}
		if why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", c.Kind, why))
		}
	}
	if len(wrong) == 0 && s.action() != "" {
		return x.lookAtAction(s, sp, look{})
	}
	l := look{done: len(wrong) == 0, why: strings.Join(wrong, "; ")}
	if !l.done && s.Timeout.Duration == 0 {
		return l, failf("%s", l.why)
	}
	return l, nil
}

// recordFirst is the change of a step that starts when it is recorded that it does.
func recordFirst() error { return nil }

// lookAtAction calls the step's action. If the step is an update of the cluster,
// that is seen in the cluster, and the action only starts it.
func (x *pass) lookAtAction(s *Step, sp StepProgress, l look) (look, error) {
	if sp.State != stepRunning {
		l.change = recordFirst
		return l, nil
	}
	done, why, job, at, err := x.act(s, sp)
	switch {
	case s.Kind != UpdateCluster:
		l.done, l.why = done, why
	case why != "": // what the request waits for, before the update itself
		l.why = why
	}
	if job != nil {
		l.jobs = []reconcile.Job{*job}
	}
	l.at = at
	return l, err
}

// lookAtPools waits for pools.
func (x *pass) lookAtPools(s *Step) (look, error) {
	var wrong []string
	for _, name := range s.Args.Pools {
		why, err := x.v.updated(name)
		if err != nil {
			return look{}, err
		}
		if why != "" {
			wrong = append(wrong, why)
		}
		p, err := x.v.pool(name)
		if err == nil {
			err = x.mustExist(poolKind.Kind+"/"+name, p != nil)
		}
		if err != nil {
			return look{}, err
		}
	}
	return look{done: len(wrong) == 0, why: strings.Join(wrong, "; "), wait: s.Args.Pools}, nil
}

// mustExist fails a step if something has not been there for a minute.
func (x *pass) mustExist(what string, there bool) error {
	if x.absent(what, there) {
		return failf("%s does not exist", what)
	}
	return nil
}

// absent reports whether something has not been there for a minute: a reading may be old.
func (x *pass) absent(what string, there bool) bool {
	if there {
		delete(x.r.missing, what)
		return false
	}
	first := x.r.missing[what]
	since := x.since(&first)
	x.r.missing[what] = first
	return x.now.Sub(since) >= time.Minute
}

// lookForNode finds out whether the node that a step is about exists. Without it the step is
// left out: somebody deleted the node.
func (x *pass) lookForNode(s *Step) (look, error) {
	if s.Args.Node == "" {
		return look{done: true}, nil
	}
	_, err := clusterapi.GetShared(x.ctx, x.r.api, nodeKind, clusterapi.Key("", s.Args.Node))
	if err != nil && !apierrors.IsNotFound(err) {
		return look{}, err
	}
	l := look{done: err == nil}
	if !l.done {
		l.why = fmt.Sprintf("node %s does not exist", s.Args.Node)
	}
	if x.absent(nodeKind.Kind+"/"+s.Args.Node, l.done) {
		l.skipped = l.why
	}
	return l, nil
}

// lookAtNewPool creates a pool.
func (x *pass) lookAtNewPool(i int, s *Step) (look, error) {
	l := look{writes: true}
	p, err := x.v.pool(s.Args.Pool)
	if err != nil {
		return l, err
	}
	if p == nil {
		l.why = fmt.Sprintf("pool %s does not exist", s.Args.Pool)
		l.change = func() error { return x.create(i, newPool(s)) }
		return l, nil
	}
	u, m, err := x.marked(poolKind, s.Args.Pool)
	if err != nil || u == nil {
		return l, err
	}
	if !m.Created {
		return l, failf("pool %s exists and was not created by plan %s: %w", s.Args.Pool, x.r.plan.ID, ErrPlanConflict)
	}
	l.ours = true
	if p.Spec.Configuration.Name == "" {
		l.why = fmt.Sprintf("pool %s has no rendered configuration yet", p.Name)
		l.wait = []string{p.Name}
		return l, nil
	}
	l.done = true
	return l, nil
}

// lookAtOldPool deletes a pool of ours.
func (x *pass) lookAtOldPool(s *Step) (look, error) {
	l := look{writes: true, ours: true}
	u, m, err := x.marked(poolKind, s.Args.Pool)
	if err != nil {
		return l, err
	}
	if u == nil {
		l.done = true
		return l, nil
	}
	if !m.Created {
		return l, failf("pool %s was not created by plan %s", s.Args.Pool, x.r.plan.ID)
	}
	nodes, err := x.v.nodesOf(s.Args.Pool)
	if err != nil {
		return l, err
	}
	if len(nodes) > 0 {
		l.why = fmt.Sprintf("pool %s has %d nodes", s.Args.Pool, len(nodes))
		l.wait = []string{s.Args.Pool}
		return l, nil
	}
	users, err := x.v.usersOf(s.Args.Pool)
	if err != nil {
		return l, err
	}
	if len(users) > 0 {
		l.why = fmt.Sprintf("node %s still uses the configuration of pool %s", users[0].Name, s.Args.Pool)
		member, err := x.v.membership()
		if err != nil {
			return l, err
		}
		for _, n := range users {
			if in := member.Of(n.Labels).Primary; in != "" && !slices.Contains(l.wait, in) {
				l.wait = append(l.wait, in)
			}
		}
		return l, nil
	}
	l.why = fmt.Sprintf("pool %s exists", s.Args.Pool)
	if u.GetDeletionTimestamp() == nil {
		l.change = func() error { return x.remove(u) }
	}
	return l, nil
}
