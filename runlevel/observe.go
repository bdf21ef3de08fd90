package runlevel

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// journal counts the tasks of a pass and takes its events to the observer: in
// order, one at a time, and without a lock. Whoever puts an event finds the journal
// idle and delivers until nothing is left, or finds it at work and returns. So a
// slow observer holds up one worker, and none if there is only one.
type journal struct {
	observe func(clusterapi.Event)
	clock   clock.PassiveClock
	total   int

	mu            sync.Mutex // guards what follows
	done, skipped int
	attempts      int                    // that failed
	reports       []*TaskError           // what did not block
	levels        map[string]*levelCount // nil without an observer
	queue         []clusterapi.Event
	spare         []clusterapi.Event // the last one delivered, for its room
	delivering    bool
	failed        *TaskError // the first panic of the observer
	failures      int
}

// newJournal returns the journal of a pass over tasks. A nil observer gets nothing.
func newJournal(observe func(clusterapi.Event), c clock.PassiveClock, tasks []*manifest.Task) *journal {
	j := &journal{observe: observe, clock: c, total: len(tasks)}
	if observe != nil {
		j.levels = make(map[string]*levelCount)
		for _, t := range tasks {
			j.level(t).total++
		}
	}
	return j
}

// levelCount counts the tasks of a level.
type levelCount struct{ settled, total int }

// emit hands an event of the pass to the observer.
func (j *journal) emit(kind clusterapi.EventType, err error) {
	if j.observe != nil {
		j.putSafely(func() { j.enqueue(clusterapi.Event{Type: kind, Err: err}, Progress{Node: -1}) })
	}
}

// emitTask hands an event about a task to the observer, after counting it.
func (j *journal) emitTask(t *manifest.Task, e clusterapi.Event, at Progress) {
	j.put(func() { j.count(t, e, at) })
}

// count counts a task and queues the event.
func (j *journal) count(t *manifest.Task, e clusterapi.Event, at Progress) {
	switch e.Type {
	case EventTaskDone:
		j.done++
	case EventTaskSkipped:
		j.skipped++
	}
	if j.observe == nil {
		return
	}
	level := j.level(t)
	if e.Type == EventTaskDone || e.Type == EventTaskSkipped {
		level.settled++
	}
	at.LevelSettled, at.LevelTotal = level.settled, level.total
	at.Level, at.Component, _ = manifest.ParseName(t.Manifest.Filename)
	if e.Type != EventNodeStarted && e.Type != EventNodeDone {
		at.Task = t
	}
	e.Subject = "manifest/" + t.Manifest.Filename
	j.enqueue(e, at)
}

// tell hands an event that an applier raises to the observer. Node and
// attempt are not known there.
func (j *journal) tell(t *manifest.Task, kind clusterapi.EventType, message string, drift *Drift) {
	j.emitTask(t, clusterapi.Event{Type: kind, Message: message}, Progress{Node: -1, Drift: drift})
}

func (j *journal) enqueue(e clusterapi.Event, at Progress) {
	at.Done = j.done
	at.Skipped = j.skipped
	at.Total = j.total
	at.FailedAttempts = j.attempts
	e.Time = j.clock.Now()
	e.Data = &at
	j.queue = append(j.queue, e)
}

// put runs add, which may queue an event, under the lock, and then delivers
// what is queued unless another worker does.
func (j *journal) put(add func()) {
	for queue := j.take(add, nil); len(queue) > 0; queue = j.take(nil, queue) {
		j.deliver(queue)
	}
}

// putSafely is put for those whom no observer may take along, and who leave
// nothing behind that is not delivered.
func (j *journal) putSafely(add func()) {
	for panics.Isolate(func() error { j.put(add); return nil }) != nil {
		add = nil // done, and each turn delivers one event at least
	}
}

// deliver calls the observer with each event. A runtime.Goexit in it ends the
// calling goroutine; what is left is for the next who puts an event.
func (j *journal) deliver(queue []clusterapi.Event) {
	i := 0
	defer func() {
		if i == len(queue) {
			return
		}
		j.observerFailed(queue[i], &panics.Error{})
		j.mu.Lock()
		defer j.mu.Unlock()
		j.queue = append(slices.Clip(queue[i+1:]), j.queue...)
		j.delivering = false
	}()
	for ; i < len(queue); i++ {
		if err := panics.Catch(func() error { j.observe(queue[i]); return nil }); err != nil {
			j.observerFailed(queue[i], err)
		}
	}
}

// take returns the queued events to the one who is to deliver them: the
// caller if it has delivered some before, or nobody does.
func (j *journal) take(add func(), delivered []clusterapi.Event) []clusterapi.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	if add != nil {
		add()
	}
	if j.delivering && delivered == nil {
		return nil
	}
	if delivered != nil {
		clear(delivered)
		j.spare = delivered[:0]
	}
	queue := j.queue
	j.delivering = len(queue) > 0
	if j.delivering {
		j.queue, j.spare = j.spare, nil
	}
	return queue
}

// observerFailed notes a panic of the observer. It stops no task, but fails
// the pass: somebody relies on what the observer does.
func (j *journal) observerFailed(e clusterapi.Event, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failures++
	if j.failed != nil {
		return
	}
	message := "The observer failed at " + string(e.Type)
	at, _ := e.Data.(*Progress)
	if at.Task != nil {
		message += " of " + at.Task.String()
	}
	j.failed = &TaskError{Task: at.Task, Reason: ReasonFailed, Message: message + ": " + quote(err.Error()), Err: err}
}

// observerError returns what became of the observer so far: one error however
// often it failed, or nil, and how often that was.
func (j *journal) observerError() (*TaskError, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		return nil, 0
	}
	te := *j.failed
	if more := j.failures - 1; more > 0 {
		te.Message += fmt.Sprintf(" (and at %d more events)", more)
	}
	return &te, j.failures
}

// level returns the count of a task's level; files without one share one.
func (j *journal) level(t *manifest.Task) *levelCount {
	level, _, _ := manifest.ParseName(t.Manifest.Filename)
	count, ok := j.levels[level]
	if !ok {
		count = &levelCount{}
		j.levels[level] = count
	}
	return count
}

// attemptFailed counts an attempt at a task that failed.
func (j *journal) attemptFailed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts++
}

// remember keeps an error that does not block.
func (j *journal) remember(te *TaskError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reports = append(j.reports, te)
}

// counts returns how many tasks are done and skipped.
func (j *journal) counts() (done, skipped int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done, j.skipped
}

// report sums up what did not block, in the order of tasks.
func (j *journal) report() error {
	j.mu.Lock()
	reports := slices.Clone(j.reports)
	j.mu.Unlock()
	slices.SortStableFunc(reports, func(a, b *TaskError) int { return a.Task.Index - b.Task.Index })
	errs := make([]error, 0, len(reports))
	for _, te := range reports {
		errs = append(errs, te)
	}
	return summarize(errs)
}
