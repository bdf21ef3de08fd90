package runlevel

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// stream takes the events of a pass to its observer: in order, one at a time,
// and without a lock. Whoever puts an event finds the stream idle and delivers
// until nothing is left, or finds it at work and goes on. So a slow observer
// holds up one worker, and none where there is only one.
type stream struct {
	observe func(clusterapi.Event)

	// guarded by the pass's lock
	queue      []clusterapi.Event
	spare      []clusterapi.Event // the last one delivered, for its room
	delivering bool
	failed     *TaskError // the first panic of the observer
	failures   int
}

// levelCount counts the tasks of a level.
type levelCount struct{ settled, total int }

// emit hands an event of the pass to the observer.
func (p *Pass) emit(kind clusterapi.EventType, err error) {
	if p.events.observe != nil {
		p.putSafely(func() { p.enqueue(clusterapi.Event{Type: kind, Err: err}, Progress{Node: -1}) })
	}
}

// emitTask hands an event about a task to the observer, after counting it.
func (p *Pass) emitTask(t *manifest.Task, e clusterapi.Event, at Progress) {
	p.put(func() { p.count(t, e, at) })
}

// count counts a task and queues the event.
func (p *Pass) count(t *manifest.Task, e clusterapi.Event, at Progress) {
	switch e.Type {
	case EventTaskDone:
		p.done++
	case EventTaskSkipped:
		p.skipped++
	}
	if p.events.observe == nil {
		return
	}
	level := p.level(t)
	if e.Type == EventTaskDone || e.Type == EventTaskSkipped {
		level.settled++
	}
	at.LevelSettled, at.LevelTotal = level.settled, level.total
	at.Level, at.Component, _ = manifest.ParseName(t.Manifest.Filename)
	if e.Type != EventNodeStarted && e.Type != EventNodeDone {
		at.Task = t
	}
	e.Subject = "manifest/" + t.Manifest.Filename
	p.enqueue(e, at)
}

// tell hands an event that an applier raises to the observer. Node and
// attempt are not known there.
func (p *Pass) tell(t *manifest.Task, kind clusterapi.EventType, message string, drift *Drift) {
	p.emitTask(t, clusterapi.Event{Type: kind, Message: message}, Progress{Node: -1, Drift: drift})
}

func (p *Pass) enqueue(e clusterapi.Event, at Progress) {
	at.Done = p.done
	at.Skipped = p.skipped
	at.Total = p.total
	at.FailedAttempts = p.failed
	e.Time = p.clock.Now()
	e.Data = &at
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
func (p *Pass) deliver(queue []clusterapi.Event) {
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
func (p *Pass) take(add func(), delivered []clusterapi.Event) []clusterapi.Event {
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
func (p *Pass) observerFailed(e clusterapi.Event, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.failures++
	if p.events.failed != nil {
		return
	}
	message := "The observer failed at " + string(e.Type)
	at, _ := e.Data.(*Progress)
	if at.Task != nil {
		message += " of " + at.Task.String()
	}
	p.events.failed = &TaskError{Task: at.Task, Reason: ReasonFailed, Message: message + ": " + quote(err.Error()), Err: err}
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
