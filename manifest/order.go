package manifest

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// OrderError says that a component's tasks are in two places of a runlevel
// with others between them, as they are in a list that is not sorted by file
// name. Grouping makes two nodes of them, without an order between them.
type OrderError struct {
	Level, Component string
	// First is the last task before the gap, Again the first one after it.
	First, Again *Task
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("runlevel %s: component %s comes back: no order between %s and %s", e.Level, e.Component, e.First, e.Again)
}

// ValidateOrder reports each component that comes back within a runlevel, as
// joined [*OrderError]s in the order of the list. One that comes back after a
// Job is in order, since Jobs are barriers: see [UpdateGraph].
func ValidateOrder(tasks []*Task) error {
	var errs []error
	for len(tasks) > 0 {
		n := slices.IndexFunc(tasks, isJob)
		if n < 0 {
			n = len(tasks)
		}
		errs = append(errs, orderErrors(tasks[:n])...)
		tasks = tasks[min(n+1, len(tasks)):]
	}
	return bounded.Errors(errs...)
}

// orderErrors reports the components that come back in a list without Jobs.
func orderErrors(tasks []*Task) []error {
	var errs []error
	list := chunks(tasks)
	for i := 0; i < len(list); {
		to := levelRun(list, i)
		last := make(map[string]*Task, to-i)
		for _, c := range list[i:to] {
			if first, ok := last[c.component]; ok && c.ok {
				errs = append(errs, &OrderError{Level: c.level, Component: c.component, First: first, Again: c.tasks[0]})
			}
			last[c.component] = c.tasks[len(c.tasks)-1]
		}
		i = to
	}
	return errs
}
