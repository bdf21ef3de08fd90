package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Cluster is a simulated cluster: a [memory.Cluster], which serves the API,
// and behaviours that act while [Cluster.Run] or a driver of [Cluster.Process]
// lets them. It is safe for concurrent use.
type Cluster struct {
	*memory.Cluster

	clock     clock.WithTicker
	logger    *slog.Logger
	timing    Timing
	draw      func(Work) time.Duration
	assumed   []string
	faults    faults
	running   atomic.Bool
	begun     atomic.Bool // a behaviour has begun
	notifying sync.Mutex

	mu       sync.Mutex
	releases []*release // in the order in which they were expected
}

// New returns a cluster that has completed an update to o.Release and is at
// rest. It fails where the options contradict themselves or an object is
// refused. Nothing happens on the cluster before Run is called, or a driver has
// its Process.
func New(o Options) (*Cluster, error) {
	if o.Release.Version == "" {
		return nil, errors.New("simulation: Options.Release.Version is empty")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Memory.Clock == nil {
		o.Memory.Clock = o.Clock
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Memory.GracefulPods = true // the simulated kubelets end them
	c := &Cluster{
		Cluster: memory.NewOpenShift(o.Memory),
		clock:   o.Clock,
		logger:  o.Logger,
		timing:  o.Timing.withDefaults(),
		draw:    o.Draw,
	}
	for _, w := range o.Workloads {
		if w.Fault != nil {
			c.faults.set(workloadPart(w.namespace(), w.Name), w.Fault)
		}
	}
	fill := c.build
	if o.Memory.Base != nil {
		fill = c.settle
	}
	if err := fill(internal(context.Background()), o); err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	return c, nil
}

// Shares reports whether r is c itself; see [clusterapi.Shared].
func (c *Cluster) Shares(r clusterapi.Reader) bool { return r == clusterapi.Reader(c) }

// Time returns the time of the cluster, at which forecasts and views see it.
func (c *Cluster) Time() time.Time { return c.clock.Now() }

// Expect announces a release that the cluster may be updated to, or back
// to: an operator goes to a release when its workloads have the form that the
// release gives them. Call it before or during Run. A release of the same
// version and image replaces the earlier one. It fails if the Kubernetes version of
// the release is not known.
func (c *Cluster) Expect(r Release) error {
	if r.KubeVersion == "" {
		version, err := r.kubeVersion()
		if err != nil {
			return err
		}
		r.KubeVersion = version
	}
	c.expect(r)
	return nil
}

func (c *Cluster) expect(r Release) {
	next := newRelease(r)
	c.mu.Lock()
	kept := c.releases[:0:0]
	for _, old := range c.releases {
		if old.Version != next.Version || old.Image != next.Image {
			kept = append(kept, old)
		}
	}
	c.releases = append(kept, next)
	c.mu.Unlock()
	c.notify(partOperators, everyRelease)
}

// Run lets the behaviours act until ctx ends, and then returns nil. A later Run
// continues from the objects as they are: waits that an object does not record
// start again. Two at a time are an error.
func (c *Cluster) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("simulation: the cluster runs already")
	}
	defer c.running.Store(false)
	return reconcile.Run(internal(ctx), reconcile.Options{
		API: c.Cluster, Clock: c.clock, Logger: c.logger,
		CallTimeout: reconcile.Never, // a scaled clock passes it while a call is computed
	}, c.Process())
}

// release is a Release prepared for use. It is not changed once made.
type release struct {
	Release
	operators map[string]*operator
}

// operator is an Operator with its workloads in comparable form.
type operator struct {
	Operator
	workloads []*expectation
}

func newRelease(r Release) *release {
	if r.Image == "" {
		r.Image = imageOf("release", r.Version)
	}
	if r.OSImage == "" {
		r.OSImage = imageOf("os", r.Version)
	}
	if r.Controller == "" {
		r.Controller = digest("machine-config-operator " + r.Version)[:40]
	}
	p := &release{Release: r, operators: make(map[string]*operator, len(r.Operators))}
	position := make(map[string]int, len(r.Manifests))
	for i, m := range r.Manifests {
		position[identity(m)] = i
	}
	for _, o := range r.Operators {
		if o.Versions == nil {
			o.Versions = []configv1.OperandVersion{{Name: "operator", Version: r.Version}}
		}
		op := &operator{Operator: o}
		own, listed := position[kindClusterOperator.GroupKind().String()+" "+o.Name]
		for _, w := range o.Workloads {
			// An update that waits for the operator applies nothing after it.
			at, known := position[identity(w)]
			if after := listed && known && at > own; !after && !deletes(w) {
				op.workloads = append(op.workloads, newExpectation(w))
			}
		}
		p.operators[o.Name] = op
	}
	return p
}

// identity names an object regardless of its version.
func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + " " + path(u)
}

// newestFirst returns the releases that the cluster knows of.
func (c *Cluster) newestFirst() []*release {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*release, 0, len(c.releases))
	for i := len(c.releases) - 1; i >= 0; i-- {
		out = append(out, c.releases[i])
	}
	return out
}

// releaseByVersion returns the newest known release of a version, or nil.
func (c *Cluster) releaseByVersion(version string) *release {
	for _, r := range c.newestFirst() {
		if r.Version == version {
			return r
		}
	}
	return nil
}

// internal marks calls as the simulation's own: see [FromSimulation].
func internal(ctx context.Context) context.Context {
	return context.WithValue(ctx, simulationKey{}, true)
}
