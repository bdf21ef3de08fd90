package controllers

import (
	"context"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// pauses finds out that this program stood still: it looks at the time at short
// intervals, and a long one is a pause.
type pauses struct {
	limit time.Duration // zero: any pause is well

	mu   sync.Mutex
	last time.Time
	over bool // one was too long
}

func newPauses(o Options) *pauses {
	p := &pauses{limit: o.MaxPause, last: time.Now()}
	switch {
	case o.EveryReplica || o.MaxPause == reconcile.Never:
		p.limit = 0
	case o.MaxPause == 0:
		p.limit = defaultMaxPause
	}
	return p
}

// watch cancels a context after a pause that was too long.
func (p *pauses) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	if p.limit == 0 {
		return
	}
	ticker := time.NewTicker(max(p.limit/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if p.tooLong() {
				cancel(ErrPaused)
				return
			}
		}
	}
}

// tooLong reports whether there was a pause that was too long. A suspended machine
// stops the monotonic clock, so the wall clock counts, too.
func (p *pauses) tooLong() bool {
	if p.limit == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.over = p.over || now.Sub(p.last) > p.limit || now.Round(0).Sub(p.last.Round(0)) > p.limit
	p.last = now
	return p.over
}
