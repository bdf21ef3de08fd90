package reconcile

import (
	"context"
	"errors"
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
	ctx := &jobContext{Context: p.ctx, limit: j.Limit, done: make(chan struct{})}
	later := func(f func() []Wake) {
		v.at(v.Now().Add(ctx.elapsed), func() {
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
	ctx.elapsed += v.o.Latency.Job
	later(func() []Wake {
		if j.Done == nil {
			return []Wake{{Key: j.k.key}}
		}
		return j.Done(out, err)
	})
}

// jobContext is the context of a job of a virtual run. It counts the time that
// the job has slept.
type jobContext struct {
	context.Context
	elapsed, limit time.Duration
	err            error
	done           chan struct{}
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

type jobKey struct{}

// errNotJob says that somebody waits where nobody may.
var errNotJob = errors.New("reconcile: only a job may sleep; a reconciler returns when to look again")

// sleep implements [Sleep].
func (v *Virtual) sleep(ctx context.Context, d time.Duration) error {
	c, ok := ctx.Value(jobKey{}).(*jobContext)
	if !ok {
		return errNotJob
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.elapsed += max(d, 0)
	if c.limit > 0 && c.elapsed >= c.limit {
		c.elapsed, c.err = c.limit, context.DeadlineExceeded
		close(c.done)
	}
	return ctx.Err()
}
