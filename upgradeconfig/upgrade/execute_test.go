package upgrade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// diary notes which hooks are called, repetitions aside.
type diary []string

func (d *diary) note(text string) {
	if len(*d) == 0 || (*d)[len(*d)-1] != text {
		*d = append(*d, text)
	}
}

func (d *diary) Failing(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
	d.note("health")
	return nil, nil
}

func (d *diary) Reserve(context.Context, *upgradeconfig.UpgradeConfig) (upgrade.CapacityState, error) {
	d.note("reserve")
	return upgrade.CapacityReady, nil
}

// Release needs a second call.
func (d *diary) Release(context.Context, *upgradeconfig.UpgradeConfig) (bool, error) {
	done := (*d)[len(*d)-1] == "release"
	d.note("release")
	return done, nil
}

func (d *diary) Start(_ context.Context, _ *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	d.note("start " + string(p))
	return nil
}

func (d *diary) End(_ context.Context, _ *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	d.note("end " + string(p))
	return nil
}

// TestHooks: what an upgrade calls, in this order.
func TestHooks(t *testing.T) {
	for typ, post := range map[upgradeconfig.UpgradeType]bool{upgradeconfig.OSD: true, upgradeconfig.ARO: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.Type, s.CapacityReservation = typ, true })
			d := &diary{}
			tasks := 0
			w.run(upgrade.Options{
				Health: d.Failing, Capacity: d, Maintenance: d,
				Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error {
					d.note("preconditions")
					return nil
				},
				PostUpgrade: func(context.Context, *upgradeconfig.UpgradeConfig) (bool, error) {
					d.note("post")
					tasks++
					return tasks > 1, nil
				},
			}, 6*time.Hour, never)
			want := diary{"health", "reserve", "start ControlPlane", "preconditions", "end ControlPlane", "start Workers", "release", "end Workers", "health"}
			if post {
				want = append(want, "post")
			}
			if diff := cmp.Diff(want, *d); diff != "" || w.entry().Phase != upgradeconfig.PhaseUpgraded || (tasks == 2) != post {
				t.Errorf("%s, %d tasks, %s: %s", typ, tasks, w.entry().Phase, diff)
			}
		})
	}
}

// TestWorkers: the worker nodes are upgraded when each pool but that of the
// control plane has seen its configuration and brought it to all machines. Until
// then nodes are helped on.
func TestWorkers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*mcfgv1.MachineConfigPool)
		drain  error
		done   bool
		err    string
		open   string // the pools that the step names
	}{
		{name: "all", done: true},
		{name: "paused", change: func(p *mcfgv1.MachineConfigPool) {
			if p.Name == "infra" {
				p.Spec.Paused, p.Status.UpdatedMachineCount = true, 0
			}
		}, done: true},
		{name: "one paused, one not", change: func(p *mcfgv1.MachineConfigPool) {
			p.Spec.Paused, p.Status.UpdatedMachineCount = p.Name == "infra", 0
		}, open: ": machine config pools that are not updated: worker"},
		{name: "control plane is not done", change: func(p *mcfgv1.MachineConfigPool) {
			if p.Name == "master" {
				p.Status.UpdatedMachineCount = 1
			}
		}, done: true},
		{name: "not all machines", change: func(p *mcfgv1.MachineConfigPool) {
			if p.Name == "infra" {
				p.Status.UpdatedMachineCount = 2
			}
		}},
		{name: "another configuration", change: func(p *mcfgv1.MachineConfigPool) {
			if p.Name == "worker" {
				p.Spec.Configuration.Name = "rendered-2"
			}
		}},
		{name: "not seen yet", change: func(p *mcfgv1.MachineConfigPool) {
			if p.Name == "worker" {
				p.Generation, p.Status.ObservedGeneration = 7, 6
			}
		}},
		{name: "drain fails", drain: errors.New("no pods"), change: func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 0 }, err: "no pods"},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.PDBForceDrainTimeout = 45 })
			cv := version(t, w)
			cv.Spec.DesiredUpdate = &configv1.Update{Version: target}
			cv.Status.History = history([2]string{target, "2000-01-01T01:00:00Z"}, [2]string{"4.20.2", "2000-01-01T00:00:00Z"})
			w.reload(cv)
			pools, err := clusterapi.List[mcfgv1.MachineConfigPool](t.Context(), w, clusterapi.ListOptions{})
			checktest.OK(t, err)
			for i := range pools {
				pools[i].Generation, pools[i].Status.ObservedGeneration = 3, 3
				if tt.change != nil {
					tt.change(&pools[i])
				}
				w.reload(&pools[i])
			}
			must(clusterapi.Create(t.Context(), w, object(w.provider.policies[0].Spec, upgradeconfig.Status{}), clusterapi.CreateOptions{}))
			helped := 0
			_, c := w.operator(upgrade.Options{Drain: func(_ context.Context, _ *upgradeconfig.UpgradeConfig, after time.Duration) error {
				helped++
				checktest.Equal(t, 45*time.Minute, after, "by force after")
				return tt.drain
			}})
			_, err = c.Sync(t.Context())
			e := w.entry()
			if !e.IsTrue(upgradeconfig.ControlPlaneUpgraded) || e.IsTrue(upgradeconfig.WorkerNodesUpgraded) != tt.done || (helped == 0) != tt.done || (e.WorkerCompleteTime != nil) != tt.done || errText(err) != tt.err {
				t.Errorf("%v, helped %d times, %+v", err, helped, e)
			}
			if step, _ := e.Condition(upgradeconfig.WorkerNodesUpgraded); !strings.HasSuffix(step.Message, tt.open) {
				t.Errorf("message %q, want one that ends with %q", step.Message, tt.open)
			}
		})
	}
}

// TestCapacity: what is told about extra capacity.
func TestCapacity(t *testing.T) {
	for _, tt := range []struct {
		name     string
		reserve  bool
		capacity upgrade.Capacity
		want     []upgradeconfig.State
	}{
		{"not asked for", false, &upgradetest.Capacity{Fixed: true}, startedAndCompleted},
		{"ready", true, &upgradetest.Capacity{Ready: 5 * time.Minute}, startedAndCompleted},
		{"nothing to scale", true, &upgradetest.Capacity{Fixed: true}, []upgradeconfig.State{"StateStarted", "StateScaleSkipped", "StateCompleted"}},
		{"no hook", true, nil, []upgradeconfig.State{"StateStarted", "StateScaleSkipped", "StateCompleted"}},
		{"too late, before the delay", true, &upgradetest.Capacity{Ready: 2 * time.Hour, TimeOut: 5 * time.Minute}, startedAndCompleted}, // Started to Skipped is not allowed
		{"too late, after the delay", true, &upgradetest.Capacity{Ready: 2 * time.Hour, TimeOut: 40 * time.Minute}, []upgradeconfig.State{"StateStarted", "StateDelayed", "StateSkipped", "StateCompleted"}},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.CapacityReservation = tt.reserve })
			w.run(upgrade.Options{Capacity: tt.capacity}, 6*time.Hour, never)
			if diff := cmp.Diff(tt.want, w.provider.told); diff != "" || w.entry().Phase != upgradeconfig.PhaseUpgraded {
				t.Errorf("%s %s", w.entry().Phase, diff)
			}
		})
	}
}

// slowCapacity is extra capacity that never comes and takes its time to go.
type slowCapacity struct{ gone time.Time }

func (slowCapacity) Reserve(context.Context, *upgradeconfig.UpgradeConfig) (upgrade.CapacityState, error) {
	return upgrade.CapacityPending, nil
}

func (s slowCapacity) Release(context.Context, *upgradeconfig.UpgradeConfig) (bool, error) {
	return time.Now().After(s.gone), nil
}

// TestCapacityGoesFirst: an upgrade has failed when its extra capacity is gone,
// and not before is anybody told.
func TestCapacityGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, func(s *upgradeconfig.Spec) { s.CapacityReservation = true })
		o := upgrade.Options{Capacity: slowCapacity{gone: time.Now().Add(4 * time.Hour)}}
		w.run(o, 3*time.Hour+30*time.Minute, never)
		e := w.entry()
		c, _ := e.Condition(upgradeconfig.FailedUpgrade)
		want := []upgradeconfig.State{"StateStarted", "StateDelayed"}
		if e.Phase != upgradeconfig.PhaseUpgrading || c.Status != "False" || c.Message != "extra capacity is still being removed" || !slices.Equal(w.provider.told, want) {
			t.Errorf("told %v, %+v", w.provider.told, e)
		}
		w.run(o, 2*time.Hour, never)
		if want = append(want, "StateFailed"); w.entry().Phase != upgradeconfig.PhaseFailed || !slices.Equal(w.provider.told, want) {
			t.Errorf("told %v, %+v", w.provider.told, w.entry())
		}
	})
}

// TestStoredBeforeTold: the provider hears that an upgrade is over when that is
// stored, and once; one that could not be told is told by the next pass.
func TestStoredBeforeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		told, failures := 0, 2
		m, _ := w.operator(upgrade.Options{})
		c := must(upgrade.New(upgrade.Options{API: w, Refresh: m.Refresh,
			Notifier: notifierFunc(func(n upgradeconfig.Notification) error {
				if n.State != upgradeconfig.StateCompleted {
					return nil
				}
				if e := w.entry(); e.Phase != upgradeconfig.PhaseUpgraded || e.IsTrue(upgradeconfig.CompletedNotificationSent) {
					t.Errorf("told while %s is stored", e.Phase)
				}
				if failures--; failures >= 0 {
					return errors.New("nobody listens")
				}
				told++
				return nil
			})}))

		must(m.Sync(t.Context()))
		for start := time.Now(); time.Since(start) < 8*time.Hour; {
			p, _ := c.Sync(t.Context())
			time.Sleep(p.After)
			w.play()
		}
		if e := w.entry(); told != 1 || !e.IsTrue(upgradeconfig.CompletedNotificationSent) {
			t.Errorf("told %d times, %+v", told, e)
		}
	})
}

type notifierFunc func(upgradeconfig.Notification) error

func (f notifierFunc) Notify(_ context.Context, n upgradeconfig.Notification) error { return f(n) }

func TestOperatorHealth(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	for name, conditions := range map[string][]configv1.ClusterOperatorStatusCondition{
		"dns":     {{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue}, {Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}},
		"console": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse}},
		"ingress": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionUnknown}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionUnknown}},
		"etcd":    {{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse}},
	} {
		o := &configv1.ClusterOperator{}
		o.Name, o.Status.Conditions = name, conditions
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = cluster.Load(u)
		}
		checktest.OK(t, err)
	}
	got, err := upgrade.OperatorHealth(cluster)(t.Context(), nil)
	if diff := cmp.Diff([]string{"ClusterOperator console is not available", "ClusterOperator dns is degraded"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestTwoControllers: of two that look at one object, one request and one set
// of notifications come.
func TestTwoControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		m, a := w.operator(upgrade.Options{})
		_, b := w.operator(upgrade.Options{})
		must(m.Sync(t.Context()))
		for range 200 {
			p, _ := a.Sync(t.Context())
			if q, _ := b.Sync(t.Context()); q.Phase == upgradeconfig.PhaseUpgraded {
				break
			}
			time.Sleep(min(p.After, time.Minute))
			w.play()
		}
		if diff := cmp.Diff(startedAndCompleted, w.provider.told); diff != "" || w.entry().Phase != upgradeconfig.PhaseUpgraded || w.requested != 1 {
			t.Errorf("%s, %d requests, %s", w.entry().Phase, w.requested, diff)
		}
	})
}
