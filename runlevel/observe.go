package runlevel

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// stream takes the events of a pass to its observer: in order, one at a time,
// and without a lock. Whoever puts an event finds the stream idle and delivers
// until nothing is left, or finds it at work and goes on. So a slow observer
// holds up one worker, and none where there is only one.
type stream struct {
	observe func(Event)

	// guarded by the pass's lock
	queue      []Event
	spare      []Event // the last one delivered, for its room
	delivering bool
	failed     *TaskError // the first panic of the observer
	failures   int
}

// levelCount counts the tasks of a level.
type levelCount struct{ settled, total int }

// emit hands an event of the pass to the observer.
func (p *Pass) emit(e Event) {
	if p.events.observe != nil {
		p.putSafely(func() { p.enqueue(e) })
	}
}

// emitTask hands an event about a task to the observer, after counting it.
func (p *Pass) emitTask(t *manifest.Task, e Event) {
	p.put(func() { p.count(t, e) })
}

// count counts a task and queues the event.
func (p *Pass) count(t *manifest.Task, e Event) {
	switch e.Type {
	case TaskDone:
		p.done++
	case TaskSkipped:
		p.skipped++
	}
	if p.events.observe == nil {
		return
	}
	level := p.level(t)
	if e.Type == TaskDone || e.Type == TaskSkipped {
		level.settled++
	}
	e.LevelSettled, e.LevelTotal = level.settled, level.total
	e.Level, e.Component, _ = manifest.ParseName(t.Manifest.Filename)
	if e.Type != NodeStarted && e.Type != NodeDone {
		e.Task = t
	}
	p.enqueue(e)
}

// tell hands an event that an applier raises to the observer. Node and
// attempt are not known there.
func (p *Pass) tell(t *manifest.Task, e Event) {
	e.Node = -1
	p.emitTask(t, e)
}

func (p *Pass) enqueue(e Event) {
	e.Time = p.clock.Now()
	e.Done, e.Skipped, e.Total, e.FailedAttempts = p.done, p.skipped, p.total, p.failed
	p.events.queue = append(p.events.queue, e)
}

// put runs add, which may queue an event, under the lock, and then delivers
// what is queued unless another worker does.
func (p *Pass) put(add func()) {
	for queue := p.take(add, nil); len(queue) > 0; queue = p.take(nil, queue) {
		p.deliver(queue)
	}
}

// putSafely is put for those whom no observer may take along, and who leave
// nothing behind that is not delivered.
func (p *Pass) putSafely(add func()) {
	for panics.Isolate(func() error { p.put(add); return nil }) != nil {
		add = nil // done, and each turn delivers one event at least
	}
}

// deliver calls the observer with each event. A runtime.Goexit in it ends the
// calling goroutine; what is left is for the next who puts an event.
func (p *Pass) deliver(queue []Event) {
	i := 0
	defer func() {
		if i == len(queue) {
			return
		}
		p.observerFailed(queue[i], &panics.Error{})
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events.queue = append(slices.Clip(queue[i+1:]), p.events.queue...)
		p.events.delivering = false
	}()
	for ; i < len(queue); i++ {
		if err := panics.Catch(func() error { p.events.observe(queue[i]); return nil }); err != nil {
			p.observerFailed(queue[i], err)
		}
	}
}

// take returns the queued events to the one who is to deliver them: the
// caller if it has delivered some before, or nobody does.
func (p *Pass) take(add func(), delivered []Event) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	if add != nil {
		add()
	}
	s := &p.events
	if s.delivering && delivered == nil {
		return nil
	}
	if delivered != nil {
		clear(delivered)
		s.spare = delivered[:0]
	}
	queue := s.queue
	s.delivering = len(queue) > 0
	if s.delivering {
		s.queue, s.spare = s.spare, nil
	}
	return queue
}

// observerFailed notes a panic of the observer. It stops no task, but fails
// the pass: somebody relies on what the observer does.
func (p *Pass) observerFailed(e Event, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.failures++
	if p.events.failed != nil {
		return
	}
	message := "The observer failed at " + string(e.Type)
	if e.Task != nil {
		message += " of " + e.Task.String()
	}
	p.events.failed = &TaskError{Task: e.Task, Reason: ReasonFailed, Message: message + ": " + quote(err.Error()), Err: err}
}

// observerError returns what became of the observer so far: one error however
// often it failed, or nil, and how often that was.
func (p *Pass) observerError() (*TaskError, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events.failed == nil {
		return nil, 0
	}
	te := *p.events.failed
	if more := p.events.failures - 1; more > 0 {
		te.Message += fmt.Sprintf(" (and at %d more events)", more)
	}
	return &te, p.events.failures
}

// level returns the count of a task's level; files without one share one.
func (p *Pass) level(t *manifest.Task) *levelCount {
	level, _, _ := manifest.ParseName(t.Manifest.Filename)
	count, ok := p.levels[level]
	if !ok {
		count = &levelCount{}
		p.levels[level] = count
	}
	return count
}
