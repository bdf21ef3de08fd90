package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The record of a long plan has its finished steps in runs, in the order of the plan, under
// a key of its own: "Done*4711 -*1 Skipped*2" is 4,711 steps that are Done, one that is in
// the progress, and two that are Skipped. So it holds a plan of 10,000 nodes.

const (
	// longPlan is how many steps a plan has at most that keeps all of the progress of
	// each.
	longPlan = 500
	// inProgress stands for steps that the progress has.
	inProgress = "-"
)

// shorten keeps no more than the state of steps of a long plan when one is over: of that
// step, unless the plan has to put back what it changed, and when a node is uncordoned, of
// the steps that changed it. It drops the confirmation of the step.
func (r *record) shorten(steps []Step, over *Step) error {
	if len(steps) <= longPlan {
		return nil
	}
	if r.confirmed[over.ID] {
		delete(r.confirmed, over.ID)
		var err error
		r.data[keyConfirmed], err = encodeConfirmed(r.confirmed)
		if err != nil {
			return err
		}
	}
	for i := range steps {
		s := &steps[i]
		p := r.Progress.Steps[s.ID]
		back := over.Kind == Uncordon && s.Args.Node == over.Args.Node
		if p.finished() && (back || s == over && p.Before == nil) {
			r.Progress.Steps[s.ID] = StepProgress{State: p.State}
		}
		if s == over {
			break
		}
	}
	return nil
}

func (s StepProgress) finished() bool { return s.State == stepDone || s.State == stepSkipped }

// short reports whether no more than the state is left of a step.
func (s StepProgress) short() bool {
	return s.Started.IsZero() && s.Finished.IsZero() && s.Moved.IsZero() &&
		s.Attempts == 0 && s.Before == nil && s.Error == ""
}

// foldFinished cuts progress into what it has besides the states of finished steps, and
// these in runs.
func foldFinished(all map[string]StepProgress, steps []Step) (rest map[string]StepProgress, runs string) {
	rest = make(map[string]StepProgress)
	var b strings.Builder
	last := ""
	n := 0
	end := func() {
		if n > 0 {
			fmt.Fprintf(&b, "%s*%d ", last, n)
		}
	}
	for i := range steps {
		p, there := all[steps[i].ID]
		state := inProgress
		if p.finished() && p.short() {
			state = p.State
		} else if there {
			rest[steps[i].ID] = p
		}
		if state != last {
			end()
			last = state
			n = 0
		}
		n++
	}
	if last != inProgress {
		end()
	}
	return rest, strings.TrimSuffix(b.String(), " ")
}

// unfold adds the steps that are in runs to the progress.
func (r *record) unfold(steps []Step) error {
	for run := range strings.FieldsSeq(r.finished) {
		state, count, _ := strings.Cut(run, "*")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > len(steps) || !slices.Contains([]string{stepDone, stepSkipped, inProgress}, state) {
			return fmt.Errorf("the record does not fit the plan: %d steps are left for %q", len(steps), run)
		}
		for i := range n {
			if state != inProgress {
				r.Progress.Steps[steps[i].ID] = StepProgress{State: state}
			}
		}
		steps = steps[n:]
	}
	r.finished = ""
	return nil
}
