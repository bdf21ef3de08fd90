package reconcile

import (
	"context"
	"errors"
	"time"
)

// job plays a job in place. It takes no virtual time but what it sleeps, and the
// latency of jobs: what it hands on is posted that much later.
func (h *life) job(j, _ *job) {
	v := h.v
	v.at(v.Now(), func() {
		switch {
		case h.core.ended:
			return
		case j.cancelled:
			j.c.post(report{job: j, done: true, err: context.Canceled})
			return
		}
		elapsed := new(time.Duration)
		ctx := &jobContext{Context: j.ctx, elapsed: elapsed, limit: j.Limit, done: make(chan struct{})}
		var waiting []report
		j.work(ctx, func(r report) {
			if r.done {
				*elapsed += v.o.Latency.Job
			}
			waiting = append(waiting, r)
			v.at(v.Now().Add(*elapsed), func() {
				// Their order stays, whatever the order of due items.
				first := waiting[0]
				waiting = waiting[1:]
				j.c.post(first)
			})
		})
	})
}

// jobContext is the context of a job of a virtual run, or of a part of it that has
// its own time. It counts the time that the job has slept.
type jobContext struct {
	context.Context
	outer   *jobContext    // nil: the job's own
	elapsed *time.Duration // of the job
	limit   time.Duration  // of elapsed; zero: none
	err     error
	done    chan struct{}
}

func (c *jobContext) Done() <-chan struct{} { return c.done }

func (c *jobContext) Err() error {
	if c.err != nil {
		return c.err
	}
	return c.Context.Err()
}

func (c *jobContext) Value(key any) any {
	if key == (jobKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// end ends it.
func (c *jobContext) end(err error) {
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}

type jobKey struct{}

// errNotJob is the error of waiting outside of a job.
var errNotJob = errors.New("reconcile: only a job may sleep; a reconciler returns when to look again")

// sleep implements [Sleep]. The first limit that is reached ends the sleep, and
// what lies within it.
func (v *Virtual) sleep(ctx context.Context, d time.Duration) error {
	c, ok := ctx.Value(jobKey{}).(*jobContext)
	if !ok {
		return errNotJob
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	until := *c.elapsed + max(d, 0)
	for o := c; o != nil; o = o.outer {
		if o.limit > 0 && o.limit <= until {
			until = o.limit
		}
	}
	*c.elapsed = until
	for o := c; o != nil; o = o.outer {
		if o.limit > 0 && o.limit <= until {
			for in := c; in != o.outer; in = in.outer {
				in.end(context.DeadlineExceeded)
			}
		}
	}
	return ctx.Err()
}

// timeout implements [WithTimeout].
func (v *Virtual) timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	outer, ok := ctx.Value(jobKey{}).(*jobContext)
	if !ok {
		return context.WithCancel(ctx) // a call takes no time
	}
	c := &jobContext{Context: ctx, outer: outer, elapsed: outer.elapsed, limit: *outer.elapsed + max(d, 1), done: make(chan struct{})}
	return c, func() { c.end(context.Canceled) }
}
