// Package nodes has what examples share that rehearse a rollout of nodes: a cluster
// that is simulated, or a fork of a recording, whose nodes the library updates in
// virtual time, and the timeline of that.
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// Outcome is how a rehearsal ended.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "Completed" // every pool that is not paused has its configuration
	Stuck     Outcome = "Stuck"     // nothing moved for long
	Unknown   Outcome = "Unknown"   // the recording lacks the nodes or the pools
)

// Rehearsal is a cluster whose nodes can be updated. It is not safe for concurrent
// use.
type Rehearsal struct {
	*simulation.Cluster
	// Assumed is what the recording lacks and is taken for granted. Missing is what
	// it lacks without which there is no answer.
	Assumed, Missing []string
	Plan             *plan.Plan // nil without a canary

	o        Options
	timeline *timeline.Recorder
	runner   *plan.Runner
	driver   *reconcile.Virtual
	events   *events
	begun    time.Time
}

// Result is what came of a rehearsal.
type Result struct {
	Outcome  Outcome  `json:"outcome"`
	Duration Duration `json:"duration"`
	Pools    []Pool   `json:"pools"`
	Why      []string `json:"why,omitempty"`
	// Explained is what was to be done with each node before it began, and Held what
	// is to be done where it is stuck.
	Explained []Explanation      `json:"explained,omitempty"`
	Held      []Explanation      `json:"held,omitempty"`
	Estimate  *Estimate          `json:"estimate,omitempty"`
	Plan      *plan.Plan         `json:"plan,omitempty"`
	Assumed   []string           `json:"assumed,omitempty"`
	Timeline  *timeline.Timeline `json:"timeline"`
}

// Pool is what became of a pool.
type Pool struct {
	Name     string   `json:"name"`
	Updated  int      `json:"updated"`
	Nodes    int      `json:"nodes"`
	Paused   bool     `json:"paused,omitempty"`
	Duration Duration `json:"duration,omitempty"` // until all nodes were updated
}

// Duration is written as a text.
type Duration time.Duration

// MarshalText writes it as in 1h2m3s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string { return time.Duration(d).Truncate(time.Second).String() }

// Options say how a rehearsal is played.
type Options struct {
	Title string
	Seed  uint64
	// Failing is the share of the API calls of the library that fail.
	Failing float64
	// Canary are the sizes of groups of the simulated pool worker that are updated
	// one after the other; nil: all of it is updated as it comes.
	Canary []int
	// Explain says of each node what is to be done with it, before it begins and
	// where it is stuck. Estimate says how long it is to take.
	Explain, Estimate bool

	only func(reconcile.Reconciler) bool // of the cluster; nil: all are played
}

// Simulate makes a simulated cluster, and gives all its pools a new configuration: at
// once, or with a canary when its plan is so far. The error says what is wrong with
// the options.
func Simulate(ctx context.Context, o Options, c simulation.Options) (*Rehearsal, error) {
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.Clock = clock
	cluster, err := simulation.New(c)
	if err != nil {
		return nil, err
	}
	r, err := begin(o, cluster, clock)
	if err != nil {
		return nil, err
	}
	for _, node := range slices.Sorted(maps.Keys(c.NodeFaults)) {
		if _, err := clusterapi.Get[corev1.Node](ctx, cluster, clusterapi.Key("", node)); err != nil {
			return nil, err
		}
	}
	roles := []string{mcp.PoolMaster}
	for _, p := range c.Pools {
		roles = append(roles, cmp.Or(p.Name, mcp.PoolWorker))
	}
	if o.Canary != nil {
		return r, r.planCanary(ctx, o.Canary, roles)
	}
	if err := r.configure(ctx, roles); err != nil {
		return nil, err
	}
	return r, r.driver.RunUntil(r.driver.Now().Add(time.Minute)) // until they are rendered
}

// begin makes a driver, whose cluster waits for a rollout.
func begin(o Options, c *simulation.Cluster, clock *reconcile.Clock) (*Rehearsal, error) {
	r := &Rehearsal{Cluster: c, o: o}
	process := c.Process()
	if o.only != nil {
		all := process.New
		process.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
			return slices.DeleteFunc(all(api), func(r reconcile.Reconciler) bool { return !o.only(r) })
		}
	}
	faults := reconcile.Faults{Before: o.Failing / 2, After: o.Failing / 2, Processes: []string{"rollout", "plan canary"}}
	r.driver = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: o.Seed, Faults: faults}, process)
	var err error
	r.timeline, err = timeline.NewRecorder(timeline.Options{Title: o.Title, Phases: phases})
	r.events = &events{Recorder: r.timeline, pools: map[string]bool{}, on: map[string]string{}, blocked: map[string]string{}}
	return r, err
}

// Close frees what the cluster remembers for its driver.
func (r *Rehearsal) Close() { r.driver.Close() }

// configure adds a MachineConfig for each role, from which the pools that select it
// get a new configuration.
func (r *Rehearsal) configure(ctx context.Context, roles []string) error {
	for _, role := range roles {
		c := &mcfgv1.MachineConfig{}
		c.Name, c.Labels = "99-"+role+"-rehearsal", map[string]string{mcp.LabelRole: role}
		c.Spec.KernelArguments = []string{content(role)}
		if _, err := clusterapi.Create(ctx, r.Cluster, c, clusterapi.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// state is the cluster as decisions see it.
func (r *Rehearsal) state(ctx context.Context) (*mcp.State, error) {
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, r.Cluster, clusterapi.ListOptions{})
	nodes, err2 := clusterapi.List[corev1.Node](ctx, r.Cluster, clusterapi.ListOptions{})
	pods, err3 := clusterapi.List[corev1.Pod](ctx, r.Cluster, clusterapi.ListOptions{Namespace: mcp.OperatorNamespace})
	for _, err := range []error{err, err2, err3} {
		if err != nil && !absent(err) {
			return nil, err
		}
	}
	objects := mcp.Objects{Pools: pools, Nodes: nodes, Pods: pods}
	if cc, err := clusterapi.Get[mcfgv1.ControllerConfig](ctx, r.Cluster, clusterapi.Key("", mcp.ControllerConfigName)); err == nil {
		objects.ControllerConfig = cc
	}
	return mcp.NewState(objects, mcp.Options{}), nil
}

// look is how often a rehearsal looks whether it has ended.
const look = 30 * time.Second

// Play updates the nodes until every pool and the plan is done, or nothing has moved
// for as long as until. Errors are those of ctx, and of reading the cluster.
func (r *Rehearsal) Play(ctx context.Context, until time.Duration) (*Result, error) {
	nodes, err := rollout.New(rollout.Options{Mode: rollout.Drive, Observe: r.events.node})
	if err != nil {
		return nil, err
	}
	result := &Result{Outcome: Completed}
	if r.o.Explain {
		result.Explained, err = r.explain(ctx)
		if err != nil {
			return nil, err
		}
	}
	if r.o.Estimate {
		result.Estimate, err = r.estimate(ctx)
		if err != nil {
			return nil, err
		}
	}
	r.begun = r.driver.Now()
	r.events.moved = r.begun
	r.driver.Add(nodes.Process())
	if r.runner != nil {
		r.driver.Add(r.runner.Process())
	}
	for {
		pools, left, err := r.pools(ctx)
		if err != nil {
			return nil, err
		}
		result.Pools = pools
		if left == 0 && (r.runner == nil || r.runner.Progress().State.Ended()) {
			r.events.done()
			break
		}
		if r.driver.Now().Sub(r.events.moved) >= until {
			result.Outcome = Stuck
			break
		}
		if err := errors.Join(r.driver.RunUntil(r.driver.Now().Add(look)), ctx.Err()); err != nil {
			return nil, err
		}
	}
	if r.o.Explain && result.Outcome == Stuck {
		result.Held, err = r.explain(ctx)
		if err != nil {
			return nil, err
		}
	}
	if len(r.Missing) > 0 {
		result.Outcome = Unknown
	}
	result.Why = r.why(result.Outcome)
	return result, r.finish(result)
}

// finish fills in what is known at the end.
func (r *Rehearsal) finish(result *Result) (err error) {
	result.Assumed, result.Plan = r.Assumed, r.Plan
	result.Timeline, err = r.timeline.Timeline()
	if tooMany := (*timeline.LimitError)(nil); errors.As(err, &tooMany) {
		err = nil // the timeline says how many it left out
	}
	result.Timeline.Start = r.begun
	ends := map[string]time.Time{}
	for _, e := range result.Timeline.Entries {
		if e.Lane.Name == "" && !e.Open() {
			ends[e.Lane.Group] = e.End
		}
		if end := e.End; !e.Open() && end.Sub(r.begun) > time.Duration(result.Duration) {
			result.Duration = Duration(end.Sub(r.begun))
		}
	}
	for i := range result.Pools {
		if end, ok := ends[result.Pools[i].Name]; ok {
			result.Pools[i].Duration = Duration(end.Sub(r.begun))
		}
	}
	if result.Outcome == Stuck {
		result.Duration = Duration(r.driver.Now().Sub(r.begun))
	}
	return err
}

// pools says how far the pools are, and how many that are not paused are not done.
func (r *Rehearsal) pools(ctx context.Context) (all []Pool, left int, err error) {
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, r.Cluster, clusterapi.ListOptions{})
	if err != nil && !absent(err) {
		return nil, 0, err
	}
	for i := range pools {
		p := &pools[i]
		st := &p.Status
		updated := st.Configuration.Name == p.Spec.Configuration.Name && st.UpdatedMachineCount == st.MachineCount && st.ReadyMachineCount == st.MachineCount &&
			slices.ContainsFunc(st.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool {
				return c.Type == mcfgv1.MachineConfigPoolUpdated && c.Status == corev1.ConditionTrue
			})
		if !updated && !p.Spec.Paused {
			left++
		}
		all = append(all, Pool{Name: p.Name, Updated: int(st.UpdatedMachineCount), Nodes: int(st.MachineCount), Paused: p.Spec.Paused})
	}
	return all, left, nil
}

// why says what is missing, or stands in the way of which node.
func (r *Rehearsal) why(o Outcome) []string {
	if o == Unknown {
		return r.Missing
	}
	if o != Stuck {
		return nil
	}
	var out []string
	for where, phase := range r.events.on {
		if r.events.blocked[where] == "" {
			out = append(out, where+": "+phase)
		}
	}
	for where, text := range r.events.blocked {
		if phase := r.events.on[where]; phase != "" {
			where += " > " + phase
		}
		out = append(out, where+": "+text)
	}
	slices.Sort(out)
	if len(out) == 0 {
		out = []string{cmp.Or(r.events.failed, "nothing moves")}
	}
	return append(out, fmt.Sprintf("nothing has moved since +%s", Duration(r.events.moved.Sub(r.begun))))
}
