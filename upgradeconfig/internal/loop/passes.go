package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// ErrChanged reports that the UpgradeConfig is not as it was when a decision was
// made.
var ErrChanged = errors.New("the UpgradeConfig was changed meanwhile")

// maxRestarts is how often a pass starts over because somebody changed the
// UpgradeConfig meanwhile.
const maxRestarts = 3

// Passes makes the passes of one manager or controller, one at a time, and reports
// them to its observer. It is safe for concurrent use.
type Passes struct {
	slot      chan struct{} // holds a value while a pass is under way
	running   atomic.Bool
	observing sync.Mutex
}

// New returns Passes of which none is under way.
func New() *Passes { return &Passes{slot: make(chan struct{}, 1)} }

// Run drives a process live until ctx ends, and returns its error then. A second
// Run at the same time is refused.
func (p *Passes) Run(ctx context.Context, api clusterapi.ReadWriter, c clock.WithTicker, log *slog.Logger, process reconcile.Process) error {
	if !p.running.CompareAndSwap(false, true) {
		return fmt.Errorf("%s: Run is already running", process.Name)
	}
	defer p.running.Store(false)
	cluster, ok := api.(clusterapi.ClusterAPI)
	if !ok {
		cluster = withoutEvictions{api}
	}
	if err := reconcile.Run(ctx, reconcile.Options{API: cluster, Clock: c, Logger: log, Resync: reconcile.Never}, process); err != nil {
		return err
	}
	return ctx.Err()
}

// Do waits until no pass is under way and makes one. It starts over, at
// most three times, if the UpgradeConfig changed meanwhile. A panic is an
// error, a [clusterapi.PanicError].
func (p *Passes) Do(ctx context.Context, pass func() error) error {
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for restarts := 0; ; restarts++ {
		err := panics.Catch(pass)
		if !(errors.Is(err, ErrChanged) || apierrors.IsConflict(err)) || restarts == maxRestarts {
			return err
		}
	}
}

// Observe passes an event to an observer, if there is one, one at a time. A
// panic in it is logged: what happens in the cluster does not depend on who
// observes.
func (p *Passes) Observe(log *slog.Logger, observer func(clusterapi.Event), e clusterapi.Event) {
	if observer == nil {
		return
	}
	p.observing.Lock()
	defer p.observing.Unlock()
	err := panics.Catch(func() error { observer(e); return nil })
	if fault, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		log.Error("the observer failed", "error", fault, "stack", string(fault.Stack))
	}
}

// withoutEvictions makes a cluster as the options ask for.
type withoutEvictions struct{ clusterapi.ReadWriter }

func (withoutEvictions) Evict(context.Context, types.NamespacedName, clusterapi.EvictOptions) error {
	panic("upgradeconfig evicts nothing")
}
