package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Mode is what becomes of a plan.
type Mode string

// The ways to continue and to stop a plan. No stop touches what nodes are doing, the
// cluster's version, operators, drains and hooks.
const (
	// Resume continues a plan that failed or was stopped.
	Resume Mode = "Resume"
	// Hold does no further step and changes nothing.
	Hold Mode = "Hold"
	// Freeze is Hold, and pauses again the pools that the plan unpaused and that are
	// not done. Nodes that are being updated finish.
	Freeze Mode = "Freeze"
	// Restore puts back what fields had before the plan, in reverse order, if
	// the plan's own value still stands, and deletes what it created.
	// A pool that the plan created goes when no node has its configuration any more,
	// which is waited for as long as nodes move. What makes nodes drain and reboot is
	// left and reported: unpausing a pool that has a configuration pending, moving nodes
	// to a pool of other content, removing a MachineConfig.
	Restore Mode = "Restore"
	// RestoreWithReboots is Restore, and also undoes what makes nodes drain and reboot.
	RestoreWithReboots Mode = "RestoreWithReboots"
)

// stops reports whether a runner stops its plan.
func (m Mode) stops() bool { return m != "" && m != Resume }

// restores reports whether a runner puts back what the plan changed.
func (m Mode) restores() bool { return m == Restore || m == RestoreWithReboots }

// ended is the state that a stop leads to.
func (m Mode) ended() State {
	switch m {
	case Freeze:
		return StateFrozen
	case Restore, RestoreWithReboots:
		return StateRestored
	}
	return StateHeld
}

// Report says what a stop found. Of each list the first 100 are kept.
type Report struct {
	// Restored is as it was before the plan.
	Restored []Item `json:"restored,omitempty"`
	// Left is as the plan made it.
	Left []Item `json:"left,omitempty"`
	// Conflicts are fields that somebody else has changed since the plan did;
	// they stay as they are.
	Conflicts []Item `json:"conflicts,omitempty"`
	// More counts those that are not kept.
	More int `json:"more,omitempty"`
}

// Item is one field, or one whole object, of a [Report].
type Item struct {
	Object string `json:"object"`          // as in MachineConfigPool/worker
	Field  string `json:"field,omitempty"` // a JSON pointer; empty: the object
	Text   string `json:"text"`
}

const maxItems = 100

// add notes an item once.
func (r *Report) add(list *[]Item, item Item) {
	same := func(o Item) bool { return o.Object == item.Object && o.Field == item.Field }
	if slices.ContainsFunc(*list, same) {
		return
	}
	if len(*list) >= maxItems {
		r.More++
		return
	}
	*list = append(*list, item)
}

// beginStop makes the record say how the plan ends.
func (x *pass) beginStop() {
	p := &x.rec.Progress
	p.Report = nil
	switch x.o.Mode {
	case Hold:
		p.State = StateHeld
	case Freeze:
		p.State = StateFreezing
	default:
		p.State = StateRestoring
		p.AllowReboots = x.o.Mode == RestoreWithReboots
	}
}

// touched is an object with our mark.
type touched struct {
	u *unstructured.Unstructured // shared
	mark
	lost bool // somebody removed the mark: it is what the record remembers
}

// first is the first step that changed the object.
func (t touched) first() int {
	first := -1
	if t.Created {
		first = t.Step
	}
	for _, f := range t.Fields {
		if first < 0 || f.Step < first {
			first = f.Step
		}
	}
	return first
}

// scan finds all objects with our mark, those that were changed last first.
func (x *pass) scan() ([]touched, error) {
	var out []touched
	add := func(u *unstructured.Unstructured) error {
		switch u.GetAnnotations()[annotationPlan] {
		case x.plan.ID:
			_, m, err := markOf(u)
			out = append(out, touched{u: u, mark: m})
			return err
		case "":
			if m := x.remembered(u); len(m.Fields) > 0 {
				out = append(out, touched{u: u, mark: m, lost: true})
			}
		}
		return nil
	}
	for _, gvk := range []schema.GroupVersionKind{poolKind, nodeKind, versionKind, healthCheckKind} {
		objects, err := clusterapi.ListShared(x.ctx, x.api, gvk, clusterapi.ListOptions{})
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if err := add(o.Unstructured()); err != nil {
				return nil, err
			}
		}
	}
	seen := map[string]bool{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		if s.Kind != ApplyObject {
			continue
		}
		want := objectOf(s)
		name := want.GroupVersionKind().GroupKind().String() + " " + objectName(want)
		if seen[name] || standard(want.GroupVersionKind()) {
			continue
		}
		seen[name] = true
		o, err := clusterapi.GetShared(x.ctx, x.api, want.GroupVersionKind(), clusterapi.KeyOf(want))
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := add(o.Unstructured()); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b touched) int { return cmp.Compare(b.first(), a.first()) })
	return out, nil
}

// standard reports whether scan lists all objects of a kind.
func standard(gvk schema.GroupVersionKind) bool {
	return gvk == poolKind || gvk == nodeKind || gvk == versionKind || gvk == healthCheckKind
}

// again is in how long a scan that found nothing is repeated, since what it read
// may have been old.
const again = 5 * time.Second

// quiet reports whether two scans have found nothing.
func (x *pass) quiet() (bool, time.Time) {
	if x.silent.IsZero() || x.now.Before(x.silent) {
		x.silent = x.now
	}
	if x.now.Sub(x.silent) < again {
		return false, x.silent.Add(again)
	}
	return true, time.Time{}
}

// unmarkAll removes our marks. at is when to go on; zero: none is left.
func (x *pass) unmarkAll() (at time.Time, err error) {
	all, err := x.scan()
	if err != nil {
		return at, err
	}
	all = slices.DeleteFunc(all, func(t touched) bool { return t.lost })
	if len(all) == 0 {
		if ok, at := x.quiet(); !ok {
			return at, nil
		}
		return time.Time{}, nil
	}
	x.silent = time.Time{}
	for _, t := range all[:min(len(all), labelsAtOnce)] {
		u := t.u.DeepCopy()
		unmark(u)
		if _, err := x.api.Update(x.ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout}); err != nil && !apierrors.IsNotFound(err) {
			return at, err
		}
	}
	return x.now.Add(pace), nil
}

// held is the end of Hold.
func (x *pass) held(state State) error {
	all, err := x.scan()
	if err != nil {
		return err
	}
	r := &Report{}
	for _, t := range all {
		if t.Created {
			r.add(&r.Left, Item{Object: objectName(t.u), Text: "was created"})
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(t.Fields)) {
			f := t.Fields[p]
			if covers(valueAt(t.u, parsePointer(p)), f.Set) && !same(f.Set, f.Before) {
				r.add(&r.Left, Item{objectName(t.u), p, fmt.Sprintf("is %s, was %s", show(f.Set), show(f.Before))})
			}
		}
	}
	x.rec.Progress.Report = r
	x.report(EventLeft, r.Left)
	return x.endPlan(state, nil)
}

// show is a field's value for people.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "absent"
	case string:
		return fmt.Sprintf("%q", v)
	case map[string]any, []any:
		return "another"
	}
	return fmt.Sprint(v)
}

func (x *pass) report(t clusterapi.EventType, items []Item) {
	for _, i := range items {
		text := i.Object
		if i.Field != "" {
			text += " " + i.Field
		}
		x.emit(t, EventData{Warning: t == EventLeft}, text+" "+i.Text, nil)
	}
}

// freeze pauses again what the plan unpaused too early.
func (x *pass) freeze() error {
	all, err := x.scan()
	if err != nil {
		return err
	}
	for _, t := range all {
		f, ok := t.Fields[pointer(pathPaused)]
		if t.u.GroupVersionKind() != poolKind || !ok || !same(f.Set, nil) || !same(valueAt(t.u, pathPaused), nil) {
			continue
		}
		why, err := x.v.updated(t.u.GetName())
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		if err := x.reopen(t.u.GetName()); err != nil || x.over {
			return err
		}
		u, err := t.write(t.u, x.plan.ID, f.Step, []field{{pathPaused, true}})
		if err == nil {
			_, err = x.api.Update(x.ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
		}
		if err != nil {
			return err
		}
	}
	return x.held(StateFrozen)
}

// reopen makes the steps that unpaused a pool pending again.
func (x *pass) reopen(pool string) error {
	changed := false
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		sp := x.rec.Progress.Steps[s.ID]
		if s.Kind == SetPaused && !*s.Args.Paused && slices.Contains(s.Args.Pools, pool) && sp.State == stepDone {
			sp.State, changed = stepPending, true
			x.rec.Progress.Steps[s.ID] = sp
		}
	}
	if !changed {
		return nil
	}
	return x.store()
}

// restore puts back what was before the plan.
func (x *pass) restore() (res reconcile.Result, err error) {
	all, err := x.scan()
	if err != nil {
		return res, err
	}
	r := &Report{} // the last one may be read by others
	if last := x.rec.Progress.Report; last != nil {
		r.Restored, r.Conflicts, r.More = slices.Clone(last.Restored), slices.Clone(last.Conflicts), last.More
	}
	x.rec.Progress.Report = r
	var undos []undo
	waits := false
	for _, t := range all {
		u, err := x.undo(t, r)
		if err != nil {
			return res, err
		}
		if u != nil && u.later {
			waits = true
		} else if u != nil {
			undos = append(undos, *u)
		}
		if len(undos) == labelsAtOnce {
			break
		}
	}
	if len(undos) == 0 && waits {
		x.silent = time.Time{}
		return reconcile.Result{At: x.now.Add(actionEvery)}, nil
	}
	if len(undos) == 0 {
		if ok, at := x.quiet(); !ok {
			return reconcile.Result{At: at}, nil
		}
		x.report(EventRestored, r.Restored)
		x.report(EventLeft, r.Left)
		x.report(EventLeft, r.Conflicts)
		return res, x.endPlan(StateRestored, nil)
	}
	x.silent = time.Time{}
	if err := x.store(); err != nil || x.over { // what is reported, before the marks go
		return res, err
	}
	for _, u := range undos {
		if err := x.carryOut(u); err != nil {
			return res, err
		}
	}
	return reconcile.Result{At: x.now.Add(pace)}, nil
}

// undo is what is to be done with one object.
type undo struct {
	object *unstructured.Unstructured
	delete bool
	later  bool // not yet
}

func (x *pass) carryOut(u undo) error {
	if u.delete {
		return x.remove(u.object)
	}
	_, err := x.api.Update(x.ctx, u.object, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// undo decides what becomes of one object; nil: it stays as it is.
func (x *pass) undo(t touched, r *Report) (*undo, error) {
	if t.Created {
		return x.undoCreation(t, r)
	}
	name := objectName(t.u)
	next := t.u.DeepCopy()
	var pending []string // that are not as they were
	for _, p := range slices.Sorted(maps.Keys(t.Fields)) {
		f, path := t.Fields[p], parsePointer(p)
		now := valueAt(t.u, path)
		switch {
		case same(now, f.Before):
			if now != nil || f.Before != nil {
				_ = setAt(next, path, f.Before) // to the letter
			}
		case !covers(now, f.Set):
			r.add(&r.Conflicts, Item{name, p, fmt.Sprintf("was %s, the plan made it %s, and somebody made it %s", show(f.Before), show(f.Set), show(now))})
		default:
			if err := setAt(next, path, f.Before); err != nil {
				return nil, err
			}
			pending = append(pending, p)
		}
	}
	if t.lost && len(pending) == 0 {
		return nil, nil
	}
	left := mark{Version: markFormat, Fields: map[string]markField{}} // for fear of reboots
	if len(pending) > 0 && !x.rec.Progress.AllowReboots {
		fields, why, err := x.reboots(t.u, next)
		if err != nil {
			return nil, err
		}
		for _, p := range pending {
			if f, path := t.Fields[p], parsePointer(p); why != "" && strings.HasPrefix(p, fields) {
				left.Fields[p] = f
				r.add(&r.Left, Item{name, p, fmt.Sprintf("is %s, was %s: %s", show(f.Set), show(f.Before), why)})
				if err := setAt(next, path, valueAt(t.u, path)); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(left.Fields) == len(t.Fields) {
		return nil, nil
	}
	for _, p := range pending {
		f := t.Fields[p]
		if _, stays := left.Fields[p]; !stays {
			r.add(&r.Restored, Item{name, p, fmt.Sprintf("is %s again, not %s", show(f.Before), show(f.Set))})
		}
	}
	if unmark(next); len(left.Fields) > 0 {
		if err := left.put(next, x.plan.ID); err != nil {
			return nil, err
		}
	}
	return &undo{object: next}, nil
}

// undoCreation decides what becomes of an object that the plan made.
func (x *pass) undoCreation(t touched, r *Report) (*undo, error) {
	name := objectName(t.u)
	if t.u.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	why := ""
	switch t.u.GroupVersionKind() {
	case poolKind:
		nodes, err := x.v.nodesOf(t.u.GetName())
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			if _, ours := n.Labels[mcp.LabelNodeRolePrefix+t.u.GetName()]; !ours || n.Annotations[annotationPlan] == x.plan.ID {
				why = fmt.Sprintf("it has %d nodes", len(nodes))
			}
		}
		if why == "" && len(nodes) > 0 && !x.rec.Progress.AllowReboots {
			why = fmt.Sprintf("it has %d nodes that somebody else gave it", len(nodes))
		}
		if why != "" {
			break
		}
		users, err := x.v.usersOf(t.u.GetName())
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			parked, err := x.v.parked(users)
			if err != nil {
				return nil, err
			}
			if !parked && !x.lingers(t.u.GetName(), users) {
				return &undo{later: true}, nil
			}
			why = fmt.Sprintf("node %s still uses its configuration", users[0].Name)
		}
	case configKind:
		if !x.rec.Progress.AllowReboots {
			why = "without it nodes drain and reboot"
		}
	}
	if why != "" {
		r.add(&r.Left, Item{Object: name, Text: "was created: " + why})
		return nil, nil
	}
	r.add(&r.Restored, Item{Object: name, Text: "is gone again"})
	return &undo{object: t.u, delete: true}, nil
}

// lingers reports whether nodes have used a pool's configuration for so long
// without any progress that a stop does not wait for them any more. The pool's
// configurations go with it, and a node that is on the way to one, or from one,
// needs it.
func (x *pass) lingers(pool string, users []*corev1.Node) bool {
	since, known := x.lingering[pool]
	if !known || x.now.Before(since) {
		since = x.now
		x.emit(EventWaiting, EventData{}, fmt.Sprintf("pool %s stays while %d nodes use its configuration", pool, len(users)), nil)
	}
	for _, at := range x.moved {
		if at.After(since) {
			since = at
		}
	}
	x.lingering[pool] = since
	return x.now.Sub(since) >= 3*x.o.Stall
}

// reboots says why going from one state of an object to another makes nodes
// drain and reboot, "" where it does not, and which fields do, by how their pointers
// begin.
func (x *pass) reboots(now, next *unstructured.Unstructured) (fields, why string, err error) {
	switch now.GroupVersionKind() {
	case poolKind:
		if same(valueAt(now, pathPaused), valueAt(next, pathPaused)) {
			return "", "", nil
		}
		p, err := clusterapi.FromUnstructured[mcfgv1.MachineConfigPool](now)
		if err != nil {
			return "", "", err
		}
		updated := p.Spec.Configuration.Name == p.Status.Configuration.Name && poolSays(p, mcfgv1.MachineConfigPoolUpdated)
		if updated || same(valueAt(next, pathPaused), true) {
			return "", "", nil
		}
		return pointer(pathPaused), "a configuration is pending, for which nodes drain and reboot", nil
	case nodeKind:
		n, err := clusterapi.FromUnstructured[corev1.Node](next)
		member, err2 := x.v.membership()
		if err != nil || err2 != nil {
			return "", "", cmp.Or(err, err2)
		}
		to := member.Of(n.Labels).Primary
		if to == member.Of(now.GetLabels()).Primary {
			return "", "", nil // it moves to no other content
		}
		p, err := x.v.pool(to)
		if err != nil || p == nil {
			return "", "", err
		}
		if config := mcp.NodeStateOf(n).CurrentConfig; config != "" && !sameConfig(config, p.Spec.Configuration.Name) {
			return pointer(labelPath("")), fmt.Sprintf("pool %s has other content, for which the node drains and reboots", p.Name), nil
		}
	case configKind:
		return "", "nodes drain and reboot for the change", nil
	}
	return "", "", nil
}
