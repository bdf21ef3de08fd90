package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

var simulationStart = at("2031-02-04T00:00:00Z")

// For so long policies change at random, then the last one comes; faults go on
// until it is under way.
const (
	changesFor = 50 * time.Minute
	lastIn     = 15 * time.Minute
	faultsFor  = changesFor + 40*time.Minute
)

// The releases of a simulation, the first one installed. The last policy is
// about the last one.
var simulatedReleases = []string{"4.20.2", "4.20.3", "4.20.4", "4.20.5"}

// upgradeID names an upgrade that an object asks for.
type upgradeID struct {
	uid     types.UID
	version string
}

// simulatedRun is a run of the simulation: a cluster, and a provider of which it
// is the backend.
type simulatedRun struct {
	*reconcile.Virtual
	seed    uint64
	cluster *memory.Cluster
	clock   *reconcile.Clock
	cursor  clusterapi.Cursor
	rand    *rand.Rand // of who changes policies
	luck    *rand.Rand // of the provider
	office  []upgradeconfig.Policy
	last    bool             // the last policy is there
	sick    [2]time.Duration // from when to when the cluster is not healthy
	paused  bool             // pool infra
	single  bool             // one instance

	reserved bool                    // extra capacity
	windows  upgradetest.Maintenance // that are open

	config  *upgradeconfig.UpgradeConfig // as it is stored now
	lives   int
	entries map[upgradeID]map[upgradeconfig.Phase]bool // that were stored
	due     map[upgradeID]map[upgradeconfig.State]bool // in annotations that were stored
	told    map[upgradeID]map[upgradeconfig.State]int  // in which life of the process; -1: its answer was lost
	log     []heard
	fault   error
}

// heard is an event, and of which process.
type heard struct {
	process string
	event   clusterapi.Event
}

// lines are the last events, up to so many.
func (s *simulatedRun) lines(most int) (out []string) {
	for _, h := range s.log[max(len(s.log)-most, 0):] {
		data, err := json.Marshal(h.event)
		out = append(out, fmt.Sprint(h.process, " ", string(data), err))
	}
	return out
}

func simulateUpgrades(seed uint64, instances int, f reconcile.Faults) *simulatedRun {
	s := &simulatedRun{
		seed: seed, clock: reconcile.NewClock(simulationStart), single: instances == 1,
		rand: rand.New(rand.NewPCG(seed, 7)), luck: rand.New(rand.NewPCG(seed, 8)),
		entries: map[upgradeID]map[upgradeconfig.Phase]bool{}, due: map[upgradeID]map[upgradeconfig.State]bool{}, told: map[upgradeID]map[upgradeconfig.State]int{},
	}
	if seed%4 == 1 {
		from := time.Duration(s.rand.IntN(30)) * time.Minute
		s.sick = [2]time.Duration{from, from + time.Duration(5+s.rand.IntN(40))*time.Minute}
	}
	s.cluster = memory.NewOpenShift(memory.Options{Clock: s.clock, CheckShared: seed%10 == 1})
	definition := upgradeconfig.Definition()
	if seed%10 > 1 {
		definition = looseDefinition()
	}
	if err := s.cluster.Load(definition); err != nil {
		panic(err)
	}
	cv := &configv1.ClusterVersion{}
	cv.Name = "version"
	cv.Spec.Channel, cv.Spec.ClusterID = "stable-4.19", "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"
	cv.Status.Desired = configv1.Release{Version: simulatedReleases[0], Image: "old"}
	cv.Status.History = history([2]string{simulatedReleases[0], "2000-01-01T00:00:00Z"})
	for _, v := range simulatedReleases[1:] {
		cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: v, Image: "quay.io/ocp/release@sha256:" + strings.Repeat(v[len(v)-1:], 64)})
	}
	s.load(cv)
	for _, name := range []string{"master", "worker", "infra"} {
		pool := &mcfgv1.MachineConfigPool{}
		pool.Name = name
		pool.Spec.Configuration.Name, pool.Status.Configuration.Name = "rendered-"+simulatedReleases[0], "rendered-"+simulatedReleases[0]
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 3, 3
		s.load(pool)
	}
	processes := []reconcile.Process{{Name: "releases", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler { return []reconcile.Reconciler{releases{api}} }}}
	for i := range instances {
		p := s.process(fmt.Sprint("operator ", i))
		f.Processes = append(f.Processes, p.Name)
		processes = append(processes, p)
	}
	s.cursor = s.cluster.Follow()
	o := reconcile.VirtualOptions{Cluster: s.cluster, Clock: s.clock, Seed: seed, Faults: f, Latency: reconcile.Latency{Watch: 500 * time.Millisecond, Job: time.Second}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	s.Virtual = reconcile.NewVirtual(o, processes...)
	s.clock.AfterFunc(time.Minute, s.change)
	return s
}

func (s *simulatedRun) load(obj any) {
	u, err := clusterapi.ToUnstructured(obj)
	if err == nil {
		err = s.cluster.Load(u)
	}
	if err != nil {
		panic(err)
	}
}

// process is a manager and a controller that live and crash together.
func (s *simulatedRun) process(name string) reconcile.Process {
	observe := func(e clusterapi.Event) { s.log = append(s.log, heard{name, e}) }
	return reconcile.Process{Name: name, New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		s.lives++
		m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
			API: api, Provider: s, Interval: 10 * time.Minute, Clock: s.clock, Observe: observe,
			Update: s.seed%2 == 0, KeepWhileUpgrading: s.seed%3 == 0,
		}))

		c := must(upgrade.New(upgrade.Options{
			API: api, Refresh: m.Refresh, Notifier: m, Clock: s.clock, Observe: observe,
			TimeOut: time.Hour, DelayTrigger: 10 * time.Minute, ServiceLogs: s.seed%5 == 0,
			Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
				if since := s.Now().Sub(simulationStart); since >= s.sick[0] && since < s.sick[1] {
					return []string{"it is sick"}, nil
				}
				return nil, nil
			},
			Capacity: extra{s}, Maintenance: &s.windows,
		}))

		return append(m.Process().New(api), c.Process().New(api)...)
	}}
}

// extra is capacity that comes after three minutes, in some runs too late or
// not at all.
type extra struct{ s *simulatedRun }

func (x extra) Reserve(_ context.Context, c *upgradeconfig.UpgradeConfig) (upgrade.CapacityState, error) {
	x.s.reserved = true
	if e, _ := c.Status.Entry(c.Spec.Desired.Version); x.s.Now().Sub(e.StartTime.Time) < 3*time.Minute {
		return upgrade.CapacityPending, nil
	}
	return []upgrade.CapacityState{upgrade.CapacityReady, upgrade.CapacityNone, upgrade.CapacityTimedOut}[x.s.seed%3], nil
}

func (x extra) Release(context.Context, *upgradeconfig.UpgradeConfig) (bool, error) {
	x.s.reserved = false
	return true, nil
}

var errOffice = errors.New("503 Service Unavailable (simulated)")

// unlucky says whether the provider is out of order.
func (s *simulatedRun) unlucky() bool {
	return s.luck.IntN(20) == 0 && s.Now().Sub(simulationStart) < faultsFor
}

func (s *simulatedRun) String() string { return "office" }

func (s *simulatedRun) Policies(ctx context.Context) ([]upgradeconfig.Policy, error) {
	if s.unlucky() {
		return nil, errOffice
	}
	return slices.Clone(s.office), ctx.Err() // the manager selects
}

// Notify checks what the provider hears: what is stored already, and nothing
// twice without need.
func (s *simulatedRun) Notify(ctx context.Context, n upgradeconfig.Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.unlucky() {
		return errOffice
	}
	s.look()
	u := upgradeID{n.Config.UID, n.Version}
	stored := s.entries[u]
	var ok bool
	switch n.State {
	case upgradeconfig.StateStarted, upgradeconfig.StateControlPlaneStartedSL, upgradeconfig.StateControlPlaneFinishedSL, upgradeconfig.StateWorkerPlaneFinishedSL:
		ok = stored[upgradeconfig.PhaseUpgrading]
	case upgradeconfig.StateCompleted:
		ok = stored[upgradeconfig.PhaseUpgraded]
	case upgradeconfig.StateFailed:
		ok = stored[upgradeconfig.PhaseFailed]
	default:
		ok = s.due[u][n.State]
	}
	if !ok {
		s.wrong("%s of %v is told and not stored", n.State, u)
	}
	i := slices.IndexFunc(s.office, func(p upgradeconfig.Policy) bool {
		return p.Spec.Desired.Version == n.Version && p.Spec.UpgradeAt == n.Config.Spec.UpgradeAt
	})
	if i < 0 && !n.State.ServiceLog() {
		return errors.New("no policy matches the current UpgradeConfig")
	}
	if life := s.told[u][n.State]; life > 0 && s.single && life == s.lives {
		s.wrong("%s of %v is told twice", n.State, u)
	}
	if i >= 0 {
		s.office[i].State = after(s.office[i].State, n.State)
	}
	if s.told[u] == nil {
		s.told[u] = map[upgradeconfig.State]int{}
	}
	if s.unlucky() { // it took effect
		s.told[u][n.State] = -1
		return errOffice
	}
	s.told[u][n.State] = s.lives
	return nil
}

// after is the state of a policy once its provider was told.
func after(state string, to upgradeconfig.State) string {
	from := upgradeconfig.State(state)
	if state == "scheduled" {
		from = upgradeconfig.StateScheduled
	}
	switch {
	case !from.Allows(to):
		return state
	case to == upgradeconfig.StateCompleted:
		return "completed"
	}
	return string(to)
}

// plan is a policy about a version in so long.
func (s *simulatedRun) plan(version string, in time.Duration) upgradeconfig.Policy {
	at := s.Now().Add(in).UTC().Truncate(time.Second)
	return upgradeconfig.Policy{ID: fmt.Sprint("p-", at.Unix()), State: "scheduled", NextRun: at, Spec: upgradeconfig.Spec{
		Desired: upgradeconfig.Update{Version: version, Channel: "stable-4.20"}, UpgradeAt: at.Format(time.RFC3339),
		Type: upgradeconfig.OSD, CapacityReservation: s.seed%7 < 3, PDBForceDrainTimeout: 30,
	}}
}

// change is what people do from time to time: policies come, move, and are
// cancelled, somebody deletes or changes the UpgradeConfig by hand, and pauses
// a pool. In the end all is cancelled, or one policy is left.
func (s *simulatedRun) change() {
	ctx := context.Background()
	if s.Now().Sub(simulationStart) > changesFor {
		for i := range s.office {
			s.office[i].State = "cancelled"
		}
		if s.seed%5 != 4 {
			s.office = append(s.office, s.plan(simulatedReleases[3], lastIn))
		}
		s.last = true
		s.pause(false)
		return
	}
	key := clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name)
	soon := time.Duration(1+s.rand.IntN(20)) * time.Minute
	what, which := s.rand.IntN(8), s.rand.IntN(max(len(s.office), 1))
	switch {
	case what < 2 || len(s.office) == 0:
		s.office = append(s.office, s.plan(simulatedReleases[1+s.rand.IntN(2)], soon))
	case what == 2:
		p := s.plan(s.office[which].Spec.Desired.Version, soon)
		p.State = s.office[which].State
		s.office[which] = p
	case what == 3:
		s.office[which].State = "cancelled"
	case what == 4 && s.config != nil:
		if err := s.cluster.Delete(ctx, (&upgradeconfig.UpgradeConfig{}).APIKind(), key, clusterapi.DeleteOptions{}); err != nil {
			panic(err)
		}
	case what == 5 && s.config != nil:
		_, err := clusterapi.Modify(ctx, s.cluster, key, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
			c.Spec.UpgradeAt = s.Now().Add(soon).UTC().Format(time.RFC3339)
			return nil
		})
		if err != nil {
			panic(err)
		}
	case what == 6:
		s.pause(!s.paused)
	}
	s.clock.AfterFunc(time.Duration(60+s.rand.IntN(900))*time.Second, s.change)
}

func (s *simulatedRun) pause(paused bool) {
	s.paused = paused
	for _, status := range []bool{false, true} {
		_, err := clusterapi.Modify(context.Background(), s.cluster, clusterapi.Key("", "infra"), clusterapi.ModifyOptions{Status: status}, func(p *mcfgv1.MachineConfigPool) error {
			p.Spec.Paused = paused
			p.Status.ObservedGeneration = p.Generation
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
}

func (s *simulatedRun) wrong(format string, args ...any) {
	if s.fault == nil {
		s.fault = fmt.Errorf("after %s: %s", s.Now().Sub(simulationStart), fmt.Sprintf(format, args...))
	}
}

// look checks each change of the cluster.
func (s *simulatedRun) look() {
	for c, ok := s.cursor.Next(); ok; c, ok = s.cursor.Next() {
		switch c.Object().Kind().Kind {
		case "UpgradeConfig":
			s.config = nil
			if c.New != nil {
				s.config = as[upgradeconfig.UpgradeConfig](c.New)
				var old *upgradeconfig.UpgradeConfig
				if c.Old != nil {
					old = as[upgradeconfig.UpgradeConfig](c.Old)
				}
				s.judge(old, s.config)
			}
		case "ClusterVersion":
			if c.Old != nil && c.New != nil {
				s.judgeRequest(as[configv1.ClusterVersion](c.Old), as[configv1.ClusterVersion](c.New))
			}
		case "MachineConfigPool":
			if pool := as[mcfgv1.MachineConfigPool](c.New); pool.Spec.Paused != (s.paused && pool.Name == "infra") {
				s.wrong("pool %s: paused is %v", pool.Name, pool.Spec.Paused)
			}
		}
	}
}

func as[T any](o *clusterapi.Object) *T {
	out, err := clusterapi.As[T](o)
	if err != nil {
		panic(err)
	}
	return out
}

// judge looks at a change of the UpgradeConfig: nothing of its history is lost
// or taken back, and no upgrade is taken up before its time, nor one that the
// provider does not want.
func (s *simulatedRun) judge(old, c *upgradeconfig.UpgradeConfig) {
	var record struct {
		Due []upgradeconfig.State `json:"due"`
	}
	u := upgradeID{c.UID, c.Spec.Desired.Version}
	if text, ok := c.Annotations[annotationSent]; ok {
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			s.wrong("%s", err)
		}
	}
	for _, state := range record.Due {
		if s.due[u] == nil {
			s.due[u] = map[upgradeconfig.State]bool{}
		}
		s.due[u][state] = true
	}
	rank := map[upgradeconfig.Phase]int{upgradeconfig.PhaseNew: 1, upgradeconfig.PhasePending: 2, upgradeconfig.PhaseUpgrading: 3, upgradeconfig.PhaseUpgraded: 4, upgradeconfig.PhaseFailed: 4}
	if old != nil && old.UID == c.UID {
		for i, was := range slices.Backward(old.Status.History) {
			at := i + len(c.Status.History) - len(old.Status.History)
			if at < 0 || c.Status.History[at].Version != was.Version {
				s.wrong("the history lost %s", was.Version)
				return
			}
			is := c.Status.History[at]
			back := was.Phase == upgradeconfig.PhasePending && is.Phase == upgradeconfig.PhaseNew // the provider changed its mind
			if rank[is.Phase] < rank[was.Phase] && !back || rank[was.Phase] == 4 && is.Phase != was.Phase || was.StartTime != nil && !was.StartTime.Equal(is.StartTime) {
				s.wrong("%s was %s and is %s", was.Version, was.Phase, is.Phase)
			}
		}
	}
	for _, e := range c.Status.History {
		u := upgradeID{c.UID, e.Version}
		if s.entries[u] == nil {
			s.entries[u] = map[upgradeconfig.Phase]bool{}
		}
		if s.entries[u][e.Phase] {
			continue
		}
		s.entries[u][e.Phase] = true
		switch e.Phase {
		case upgradeconfig.PhaseUpgrading:
			if !s.entries[u][upgradeconfig.PhasePending] {
				continue // the cluster was told before
			}
			if !s.Now().After(at(c.Spec.UpgradeAt)) {
				s.wrong("%s begins before %s", e.Version, c.Spec.UpgradeAt)
			}
			if wanted, err := upgradeconfig.Select(s.office); err != nil || len(wanted) == 0 || wanted[0].Spec != c.Spec {
				s.wrong("%s at %s begins, and the provider does not want it", e.Version, c.Spec.UpgradeAt)
			}
		case upgradeconfig.PhaseUpgraded:
			for _, t := range []upgradeconfig.ConditionType{upgradeconfig.UpgradeCommenced, upgradeconfig.ControlPlaneUpgraded, upgradeconfig.WorkerNodesUpgraded} {
				if !e.IsTrue(t) {
					s.wrong("%s is upgraded without %s", e.Version, t)
				}
			}
			if !e.IsFalse(upgradeconfig.CompletedNotificationSent) {
				s.wrong("%s is upgraded, and nobody is to be told", e.Version)
			}
		case upgradeconfig.PhaseFailed:
			if !e.IsFalse(upgradeconfig.FailedUpgrade) {
				s.wrong("%s is given up, and nobody is to be told", e.Version)
			}
		}
	}
}

// judgeRequest: the cluster is told to update to what the UpgradeConfig asks
// for at that moment, and has been taken up.
func (s *simulatedRun) judgeRequest(old, cv *configv1.ClusterVersion) {
	to := cv.Spec.DesiredUpdate
	if to == nil || old.Spec.DesiredUpdate != nil && cmp.Equal(old.Spec.DesiredUpdate, to) {
		return
	}
	if c := s.config; c == nil || c.Spec.Desired.Version != to.Version || c.Status.Phase(to.Version) != upgradeconfig.PhaseUpgrading {
		s.wrong("the cluster is told to update to %s, and the UpgradeConfig is %+v", to.Version, c)
	}
}

// releases plays the version operator and the pools: five minutes for the
// control plane, then three for the nodes.
type releases struct{ api clusterapi.ClusterAPI }

func (releases) Name() string { return "releases" }

func (releases) Watches() []reconcile.Watch {
	kind, _ := clusterapi.KindOf[configv1.ClusterVersion]()
	return []reconcile.Watch{{GVK: kind, Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { return []reconcile.Wake{{}} }}}
}

func (r releases) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r.api, clusterapi.Key("", "version"))
	if err != nil || cv.Spec.DesiredUpdate == nil {
		return reconcile.Result{}, err
	}
	again := reconcile.Result{At: q.Now.Add(time.Minute)}
	to, newest := cv.Spec.DesiredUpdate.Version, cv.Status.History[0]
	begins, ends := newest.Version != to, newest.State == configv1.PartialUpdate && q.Now.Sub(newest.StartedTime.Time) >= 5*time.Minute
	if begins || ends {
		_, err := clusterapi.Modify(ctx, r.api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
			if begins {
				cv.Status.Desired = configv1.Release{Version: to}
				cv.Status.History = slices.Insert(cv.Status.History, 0, configv1.UpdateHistory{Version: to, State: configv1.PartialUpdate, StartedTime: metav1.Time{Time: q.Now}})
			} else {
				cv.Status.History[0].State, cv.Status.History[0].CompletionTime = configv1.CompletedUpdate, &metav1.Time{Time: q.Now}
			}
			return nil
		})
		return again, err
	}
	if newest.State == configv1.PartialUpdate {
		return again, nil
	}
	pools, err := clusterapi.ReadAll[mcfgv1.MachineConfigPool](ctx, r.api, clusterapi.ListOptions{})
	open := false
	for _, pool := range pools {
		rendered := "rendered-" + to
		asked, done := pool.Spec.Configuration.Name == rendered, pool.Status.Configuration.Name == rendered
		open = open || !done
		if err != nil || done || asked && (pool.Spec.Paused || q.Now.Sub(newest.CompletionTime.Time) < 3*time.Minute) {
			continue
		}
		_, err = clusterapi.Modify(ctx, r.api, clusterapi.Key("", pool.Name), clusterapi.ModifyOptions{Status: asked}, func(p *mcfgv1.MachineConfigPool) error {
			p.Spec.Configuration.Name = rendered
			if asked {
				p.Status.Configuration.Name, p.Status.ObservedGeneration = rendered, p.Generation
			}
			return nil
		})
	}
	if err != nil || open {
		return again, err
	}
	return reconcile.Result{}, nil
}

func (s *simulatedRun) run(until time.Duration) error {
	for end := simulationStart.Add(until); ; {
		next, ok := s.Next()
		if !ok || next.After(end) {
			return nil
		}
		if _, err := s.Step(); err != nil {
			return err
		}
		if s.look(); s.fault != nil {
			return s.fault
		}
	}
}

// end checks that it ended at what the last policy says.
func (s *simulatedRun) end() error {
	cv, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), s.cluster, clusterapi.Key("", "version"))
	switch {
	case err != nil:
		return err
	case !s.last || s.paused:
		return errors.New("the last policy did not come")
	case s.reserved || s.windows.Open(upgrade.ControlPlane) || s.windows.Open(upgrade.Workers) || cv.Annotations[annotationOpen] != "":
		return fmt.Errorf("something is open: capacity %v, annotation %q", s.reserved, cv.Annotations[annotationOpen])
	case s.config != nil:
		return fmt.Errorf("an UpgradeConfig is left: %+v", s.config)
	case s.seed%5 == 4:
		return s.cluster.CheckShared()
	case cv.Status.History[0].Version != simulatedReleases[3] || cv.Status.History[0].State != configv1.CompletedUpdate:
		return fmt.Errorf("the cluster is at %+v", cv.Status.History)
	}
	for u, stored := range s.entries {
		if u.version == simulatedReleases[3] && stored[upgradeconfig.PhaseUpgraded] && s.told[u][upgradeconfig.StateStarted] != 0 && s.told[u][upgradeconfig.StateCompleted] != 0 {
			return s.cluster.CheckShared()
		}
	}
	return fmt.Errorf("the last upgrade: stored %v, told %v, policies %+v", s.entries, s.told, s.office)
}

func testSimulation(t *testing.T, share float64, instances int, f reconcile.Faults) {
	simtest.Test(t, share, func(seed uint64, only map[string]bool) ([]string, error) {
		f := f
		f.Until, f.Only = faultsFor, only
		s := simulateUpgrades(seed, instances, f)
		defer s.Close()
		err := s.run(3 * time.Hour)
		if err == nil {
			err = s.end()
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.Join(s.lines(60), "\n"))
		}
		return s.Faults(), err
	})
}

// Whatever goes wrong, and whatever becomes of policies meanwhile, the cluster
// ends at what the last one says, and the provider knows.
func TestSimulation(t *testing.T) {
	testSimulation(t, 0.2, 1, reconcile.Faults{
		Before: 0.03, After: 0.03, Conflict: 0.03, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
		Crash: 0.02, Outage: 0.2, ClockBack: 0.1,
	})
}

// Two operators at once keep to the same; they may tell twice.
func TestSimulationOfTwo(t *testing.T) {
	testSimulation(t, 0.05, 2, reconcile.Faults{
		Before: 0.02, After: 0.02, Conflict: 0.02, Stale: 0.05, Late: 0.1, Crash: 0.01, Outage: 0.1, ClockBack: 0.1,
	})
}

// The same seed makes the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	run := func(seed uint64) []string {
		s := simulateUpgrades(seed, 2, reconcile.Faults{Before: 0.05, After: 0.05, Stale: 0.1, Late: 0.1, Crash: 0.02, Until: time.Hour})
		defer s.Close()
		checktest.OK(t, s.run(2*time.Hour))
		return slices.Concat(s.lines(10_000), s.Faults())
	}
	for _, seed := range []uint64{1, 2} {
		checktest.SameIn(t, fmt.Sprintf("seed %d", seed), run(seed), run(seed))
	}
}
