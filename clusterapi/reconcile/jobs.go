package reconcile

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// job is a job of a key. It stays, once over, while Results name it. All but
// the arguments of work belongs to the dispatcher.
type job struct {
	Job
	c         *controller
	key       Key
	ctx       context.Context
	cancel    context.CancelFunc
	cancelled bool
	over      bool

	// A live host bounds with room the reports that wait, and closes ended when
	// Run has returned.
	room, ended chan struct{}
}

// maxReports is how many reports of a job may wait for Report.
const maxReports = 64

type jobID struct {
	key Key
	id  any
}

// report is what a job reported, or what it returned.
type report struct {
	job   *job
	done  bool
	value any
	err   error
}

// setJobs makes the jobs of a key those of its latest Result.
func (c *controller) setJobs(e *entry, want []Job) {
	if len(want) == 0 && len(e.jobs) == 0 {
		return
	}
	old := e.jobs
	e.jobs = make(map[any]*job, len(want))
	for _, j := range want {
		if e.jobs[j.ID] != nil {
			continue
		}
		if is := old[j.ID]; is != nil {
			is.Report, is.Done = j.Report, j.Done
			e.jobs[j.ID] = is
			continue
		}
		e.jobs[j.ID] = c.startJob(e.key, j)
	}
	for id, j := range old {
		if e.jobs[id] != j {
			c.cancel(j)
		}
	}
}

// cancel ends a job; nothing is called with what becomes of it.
func (c *controller) cancel(j *job) {
	j.cancelled = true
	j.cancel()
	if !j.over {
		if c.ending == nil {
			c.ending = make(map[jobID]*job)
		}
		c.ending[jobID{j.key, j.ID}] = j
	}
}

// startJob starts a job, once an earlier one of its key and ID has returned.
func (c *controller) startJob(key Key, description Job) *job {
	j := &job{Job: description, c: c, key: key}
	j.ctx, j.cancel = context.WithCancel(c.host.context())
	c.jobs++
	c.host.job(j, c.ending[jobID{key, j.ID}])
	return j
}

// work calls Run with a context that ends at the job's limit, and hands on what
// it reports and returns.
func (j *job) work(limited context.Context, hand func(report)) {
	end := report{job: j, done: true, err: &panics.Error{}} // what a Goexit leaves
	defer func() { hand(end) }()
	end.err = panics.Catch(func() (err error) {
		if err := limited.Err(); err != nil {
			return err
		}
		end.value, err = j.Run(limited, func(value any) { hand(report{job: j, value: value}) })
		return err
	})
	if end.err != nil && j.Limit > 0 && timedOut(limited) {
		end.err = fmt.Errorf("the job has not ended within %s: %w", j.Limit, deadlineOf(end.err))
	}
}

// post keeps what a job handed on.
func (c *controller) post(r report) {
	c.mu.Lock()
	c.reports.add(r)
	c.mu.Unlock()
	c.ping()
}

// takeReports calls the reconciler with what its jobs reported and returned.
func (c *controller) takeReports() bool {
	c.mu.Lock()
	reports := c.reports.take()
	c.mu.Unlock()
	for _, r := range reports {
		j := r.job
		switch {
		case r.done:
			c.jobs--
			j.over = true
			j.cancel()
			if id := (jobID{j.key, j.ID}); c.ending[id] == j {
				delete(c.ending, id)
			}
		case j.room != nil:
			<-j.room
		}
		switch {
		case j.cancelled || c.core.ended:
		case r.done && j.Done == nil:
			if r.err != nil {
				c.fault(j.key, fmt.Errorf("job %v: %w", j.ID, r.err))
			}
			c.want(j.key, 0)
		case r.done:
			c.call(j.key, func() []Wake { return j.Done(r.value, r.err) })
		case j.Report != nil:
			c.call(j.key, func() []Wake { return j.Report(r.value) })
		}
	}
	return len(reports) > 0
}
