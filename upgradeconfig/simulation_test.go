package upgradeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// virtualSite is a cluster in virtual time that is updated as a provider says.
type virtualSite struct {
	*reconcile.Virtual
	cluster *memory.Cluster
	cursor  clusterapi.Cursor
	clock   *reconcile.Clock
	start   time.Time
	due     time.Time

	policy    *upgradeconfig.Policy // that the provider has; nil: none
	withdrawn time.Time             // when it last had another one
	unwell    bool                  // health checks fail, always
	away      float64               // how many requests the provider fails
	rand      *rand.Rand            // of the provider

	lives, lost int // of operators; answers of the provider to what it was told
	requested   map[string]int
	removed     time.Time // when there was last an UpgradeConfig that is gone
	last        *configv1.Update
	ranks       map[string]int                         // of stored phases, by UID and version
	told        map[string]map[upgradeconfig.State]int // likewise
	moving      map[string]time.Time                   // pools, since when they update
	wrong       []string
	log         []string
}

// The cases that a seed chooses from.
const (
	asPlanned = iota
	withdrawn
	withdrawnForAWhile
	anotherVersion
	anotherTime
	neverHealthy
	cases
)

// faulty is how long after the start things go wrong.
const faulty = 2 * time.Hour

func simulate(seed uint64, operators int, f reconcile.Faults) *virtualSite {
	clock := reconcile.NewClock(time.Date(2031, 3, 4, 2, 0, 0, 0, time.UTC))
	s := &virtualSite{
		cluster: serving(memory.NewOpenShift(memory.Options{Clock: clock, CheckShared: seed%10 == 1})),
		clock:   clock, start: clock.Now(), due: clock.Now().Add(time.Hour), rand: rand.New(rand.NewPCG(seed, 1)),
		requested: map[string]int{}, ranks: map[string]int{}, told: map[string]map[upgradeconfig.State]int{}, moving: map[string]time.Time{},
		unwell: seed%cases == neverHealthy,
	}
	if f.Before > 0 {
		s.away = 0.1
	}
	s.policy = s.wants("4.20.3", s.due)
	s.load()
	s.cursor = s.cluster.Follow()
	processes := []reconcile.Process{{Name: "cluster", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler { return []reconcile.Reconciler{versionOperator{s, api}} }}}
	for i := range operators {
		p := s.operator(fmt.Sprint("operator ", i))
		f.Processes = append(f.Processes, p.Name)
		processes = append(processes, p)
	}
	o := reconcile.VirtualOptions{Cluster: s.cluster, Clock: clock, Seed: seed, Faults: f, Latency: reconcile.Latency{Watch: 500 * time.Millisecond}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	s.Virtual = reconcile.NewVirtual(o, processes...)
	s.administrate(seed)
	return s
}

// load makes a cluster of 4.20.2 with three pools, of which one is paused.
func (s *virtualSite) load() {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.Channel, cv.Spec.ClusterID = "stable-4.19", "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"
	cv.Status.Desired = configv1.Release{Version: "4.20.2", Image: "old"}
	cv.Status.History = history([2]string{"4.20.2", "2000-01-01T00:00:00Z"})
	cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.3", Image: imageOf("4.20.3")}, {Version: "4.20.4", Image: imageOf("4.20.4")}}
	objects := []any{cv}
	for _, name := range []string{"master", "worker", "infra"} {
		pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.Configuration.Name, pool.Status.Configuration.Name = "rendered-4.20.2", "rendered-4.20.2"
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 3, 3
		pool.Spec.Paused = name == "infra"
		objects = append(objects, pool)
	}
	for _, o := range objects {
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = s.cluster.Load(u)
		}
		if err != nil {
			panic(err)
		}
	}
}

func imageOf(version string) string {
	return "quay.io/ocp/release@sha256:6ab330b5205a6a0cb64d0e3c3a5a04278d90cb85e128e3b5317cdfba22bef4" + version[len(version)-1:] + "0"
}

func (s *virtualSite) wants(version string, at time.Time) *upgradeconfig.Policy {
	return &upgradeconfig.Policy{ID: "p-1", State: "scheduled", NextRun: at, Spec: upgradeconfig.Spec{
		Desired: upgradeconfig.Update{Version: version, Channel: "stable-4.20"}, UpgradeAt: at.Format(time.RFC3339), Type: upgradeconfig.OSD,
	}}
}

// administrate changes the policy at a time that is drawn.
func (s *virtualSite) administrate(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	set := func(after time.Duration, p *upgradeconfig.Policy) {
		s.clock.AfterFunc(after, func() { s.policy, s.withdrawn = p, s.Now() })
	}
	when, later := time.Duration(r.IntN(180))*time.Minute, s.start.Add(4*time.Hour)
	if r.IntN(2) == 0 {
		when = s.due.Sub(s.start) - time.Duration(r.IntN(20))*time.Minute // after the last sync before it
	}
	switch seed % cases {
	case withdrawn:
		set(when, nil)
	case withdrawnForAWhile:
		set(when, nil)
		set(when+time.Duration(1+r.IntN(60))*time.Minute, s.wants("4.20.3", later))
	case anotherVersion:
		set(when, s.wants("4.20.4", later))
	case anotherTime:
		set(when, s.wants("4.20.3", later))
	}
}

// operator is a process with a Manager and a Controller, made again as a whole
// after a crash.
func (s *virtualSite) operator(name string) reconcile.Process {
	observe := func(e upgradeconfig.Event) { s.log = append(s.log, fmt.Sprint(s.Now().Sub(s.start), " ", name, " ", e.Type, " ", e.Text)) }
	return reconcile.Process{Name: name, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		s.lives++
		m := upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
			API: api, Provider: s, Interval: 20 * time.Minute, Clock: s.clock, Rand: s.rand.Int64N, Observe: observe,
		})
		c := upgradeconfig.NewController(upgradeconfig.ControllerOptions{
			API: api, Refresh: m.Refresh, Notifier: m, Health: upgradeconfig.CheckFunc(s.failing), Clock: s.clock, Observe: observe,
		})
		return slices.Concat(m.Process().New(api), c.Process().New(api))
	}}
}

func (s *virtualSite) failing(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
	if s.unwell {
		return []string{"etcd"}, nil
	}
	return nil, nil
}

func (s *virtualSite) String() string { return "simulated provider" }

// answer takes a while, and fails at times.
func (s *virtualSite) answer(ctx context.Context) error {
	if err := reconcile.Sleep(ctx, time.Duration(s.rand.IntN(3000))*time.Millisecond); err != nil {
		return err
	}
	if s.rand.Float64() < s.away && s.Now().Sub(s.start) < faulty {
		return errors.New("the provider is away")
	}
	return nil
}

func (s *virtualSite) Policies(ctx context.Context) ([]upgradeconfig.Policy, error) {
	if err := s.answer(ctx); err != nil || s.policy == nil {
		return nil, err
	}
	return []upgradeconfig.Policy{*s.policy}, nil
}

// Notify notes what was told, which must be stored by then. Its answer may be
// lost.
func (s *virtualSite) Notify(ctx context.Context, n upgradeconfig.Notification) error {
	if err := s.answer(ctx); err != nil {
		return err
	}
	key := string(n.Config.UID) + " " + n.Version
	if s.told[key] == nil {
		s.told[key] = map[upgradeconfig.State]int{}
	}
	s.told[key][n.State]++
	if c := s.config(); c != nil && c.UID == n.Config.UID {
		e, _ := c.Status.Entry(n.Version)
		for state, stored := range map[upgradeconfig.State]struct {
			phase     upgradeconfig.Phase
			condition upgradeconfig.ConditionType
		}{
			upgradeconfig.StateStarted:   {upgradeconfig.PhaseUpgrading, upgradeconfig.StartedNotificationSent},
			upgradeconfig.StateCompleted: {upgradeconfig.PhaseUpgraded, upgradeconfig.CompletedNotificationSent},
			upgradeconfig.StateFailed:    {upgradeconfig.PhaseFailed, upgradeconfig.FailedUpgrade},
		} {
			if _, ok := e.Condition(stored.condition); n.State == state && (!ok || rank[e.Phase] < rank[stored.phase]) {
				s.fault("%s was told before it was stored: phase %s", state, e.Phase)
			}
		}
	}
	if err := s.answer(ctx); err != nil {
		s.lost++
		return err
	}
	return nil
}

func (s *virtualSite) fault(format string, a ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf("after %s: ", s.Now().Sub(s.start))+fmt.Sprintf(format, a...))
}

// config is the UpgradeConfig as it is stored, nil for none.
func (s *virtualSite) config() *upgradeconfig.UpgradeConfig {
	c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](context.Background(), s.cluster, objectKey)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return c
}

// rank orders the phases: none is followed by one of a lower rank.
var rank = map[upgradeconfig.Phase]int{
	upgradeconfig.PhaseNew: 1, upgradeconfig.PhasePending: 2, upgradeconfig.PhaseUpgrading: 3, upgradeconfig.PhaseUpgraded: 4, upgradeconfig.PhaseFailed: 4,
}

// tolerance is how old what an operator acts upon may be: a read of the past,
// a provider's answer.
const tolerance = time.Minute

// look checks what must hold after each step.
func (s *virtualSite) look() error {
	for c, ok := s.cursor.Next(); ok; c, ok = s.cursor.Next() {
		switch c.Object().Kind().Kind {
		case "UpgradeConfig":
			if c.New == nil {
				s.removed = s.Now()
				continue
			}
			s.lookAtConfig(c)
		case "ClusterVersion":
			cv, err := clusterapi.As[configv1.ClusterVersion](c.New)
			if err != nil {
				return err
			}
			s.lookAtRequest(cv)
		}
	}
	if len(s.wrong) > 0 {
		return errors.New(s.wrong[0])
	}
	return nil
}

func (s *virtualSite) lookAtConfig(c clusterapi.Change) {
	now, err := clusterapi.As[upgradeconfig.UpgradeConfig](c.New)
	if err != nil {
		s.fault("%v", err)
		return
	}
	var before upgradeconfig.Status
	if c.Old != nil && c.Old.UID() == c.New.UID() {
		if old, err := clusterapi.As[upgradeconfig.UpgradeConfig](c.Old); err == nil {
			before = old.Status
		}
	}
	for _, e := range before.History {
		if _, ok := now.Status.Entry(e.Version); !ok {
			s.fault("the history lost %s", e.Version)
		}
	}
	for _, e := range now.Status.History {
		key := string(now.UID) + " " + e.Version
		if rank[e.Phase] < s.ranks[key] {
			s.fault("%s went back to %s", e.Version, e.Phase)
		}
		if rank[e.Phase] == rank[upgradeconfig.PhaseUpgrading] && s.ranks[key] < rank[e.Phase] && s.requested[e.Version] == 0 {
			if wanted := s.policy != nil && s.policy.Spec.Desired.Version == e.Version; !wanted && s.Now().Sub(s.withdrawn) > tolerance {
				s.fault("%s begins, and the provider does not want it", e.Version)
			}
		}
		s.ranks[key] = rank[e.Phase]
	}
}

func (s *virtualSite) lookAtRequest(cv *configv1.ClusterVersion) {
	if cmp.Equal(cv.Spec.DesiredUpdate, s.last) {
		return
	}
	s.last = cv.Spec.DesiredUpdate.DeepCopy()
	if s.last == nil {
		s.fault("the request was removed")
		return
	}
	s.requested[s.last.Version]++
	c := s.config()
	switch {
	case c == nil && s.Now().Sub(s.removed) > tolerance:
		s.fault("%s is requested without an UpgradeConfig", s.last.Version)
	case c != nil && c.Spec.Desired.Version != s.last.Version && s.Now().Sub(s.removed) > tolerance:
		s.fault("%s is requested, and wanted is %s", s.last.Version, c.Spec.Desired.Version)
	case s.Now().Before(s.due):
		s.fault("%s is requested before its time", s.last.Version)
	}
}

func (s *virtualSite) run(until time.Duration) error {
	defer s.cursor.Close()
	for end := s.start.Add(until); ; {
		at, ok := s.Next()
		if !ok || at.After(end) {
			return s.cluster.CheckShared()
		}
		if _, err := s.Step(); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return err
		}
	}
}

// atEnd says what is not as it should be.
func (s *virtualSite) atEnd() error {
	for version, n := range s.requested {
		if n > 1 {
			s.fault("%s was requested %d times", version, n)
		}
	}
	for key, states := range s.told {
		for state, n := range states {
			if n > s.lives+s.lost {
				s.fault("%s: %s was told %d times, by %d operators, and %d answers were lost", key, state, n, s.lives, s.lost)
			}
		}
	}
	c := s.config()
	if s.policy == nil || c == nil {
		if s.policy != nil || c != nil {
			s.fault("the provider wants %v, stored is %v", s.policy, c)
		}
	} else {
		version, phase, state := s.policy.Spec.Desired.Version, upgradeconfig.PhaseUpgraded, upgradeconfig.StateCompleted
		if s.unwell {
			phase, state = upgradeconfig.PhaseFailed, upgradeconfig.StateFailed
		}
		e, _ := c.Status.Entry(version)
		if c.Spec.Desired.Version != version || e.Phase != phase || s.told[string(c.UID)+" "+version][state] == 0 {
			s.fault("%s: %+v; told: %v", version, e, s.told)
		}
		cv, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), s.cluster, clusterapi.Key("", "version"))
		if err != nil {
			return err
		}
		if done := cv.Status.History[0].Version == version && cv.Status.History[0].State == configv1.CompletedUpdate; done == s.unwell {
			s.fault("%+v", cv.Status.History)
		}
	}
	if len(s.wrong) > 0 {
		slices.Sort(s.wrong)
		return errors.New(s.wrong[0])
	}
	return nil
}

// versionOperator takes ten minutes for the control plane, and ten more for
// the pools that are not paused.
type versionOperator struct {
	*virtualSite
	api clusterapi.ClusterAPI
}

func (o versionOperator) Name() string { return "version" }

func (o versionOperator) Watches() []reconcile.Watch {
	wake := func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { return []reconcile.Wake{{}} }
	return []reconcile.Watch{{GVK: configv1.GroupVersion.WithKind("ClusterVersion"), Changed: wake}}
}

func (o versionOperator) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	const pace = 10 * time.Minute
	now := r.Now
	cv, err := clusterapi.Modify(ctx, o.api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
		newest := &cv.Status.History[0]
		if want := cv.Spec.DesiredUpdate; want != nil && want.Version != newest.Version {
			cv.Status.Desired = configv1.Release{Version: want.Version, Image: imageOf(want.Version)}
			cv.Status.History = slices.Insert(cv.Status.History, 0, configv1.UpdateHistory{
				Version: want.Version, Image: imageOf(want.Version), State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now),
			})
			return nil
		}
		if newest.State == configv1.PartialUpdate && now.Sub(newest.StartedTime.Time) >= pace {
			newest.State, newest.CompletionTime = configv1.CompletedUpdate, &metav1.Time{Time: now}
		}
		return nil
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	newest := cv.Status.History[0]
	if newest.State == configv1.PartialUpdate {
		return reconcile.Result{At: newest.StartedTime.Add(pace)}, nil
	}
	var out reconcile.Result
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, o.api, clusterapi.ListOptions{})
	for _, p := range pools {
		config := "rendered-" + newest.Version
		if p.Spec.Paused || p.Status.Configuration.Name == config {
			continue
		}
		if p.Spec.Configuration.Name != config {
			o.moving[p.Name] = now
		}
		updated := now.Sub(o.moving[p.Name]) >= pace
		if !updated {
			out.At = o.moving[p.Name].Add(pace)
		}
		for _, status := range []bool{false, true} {
			_, err = clusterapi.Modify(ctx, o.api, clusterapi.Key("", p.Name), clusterapi.ModifyOptions{Status: status}, func(m *mcfgv1.MachineConfigPool) error {
				m.Spec.Configuration.Name = config
				m.Status.UpdatedMachineCount, m.Status.ObservedGeneration = 1, m.Generation
				if updated {
					m.Status.UpdatedMachineCount, m.Status.Configuration.Name = 3, config
				}
				return nil
			})
			if err != nil {
				return out, err
			}
		}
	}
	return out, err
}

func faults(only map[string]bool) reconcile.Faults {
	return reconcile.Faults{
		Before: 0.03, After: 0.03, Conflict: 0.03, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
		Crash: 0.01, Outage: 0.2, ClockBack: 0.1, Until: faulty, Only: only,
	}
}

// Whatever goes wrong, the cluster ends at what the provider last wants, is
// told to update once and in time, and the provider hears of what is stored.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		s := simulate(seed, 1, faults(only))
		defer s.Close()
		if err := s.run(6 * time.Hour); err != nil {
			return s.Faults(), err
		}
		return s.Faults(), s.atEnd()
	})
}

// Two operators at once come to the same end.
func TestSimulationOfTwo(t *testing.T) {
	simtest.Test(t, 0.1, func(seed uint64, only map[string]bool) ([]string, error) {
		s := simulate(seed, 2, faults(only))
		defer s.Close()
		if err := s.run(6 * time.Hour); err != nil {
			return s.Faults(), err
		}
		return s.Faults(), s.atEnd()
	})
}

// Without faults nothing is told twice, and the same seed makes the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	run := func(seed uint64, f reconcile.Faults) *virtualSite {
		s := simulate(seed, 1, f)
		defer s.Close()
		if err := s.run(6 * time.Hour); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for seed := range uint64(cases) {
		s := run(seed, reconcile.Faults{})
		for key, states := range s.told {
			for state, n := range states {
				if n > 1 {
					t.Errorf("seed %d: %s: %s was told %d times", seed, key, state, n)
				}
			}
		}
		a, b := run(seed, faults(nil)), run(seed, faults(nil))
		if diff := cmp.Diff(slices.Concat(a.log, a.Faults()), slices.Concat(b.log, b.Faults())); diff != "" {
			t.Errorf("seed %d:\n%s", seed, diff)
		}
	}
}
