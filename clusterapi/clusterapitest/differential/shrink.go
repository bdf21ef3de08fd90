package differential

import (
	"context"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// shrinkTime is when to stop looking for shorter sequences. A fault that
// shows by waiting in vain takes long each time.
const shrinkTime = 30 * time.Second

// shrink looks for a shorter sequence that fails, too: first without steps,
// then with less in them. It gives up after some tries, since each of them
// runs on both backends.
func (d *differential) shrink(ctx context.Context, steps []step, last []found) ([]step, []found) {
	n := 0
	deadline := time.Now().Add(shrinkTime)
	fails := func(candidate []step) bool {
		if d.o.Whole || n >= tries || time.Now().After(deadline) {
			return false
		}
		n++
		found, err := d.run(ctx, candidate)
		if err != nil || len(found) == 0 {
			return false
		}
		last = found
		return true
	}
	// What comes after the first difference played no part.
	if at := last[0].step; at < len(steps) && fails(steps[:at+1]) {
		steps = steps[:at+1]
	}
	for size := len(steps) / 2; size > 0; {
		shorter := false
		for at := 0; at+size <= len(steps); {
			candidate := slices.Concat(steps[:at], steps[at+size:])
			if len(candidate) > 0 && fails(candidate) {
				steps, shorter = candidate, true
			} else {
				at += size
			}
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	for i := range steps {
		for _, simpler := range steps[i].simpler() {
			candidate := slices.Clone(steps)
			candidate[i] = simpler(candidate[i])
			if fails(candidate) {
				steps = candidate
			}
		}
	}
	return steps, last
}

// simpler lists ways to make less of a step. Each looks at the step as it is
// by then.
func (s step) simpler() []func(step) step {
	var out []func(step) step
	for _, e := range s.edits {
		out = append(out, func(s step) step {
			s.edits = slices.DeleteFunc(slices.Clone(s.edits), func(o edit) bool { return o.String() == e.String() })
			return s
		})
	}
	for _, c := range s.kind.all {
		now, has := lookUp(s.body, c.path())
		base, inBase := lookUp(s.kind.Base, c.path())
		if s.body == nil || !has || inBase && reflect.DeepEqual(now, base) {
			continue
		}
		out = append(out, func(s step) step {
			s.body = runtime.DeepCopyJSON(s.body)
			if inBase {
				put(s.body, c.path(), runtime.DeepCopyJSONValue(base))
			} else {
				edit{path: c.path(), remove: true}.do(s.body)
			}
			return s
		})
	}
	return out
}

// lookUp returns what is at a path.
func lookUp(object map[string]any, path []string) (any, bool) {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	v, ok := object[path[len(path)-1]]
	return v, ok
}
