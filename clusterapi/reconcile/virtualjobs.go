package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// vjob is a job of a key. It stays, once ended, while Results name it.
type vjob struct {
	Job
	k         *vkey
	cancelled bool
}

// setJobs makes the jobs of a key those of its latest Result.
func (k *vkey) setJobs(want []Job) {
	if len(want) == 0 && len(k.jobs) == 0 {
		return
	}
	old := k.jobs
	k.jobs = make(map[any]*vjob, len(want))
	for _, j := range want {
		if _, twice := k.jobs[j.ID]; twice {
			continue
		}
		if running := old[j.ID]; running != nil {
			running.Report, running.Done = j.Report, j.Done
			k.jobs[j.ID] = running
			continue
		}
		job := &vjob{Job: j, k: k}
		k.jobs[j.ID] = job
		life := k.r.p.life
		k.r.p.v.at(k.r.p.v.Now(), func() {
			if !life.over && !job.cancelled {
				job.run(life)
			}
		})
	}
	for id, j := range old {
		if k.jobs[id] != j {
			j.cancelled = true
		}
	}
}

// run runs the job in place. It takes no virtual time but what it sleeps, and
// the latency of jobs: its results come that much later.
func (j *vjob) run(life *life) {
	p, v := j.k.r.p, j.k.r.p.v
	elapsed := new(time.Duration)
	ctx := &jobContext{Context: p.ctx, elapsed: elapsed, limit: j.Limit, done: make(chan struct{})}
	var results []func() []Wake // not told yet
	later := func(f func() []Wake) {
		results = append(results, f)
		v.at(v.Now().Add(*elapsed), func() {
			// Their order stays, whatever the order of what is due.
			f := results[0]
			results = results[1:]
			if life.over || j.cancelled {
				return
			}
			var wakes []Wake
			j.k.r.guard(func() { wakes = f() })
			if !life.over {
				j.k.r.wakes(wakes)
			}
		})
	}
	var out any
	err := panics.Catch(func() (err error) {
		out, err = j.Run(ctx, func(x any) {
			later(func() []Wake {
				if j.Report == nil {
					return nil
				}
				return j.Report(x)
			})
		})
		return err
	})
	*elapsed += v.o.Latency.Job
	later(func() []Wake {
		if j.Done == nil {
			if err != nil {
				v.observe(eventAbout(EventFailed, Attempt{Process: p.Name, Reconciler: j.k.r.name, Key: j.k.key, Failures: 1}, fmt.Errorf("job %v: %w", j.ID, err)))
			}
			return []Wake{{Key: j.k.key}}
		}
		return j.Done(out, err)
	})
}

// jobContext is the context of a job of a virtual run, or of a part of it
// that has a time of its own. It counts the time that the job has slept.
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

// errNotJob says that somebody waits where nobody may.
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
