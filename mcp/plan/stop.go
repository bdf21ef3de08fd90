package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
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

// beginStop makes the record say how the plan ends.
func (x *pass) beginStop() {
	p := &x.rec.Progress
	p.Report = nil
	switch x.run.o.Mode {
	case Hold:
		p.State = StateHeld
	case Freeze:
		p.State = StateFreezing
	default:
		p.State = StateRestoring
		p.AllowReboots = x.run.o.Mode == RestoreWithReboots
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
	err := eachChanged(x.ctx, x.api, x.plan.Steps, func(o *clusterapi.Object) error {
		u := o.Unstructured()
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
	})
	slices.SortStableFunc(out, func(a, b touched) int { return cmp.Compare(b.first(), a.first()) })
	return out, err
}

// again is in how long a scan that found nothing is repeated, since what it read
// may have been old.
const again = 5 * time.Second

// quiet reports whether two scans have found nothing, or when the second is due.
func (x *pass) quiet() (bool, time.Time) {
	if x.silent.IsZero() || x.now.Before(x.silent) {
		x.silent = x.now
	}
	at := x.silent.Add(again)
	return !x.now.Before(at), at
}

// unmarkAll removes our marks. at is when to continue; zero: none is left.
func (x *pass) unmarkAll() (at time.Time, err error) {
	all, err := x.scan()
	if err != nil {
		return at, err
	}
	all = slices.DeleteFunc(all, func(t touched) bool { return t.lost })
	if len(all) == 0 {
		done, at := x.quiet()
		if done {
			return time.Time{}, nil
		}
		return at, nil
	}
	x.silent = time.Time{}
	for _, t := range all[:min(len(all), labelsAtOnce)] {
		u := t.u.DeepCopy()
		unmark(u)
		if err := x.write(u); err != nil {
			return at, err
		}
	}
	return x.now.Add(pace), nil
}

// write updates an object, unless it does not exist any more.
func (x *pass) write(u *unstructured.Unstructured) error {
	_, err := x.api.Update(x.ctx, u, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// held is the end of Hold.
func (x *pass) held(state State) error {
	all, err := x.scan()
	if err != nil {
		return err
	}
	r := &Report{}
	for _, t := range all {
		name := objectName(t.u)
		if t.Created {
			r.add(&r.Left, Item{Object: name, Text: "was created"})
			continue
		}
		ours, _ := t.fields()
		for _, p := range ours {
			if f := t.Fields[p]; !same(f.Set, f.Before) {
				r.add(&r.Left, Item{name, p, fmt.Sprintf("is %s, was %s", show(f.Set), show(f.Before))})
			}
		}
	}
	if err := x.reportLostLabels(r); err != nil {
		return err
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
		u, err := t.mark.write(t.u, x.plan.ID, f.Step, []field{{pathPaused, true}})
		if err != nil {
			return err
		}
		if err := x.write(u); err != nil {
			return err
		}
	}
	return x.held(StateFrozen)
}

// reopen makes the steps that unpaused a pool pending again.
func (x *pass) reopen(pool string) error {
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		sp := x.rec.Progress.Steps[s.ID]
		if s.Kind == SetPaused && !*s.Args.Paused && slices.Contains(s.Args.Pools, pool) && sp.State == stepDone {
			sp.State = stepPending
			x.rec.Progress.Steps[s.ID] = sp
		}
	}
	return x.store()
}
