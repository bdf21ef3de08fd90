package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

var errInjected = errors.New("injected fault")

// hearing is a notifier that notes what it hears, or is out of order.
type hearing struct {
	heard []upgradeconfig.State
	down  bool
}

func (h *hearing) Notify(_ context.Context, n upgradeconfig.Notification) error {
	if h.down {
		return errInjected
	}
	h.heard = append(h.heard, n.State)
	return nil
}

func (w *site) object() *upgradeconfig.UpgradeConfig {
	w.playing = true
	defer func() { w.playing = false }()
	return stored(w.t, w)
}

// What no condition stands for is told once, although each pass is made by
// another process, and it is not forgotten while nobody listens.
func TestToldOnceByManyProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, func(s *upgradeconfig.Spec) { s.CapacityReservation = true })
		ill := true
		h := &hearing{}
		pass := func() error {
			m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: w, Provider: w.provider}))
			must(m.Sync(t.Context()))
			_, err := must(upgrade.New(upgrade.Options{
				API: w, Notifier: h, ServiceLogs: true, Capacity: &upgradetest.Capacity{Fixed: true},
				Health: func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
					if ill {
						return []string{"a"}, nil
					}
					return nil, nil
				},
			})).
				Sync(t.Context())
			w.play()
			return err
		}
		passes := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
				_ = pass() // the health check fails
			}
		}
		passes(80 * time.Minute) // it begins after 60
		want := []upgradeconfig.State{"StateStarted", "StateHealthCheckSL"}
		checktest.Same(t, want, h.heard)
		h.down = true
		passes(20 * time.Minute) // a delay
		if text := w.object().Annotations[annotationSent]; !strings.Contains(text, `"format":1,`) || !strings.Contains(text, `"due":["StateDelayed"],"told":["StateHealthCheckSL"]`) {
			t.Errorf("stored is %s", text)
		}
		h.down = false
		passes(5 * time.Minute)
		want = append(want, upgradeconfig.StateDelayed)
		checktest.Same(t, want, h.heard)
		ill = false
		passes(time.Hour)
		want = append(want, upgradeconfig.StateScaleSkipped, upgradeconfig.StateControlPlaneStartedSL, upgradeconfig.StateControlPlaneFinishedSL, upgradeconfig.StateWorkerPlaneFinishedSL, upgradeconfig.StateCompleted)
		checktest.Same(t, want, h.heard)
		if text, ok := w.object().Annotations[annotationSent]; ok {
			t.Errorf("after the end there is %s", text)
		}
	})
}

func annotate(t *testing.T, api clusterapi.ReadWriter, text string) {
	t.Helper()
	must(clusterapi.Modify(t.Context(), api, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
		c.Annotations = map[string]string{annotationSent: text, "other": "stays"}
		return nil
	}))
}

// A newer format is refused by its number; what is about another upgrade, or
// broken, counts as nothing.
func TestToldFormats(t *testing.T) {
	for _, tt := range []struct{ text, fault string }{
		{`{"format":2,"uid":"x"}`, "annotation clusterupdate.github.io/told has format 2; this program reads formats up to 1"},
		{`{"format":1,"uid":"x","version":"4.20.3","due":["StateDelayed"]}`, ""},
		{`{`, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, nil)
			h := &hearing{}
			store(t, w, object(w.provider.policies[0].Spec, underWay(target)))
			annotate(t, w, tt.text)
			_, err := must(upgrade.New(upgrade.Options{API: w, Notifier: h})).Sync(t.Context())
			if tt.fault == "" && err != nil || tt.fault != "" && (err == nil || err.Error() != tt.fault) {
				t.Errorf("%s: error %v", tt.text, err)
			}
			if slices.Contains(h.heard, upgradeconfig.StateDelayed) {
				t.Errorf("%s: heard %v", tt.text, h.heard)
			}
			if got := w.object().Annotations[annotationSent]; tt.fault != "" && got != tt.text {
				t.Errorf("%s became %s", tt.text, got)
			}
		})
	}
}

func TestUninstall(t *testing.T) {
	fails := false
	writes := 0
	cluster := newCluster(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if call.Verb == "Update" {
			writes++
		}
		if fails && call.Verb == "Update" {
			return errInjected
		}
		return do(ctx)
	}}, false)
	checktest.Good(t, upgrade.Uninstall(t.Context(), cluster))
	before := store(t, cluster, object(specA, underWay("4.20.3")))
	annotate(t, cluster, `{"format":2}`)
	fails = true
	if err := upgrade.Uninstall(t.Context(), cluster); !errors.Is(err, errInjected) || !strings.Contains(err.Error(), upgradeconfig.Name) {
		t.Errorf("error %v", err)
	}
	fails, writes = false, 0
	for range 2 {
		checktest.Good(t, upgrade.Uninstall(t.Context(), cluster))
	}
	checktest.Equal(t, 1, writes, "writes")
	c := stored(t, cluster)
	checktest.Same(t, map[string]string{"other": "stays"}, c.Annotations)
	if diff := cmp.Diff(before.Status, c.Status); diff != "" || c.Spec != specA {
		t.Errorf("%+v\n%s", c.Spec, diff)
	}
	checktest.Good(t, upgrade.Uninstall(t.Context(), memory.NewOpenShift(memory.Options{})))
}

// A driver of one's own asks for a sync by a key, and its time is that of
// events; jitter is the driver's, and the same each time.
func TestProcessInVirtualTime(t *testing.T) {
	play := func() (asked []time.Duration) {
		clock := reconcile.NewClock(simulationStart)
		cluster := newCluster(t, memory.Options{Clock: clock}, false)
		provider := fixture.ProviderFunc(func(ctx context.Context) ([]upgradeconfig.Policy, error) {
			asked = append(asked, clock.Now().Sub(simulationStart))
			return policies(specA)(ctx)
		})
		m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: provider, Observe: func(e clusterapi.Event) {
			if !e.Time.Equal(clock.Now()) {
				t.Errorf("%s at %s, and it is %s", e.Type, e.Time, clock.Now())
			}
		}}))

		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, m.Process())
		defer v.Close()
		checktest.OK(t, v.RunUntil(simulationStart.Add(5*time.Minute)))
		v.Wake("upgradeconfig-policies", "sync", reconcile.Key{Kind: "now"})
		checktest.OK(t, v.RunUntil(simulationStart.Add(4*time.Hour)))
		return asked
	}
	first, second := play(), play()
	checktest.Same(t, first, second)
	if len(first) < 4 || first[0] == time.Minute || first[0] < 54*time.Second || first[0] > 66*time.Second || first[1] != 5*time.Minute || first[2] < 59*time.Minute || first[2] > 71*time.Minute {
		t.Errorf("asked after %v", first)
	}
}

func TestAllowed(t *testing.T) {
	states := []upgradeconfig.State{
		"StatePending", "StateScheduled", "StateStarted", "StateScaleSkipped", "StateDelayed", "StateSkipped", "StateCompleted", "StateFailed", "StateCancelled",
		"StateControlPlaneStartedSL", "StateControlPlaneFinishedSL", "StateWorkerPlaneFinishedSL", "StateHealthCheckSL", "StatePreHealthCheckSL", "",
	}
	want := map[upgradeconfig.State]string{
		"StateScheduled":    "StateStarted",
		"StateStarted":      "StateScaleSkipped StateDelayed StateCompleted StateFailed",
		"StateScaleSkipped": "StateDelayed StateSkipped StateCompleted StateFailed",
		"StateDelayed":      "StateSkipped StateCompleted StateFailed",
		"StateSkipped":      "StateCompleted StateFailed",
	}
	for _, from := range states {
		var to []string
		for _, s := range states {
			if from.Allows(s) {
				to = append(to, string(s))
			}
		}
		checktest.Equal(t, want[from], strings.Join(to, " "), "from %s to", from)
	}
}

func TestNewNotification(t *testing.T) {
	headlines := map[upgradeconfig.State]string{
		"StateControlPlaneStartedSL":  "Cluster is starting with control and worker plane upgrade",
		"StateControlPlaneFinishedSL": "Cluster has finished control plane upgrade",
		"StateWorkerPlaneFinishedSL":  "Cluster has finished with worker plane upgrade",
		"StateHealthCheckSL":          "Cluster has encountered healthcheck failure during upgrade",
		"StatePreHealthCheckSL":       "Cluster has encountered pre-upgrade healthcheck failure",
	}
	const end = " This is an informational notification and no action is required by you"
	const again = " Automated upgrades will be retried on their next scheduling cycle. If you have manually scheduled an upgrade instead, it must now be rescheduled"
	for _, tt := range []struct {
		state upgradeconfig.State
		// undone steps, the latest first
		undone []upgradeconfig.ConditionType
		want   string
	}{
		{"StateStarted", nil, "Cluster is currently being upgraded to version V"},
		{"StateCompleted", nil, "Cluster has been successfully upgraded to version V"},
		{"StateScaleSkipped", nil, "Cluster upgrade to version V has skipped Scale-Up additional Worker Node step for compute capacity reservation." + end},
		{"StateSkipped", nil, "Cluster upgrade to version V has experienced an issue during capacity reservation efforts. This could be caused by cloud service provider quota limitations or temporary connectivity issues to/from the new worker node. The upgrade will continue without extra compute." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"ClusterHealthyBeforeUpgrade", "ComputeCapacityReserved"}, "Cluster upgrade to version V is experiencing a delay as health alerts are firing in the cluster which could impact the upgrade's operation. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"FailedUpgrade", "ExternalDependenciesAvailable"}, "Cluster upgrade to version V is experiencing a delay as an external dependency of the upgrade is currently unavailable. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"ComputeCapacityReserved"}, "Cluster upgrade to version V is experiencing a delay attempting to scale up an additional worker node. The upgrade will continue to retry." + end},
		{"StateDelayed", []upgradeconfig.ConditionType{"IsClusterUpgradable"}, "Cluster upgrade to version V is experiencing a delay whilst it performs necessary pre-upgrade procedures. The upgrade will continue to retry. This is an informational notification and no action is required"},
		{"StateDelayed", nil, "Cluster upgrade to version V is experiencing a delay whilst it performs necessary pre-upgrade procedures. The upgrade will continue to retry. This is an informational notification and no action is required"},
		{"StateFailed", []upgradeconfig.ConditionType{"ClusterHealthyBeforeUpgrade"}, "Cluster upgrade to version V was cancelled during the Pre-Health Check step. Health alerts are firing in the cluster which could impact the upgrade's operation, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"ExternalDependenciesAvailable"}, "Cluster upgrade to version V was cancelled during the External Dependency Availability Check step. A required external dependency of the upgrade was unavailable, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"ComputeCapacityReserved"}, "Cluster upgrade to version V was cancelled during the Scale-Up Worker Node step. A temporary additional worker node was unable to be created to temporarily house workloads, so the upgrade did not proceed." + again},
		{"StateFailed", []upgradeconfig.ConditionType{"IsClusterUpgradable"}, "message of IsClusterUpgradable"},
		{"StateFailed", []upgradeconfig.ConditionType{"FailedUpgrade", "UpgradeCommenced"}, "Cluster upgrade to version V was cancelled as the cluster did not pass its pre-upgrade verification checks." + again},
		{"StateControlPlaneStartedSL", nil, "Cluster upgrade to version V is starting with control and worker plane upgrade. This is an informational notification and no action is required"},
		{"StateControlPlaneFinishedSL", nil, "Cluster upgrade to version V has finished control plane upgrade. This is an informational notification and no action is required"},
		{"StateWorkerPlaneFinishedSL", nil, "Cluster upgrade to version V has finished worker plane upgrade. This is an informational notification and no action is required."},
		{"StateHealthCheckSL", nil, "Cluster upgrade to version V may experience a delay as following healthcheck(s): A, B are failing for the cluster which could impact the upgrade's operation."},
		{"StatePreHealthCheckSL", nil, "Cluster upgrade to version V has been scheduled for more than 2 hours, cluster pre-upgrade health check has identified the following points which may impact the upgrade process: A, B. Please take actions to review and fix the issues before the upgrade begins to have seamless upgrade experience"},
		{"StatePending", nil, ""},
	} {
		e := upgradeconfig.HistoryEntry{Version: "V", Conditions: []upgradeconfig.Condition{{Type: "ExternalDependenciesAvailable", Status: "True"}}}
		if len(tt.undone) > 0 {
			e.Conditions = nil
		}
		for _, u := range tt.undone {
			e.Conditions = append(e.Conditions, upgradeconfig.Condition{Type: u, Status: "False", Message: "message of " + string(u)})
		}
		spec := specA
		spec.Desired.Version = "V"
		c := object(spec, upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{e}})
		n := upgrade.NewNotification(tt.state, c, []string{"A", "B"})
		want := upgradeconfig.Notification{State: tt.state, Config: c, Version: "V", Description: tt.want, Summary: headlines[tt.state]}
		if strings.Contains(string(tt.state), "HealthCheck") {
			want.References = []string{upgrade.HealthReference}
		}
		checktest.SameIn(t, fmt.Sprintf("%s %v", tt.state, tt.undone), want, n)
		// The only way to tell the two apart that OCM calls delayed.
		if (tt.state == "StateDelayed") != strings.Contains(n.Description, "retry") {
			t.Errorf("%s: %s", tt.state, n.Description)
		}
	}
}

func TestNotificationLog(t *testing.T) {
	var out bytes.Buffer
	upgrade.NewNotification("StateStarted", object(specA, upgradeconfig.Status{}), nil).Log(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	checktest.Has(t, out.String(),
		`msg="Upgrade-State: StateStarted Description: Cluster is currently being upgraded to version 4.20.3"`)
}
