package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// core is what results, errors, jobs, watches and wakes mean. It has no clock
// and no goroutine; a host has.
type core struct {
	host   host
	resync time.Duration // [Never] for one look at all keys
	seed   uint64
	// forgets drops a key of which nothing is left.
	forgets bool
	// parks keeps a key that failed from being looked at before unpark.
	parks bool

	controllers []*controller
	sources     sources
	ended       bool // the results of looks and jobs are dropped
}

// host drives a core: live, from one Sync to the next, or in virtual time.
type host interface {
	// context is the context of looks, jobs and watches. What is under way when
	// it ends is planned again.
	context() context.Context
	now() time.Time
	// skew is by how much the clock of a process is off.
	skew(process string) time.Duration
	// adopt returns the queue for what is due for a controller, and a function that
	// makes the host call the controller's settle and start, soon and not from
	// within.
	adopt(c *controller) (*queue, func())
	// look makes a call of e.look and returns, before or after that.
	look(e *entry, q Request)
	// job makes a call of j.work, after the earlier job has returned, and posts
	// what it hands on. earlier may be nil.
	job(j, earlier *job)
	// follow starts to list and watch, unfollow ends it.
	follow(s *source)
	unfollow(s *source)
	// isolate calls f and makes its panic an error.
	isolate(f func() error) error
	// failed gets every error of a look, a callback and a list.
	failed(err error)
	observe(e clusterapi.Event)
}

// add makes the reconcilers of a process. life counts the starts of the process.
func (c *core) add(p Process, api clusterapi.ClusterAPI, life uint64) error {
	err := c.host.isolate(func() error {
		named := make(map[string]*controller)
		var made []*controller
		for _, r := range p.New(api) {
			x := newController(c, r, p.Name, life)
			if named[x.name] != nil {
				return fmt.Errorf("two reconcilers are called %q", x.name)
			}
			x.named, named[x.name] = named, x
			made = append(made, x)
		}
		c.controllers = append(c.controllers, made...)
		for _, x := range made {
			for _, w := range x.reconciler.Watches() {
				if c.sources.api == nil {
					return fmt.Errorf("%s watches %s, and there is no API", x.name, w.GVK.Kind)
				}
				x.unlisted++
				c.sources.subscribe(&subscriber{c: x, watch: w, initial: true})
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("process %s: %w", p.Name, err)
	}
	return nil
}

// start starts all watches and lets reconcilers that watch nothing start.
func (c *core) start() {
	for _, x := range c.controllers {
		x.ping()
	}
	c.sources.start()
}

// end drops what is planned and what is under way.
func (c *core) end() {
	c.ended = true
	for _, x := range c.controllers {
		x.drop()
	}
}

// find returns the controller of a name, nil if absent.
func (c *core) find(process, reconciler string) *controller {
	for _, x := range c.controllers {
		if x.process == process && x.name == reconciler {
			return x
		}
	}
	return nil
}

// random returns the randomness of a reconciler.
func (c *core) random(process, reconciler string, life uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, mix(hash(process), hash(reconciler), life)))
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// logEvent logs an event, with the stack of a panic. It ignores a panic of the logger.
func logEvent(isolate func(func() error) error, l *slog.Logger, level slog.Level, message string, err error,
	event clusterapi.Event) {
	if l == nil {
		return
	}
	attrs := []slog.Attr{slog.Any("event", event)}
	if caught := new(panics.Error); errors.As(err, &caught) {
		attrs = append(attrs, slog.String("panic", caught.Error()), slog.String("stack", string(caught.Stack)))
	}
	_ = isolate(func() error {
		l.LogAttrs(context.Background(), level, message, attrs...)
		return nil
	})
}

// levelOf is the level at which an event is logged.
func levelOf(event clusterapi.Event) slog.Level {
	switch event.Type {
	case EventRecovered, EventWatchRecovered, EventNotServed, EventCrashed, EventFault:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
