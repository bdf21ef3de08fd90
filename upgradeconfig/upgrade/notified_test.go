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
		if text := w.object().Annotations[annotationTold]; !strings.Contains(text, `"format":1,`) || !strings.Contains(text, `"due":["StateDelayed"],"told":["StateHealthCheckSL"]`) {
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
		if text, ok := w.object().Annotations[annotationTold]; ok {
			t.Errorf("after the end there is %s", text)
		}
	})
}

func annotate(t *testing.T, api clusterapi.ReadWriter, text string) {
	t.Helper()
	must(clusterapi.Modify(t.Context(), api, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
		c.Annotations = map[string]string{annotationTold: text, "other": "stays"}
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
			if got := w.object().Annotations[annotationTold]; tt.fault != "" && got != tt.text {
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
