package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
	"github.com/clusterupdate/clusterupdate/signature"
)

const (
	look         = 30 * time.Second     // how often a run looks whether it has ended
	retrieval    = 30 * time.Minute     // until when the update is recommended
	longest      = 90 * 24 * time.Hour  // of a run, whatever moves
	defaultUntil = 6 * time.Hour        // RehearseOptions.Until
	patience     = 100 * 24 * time.Hour // of operators with what is slow
)

// run is one time that the update is played.
type run struct {
	scene   *scene
	cluster *simulation.Cluster
	driver  *reconcile.Virtual
	witness *witness
	lines   *lines
	runner  *plan.Runner // nil without a plan
	assumed assumptions
	broken  bool // nodes have been broken that are to break
	heal    map[string]time.Time

	start   time.Time // of the update
	control time.Time // when the cluster version was complete; zero before
}

// result is the result of a run.
type result struct {
	outcome        Outcome
	why            []Cause
	start          time.Time
	control, total time.Duration
	timeline       *timeline.Timeline
	assumed        []string
}

// newRun makes a fork of the scene, on which nothing has happened yet.
func newRun(ctx context.Context, s *scene, seed uint64, observe func(clusterapi.Event)) (*run, error) {
	r := &run{scene: s, heal: make(map[string]time.Time)}
	clock := reconcile.NewClock(s.now)
	fork := s.fork(s.base)
	fork.Clock = clock
	if observe == nil {
		observe = func(clusterapi.Event) {}
	}
	var err error
	r.cluster, err = simulation.New(simulation.Options{
		Clock: clock, Release: s.releases[0], Expected: s.expected(),
		Timing: simulation.Timing{PoolLimit: patience}, Draw: s.draw(seed),
		Memory: fork,
	})
	if err != nil {
		return nil, err
	}
	for _, b := range s.broken {
		r.fault(b.part, &b.fault)
	}
	r.lines, err = newLines(fmt.Sprintf("Update from %s to %s", s.from.Version, s.to.Version))
	if err != nil {
		return nil, err
	}
	r.witness = newWitness(r.lines, s.now)
	updater, err := clusterupdate.New(clusterupdate.Options{
		API: r.cluster, Payloads: s, Graph: s.graph, Verifier: signature.Insecure(), Checks: checks(s.gaps, &r.assumed),
		Interval: time.Hour, RetrieveTimeout: time.Hour, Clock: clock, Observe: observe,
	})
	if err != nil {
		return nil, err
	}
	both := func(own func(clusterapi.Event)) func(clusterapi.Event) {
		return func(e clusterapi.Event) {
			own(e)
			observe(e)
		}
	}
	nodes, err := rollout.New(rollout.Options{
		API: r.cluster, Mode: rollout.Drive, Clock: clock, Observe: both(r.lines.node),
	})
	if err != nil {
		return nil, err
	}
	processes := []reconcile.Process{r.cluster.Process(), nodes.Process(), updater.Process(), r.witness.process()}
	if s.o.Plan != nil {
		r.runner, err = plan.New(plan.Options{
			API: r.cluster, Plan: *s.o.Plan, Holder: "rehearsal", Clock: clock, Observe: both(r.lines.step),
		})
		if err != nil {
			return nil, err
		}
	}
	r.driver = reconcile.NewVirtual(reconcile.VirtualOptions{
		Cluster: r.cluster, Clock: clock, Seed: seed, Faults: s.o.Calls, Observe: r.witness.driver,
	}, processes...)
	return r, nil
}

// expected are the releases that the cluster knows of besides its own, with the faults
// of operators in the one to update to.
func (s *scene) expected() []simulation.Release {
	all := slices.Clone(s.releases[1:])
	if len(all) == 0 {
		return nil
	}
	to := &all[len(all)-1]
	to.Operators = slices.Clone(to.Operators)
	for part, f := range s.o.Faults {
		if kind, name, _ := strings.Cut(part, "/"); kind == "operator" {
			_ = to.Break(name, f) // an operator that only From has does not come to To
		}
	}
	return all
}

// fault breaks or, with nil, repairs a part of the cluster.
func (r *run) fault(part string, f *simulation.Fault) {
	kind, name, _ := strings.Cut(part, "/")
	switch kind {
	case "operator":
		r.cluster.SetOperatorFault(name, f)
	case "node":
		r.cluster.SetNodeFault(name, f)
	case "pod":
		namespace, pod, _ := strings.Cut(name, "/")
		r.cluster.SetPodFault(namespace, pod, f)
	}
}

// play plays the update to its end.
func (r *run) play(ctx context.Context) (*result, error) {
	defer r.driver.Close()
	err := r.request(ctx)
	var refused *clusterversion.RefusedError
	if errors.As(err, &refused) {
		return r.result(ctx, Refused, &failure{subject: "clusterversion/version", since: r.start, err: err})
	}
	var stands *standstill
	if errors.As(err, &stands) {
		return r.livelock(ctx, stands.err)
	}
	if err != nil {
		return nil, err
	}
	until := cmp.Or(r.scene.o.Until, defaultUntil)
	r.witness.moved = r.driver.Now()
	for {
		if err := r.repair(ctx); err != nil {
			return nil, err
		}
		outcome, err := r.ended(ctx)
		if err != nil {
			return nil, err
		}
		now := r.driver.Now()
		failed := cmp.Or(r.planFailed(), r.witness.failed(now))
		if outcome == "" && (failed != nil || now.Sub(r.witness.moved) >= until || now.Sub(r.start) >= longest) {
			outcome = Stuck
		}
		if outcome != "" {
			return r.result(ctx, outcome, failed)
		}
		if err := r.pass(ctx, look); err != nil {
			return r.livelock(ctx, err)
		}
	}
}

// planFailed returns why the plan has ended before it was complete, nil if it has not.
func (r *run) planFailed() error {
	if r.runner == nil {
		return nil
	}
	p := r.runner.Progress()
	if !p.State.Ended() || p.State == plan.StateFinished {
		return nil
	}
	return &failure{subject: "plan/" + r.scene.o.Plan.ID, since: r.driver.Now(), err: errors.New(string(p.State))}
}

// livelock is the result of a run whose time stands still: its error is the cause.
func (r *run) livelock(ctx context.Context, err error) (*result, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.result(ctx, Stuck, &failure{subject: "driver", since: r.driver.Now(), err: err})
}

// standstill is the error of a driver whose time stands still.
type standstill struct{ err error }

func (s *standstill) Error() string { return s.err.Error() }
func (s *standstill) Unwrap() error { return s.err }

// pass lets time pass, up to the next repair.
func (r *run) pass(ctx context.Context, d time.Duration) error {
	until := r.driver.Now().Add(d)
	for _, at := range r.heal {
		if at.After(r.driver.Now()) && at.Before(until) {
			until = at
		}
	}
	return errors.Join(r.driver.RunUntil(until), ctx.Err())
}

// request requests the update once it is recommended. One that is under way, or is up
// to a plan, is not requested.
func (r *run) request(ctx context.Context) error {
	s := r.scene
	r.start = s.now
	for part, after := range s.o.Heal {
		r.heal[part] = s.now.Add(after)
	}
	text := s.to.Version
	switch {
	case s.underway:
		r.lines.version(s.now, "the rest of the update to "+text)
		return nil
	case r.runner != nil:
		r.driver.Add(r.runner.Process())
		r.lines.version(s.now, text+", by a plan")
		return nil
	}
	request := clusterversion.UpdateRequest{ToImage: s.to.Image, AllowExplicitUpgrade: true, AllowUpgradeWithWarnings: true}
	for r.driver.Now().Before(s.now.Add(retrieval)) {
		cv, err := r.version(ctx)
		if err != nil {
			return err
		}
		offered := slices.ContainsFunc(
			cv.Status.AvailableUpdates, func(u configv1.Release) bool { return u.Image == s.to.Image },
		)
		if offered {
			request = clusterversion.UpdateRequest{To: s.to.Version, AllowUpgradeWithWarnings: true}
			break
		}
		if err := r.pass(ctx, time.Minute); err != nil {
			return &standstill{err}
		}
	}
	r.start = r.driver.Now()
	r.lines.version(r.start, text)
	_, err := clusterversion.Submit(ctx, r.cluster, request)
	return err
}

// version reads the ClusterVersion.
func (r *run) version(ctx context.Context) (*configv1.ClusterVersion, error) {
	return clusterapi.Read[configv1.ClusterVersion](ctx, r.cluster, clusterapi.Key("", "version"))
}

// repair repairs what is due.
func (r *run) repair(ctx context.Context) error {
	now := r.driver.Now()
	for part, at := range r.heal {
		if now.Before(at) {
			continue
		}
		delete(r.heal, part)
		r.fault(part, nil)
		if kind, name, _ := strings.Cut(part, "/"); kind == "node" {
			if err := r.wakeNode(ctx, name, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeNode makes a node ready that is not.
func (r *run) wakeNode(ctx context.Context, name string, now time.Time) error {
	status := clusterapi.ModifyOptions{Status: true}
	_, err := clusterapi.Modify(ctx, r.cluster, clusterapi.Key("", name), status, func(n *corev1.Node) error {
		for i := range n.Status.Conditions {
			c := &n.Status.Conditions[i]
			if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
				continue
			}
			c.Status = corev1.ConditionTrue
			c.Reason = "KubeletReady"
			c.Message = "kubelet is posting ready status"
			c.LastTransitionTime.Time = now
		}
		return nil
	})
	return err
}

// ended returns the outcome of the run, "" while it has none.
func (r *run) ended(ctx context.Context) (Outcome, error) {
	cv, err := r.version(ctx)
	if err != nil {
		return "", err
	}
	if len(cv.Status.History) == 0 {
		return "", nil
	}
	last := cv.Status.History[0]
	if last.Version != r.scene.to.Version {
		accepted := openshift.FindCondition(cv.Status.Conditions, "ReleaseAccepted")
		seen := cv.Status.ObservedGeneration >= cv.Generation
		refused := accepted != nil && accepted.Status == configv1.ConditionFalse
		if seen && refused && r.runner == nil {
			return Refused, nil
		}
		return "", nil
	}
	r.breakNodes()
	if last.State != configv1.CompletedUpdate || last.CompletionTime == nil {
		return "", nil
	}
	if r.control.IsZero() {
		r.control = r.start
		if last.CompletionTime.After(r.start) {
			r.control = last.CompletionTime.Time
		}
		r.lines.recorder.End(versionLane, r.control)
	}
	left, err := r.pending(ctx)
	if err != nil || left || r.runner != nil && r.runner.Progress().State != plan.StateFinished {
		return "", err
	}
	return Completed, nil
}

// breakNodes breaks the nodes of RehearseOptions.Faults once the update has started:
// one that is broken before is a reason to refuse it.
func (r *run) breakNodes() {
	if r.broken {
		return
	}
	r.broken = true
	for part, f := range r.scene.o.Faults {
		if strings.HasPrefix(part, "node/") {
			r.fault(part, &f)
		}
	}
}

// pending reports whether a pool that is not paused is not updated yet.
func (r *run) pending(ctx context.Context) (bool, error) {
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, r.cluster, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return false, err
	}
	pending := func(p *mcfgv1.MachineConfigPool) bool { return !p.Spec.Paused && !updated(p) }
	return slices.ContainsFunc(pools, pending), nil
}

// updated reports whether all nodes of a pool have its configuration.
func updated(p *mcfgv1.MachineConfigPool) bool {
	s := &p.Status
	return s.Configuration.Name == p.Spec.Configuration.Name &&
		s.UpdatedMachineCount == s.MachineCount && s.ReadyMachineCount == s.MachineCount &&
		slices.ContainsFunc(s.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
			return c.Type == mcfgv1.MachineConfigPoolUpdated && c.Status == corev1.ConditionTrue
		})
}

// result puts together the result of the run.
func (r *run) result(ctx context.Context, outcome Outcome, failed error) (*result, error) {
	end := r.driver.Now()
	if outcome == Completed {
		end = r.witness.moved
	}
	out := &result{outcome: outcome, start: r.start, assumed: append(r.cluster.Assumed(), r.assumed.list()...)}
	var err error
	out.timeline, err = r.lines.timeline(r.start, end, outcome != Completed)
	if err != nil {
		return nil, err
	}
	if !r.control.IsZero() {
		out.control = r.control.Sub(r.start)
	}
	if outcome == Completed {
		out.total = max(end.Sub(r.start), out.control)
		return out, nil
	}
	out.why, err = r.causes(ctx, failed)
	return out, err
}

// causes are why the run did not complete: the error that ended it, and what the status
// views show.
func (r *run) causes(ctx context.Context, failed error) ([]Cause, error) {
	var causes []Cause
	var f *failure
	if errors.As(failed, &f) {
		object := view.Resource{Kind: "Reconciler", Name: f.subject}
		link := view.Link{Object: &object, State: "failing", Message: f.err.Error(), Since: &f.since}
		causes = append(causes, Cause{Chain: view.Chain{link}, Assumed: r.simulated(f)})
	}
	s, err := view.ReadStatus(ctx, r.cluster, view.StatusOptions{
		Now: r.driver.Now(), Components: preview.Components(r.scene.images[len(r.scene.images)-1].Payload),
	})
	if err != nil {
		return nil, err
	}
	degraded, err := r.degradedPools(ctx)
	if err != nil {
		return nil, err
	}
	for _, chain := range s.Waits {
		last := chain[len(chain)-1].Object
		if last != nil && last.Kind == "ClusterOperator" && last.Name == "machine-config" {
			for _, tail := range degraded {
				causes = append(causes, Cause{Chain: slices.Concat(chain, tail)})
			}
			if len(degraded) > 0 {
				continue
			}
		}
		causes = append(causes, Cause{Chain: chain})
	}
	cv, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	if refusal := refusedChain(cv.Status.Conditions); refusal != nil {
		causes = append(causes, Cause{Chain: refusal})
	}
	for i := range causes {
		causes[i].Assumed = causes[i].Assumed || r.scene.madeUp(ctx, causes[i].Chain)
	}
	return sortCauses(causes), nil
}

// simulated reports whether a failure is one of the rehearsal, not of the cluster.
func (r *run) simulated(f *failure) bool {
	return !strings.HasPrefix(f.subject, "plan/") && !strings.HasPrefix(f.subject, "clusterversion/")
}

// madeUp reports whether a chain leads through an object that the Reader does not have,
// and may not know of.
func (s *scene) madeUp(ctx context.Context, chain view.Chain) bool {
	return slices.ContainsFunc(chain, func(l view.Link) bool {
		if l.Object == nil {
			return false
		}
		gvk := schema.GroupVersionKind{Group: l.Object.Group, Version: "v1", Kind: l.Object.Kind}
		_, err := s.o.Reader.Get(ctx, gvk, clusterapi.Key(l.Object.Namespace, l.Object.Name))
		return errors.Is(err, clusterapi.ErrNotCollected)
	})
}

// degradedPools are chains to the nodes of degraded pools, which the operator of
// machines waits for whether it requires them or not.
func (r *run) degradedPools(ctx context.Context) (chains []view.Chain, err error) {
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, r.cluster, clusterapi.ListOptions{})
	if err != nil && !clusterapi.IsAbsent(err) {
		return nil, err
	}
	for _, p := range pools {
		i := slices.IndexFunc(p.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
			reason := c.Type != mcfgv1.MachineConfigPoolDegraded && strings.HasSuffix(string(c.Type), "Degraded")
			return reason && c.Status == corev1.ConditionTrue
		})
		if i < 0 {
			continue
		}
		c := p.Status.Conditions[i]
		object := view.Resource{Group: mcfgv1.GroupName, Kind: "MachineConfigPool", Name: p.Name}
		state := fmt.Sprintf("%s=%s", c.Type, c.Status)
		since := c.LastTransitionTime.Time
		link := view.Link{Object: &object, State: state, Reason: c.Reason, Message: c.Message, Since: &since}
		chains = append(chains, view.Chain{link})
	}
	return chains, nil
}
