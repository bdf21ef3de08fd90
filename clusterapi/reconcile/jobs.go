package reconcile

import (
	"context"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// job is a job of a key. It stays, once over, while Results name it. All but
// Run belongs to the dispatcher.
type job struct {
	Job
	key       Key
	cancel    context.CancelFunc
	cancelled bool
	over      bool
	ended     chan struct{} // closed when Run has returned
	room      chan struct{} // bounds the reports that wait
}

// maxReports is how many reports of a job may wait to be told.
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
func (l *loop) setJobs(ctx context.Context, e *entry, want []Job) {
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
		e.jobs[j.ID] = l.start(ctx, e.key, j)
	}
	for id, j := range old {
		if e.jobs[id] != j {
			l.cancel(j)
		}
	}
}

// cancel ends a job; nobody is told what becomes of it.
func (l *loop) cancel(j *job) {
	j.cancelled = true
	j.cancel()
	if !j.over {
		if l.ending == nil {
			l.ending = make(map[jobID]*job)
		}
		l.ending[jobID{j.key, j.ID}] = j
	}
}

// start starts a job, once an earlier one of its key and ID has returned.
func (l *loop) start(ctx context.Context, key Key, description Job) *job {
	j := &job{Job: description, key: key, ended: make(chan struct{}), room: make(chan struct{}, maxReports)}
	ctx, j.cancel = context.WithCancel(ctx)
	earlier := l.ending[jobID{key, j.ID}]
	run := description.Run
	l.jobs++
	l.e.group.Go(func() {
		defer close(j.ended)
		if earlier != nil {
			<-earlier.ended
		}
		l.runJob(ctx, j, run)
	})
	return j
}

// runJob runs a job.
func (l *loop) runJob(ctx context.Context, j *job, run func(context.Context, func(any)) (any, error)) {
	end := report{job: j, done: true, err: &panics.Error{}} // what a Goexit leaves
	defer func() { l.post(end) }()
	limited, stop := ctx, func() {}
	if j.Limit > 0 {
		limited, stop = within(ctx, l.e.o.Clock, j.Limit)
	}
	defer stop()
	end.err = panics.Catch(func() (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		end.value, err = run(limited, func(value any) {
			select {
			case j.room <- struct{}{}:
				l.post(report{job: j, value: value})
			case <-ctx.Done():
			}
		})
		return err
	})
	if end.err != nil && j.Limit > 0 && timedOut(limited) {
		end.err = fmt.Errorf("the job has not ended within %s: %w", j.Limit, deadlineOf(end.err))
	}
}

func (l *loop) post(r report) {
	l.mu.Lock()
	l.reports = append(l.reports, r)
	l.mu.Unlock()
	l.wakeUp()
}

// tellReports tells the reconciler what its jobs reported and returned.
func (l *loop) tellReports() bool {
	l.mu.Lock()
	reports := l.reports
	l.reports = nil
	l.mu.Unlock()
	for _, r := range reports {
		j := r.job
		if r.done {
			l.jobs--
			j.over = true
			j.cancel()
			if id := (jobID{j.key, j.ID}); l.ending[id] == j {
				delete(l.ending, id)
			}
		} else {
			<-j.room
		}
		switch {
		case j.cancelled:
		case r.done && j.Done == nil:
			if r.err != nil {
				l.fault(j.key, fmt.Errorf("job %v: %w", j.ID, r.err))
			}
			l.want(j.key, 0)
		case r.done:
			l.callback(j.key, func() []Wake { return j.Done(r.value, r.err) })
		case j.Report != nil:
			l.callback(j.key, func() []Wake { return j.Report(r.value) })
		}
	}
	return len(reports) > 0
}

// callback calls a function of the reconciler that may wake keys.
func (l *loop) callback(key Key, f func() []Wake) {
	isolated(1, func(int) { l.wakes(f()) }, func(err error) { l.fault(key, err) })
}
