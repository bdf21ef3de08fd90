package manifest

import "slices"

// split is a component whose tasks are in two places of a runlevel, with tasks of
// different components between them, as in a list that is not sorted by file name.
// Grouping makes two nodes of them, without an order between them.
type split struct {
	level, component string
	first, again     *Task // the last task before the gap, the first one after it
}

// splits returns each component that returns within a runlevel, in the order of the
// list. One that returns after a Job is in order, since Jobs are barriers.
func splits(tasks []*Task) []split {
	var out []split
	for len(tasks) > 0 {
		n := slices.IndexFunc(tasks, isJob)
		if n < 0 {
			n = len(tasks)
		}
		list := chunks(tasks[:n])
		for i := 0; i < len(list); {
			to := levelRun(list, i)
			last := make(map[string]*Task, to-i)
			for _, c := range list[i:to] {
				if first, ok := last[c.component]; ok && c.ok {
					out = append(out, split{c.level, c.component, first, c.tasks[0]})
				}
				last[c.component] = c.tasks[len(c.tasks)-1]
			}
			i = to
		}
		tasks = tasks[min(n+1, len(tasks)):]
	}
	return out
}
