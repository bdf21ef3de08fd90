package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// restore puts back what was before the plan.
func (x *pass) restore() (res reconcile.Result, err error) {
	all, err := x.scan()
	if err != nil {
		return res, err
	}
	r := &Report{} // the last one may be read by others
	if last := x.rec.Progress.Report; last != nil {
		*r = Report{Restored: slices.Clone(last.Restored), Conflicts: slices.Clone(last.Conflicts), More: last.More}
	}
	x.rec.Progress.Report = r
	var undos []func() error
	waits := false
	for _, t := range all {
		undo, later, err := x.undo(t, r)
		if err != nil {
			return res, err
		}
		waits = waits || later
		if undo != nil {
			undos = append(undos, undo)
		}
		if len(undos) == labelsAtOnce {
			break
		}
	}
	if len(undos) == 0 && !waits {
		done, at := x.quiet()
		if !done {
			return reconcile.Result{At: at}, nil
		}
		if err := x.reportLostLabels(r); err != nil {
			return res, err
		}
		x.report(EventRestored, r.Restored)
		x.report(EventLeft, r.Left)
		x.report(EventLeft, r.Conflicts)
		return res, x.endPlan(StateRestored, nil)
	}
	x.silent = time.Time{}
	if len(undos) == 0 {
		return reconcile.Result{At: x.now.Add(actionEvery)}, nil
	}
	if err := x.store(); err != nil || x.over { // what is reported, before the marks go
		return res, err
	}
	for _, undo := range undos {
		if err := undo(); err != nil {
			return res, err
		}
	}
	return reconcile.Result{At: x.now.Add(pace)}, nil
}

// undo decides what becomes of one object. It returns what puts it back; nil: it stays as
// it is, for now if later is set.
func (x *pass) undo(t touched, r *Report) (undo func() error, later bool, err error) {
	name := objectName(t.u)
	if t.Created {
		if t.u.GetDeletionTimestamp() != nil {
			return nil, false, nil
		}
		why, later, err := x.keeps(t.u)
		switch {
		case err != nil || later:
			return nil, later, err
		case why != "":
			r.add(&r.Left, Item{Object: name, Text: "was created: " + why})
			return nil, false, nil
		}
		r.add(&r.Restored, Item{Object: name, Text: "is gone again"})
		return func() error { return x.remove(t.u) }, false, nil
	}
	ours, others := t.fields()
	for _, p := range others {
		f := t.Fields[p]
		now := show(valueAt(t.u, parsePointer(p)))
		text := fmt.Sprintf("was %s, the plan made it %s, and somebody made it %s", show(f.Before), show(f.Set), now)
		r.add(&r.Conflicts, Item{name, p, text})
	}
	if t.lost && len(ours) == 0 {
		return nil, false, nil
	}
	next := t.u.DeepCopy()
	for p, f := range t.Fields {
		path := parsePointer(p)
		if slices.Contains(others, p) || f.Before == nil && valueAt(t.u, path) == nil {
			continue
		}
		if err := setAt(next, path, f.Before); err != nil { // to the letter
			return nil, false, err
		}
	}
	left, err := x.avoidReboots(t, next, ours, r)
	if err != nil || len(left.Fields) == len(t.Fields) {
		return nil, false, err
	}
	for _, p := range ours {
		f := t.Fields[p]
		if _, stays := left.Fields[p]; !stays {
			r.add(&r.Restored, Item{name, p, fmt.Sprintf("is %s again, not %s", show(f.Before), show(f.Set))})
		}
	}
	unmark(next)
	if len(left.Fields) > 0 {
		err = left.put(next, x.plan.ID)
	}
	return func() error { return x.write(next) }, false, err
}

// avoidReboots takes out of next, unless reboots are allowed, what would make nodes reboot.
// It returns the mark of the removed fields.
func (x *pass) avoidReboots(t touched, next *unstructured.Unstructured, ours []string, r *Report) (mark, error) {
	left := mark{Version: markFormat, Fields: map[string]markField{}}
	if len(ours) == 0 || x.rec.Progress.AllowReboots {
		return left, nil
	}
	prefix, why, err := x.reboots(t.u, next)
	if err != nil || why == "" {
		return left, err
	}
	for _, p := range ours {
		if !strings.HasPrefix(p, prefix) {
			continue
		}
		f := t.Fields[p]
		left.Fields[p] = f
		r.add(&r.Left, Item{objectName(t.u), p, fmt.Sprintf("is %s, was %s: %s", show(f.Set), show(f.Before), why)})
		path := parsePointer(p)
		if err := setAt(next, path, valueAt(t.u, path)); err != nil {
			return left, err
		}
	}
	return left, nil
}

// keeps returns why an object that the plan created stays, and whether that has to be asked
// again later.
func (x *pass) keeps(u *unstructured.Unstructured) (why string, later bool, err error) {
	switch u.GroupVersionKind() {
	case poolKind:
		return x.keepsPool(u.GetName())
	case configKind:
		if !x.rec.Progress.AllowReboots {
			why = "without it nodes drain and reboot"
		}
	}
	return why, false, nil
}

func (x *pass) keepsPool(pool string) (why string, later bool, err error) {
	nodes, err := x.v.nodesOf(pool)
	users, err2 := x.v.usersOf(pool)
	parked, err3 := x.v.parked(users)
	if err := errors.Join(err, err2, err3); err != nil {
		return "", false, err
	}
	ours := func(n *corev1.Node) bool {
		_, labelled := n.Labels[mcp.LabelNodeRolePrefix+pool]
		return !labelled || n.Annotations[annotationPlan] == x.plan.ID
	}
	switch {
	case slices.ContainsFunc(nodes, ours):
		return fmt.Sprintf("it has %d nodes", len(nodes)), false, nil
	case len(nodes) > 0 && !x.rec.Progress.AllowReboots:
		return fmt.Sprintf("it has %d nodes that somebody else gave it", len(nodes)), false, nil
	case len(users) == 0:
		return "", false, nil
	case parked || x.lingers(pool, users):
		return fmt.Sprintf("node %s still uses its configuration", users[0].Name), false, nil
	}
	return "", true, nil
}

// lingers reports whether nodes have used a pool's configuration for so long
// without any progress that a stop does not wait for them any more. The pool's
// configurations go with it, and a node that is on the way to one, or from one,
// needs it.
func (x *pass) lingers(pool string, users []*corev1.Node) bool {
	since, known := x.lingering[pool]
	if !known || x.now.Before(since) {
		since = x.now
		text := fmt.Sprintf("pool %s stays while %d nodes use its configuration", pool, len(users))
		x.emit(EventWaiting, EventData{}, text, nil)
	}
	for _, at := range x.moved {
		if at.After(since) {
			since = at
		}
	}
	x.lingering[pool] = since
	return x.now.Sub(since) >= 3*x.run.o.Stall
}

// reboots returns why going from one state of an object to another makes nodes
// drain and reboot, "" if it does not, and which fields do, by how their pointers
// start.
func (x *pass) reboots(now, next *unstructured.Unstructured) (fields, why string, err error) {
	switch now.GroupVersionKind() {
	case poolKind:
		if same(valueAt(now, pathPaused), valueAt(next, pathPaused)) || same(valueAt(next, pathPaused), true) {
			return "", "", nil
		}
		p, err := clusterapi.FromUnstructured[mcfgv1.MachineConfigPool](now)
		if err != nil {
			return "", "", err
		}
		if p.Spec.Configuration.Name == p.Status.Configuration.Name && poolSays(p, mcfgv1.MachineConfigPoolUpdated) {
			return "", "", nil
		}
		return pointer(pathPaused), "a configuration is pending, for which nodes drain and reboot", nil
	case nodeKind:
		n, err := clusterapi.FromUnstructured[corev1.Node](next)
		member, err2 := x.v.membership()
		if err := errors.Join(err, err2); err != nil {
			return "", "", err
		}
		to := member.Of(n.Labels).Primary
		if to == member.Of(now.GetLabels()).Primary {
			return "", "", nil // it moves to no other content
		}
		p, err := x.v.pool(to)
		if err != nil || p == nil {
			return "", "", err
		}
		config := mcp.NodeStateOf(n).CurrentConfig
		if config != "" && !sameConfig(config, p.Spec.Configuration.Name) {
			why = fmt.Sprintf("pool %s has other content, for which the node drains and reboots", p.Name)
			return pointer(labelPath("")), why, nil
		}
	case configKind:
		return "", "nodes drain and reboot for the change", nil
	}
	return "", "", nil
}
