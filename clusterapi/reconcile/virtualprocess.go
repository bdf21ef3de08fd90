package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// vprocess is a process of a virtual run. A crash ends its life, and the next one
// starts.
type vprocess struct {
	Process
	v       *Virtual
	life    *life // nil before the first start
	starts  uint64
	stopped bool
}

// life is the host of a process from its start to its crash, in virtual time. It
// runs looks and jobs in place.
type life struct {
	v      *Virtual
	p      *vprocess
	core   *core
	ctx    context.Context
	cancel context.CancelFunc
	// streams are the watches under way, in the order in which they began.
	streams map[schema.GroupKind][]*stream
}

// lives reports whether the process has started and not ended.
func (p *vprocess) lives() bool { return p.life != nil && !p.life.core.ended }

// begin makes the process's reconcilers and starts their watches.
func (p *vprocess) begin() {
	if p.stopped {
		return
	}
	v := p.v
	p.starts++
	h := &life{v: v, p: p, streams: make(map[schema.GroupKind][]*stream)}
	ctx := context.WithValue(context.Background(), driverKey{}, waiter(v))
	h.ctx, h.cancel = context.WithCancel(options.Once(ctx))
	h.core = &core{host: h, resync: v.o.Resync, seed: v.o.Seed}
	h.core.sources = sources{host: h, api: v.o.Cluster, byID: make(map[watchID][]*source)}
	p.life = h
	if err := h.core.add(p.Process, &virtualAPI{life: h}, p.starts); err != nil {
		v.err = err
		return
	}
	h.core.start()
}

// restart is how long after a crash a process is made again.
const restart = time.Second

// crash ends the process's life and starts the next one later.
func (p *vprocess) crash() {
	if !p.lives() {
		return
	}
	p.drop()
	p.v.observe(eventAbout(EventCrashed, Attempt{Process: p.Name}, nil))
	p.v.at(p.v.Now().Add(restart), p.begin)
}

// drop forgets all that the process has started.
func (p *vprocess) drop() {
	if p.lives() {
		p.life.core.end()
		p.life.cancel()
	}
}

func (h *life) context() context.Context { return h.ctx }

func (h *life) now() time.Time { return h.v.Now() }

func (h *life) skew(process string) time.Duration {
	if h.v.faults == nil {
		return 0
	}
	return h.v.faults.skew(process, h.v.Now())
}

func (h *life) adopt(c *controller) (*queue, func()) {
	return &h.v.queue, func() {
		if !slices.Contains(h.v.woken.in, c) {
			h.v.woken.add(c)
		}
	}
}

func (h *life) look(e *entry, q Request) {
	if e.looks > 1 {
		h.v.repeats++
	}
	_ = e.look(h.ctx, q)
}

func (h *life) isolate(f func() error) error { return panics.Catch(f) }

func (h *life) failed(error) {}

func (h *life) observe(e clusterapi.Event) { h.v.observe(e) }
