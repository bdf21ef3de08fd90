package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// site is a cluster with a version operator that takes ten minutes for an
// update, and ten more for the workers, and a provider.
type site struct {
	*memory.Cluster
	t         *testing.T
	provider  *scheduledPolicy
	fault     func(request string, do func() error) error // nil: none
	requested int                                         // how often desiredUpdate was changed
	last      any                                         // desiredUpdate
	since     time.Time                                   // of the update, zero before
	pace      time.Duration                               // of each of its stages
	stage     int                                         // of the update: 1 control plane, 2 workers, 3 over
	playing   bool                                        // the calls are the site's own
	phases    []upgradeconfig.Phase
	events    []clusterapi.Event
}

const (
	target      = "4.20.3"
	targetImage = "quay.io/ocp/release@sha256:6ab330b5205a6a0cb64d0e3c3a5a04278d90cb85e128e3b5317cdfba22bef41d"
)

// newSite is to be called in a bubble. The upgrade is due in an hour.
func newSite(t *testing.T, spec func(*upgradeconfig.Spec)) *site {
	return newSiteOf(t, upgradeconfig.Definition(), spec)
}

func newSiteOf(t *testing.T, definition *unstructured.Unstructured, spec func(*upgradeconfig.Spec)) *site {
	w := &site{t: t, pace: 10 * time.Minute}
	w.Cluster = memory.NewOpenShift(memory.Options{Intercept: w.intercept})
	w.load(definition)
	at := time.Now().Add(time.Hour)
	s := upgradeconfig.Spec{
		Desired: upgradeconfig.Update{Version: target, Channel: "stable-4.20"}, UpgradeAt: at.Format(time.RFC3339), Type: upgradeconfig.OSD,
	}
	if spec != nil {
		spec(&s)
	}
	w.provider = &scheduledPolicy{state: upgradeconfig.StateScheduled, policies: []upgradeconfig.Policy{{ID: "p-1", State: "scheduled", Spec: s, NextRun: at}}}
	w.provider.fault = func(request string, do func()) error {
		if w.fault == nil {
			do()
			return nil
		}
		return w.fault(request, func() error { do(); return nil })
	}
	cv := &configv1.ClusterVersion{}
	cv.Name = "version"
	cv.Spec.Channel = "stable-4.19"
	cv.Spec.ClusterID = "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"
	cv.Status.Desired = configv1.Release{Version: "4.20.2", Image: "old"}
	cv.Status.History = history([2]string{"4.20.2", "2000-01-01T00:00:00Z"})
	cv.Status.AvailableUpdates = []configv1.Release{{Version: target, Image: targetImage}}
	w.load(cv)
	for _, name := range []string{"master", "worker", "infra"} {
		pool := &mcfgv1.MachineConfigPool{}
		pool.Name = name
		pool.Spec.Configuration.Name, pool.Status.Configuration.Name = "rendered-1", "rendered-1"
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 3, 3
		w.load(pool)
	}
	return w
}

func (w *site) load(obj any) {
	w.t.Helper()
	u, err := clusterapi.ToUnstructured(obj)
	if err == nil {
		err = w.Load(u)
	}
	checktest.OK(w.t, err)
}

// reload puts an object in the place of what is stored.
func (w *site) reload(obj any) {
	w.t.Helper()
	u, err := clusterapi.ToUnstructured(obj)
	if err == nil {
		err = w.Delete(w.t.Context(), u.GroupVersionKind(), clusterapi.Key(u.GetNamespace(), u.GetName()), clusterapi.DeleteOptions{})
	}
	checktest.OK(w.t, err)
	w.load(obj)
}

func (w *site) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	verb := func() error {
		err := do(ctx)
		if err == nil && call.Verb == "Update" && call.GVK.Kind == "ClusterVersion" {
			update, _, _ := unstructured.NestedFieldNoCopy(call.Object.Object, "spec", "desiredUpdate")
			if !equality.Semantic.DeepEqual(update, w.last) {
				w.last = update
				w.requested++
			}
		}
		return err
	}
	if w.fault == nil || w.playing {
		return verb()
	}
	return w.fault(call.Verb+" "+call.GVK.Kind, verb)
}

// play lets the version operator and the pools get on.
func (w *site) play() {
	w.playing = true
	defer func() { w.playing = false }()
	cv := version(w.t, w)
	if w.since.IsZero() && cv.Spec.DesiredUpdate != nil {
		w.since = time.Now()
	}
	if w.since.IsZero() || w.stage == 3 {
		return
	}
	stage := 1 + int(time.Since(w.since)/w.pace)
	if stage == w.stage {
		return
	}
	w.stage = stage
	must(clusterapi.Modify(context.Background(), w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
		cv.Status.Desired = configv1.Release{Version: target, Image: targetImage}
		h := history([2]string{target, ""})[0]
		h.Image = targetImage
		if len(cv.Status.History) == 1 {
			cv.Status.History = slices.Insert(cv.Status.History, 0, h)
		}
		if stage > 1 && cv.Status.History[0].State == configv1.PartialUpdate {
			cv.Status.History[0].State, cv.Status.History[0].CompletionTime = configv1.CompletedUpdate, &metav1.Time{Time: time.Now()}
		}
		return nil
	}))
	if stage == 1 {
		return
	}
	pools := checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](context.Background(), w,
		clusterapi.ListOptions{}))(w.t)
	for _, p := range pools {
		pool := p
		pool.Spec.Configuration.Name = "rendered-2"
		pool.Status.UpdatedMachineCount = 1
		if stage > 2 {
			pool.Status.UpdatedMachineCount, pool.Status.Configuration.Name = 3, "rendered-2"
		}
		for _, status := range []bool{false, true} {
			must(clusterapi.Modify(context.Background(), w, clusterapi.Key("", p.Name), clusterapi.ModifyOptions{Status: status}, func(m *mcfgv1.MachineConfigPool) error {
				m.Spec, m.Status = pool.Spec, pool.Status
				m.Status.ObservedGeneration = m.Generation
				return nil
			}))
		}
	}
}

// operator is a process: a Manager and a Controller, made again after a crash.
func (w *site) operator(o upgrade.Options) (*upgradeconfig.Manager, *upgrade.Controller) {
	m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: w, Provider: w.provider}))
	o.API, o.Notifier, o.Refresh = w, m, m.Refresh
	o.Observe = func(e clusterapi.Event) {
		w.events = append(w.events, e)
		if e.Type == upgradeconfig.EventPhase {
			w.phases = append(w.phases, data(e).Phase)
		}
	}
	return m, must(upgrade.New(o))
}

// run makes passes until the upgrade is over or the time is, and returns the
// errors on the way. crashed says that the process has to be started again.
func (w *site) run(o upgrade.Options, limit time.Duration, crashed func() bool) (errs []string) {
	m, c := w.operator(o)
	note := func(err error) {
		if err != nil {
			errs = append(errs, err.Error())
		}
	}
	synced := time.Time{}
	for start := time.Now(); time.Since(start) < limit; {
		if time.Since(synced) >= 20*time.Minute {
			_, err := m.Sync(w.t.Context())
			note(err)
			if crashed() {
				m, c = w.operator(o)
				continue
			}
			if err == nil {
				synced = time.Now()
			}
		}
		p, err := c.Sync(w.t.Context())
		note(err)
		if p.After <= 0 {
			w.t.Fatal("a pass that is to be repeated at once")
		}
		if crashed() {
			m, c = w.operator(o)
			continue
		}
		if err == nil && (p.Phase == upgradeconfig.PhaseUpgraded || p.Phase == upgradeconfig.PhaseFailed) {
			break
		}
		time.Sleep(p.After)
		w.play()
	}
	return errs
}

func never() bool { return false }

func (w *site) entry() upgradeconfig.HistoryEntry {
	w.t.Helper()
	w.playing = true
	defer func() { w.playing = false }()
	c := stored(w.t, w)
	if c == nil {
		w.t.Fatal("there is no UpgradeConfig")
	}
	e, _ := c.Status.Entry(c.Spec.Desired.Version)
	return e
}

var startedAndCompleted = []upgradeconfig.State{upgradeconfig.StateStarted, upgradeconfig.StateCompleted}

func TestController(t *testing.T) {
	for _, typ := range []upgradeconfig.UpgradeType{upgradeconfig.OSD, upgradeconfig.ARO} {
		checktest.Bubble(t, string(typ), func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.Type = typ })
			if errs := w.run(upgrade.Options{}, 6*time.Hour, never); errs != nil {
				t.Error(errs)
			}
			e := w.entry()
			if e.Phase != upgradeconfig.PhaseUpgraded || e.PrecedingVersion != "4.20.2" || w.requested != 1 {
				t.Errorf("%d requests, %+v", w.requested, e)
			}
			checktest.Same(t, startedAndCompleted, w.provider.told)
			want := []upgradeconfig.Phase{upgradeconfig.PhaseNew, upgradeconfig.PhasePending, upgradeconfig.PhaseUpgrading, upgradeconfig.PhaseUpgraded}
			checktest.Same(t, want, w.phases)
			steps, _ := upgrade.Steps(typ)
			var got []upgradeconfig.ConditionType
			for _, c := range slices.Backward(e.Conditions) {
				got = append(got, c.Type)
			}
			checktest.Same(t, steps, got)
			cv := version(t, w)
			if cv.Spec.Channel != "stable-4.20" || cv.Spec.DesiredUpdate.Version != target || cv.Spec.DesiredUpdate.Image != "" {
				t.Errorf("%s, %+v", cv.Spec.Channel, cv.Spec.DesiredUpdate)
			}
			if e.WorkerStartTime.Sub(e.StartTime.Time) < 10*time.Minute || e.WorkerCompleteTime.Sub(e.StartTime.Time) < 20*time.Minute {
				t.Errorf("times are %+v", e)
			}
		})
	}
}

var errCrash = errors.New("the process was killed")

// TestControllerFaults breaks every request to the cluster and to the provider,
// one per run: before it takes effect and after, with the process killed or
// alive. The upgrade is done once, and told once.
func TestControllerFaults(t *testing.T) {
	for _, mode := range []string{"killed before", "killed after", "fails", "answer lost", "conflict", "conflict after"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			step := 1
			if mode == "fails" || mode == "answer lost" {
				step = 2 // these differ little from a process that was killed
			}
			if mode == "killed after" {
				step = 5 // the next request is where "killed before" kills it
			}
			if israce.Enabled {
				step = 19
			}
			least := 100
			if strings.HasPrefix(mode, "conflict") {
				least = 30
			}
			for n := 1; ; n += step {
				reached := false
				synctest.Test(t, func(t *testing.T) { reached = faultAt(t, mode, n) })
				if t.Failed() {
					t.Fatalf("at request %d", n)
				}
				if !reached {
					t.Logf("%d requests", n-1)
					if n < least {
						t.Errorf("the upgrade took only %d requests", n)
					}
					return
				}
			}
		})
	}
}

func faultAt(t *testing.T, mode string, n int) (reached bool) {
	w := newSiteOf(t, looseDefinition(), func(s *upgradeconfig.Spec) { s.CapacityReservation = true })
	w.pace = 2 * time.Minute
	dead, calls := false, 0
	w.fault = func(request string, do func() error) error {
		if dead {
			return errCrash
		}
		if strings.HasPrefix(mode, "conflict") && !strings.HasPrefix(request, "Update") {
			return do()
		}
		calls++
		if calls != n {
			return do()
		}
		reached = true
		dead = strings.HasPrefix(mode, "killed")
		if strings.HasSuffix(mode, "after") || strings.HasSuffix(mode, "lost") {
			if err := do(); err != nil {
				return err
			}
		}
		if strings.HasPrefix(mode, "conflict") {
			return apierrors.NewConflict(schema.GroupResource{Resource: request}, "x", errors.New("injected"))
		}
		return fmt.Errorf("%s: %w", request, errCrash)
	}
	crashed := func() bool {
		was := dead
		dead = false
		return was
	}
	errs := w.run(upgrade.Options{Capacity: &upgradetest.Capacity{Ready: time.Minute}}, 8*time.Hour, crashed)
	if e := w.entry(); e.Phase != upgradeconfig.PhaseUpgraded || len(e.Conditions) != 16 {
		t.Errorf("%+v\n%v", e, errs)
	}
	if w.requested != 1 {
		t.Errorf("the update was requested %d times", w.requested)
	}
	checktest.Same(t, startedAndCompleted, w.provider.told)
	return reached
}

// TestKillSwitch: a policy that is withdrawn between the last sync and its time
// does not start.
func TestKillSwitch(t *testing.T) {
	for _, withdraw := range []string{"removed", "moved", "provider down", "no provider"} {
		checktest.Bubble(t, withdraw, func(t *testing.T) {
			w := newSite(t, nil)
			m, c := w.operator(upgrade.Options{})
			must(m.Sync(t.Context()))
			for range 3 {
				must(c.Sync(t.Context()))
			}
			old := stored(t, w)
			time.Sleep(time.Hour + time.Second)
			switch withdraw {
			case "removed":
				w.provider.policies = nil
			case "moved":
				w.provider.policies[0].Spec.UpgradeAt = time.Now().Add(time.Hour).Format(time.RFC3339)
			case "provider down":
				w.fault = func(request string, do func() error) error {
					if request == "Policies" {
						return errors.New("down")
					}
					return do()
				}
			case "no provider":
				c = must(upgrade.New(upgrade.Options{API: w, Notifier: w.provider}))
			}
			p, err := c.Sync(t.Context())
			got := stored(t, w)
			switch withdraw {
			case "removed":
				if got != nil || err != nil {
					t.Errorf("%v, %+v", err, got)
				}
			case "moved":
				if err != nil || got.UID == old.UID || len(got.Status.History) != 0 {
					t.Errorf("%v, %+v", err, got)
				}
			case "provider down":
				if err == nil || !strings.Contains(err.Error(), "down") || p.Phase != upgradeconfig.PhasePending || p.After != time.Minute {
					t.Errorf("%v, %+v", err, p)
				}
			case "no provider":
				if err != nil || p.Phase != upgradeconfig.PhaseUpgrading || w.requested != 1 {
					t.Errorf("%v, %+v, %d requests", err, p, w.requested)
				}
				return
			}
			if w.requested != 0 || len(w.provider.told) != 0 {
				t.Errorf("%d requests, told %v", w.requested, w.provider.told)
			}
		})
	}
}

// TestReplacedMeanwhile: a policy that is replaced while its preconditions are
// checked does not start.
func TestReplacedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		replaced := false
		o := upgrade.Options{Preconditions: func(ctx context.Context, _ *configv1.ClusterVersion, r configv1.Release) error {
			if r.Version != target || r.Image != targetImage {
				t.Errorf("target is %+v", r)
			}
			if !replaced {
				replaced = true
				w.provider.policies = nil
				m, _ := w.operator(upgrade.Options{})
				_, err := m.Sync(ctx)
				return err
			}
			return nil
		}}
		w.run(o, 3*time.Hour, never)
		if !replaced || w.requested != 0 || stored(t, w) != nil {
			t.Errorf("replaced %v, %d requests", replaced, w.requested)
		}
	})
}

// TestNotCommenced: what keeps an upgrade from commencing is told as a delay,
// once, and after the window as a failure, of type OSD.
func TestNotCommenced(t *testing.T) {
	fail := func(text ...string) func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
		return func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) { return text, nil }
	}
	for _, tt := range []struct {
		name    string
		spec    func(*upgradeconfig.Spec)
		o       upgrade.Options
		cluster func(*configv1.ClusterVersion)
		step    upgradeconfig.ConditionType
		message string
		failed  bool
		text    string // part of the last notification's
	}{
		{name: "alerts", o: upgrade.Options{Health: fail("A", "B")}, step: "ClusterHealthyBeforeUpgrade", message: "the cluster is not healthy: A, B", failed: true, text: "cancelled during the Pre-Health Check step"},
		{name: "dependencies", o: upgrade.Options{Dependencies: fail("registry")}, step: "ExternalDependenciesAvailable", message: "external dependencies are not available: registry", failed: true, text: "External Dependency Availability Check step"},
		{name: "capacity", spec: func(s *upgradeconfig.Spec) { s.CapacityReservation = true }, o: upgrade.Options{Capacity: &upgradetest.Capacity{Ready: 9 * time.Hour}},
			step: "ComputeCapacityReserved", message: "ComputeCapacityReserved still in progress", failed: true, text: "Scale-Up Worker Node step"},
		{name: "preconditions", o: upgrade.Options{Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error { return errors.New("refused") }},
			step: "UpgradeCommenced", message: "refused", failed: true, text: "as the cluster did not pass its pre-upgrade verification checks"},
		{name: "not listed", cluster: func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates = nil }, step: "UpgradeCommenced", message: "UpgradeCommenced still in progress", failed: true, text: "verification checks"},
		{name: "not upgradeable", spec: func(s *upgradeconfig.Spec) { s.Desired.Version, s.Desired.Channel = "4.21.0", "stable-4.21" },
			cluster: func(cv *configv1.ClusterVersion) {
				cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "R", Message: "M", LastTransitionTime: metav1.Unix(0, 0)}}
			}, step: "IsClusterUpgradable", message: "has been cancelled: R: M", failed: true, text: "has been cancelled: R: M"},
		{name: "ARO does not fail", spec: func(s *upgradeconfig.Spec) { s.Type = upgradeconfig.ARO }, o: upgrade.Options{Health: fail("A")},
			step: "ClusterHealthyBeforeUpgrade", message: "the cluster is not healthy: A", text: "delay as health alerts are firing"},
		{name: "no window", o: upgrade.Options{Health: fail("A"), TimeOut: reconcile.Never}, step: "ClusterHealthyBeforeUpgrade", message: "the cluster is not healthy: A", text: "delay as health alerts are firing"},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			w := newSite(t, tt.spec)
			if tt.cluster != nil {
				must(clusterapi.Modify(t.Context(), w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
					tt.cluster(cv)
					return nil
				}))
			}
			w.run(tt.o, 5*time.Hour, never)
			e := w.entry()
			c, _ := e.Condition(tt.step)
			if c.Status != "False" || !strings.Contains(c.Message, tt.message) {
				t.Errorf("%+v", c)
			}
			want := []upgradeconfig.State{upgradeconfig.StateStarted, upgradeconfig.StateDelayed}
			phase := upgradeconfig.PhaseUpgrading
			if tt.failed {
				want, phase = append(want, upgradeconfig.StateFailed), upgradeconfig.PhaseFailed
			}
			checktest.Same(t, want, w.provider.told)
			if e.Phase != phase || w.requested != 0 || e.IsTrue(upgradeconfig.FailedUpgrade) != tt.failed {
				t.Errorf("%d requests, %+v", w.requested, e)
			}
			checktest.Has(t, w.provider.texts[len(w.provider.texts)-1], tt.text)
			breached := slices.ContainsFunc(w.events, func(e clusterapi.Event) bool { return e.Type == upgradeconfig.EventBreached })
			checktest.Equal(t, tt.failed, breached, "breached")
		})
	}
}

// TestFailureIsRepeated: that an upgrade is given up is stored before the
// provider is told, and it is told until it knows, once.
func TestFailureIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		down := time.Now().Add(4 * time.Hour)
		w.fault = func(request string, do func() error) error {
			if request == "Notify StateFailed" && time.Now().Before(down) {
				return errors.New("down")
			}
			return do()
		}
		o := upgrade.Options{Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error { return errors.New("refused") }}
		w.run(o, 3*time.Hour+30*time.Minute, never)
		c, _ := func() (upgradeconfig.Condition, bool) {
			e := w.entry()
			return e.Condition(upgradeconfig.FailedUpgrade)
		}()
		if w.entry().Phase != upgradeconfig.PhaseFailed || c.Status != "False" || c.Message != "can't send notification 'StateFailed': down" {
			t.Errorf("%+v", w.entry())
		}
		w.run(o, 2*time.Hour, never)
		e := w.entry()
		if want := []upgradeconfig.State{"StateStarted", "StateDelayed", "StateFailed"}; e.Phase != upgradeconfig.PhaseFailed || !e.IsTrue(upgradeconfig.FailedUpgrade) || !slices.Equal(w.provider.told, want) {
			t.Errorf("told %v, %+v", w.provider.told, e)
		}
	})
}

// TestStepsAreToldOnce: a step that is looked at in every pass is an event when
// its condition changes, not whenever it is probed.
func TestStepsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		w.run(upgrade.Options{}, 6*time.Hour, never)
		told := map[string]int{}
		for _, e := range w.events {
			if e.Type == upgradeconfig.EventStep {
				told[string(data(e).Condition.Type)+": "+e.Message]++
			}
		}
		for text, n := range told {
			if n > 1 {
				t.Errorf("%s: %d events", text, n)
			}
		}
		if w.entry().Phase != upgradeconfig.PhaseUpgraded || len(told) < 16 {
			t.Errorf("%d steps were told of, phase %s", len(told), w.entry().Phase)
		}
	})
}

// TestWaiting: a step that is not done says when it was looked at last, and a
// delay that cannot be told is an error, and told later.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		down := time.Now().Add(100 * time.Minute)
		w.fault = func(request string, do func() error) error {
			if request == "Notify StateDelayed" && time.Now().Before(down) {
				return errors.New("down")
			}
			return do()
		}
		o := upgrade.Options{Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
			return []string{"A"}, nil
		}}
		errs := w.run(o, 95*time.Minute, never)
		checktest.Equal(t, "can't send notification 'StateDelayed': down\nthe cluster is not healthy: A",
			errs[len(errs)-1], "errs[len(errs)-1]")
		e := w.entry()
		c, _ := e.Condition(upgradeconfig.ClusterHealthyBeforeUpgrade)
		if ago := time.Since(c.LastProbeTime.Time); ago > 2*time.Minute || c.LastTransitionTime.After(c.StartTime.Time) || time.Since(c.StartTime.Time) < 30*time.Minute {
			t.Errorf("%s ago: %+v", ago, c)
		}
		w.run(o, 30*time.Minute, never)
		checktest.Same(t, []upgradeconfig.State{"StateStarted", "StateDelayed"}, w.provider.told)
	})
}

// TestRequestTakenBack: an upgrade that has commenced goes on, and is not
// requested again, if somebody clears desiredUpdate.
func TestRequestTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		asked, cleared := 0, false
		o := upgrade.Options{
			Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error {
				asked++
				return nil
			},
			Dependencies: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
				if cleared {
					t.Error("dependencies of an update under way")
				}
				return nil, nil
			},
		}
		w.run(o, 65*time.Minute, never)
		if w.requested != 1 {
			t.Fatalf("%d requests", w.requested)
		}
		w.playing = true
		must(clusterapi.Modify(t.Context(), w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
			cv.Spec.DesiredUpdate = nil
			return nil
		}))
		w.playing, cleared = false, true
		w.run(o, 4*time.Hour, never)
		if asked != 1 || w.entry().Phase != upgradeconfig.PhaseUpgraded || version(t, w).Spec.DesiredUpdate != nil {
			t.Errorf("asked %d times, %+v", asked, w.entry())
		}
	})
}

// TestAnotherImageMeanwhile: a version whose image changes while its
// preconditions are checked has them checked once more.
func TestAnotherImageMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		var asked []string
		o := upgrade.Options{Preconditions: func(ctx context.Context, _ *configv1.ClusterVersion, r configv1.Release) error {
			if w.requested > 0 {
				t.Error("requested already")
			}
			asked = append(asked, r.Image)
			_, err := clusterapi.Modify(ctx, w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
				cv.Status.AvailableUpdates[0].Image = "another"
				return nil
			})
			return err
		}}
		w.run(o, 2*time.Hour, never)
		if diff := cmp.Diff([]string{targetImage, "another"}, asked); diff != "" || w.requested != 1 {
			t.Errorf("%d requests, %s", w.requested, diff)
		}
	})
}

// TestNotListed: a version that is not among the updates is not an error, but not
// valid either.
func TestNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, func(s *upgradeconfig.Spec) {
			s.Desired = upgradeconfig.Update{Version: "4.19.9", Channel: "stable-4.19"}
		})
		must(clusterapi.Modify(t.Context(), w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
			cv.Status.History[0].Version = "4.19.1"
			return nil
		}))
		if errs := w.run(upgrade.Options{}, 2*time.Hour, never); errs != nil || w.requested != 0 || w.entry().Phase != upgradeconfig.PhasePending {
			t.Errorf("%v, %d requests, %+v", errs, w.requested, w.entry())
		}
		validated := 0
		for _, e := range w.events {
			if e.Type == upgradeconfig.EventValidated {
				validated++
				if e.Err == nil || e.Message != "version 4.19.9 not found in clusterversion available or conditional updates" {
					t.Errorf("%+v", e)
				}
			}
		}
		if validated == 0 {
			t.Error("not validated")
		}
	})
}

// TestAlerts: what somebody was paged for meanwhile comes with the end of the
// upgrade.
func TestAlerts(t *testing.T) {
	for _, tt := range []struct {
		alerts []string
		err    error
		want   []string
	}{
		{[]string{"A", "B"}, nil, []string{"A", "B"}},
		{nil, nil, nil},
		{[]string{"A"}, errors.New("down"), nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, nil)
			var since []time.Time
			w.run(upgrade.Options{Alerts: func(_ context.Context, at time.Time) ([]string, error) {
				since = append(since, at)
				return tt.alerts, tt.err
			}}, 6*time.Hour, never)
			if len(since) != 1 || !since[0].Equal(w.entry().StartTime.Time) {
				t.Errorf("asked for alerts since %v", since)
			}
			for _, e := range w.events {
				want := tt.want
				if e.Type != upgradeconfig.EventPhase || data(e).Phase != upgradeconfig.PhaseUpgraded {
					want = nil
				}
				checktest.SameIn(t, fmt.Sprintf("%s %s", e.Type, data(e).Phase), want, data(e).Alerts)
			}
			checktest.Equal(t, upgradeconfig.PhaseUpgraded, w.entry().Phase, "w.entry().Phase")
		})
	}
}

// TestServiceLogs: they are sent where they are on, in this order.
func TestServiceLogs(t *testing.T) {
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.UpgradeAt = time.Now().Add(3 * time.Hour).Format(time.RFC3339) })
			alerts := time.Now().Add(3*time.Hour + 5*time.Minute)
			o := upgrade.Options{ServiceLogs: on, PreHealthCheck: true, Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
				if time.Now().Before(alerts) {
					return []string{"A"}, nil
				}
				return nil, nil
			}}
			w.run(o, 6*time.Hour, never)
			want := startedAndCompleted
			if on {
				want = []upgradeconfig.State{"StatePreHealthCheckSL", "StateStarted", "StateHealthCheckSL", "StateControlPlaneStartedSL", "StateControlPlaneFinishedSL", "StateWorkerPlaneFinishedSL", "StateCompleted"}
			}
			checktest.Same(t, want, w.provider.told)
		})
	}
}

// TestControllerFromConfig: the rules come from the ConfigMap, and what is absent there
// is zero.
func TestControllerFromConfig(t *testing.T) {
	refuse := func(context.Context, *configv1.ClusterVersion, configv1.Release) error { return errors.New("refused") }
	for _, tt := range []struct {
		name, config string
		phase        upgradeconfig.Phase
		err          string
		told         []upgradeconfig.State
	}{
		{name: "no window", config: "upgradeType: OSD", phase: upgradeconfig.PhaseUpgrading, err: "refused", told: []upgradeconfig.State{"StateStarted"}},
		{name: "window", config: "upgradeWindow: {timeOut: 20, delayTrigger: 10}", phase: upgradeconfig.PhaseFailed, err: "refused", told: []upgradeconfig.State{"StateStarted", "StateDelayed", "StateFailed"}},
		{name: "negative", config: "upgradeWindow: {timeOut: -1}", err: "config upgrade window time out is invalid"},
		{name: "negative trigger", config: "upgradeWindow: {delayTrigger: -1}", err: "config upgrade window delay trigger is invalid"},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			w := newSite(t, nil)
			m := &corev1.ConfigMap{Data: map[string]string{"config.yaml": tt.config}}
			m.Namespace, m.Name = upgradeconfig.DefaultNamespace, "managed-upgrade-operator-config"
			w.load(m)
			errs := w.run(upgrade.Options{FromConfig: true, Preconditions: refuse}, 4*time.Hour, never)
			if len(errs) == 0 || errs[0] != tt.err {
				t.Errorf("%v", errs)
			}
			if diff := cmp.Diff(tt.told, w.provider.told); diff != "" || w.entry().Phase != tt.phase {
				t.Errorf("%q %s", w.entry().Phase, diff)
			}
		})
	}
}

// TestFeaturesFromConfig: what the ConfigMap switches on, and what it does not.
func TestFeaturesFromConfig(t *testing.T) {
	for config, on := range map[string]bool{
		"featureGate: {enabled: [PreHealthCheck, ServiceLogNotification]}\nvalidation: {cincinnati: true}": true,
		"upgradeType: OSD": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.UpgradeAt = time.Now().Add(3 * time.Hour).Format(time.RFC3339) })
			w.load(configMap(upgradeconfig.DefaultNamespace, config))
			checked, asked := false, false
			o := upgrade.Options{
				FromConfig: true, PreHealthCheck: !on, ServiceLogs: !on,
				Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
					checked = true
					return []string{"A"}, nil
				},
				Validate: upgradeconfig.ValidateOptions{Cincinnati: !on, Graph: graph.SourceFunc(func(context.Context, graph.Query) (*graph.Graph, error) {
					asked = true
					return nil, errors.New("down")
				})},
			}
			w.run(o, 10*time.Minute, never)
			if told := slices.Equal(w.provider.told, []upgradeconfig.State{"StatePreHealthCheckSL"}); checked != on || asked != on || told != on {
				t.Errorf("%s: checked %v, asked %v, told %v", config, checked, asked, w.provider.told)
			}
		})
	}
}

// TestImageMode: the image's version gets into the spec, and the image is what
// is requested.
func TestImageMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, func(s *upgradeconfig.Spec) { s.Desired = upgradeconfig.Update{Image: targetImage} })
		o := upgrade.Options{Validate: upgradeconfig.ValidateOptions{ReleaseVersion: func(context.Context, string) (string, error) { return target, nil }}}
		_, c := w.operator(o)
		must(clusterapi.Create(t.Context(), w, object(w.provider.policies[0].Spec, upgradeconfig.Status{}), clusterapi.CreateOptions{}))
		w.provider.policies[0].Spec.Desired.Version = target
		for range 200 {
			p := must(c.Sync(t.Context()))
			if p.Phase == upgradeconfig.PhaseUpgraded {
				break
			}
			time.Sleep(p.After)
			w.play()
		}
		if got := stored(t, w); got.Spec.Desired.Version != target || w.entry().Phase != upgradeconfig.PhaseUpgraded || w.requested != 1 {
			t.Errorf("%d requests, %+v", w.requested, got)
		}
		if e := w.entry(); e.WorkerStartTime.Sub(e.StartTime.Time) < 10*time.Minute {
			t.Errorf("the control plane took %s", e.WorkerStartTime.Sub(e.StartTime.Time))
		}
		if u := version(t, w).Spec.DesiredUpdate; u.Image != targetImage || u.Version != "" {
			t.Errorf("%+v", u)
		}
	})
}

// TestAlreadyCommenced: somebody else told the cluster to update.
func TestAlreadyCommenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		must(clusterapi.Modify(t.Context(), w, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: target}
			return nil
		}))
		o := upgrade.Options{
			Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error {
				t.Error("preconditions of an update under way")
				return nil
			},
			Dependencies: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
				t.Error("dependencies of an update under way")
				return []string{"registry"}, nil
			},
		}
		if errs := w.run(o, 2*time.Hour, never); errs != nil {
			t.Error(errs)
		}
		want := []upgradeconfig.Phase{upgradeconfig.PhaseUpgrading, upgradeconfig.PhaseUpgraded}
		if diff := cmp.Diff(want, w.phases); diff != "" || w.requested != 1 {
			t.Errorf("%d requests, %s", w.requested, diff)
		}
		// Started is not told any more, so Completed is not allowed.
		checktest.Equal(t, 0, len(w.provider.told), "told %v", w.provider.told)
	})
}

// TestControllerRun: a new object is seen at once, the wait is kept to the
// second, and cancelling ends it promptly.
func TestControllerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		var reads, passes atomic.Int32 // of the UpgradeConfig, and on it
		w.fault = func(request string, do func() error) error {
			switch request {
			case "Get UpgradeConfig":
				reads.Add(1)
			case "Get ClusterVersion":
				passes.Add(1)
			}
			return do()
		}
		_, c := w.operator(upgrade.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		checktest.Fails(t, c.Run(ctx), "a second Run")
		time.Sleep(90 * time.Second) // no look is due now
		before := time.Now()
		must(clusterapi.Create(ctx, w, object(w.provider.policies[0].Spec, upgradeconfig.Status{}), clusterapi.CreateOptions{}))
		synctest.Wait()
		if !time.Now().Equal(before) || w.entry().Phase != upgradeconfig.PhasePending {
			t.Errorf("%s, %+v", time.Since(before), w.entry())
		}
		// A change of its status is not a reason to look at it, a change of anything
		// else is.
		time.Sleep(10 * time.Second)
		for _, status := range []bool{true, false} {
			passes.Store(0)
			must(clusterapi.Modify(ctx, w, objectKey, clusterapi.ModifyOptions{Status: status}, func(c *upgradeconfig.UpgradeConfig) error {
				c.Status.History[0].PrecedingVersion = "4.20.1"
				c.Labels = map[string]string{"a": "b"}
				return nil
			}))
			synctest.Wait()
			if n := passes.Load(); (n == 0) != status {
				t.Errorf("status %v: %d passes", status, n)
			}
		}
		// Nor are those of another name.
		passes.Store(0)
		other := object(w.provider.policies[0].Spec, upgradeconfig.Status{})
		other.Name = "another"
		must(clusterapi.Create(ctx, w, other, clusterapi.CreateOptions{}))
		if synctest.Wait(); passes.Load() != 0 {
			t.Errorf("%d passes", passes.Load())
		}
		// Due an hour after the start, and the moment after that counts.
		time.Sleep(time.Hour)
		synctest.Wait()
		checktest.Equal(t, upgradeconfig.PhaseUpgrading, w.entry().Phase, "w.entry().Phase")
		// It is noticed when the object goes.
		reads.Store(0)
		checktest.OK(t,
			w.Delete(ctx, (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey, clusterapi.DeleteOptions{}))
		if synctest.Wait(); reads.Load() == 0 {
			t.Error("nobody looked")
		}
		at := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || !time.Now().Equal(at) {
			t.Errorf("%v after %s", err, time.Since(at))
		}
	})
}

func TestOptionsThatCannotWork(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	for want, o := range map[string]upgrade.Options{
		"API is required":          {},
		"TimeOut is negative":      {API: api, TimeOut: -1},
		"DelayTrigger is negative": {API: api, DelayTrigger: -time.Second},
		"Validate.ImageTimeout":    {API: api, Validate: upgradeconfig.ValidateOptions{ImageTimeout: -1}},
	} {
		checktest.ErrorHas(t, want, checktest.Err(upgrade.New(o)))
	}
}
