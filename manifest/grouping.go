package manifest

import (
	"math/rand"
	"slices"
)

// grouping makes buckets out of a list of tasks. Buckets follow one another;
// the nodes of a bucket may run in parallel; the tasks of a node run in order.
type grouping = func(tasks []*Task) [][][]*Task

// chunk is a run of neighbours with the same level and component, or a single task
// whose file name has neither.
type chunk struct {
	tasks            []*Task
	level, component string
	ok               bool // the name has level and component
}

// chunks cuts a list into its chunks.
func chunks(tasks []*Task) []chunk {
	list := make([]chunk, 0, len(tasks))
	for i, t := range tasks {
		level, component, ok := ParseName(t.Manifest.Filename)
		if n := len(list); ok && n > 0 {
			if last := &list[n-1]; last.ok && last.level == level && last.component == component {
				last.tasks = tasks[i-len(last.tasks) : i+1 : i+1]
				continue
			}
		}
		list = append(list, chunk{tasks: tasks[i : i+1 : i+1], level: level, component: component, ok: ok})
	}
	return list
}

// levelRun returns the end of the level run that starts at list[from].
func levelRun(list []chunk, from int) int {
	to := from + 1
	for list[from].ok && to < len(list) && list[to].ok && list[to].level == list[from].level {
		to++
	}
	return to
}

// byNumberAndComponent is the grouping of an update. Neighbours of one
// runlevel with at least two components become a bucket with one node per
// component. Everything between such buckets becomes a single node, across
// levels. Fewer than two tasks make no buckets.
//
// Only neighbours are grouped: in a list that is not sorted by file name, a
// component that returns within a level is two nodes, without an order between
// them: see splits.
func byNumberAndComponent(tasks []*Task) [][][]*Task {
	if len(tasks) < 2 {
		return nil
	}
	var buckets [][][]*Task
	list := chunks(tasks)
	serial, end := 0, 0 // tasks[serial:end] wait to become one node
	flush := func() {
		if serial < end {
			buckets = append(buckets, [][]*Task{tasks[serial:end:end]})
		}
	}
	for i := 0; i < len(list); {
		to := levelRun(list, i)
		if to == i+1 {
			end += len(list[i].tasks)
			i = to
			continue
		}
		flush()
		bucket := make([][]*Task, 0, to-i)
		for _, c := range list[i:to] {
			bucket = append(bucket, c.tasks)
			end += len(c.tasks)
		}
		buckets = append(buckets, bucket)
		serial, i = end, to
	}
	flush()
	return buckets
}

// flattenByNumberAndComponent puts all components of all levels in one bucket,
// a node for each. Fewer than two tasks make no buckets.
func flattenByNumberAndComponent(tasks []*Task) [][][]*Task {
	if len(tasks) < 2 {
		return nil
	}
	list := chunks(tasks)
	bucket := make([][]*Task, len(list))
	for i, c := range list {
		bucket[i] = c.tasks
	}
	return [][][]*Task{bucket}
}

// permuteOrder shuffles the nodes of each bucket of f with r, from bucket
// to bucket and from call to call: a new generator with the same seed gives the
// same order. A bucket of one draws nothing.
func permuteOrder(f grouping, r *rand.Rand) grouping {
	return func(tasks []*Task) [][][]*Task {
		buckets := f(tasks)
		for _, b := range buckets {
			r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		return buckets
	}
}

// shiftOrder rotates each bucket of f to the left, so that stride steps together
// start with every part of a bucket: with m nodes by step mod m if m is smaller
// than stride, else by the whole part of step·m/stride, mod m. A stride below 1
// counts as 1, a negative step as 0.
func shiftOrder(f grouping, step, stride int) grouping {
	step, stride = max(step, 0), max(stride, 1)
	return func(tasks []*Task) [][][]*Task {
		buckets := f(tasks)
		for i, b := range buckets {
			m := len(b)
			if m == 0 {
				continue
			}
			by := step % m
			if m >= stride {
				// As step·m/stride mod m, but it cannot overflow: stride steps
				// are once around.
				by = step % stride * m / stride
			}
			buckets[i] = slices.Concat(b[by:], b[:by])
		}
		return buckets
	}
}
