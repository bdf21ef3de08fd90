package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
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

// state returns the state in which a stop begins.
func (m Mode) state() State {
	switch m {
	case Freeze:
		return StateFreezing
	case Restore, RestoreWithReboots:
		return StateRestoring
	}
	return StateHeld
}

// end returns the state that follows when a state which brings the plan to its end has done
// its work; empty for the rest.
func (s State) end() State {
	switch s {
	case StateHeld:
		return StateHeld
	case StateFreezing:
		return StateFrozen
	case StateRestoring:
		return StateRestored
	case StateEnding:
		return StateFinished
	}
	return ""
}

// Report describes what a stop found. Of each list the first 100 are kept.
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

// clone returns what a stop has put back and found until now; what it leaves is found by each
// look.
func (r *Report) clone() *Report {
	if r == nil {
		return &Report{}
	}
	return &Report{Restored: slices.Clone(r.Restored), Conflicts: slices.Clone(r.Conflicts), More: r.More}
}

// bringToEnd decides what becomes of each object that the plan changed, and makes the changes
// that follow. If there are none left it ends the plan.
func (x *pass) bringToEnd() (res reconcile.Result, err error) {
	all, err := x.scan()
	if err != nil {
		return res, err
	}
	p := &x.r.rec.Progress
	r := p.Report.clone() // others may read the last one
	left := &Report{}     // of this look alone
	var changes []func() error
	waits := false
	for _, t := range all {
		change, later, err := x.fate(t, r, left)
		if err != nil {
			return res, err
		}
		waits = waits || later
		if change != nil {
			changes = append(changes, change)
		}
		if len(changes) == labelsAtOnce {
			break
		}
	}
	if len(changes) > 0 || waits {
		x.r.silent = time.Time{}
	}
	if len(changes) > 0 {
		return reconcile.Result{At: x.now.Add(pace)}, x.make(changes, r)
	}
	if waits {
		p.Report = r
		return reconcile.Result{At: x.now.Add(actionEvery)}, nil
	}
	if at := x.since(&x.r.silent).Add(again); x.now.Before(at) && p.State != StateHeld {
		return reconcile.Result{At: at}, nil
	}
	if p.State == StateEnding {
		return res, x.endPlan(StateFinished, nil)
	}
	if err := x.reportLostLabels(left); err != nil {
		return res, err
	}
	r.Left = left.Left
	r.More += left.More
	p.Report = r
	x.report(EventRestored, r.Restored)
	x.report(EventLeft, r.Left)
	x.report(EventLeft, r.Conflicts)
	return res, x.endPlan(p.State.end(), nil)
}

// make makes changes. What is reported of them is stored before the marks go.
func (x *pass) make(changes []func() error, r *Report) error {
	if x.r.rec.Progress.State != StateEnding {
		x.r.rec.Progress.Report = r
		if err := x.store(); err != nil || x.r.over {
			return err
		}
	}
	for _, change := range changes {
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

// again is in how long a scan that found nothing is repeated, since what it read
// may have been old.
const again = 5 * time.Second

// fate returns what changes an object that the plan has changed: nil if it stays as it is,
// for now if later is set.
func (x *pass) fate(t touched, r, left *Report) (change func() error, later bool, err error) {
	switch state := x.r.rec.Progress.State; {
	case state == StateEnding && t.lost:
		return nil, false, nil
	case state == StateEnding:
		next := t.u.DeepCopy()
		unmark(next)
		return func() error { return x.write(next) }, false, nil
	case t.Created:
		return x.fateOfCreated(t, r, left)
	case state == StateRestoring:
		change, err = x.putBack(t, r, left)
		return change, false, err
	case state == StateFreezing:
		change, err = x.pauseAgain(t)
		if change != nil || err != nil {
			return change, false, err
		}
	}
	ours, _ := t.fields()
	for _, p := range ours {
		t.reportLeft(left, p, "")
	}
	return nil, false, nil
}

// fateOfCreated is the fate of an object that the plan has created.
func (x *pass) fateOfCreated(t touched, r, left *Report) (change func() error, later bool, err error) {
	text := "was created"
	if x.r.rec.Progress.State == StateRestoring {
		if t.u.GetDeletionTimestamp() != nil {
			return nil, false, nil
		}
		why, later, err := x.keeps(t.u)
		if err != nil || later {
			return nil, later, err
		}
		if why == "" {
			r.add(&r.Restored, Item{Object: objectName(t.u), Text: "is gone again"})
			return func() error { return x.remove(t.u) }, false, nil
		}
		text += ": " + why
	}
	left.add(&left.Left, Item{Object: objectName(t.u), Text: text})
	return nil, false, nil
}

// pauseAgain pauses a pool that the plan has unpaused and that is not updated, and makes the
// steps that unpaused it pending.
func (x *pass) pauseAgain(t touched) (change func() error, err error) {
	f, ok := t.Fields[pointer(pathPaused)]
	if t.u.GroupVersionKind() != poolKind || !ok || !same(f.Set, nil) || !same(valueAt(t.u, pathPaused), nil) {
		return nil, nil
	}
	pool := t.u.GetName()
	why, err := x.v.updated(pool)
	if err != nil || why == "" {
		return nil, err
	}
	for i := range x.r.plan.Steps {
		s := &x.r.plan.Steps[i]
		sp := x.r.rec.Progress.Steps[s.ID]
		if s.Kind == SetPaused && !*s.Args.Paused && slices.Contains(s.Args.Pools, pool) && sp.State == stepDone {
			sp.State = stepPending
			x.r.rec.Progress.Steps[s.ID] = sp
		}
	}
	next, err := t.mark.write(t.u, x.r.plan.ID, f.Step, []field{{pathPaused, true}})
	return func() error { return x.write(next) }, err
}

// putBack gives fields what they had before the plan, if the plan's value still stands, and
// removes the mark. Fields that would make nodes reboot keep both, unless reboots are allowed.
func (x *pass) putBack(t touched, r, left *Report) (change func() error, err error) {
	ours, others := t.fields()
	for _, p := range others {
		f := t.Fields[p]
		now := show(valueAt(t.u, parsePointer(p)))
		text := fmt.Sprintf("was %s, the plan made it %s, and somebody made it %s", show(f.Before), show(f.Set), now)
		r.add(&r.Conflicts, Item{objectName(t.u), p, text})
	}
	if t.lost && len(ours) == 0 {
		return nil, nil
	}
	next := t.u.DeepCopy()
	for p, f := range t.Fields {
		path := parsePointer(p)
		if slices.Contains(others, p) || f.Before == nil && valueAt(t.u, path) == nil {
			continue
		}
		if err := setAt(next, path, f.Before); err != nil { // to the letter
			return nil, err
		}
	}
	prefix, why, err := x.reboots(t.u, next)
	if err != nil {
		return nil, err
	}
	kept := mark{Fields: map[string]markField{}}
	for _, p := range ours {
		f := t.Fields[p]
		if why == "" || !strings.HasPrefix(p, prefix) {
			r.add(&r.Restored, Item{objectName(t.u), p, fmt.Sprintf("is %s again, not %s", show(f.Before), show(f.Set))})
			continue
		}
		t.reportLeft(left, p, ": "+why)
		kept.Fields[p] = f
		path := parsePointer(p)
		if err := setAt(next, path, valueAt(t.u, path)); err != nil {
			return nil, err
		}
	}
	if len(kept.Fields) == len(t.Fields) {
		return nil, nil
	}
	unmark(next)
	if len(kept.Fields) > 0 {
		err = kept.put(next, x.r.plan.ID)
	}
	return func() error { return x.write(next) }, err
}

// reportLeft reports a field that stays as the plan made it.
func (t touched) reportLeft(r *Report, pointer, why string) {
	f := t.Fields[pointer]
	text := fmt.Sprintf("is %s, was %s%s", show(f.Set), show(f.Before), why)
	r.add(&r.Left, Item{objectName(t.u), pointer, text})
}

// write updates an object, unless it does not exist any more.
func (x *pass) write(u *unstructured.Unstructured) error {
	_, err := x.r.api.Update(x.ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
	return unlessAbsent(err)
}

// touched is an object with our mark.
type touched struct {
	u *unstructured.Unstructured // shared
	mark
	lost bool // somebody removed the mark: it is what the record remembers
}

// first is the first step that changed the object.
func (t touched) first() int {
	if t.Created {
		return t.Step
	}
	first := math.MaxInt
	for _, f := range t.Fields {
		first = min(first, f.Step)
	}
	return first
}

// fields returns the pointers of the fields that still have the plan's value and had
// another before, and of the fields that somebody else has changed since.
func (t touched) fields() (ours, others []string) {
	for _, p := range slices.Sorted(maps.Keys(t.Fields)) {
		f := t.Fields[p]
		now := valueAt(t.u, parsePointer(p))
		switch {
		case same(now, f.Before):
		case covers(now, f.Set):
			ours = append(ours, p)
		default:
			others = append(others, p)
		}
	}
	return ours, others
}

// scan finds all objects with our mark, those that were changed last first.
func (x *pass) scan() ([]touched, error) {
	var out []touched
	lost := x.remembered()
	err := eachChanged(x.ctx, x.r.api, x.r.plan.Steps, func(o *clusterapi.Object) error {
		u := o.Unstructured()
		switch u.GetAnnotations()[annotationPlan] {
		case x.r.plan.ID:
			_, m, err := markOf(u)
			out = append(out, touched{u: u, mark: m})
			return err
		case "":
			if m := lost[objectName(u)]; len(m.Fields) > 0 {
				out = append(out, touched{u: u, mark: m, lost: true})
			}
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b touched) int { return cmp.Compare(b.first(), a.first()) })
	return out, err
}

// show returns the text of a field's value.
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
