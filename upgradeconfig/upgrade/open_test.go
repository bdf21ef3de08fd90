package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// hooked are hooks that fail where the site says so, and outlive processes.
type hooked struct {
	w        *site
	capacity *upgradetest.Capacity
	windows  *upgradetest.Maintenance
}

func newHooked(w *site) hooked {
	return hooked{w, &upgradetest.Capacity{Ready: time.Minute}, &upgradetest.Maintenance{}}
}

func (h hooked) call(name string, do func() error) error {
	if h.w.fault == nil {
		return do()
	}
	return h.w.fault(name, do)
}

func (h hooked) Reserve(ctx context.Context, c *upgradeconfig.UpgradeConfig) (state upgrade.CapacityState, err error) {
	err = h.call("Reserve", func() (err error) { state, err = h.capacity.Reserve(ctx, c); return err })
	return state, err
}

func (h hooked) Release(ctx context.Context, c *upgradeconfig.UpgradeConfig) (done bool, err error) {
	err = h.call("Release", func() (err error) { done, err = h.capacity.Release(ctx, c); return err })
	return done, err
}

func (h hooked) Start(ctx context.Context, c *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	return h.call("Start", func() error { return h.windows.Start(ctx, c, p) })
}

func (h hooked) End(ctx context.Context, c *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	return h.call("End", func() error { return h.windows.End(ctx, c, p) })
}

// open says what is open, and whether the cluster knows.
func (h hooked) open() (out []string) {
	if h.capacity.Reserved() {
		out = append(out, "capacity")
	}
	for _, p := range []upgrade.Plane{upgrade.ControlPlane, upgrade.Workers} {
		if h.windows.Open(p) {
			out = append(out, string(p))
		}
	}
	h.w.playing = true
	defer func() { h.w.playing = false }()
	if _, ok := version(h.w.t, h.w).Annotations[annotationOpen]; ok {
		out = append(out, "annotation")
	}
	return out
}

// ask makes a request of somebody else.
func (w *site) ask(u configv1.Update) {
	w.playing = true
	defer func() { w.playing = false }()
	must(clusterversion.Modify(context.Background(), w, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		clusterversion.SetDesired(cv, u)
		return true, nil
	}))
}

// ways are the ways in which an upgrade ends before its time.
var ways = []string{"not at all", "withdrawn", "deleted by hand", "moved", "request cleared", "aimed elsewhere", "another version"}

func (w *site) end(way string) {
	w.playing = true
	defer func() { w.playing = false }()
	switch way {
	case "withdrawn":
		w.provider.policies = nil
	case "deleted by hand", "moved":
		if way == "moved" {
			at := time.Now().Add(30 * time.Minute)
			w.provider.policies[0].Spec.UpgradeAt, w.provider.policies[0].NextRun = at.Format(time.RFC3339), at
		} else {
			w.provider.policies = nil
		}
		if stored(w.t, w) == nil {
			return
		}
		checktest.OK(w.t,
			w.Delete(context.Background(), (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey,
				clusterapi.DeleteOptions{}))
	case "request cleared", "aimed elsewhere":
		if version(w.t, w).Spec.DesiredUpdate == nil || w.stage > 0 {
			return // it is on its way
		}
		w.stage, w.since = 3, time.Now() // it never comes there
		if way == "request cleared" {
			w.ask(configv1.Update{})
		} else {
			w.ask(configv1.Update{Version: "4.20.9", Image: "another"})
		}
	case "another version":
		w.provider.policies = nil
		if stored(w.t, w) == nil {
			return
		}
		must(clusterapi.Modify(context.Background(), w, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
			c.Spec.Desired = upgradeconfig.Update{Version: "4.20.8", Channel: "stable-4.20"}
			return nil
		}))
	}
}

// TestNothingStaysOpen: however an upgrade ends, and whatever fails meanwhile,
// nothing that it opened stays open.
func TestNothingStaysOpen(t *testing.T) {
	runs := 42
	if israce.Enabled || testing.Short() {
		runs = 21
	}
	seen := map[string]bool{}
	for seed := range runs {
		way := ways[seed%len(ways)]
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			w := newSiteOf(t, looseDefinition(), func(s *upgradeconfig.Spec) { s.CapacityReservation = true })
			w.pace = 3 * time.Minute
			h := newHooked(w)
			start, dead := time.Now(), false
			ends := start.Add(time.Hour + time.Duration(rng.IntN(15*60))*time.Second)
			w.fault = func(request string, do func() error) error {
				switch {
				case dead:
					return errCrash
				case time.Since(start) > 2*time.Hour:
					return do()
				}
				dice := rng.IntN(100)
				dead = dice < 2
				switch {
				case dice == 0 || dice == 3 || dice == 4:
					return fmt.Errorf("%s: %w", request, errCrash)
				case dice < 6:
					if err := do(); err != nil {
						return err
					}
					return fmt.Errorf("%s: %w", request, errCrash)
				}
				return do()
			}
			o := upgrade.Options{Capacity: h, Maintenance: h, ServiceLogs: rng.IntN(2) == 0}
			m, c := w.operator(o)
			ended := false
			for time.Since(start) < 5*time.Hour {
				if !ended && !time.Now().Before(ends) {
					for _, what := range h.open() {
						seen[way+": "+what] = true
					}
					w.end(way)
					ended = true
				}
				if rng.IntN(5) == 0 {
					_, _ = m.Sync(t.Context())
				}
				p, _ := c.Sync(t.Context())
				if dead {
					dead = false
					m, c = w.operator(o)
					continue
				}
				time.Sleep(min(p.After, time.Minute))
				w.play()
			}
			if open := h.open(); open != nil {
				t.Errorf("seed %d, %s: open are %v", seed, way, open)
			}
			config := w.object()
			switch way {
			case "withdrawn", "deleted by hand":
				if config != nil {
					t.Errorf("seed %d, %s: there is %+v", seed, way, config)
				}
			case "not at all", "moved":
				if config == nil || config.Status.Phase(target) != upgradeconfig.PhaseUpgraded {
					t.Errorf("seed %d, %s: %+v", seed, way, config)
				}
			case "request cleared", "aimed elsewhere":
				if phase := config.Status.Phase(target); phase != upgradeconfig.PhaseUpgraded && phase != upgradeconfig.PhaseFailed {
					t.Errorf("seed %d, %s: %s", seed, way, phase)
				}
			}
		})
	}
	for _, way := range ways[1:4] {
		for _, what := range []string{"capacity", "ControlPlane", "annotation"} {
			if !testing.Short() && !israce.Enabled && !seen[way+": "+what] {
				t.Errorf("%s: never with an open %s", way, what)
			}
		}
	}
}

// TestRequestGone: an upgrade whose request is gone has failed after five minutes,
// its provider hears of it, and nothing is open.
func TestRequestGone(t *testing.T) {
	for _, u := range []configv1.Update{{}, {Version: "4.20.9", Image: "another"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, func(s *upgradeconfig.Spec) { s.CapacityReservation, s.Type = true, upgradeconfig.ARO })
			h := newHooked(w)
			o := upgrade.Options{Capacity: h, Maintenance: h}
			m, c := w.operator(o)
			must(m.Sync(t.Context()))
			pass := func() upgrade.Progress {
				t.Helper()
				p := must(c.Sync(t.Context()))
				time.Sleep(min(p.After, time.Minute))
				return p
			}
			for w.requested == 0 {
				pass()
			}
			checktest.Same(t, []string{"capacity", "ControlPlane", "annotation"}, h.open())
			w.ask(u)
			// Somebody who corrects himself within the time does no harm.
			for range 3 {
				pass()
			}
			if e := w.entry(); !e.IsFalse(upgradeconfig.FailedUpgrade) || e.Phase != upgradeconfig.PhaseUpgrading {
				t.Errorf("%+v", e)
			}
			w.ask(configv1.Update{Version: target})
			pass()
			if e := w.entry(); !e.IsUnknown(upgradeconfig.FailedUpgrade) {
				t.Errorf("%+v", e)
			}
			w.ask(u)
			gone := time.Now()
			for w.entry().Phase == upgradeconfig.PhaseUpgrading && time.Since(gone) < time.Hour {
				pass()
			}
			if took := time.Since(gone); w.entry().Phase != upgradeconfig.PhaseFailed || took < 5*time.Minute || took > 8*time.Minute || h.open() != nil {
				t.Errorf("after %s: %s, open are %v", took, w.entry().Phase, h.open())
			}
			checktest.Same(t, []upgradeconfig.State{"StateStarted", "StateFailed"}, w.provider.told)
			checktest.Has(t, w.provider.texts[1], "not asked to update to that version any more")
		})
	}
}

// TestClosedBeforeTheNext: an upgrade opens nothing before all of the one before it
// is closed, and what cannot be closed is an error, tried again.
func TestClosedBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, func(s *upgradeconfig.Spec) { s.CapacityReservation = true })
		h := newHooked(w)
		down := false
		w.fault = func(request string, do func() error) error {
			if down && request == "End" {
				return errors.New("alerts cannot be reached")
			}
			if down && request == "Start" {
				t.Error("a window is opened while another upgrade's is open")
			}
			return do()
		}
		o := upgrade.Options{Capacity: h, Maintenance: h}
		m, c := w.operator(o)
		must(m.Sync(t.Context()))
		for w.requested == 0 {
			p := must(c.Sync(t.Context()))
			time.Sleep(p.After)
		}
		down = true
		w.end("moved")
		must(m.Sync(t.Context()))
		for range 50 {
			p, err := c.Sync(t.Context())
			if err == nil || !strings.Contains(err.Error(), "closing what the upgrade to 4.20.3 opened: alerts cannot be reached") || p.After > time.Minute {
				t.Fatalf("%+v, error %v", p, err)
			}
			time.Sleep(p.After)
		}
		if h.capacity.Reserved() {
			t.Error("the window keeps the capacity from being released")
		}
		down = false
		closed := 0
		for range 60 {
			p := must(c.Sync(t.Context()))
			time.Sleep(p.After)
			w.play()
		}
		for _, e := range w.events {
			if e.Type == upgradeconfig.EventClosed && data(e).Version == target {
				closed++
			}
		}
		if closed != 1 || h.open() != nil || w.entry().Phase != upgradeconfig.PhaseUpgraded {
			t.Errorf("%d times closed, open are %v, %+v", closed, h.open(), w.entry())
		}
	})
}

// TestOpenFormats: what cannot be understood is an error, and stays.
func TestOpenFormats(t *testing.T) {
	for text, fault := range map[string]string{
		`{"format":2}`: "annotation clusterupdate.github.io/upgrade-open of the ClusterVersion has format 2; this program reads formats up to 1",
		`{`:            "annotation clusterupdate.github.io/upgrade-open of the ClusterVersion: unexpected end of JSON input",
	} {
		cluster := newCluster(t, memory.Options{}, false)
		must(clusterapi.Modify(t.Context(), cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
			cv.Annotations = map[string]string{annotationOpen: text}
			return nil
		}))
		if _, err := must(upgrade.New(upgrade.Options{API: cluster})).Sync(t.Context()); errText(err) != fault {
			t.Errorf("%s: error %v", text, err)
		}
		checktest.ErrorHas(t, annotationOpen, upgrade.Uninstall(t.Context(), cluster))
		checktest.Equal(t, text, version(t, cluster).Annotations[annotationOpen], "the annotation was changed")
	}
}

// TestServiceLogsAreLate: no upgrade waits for a service log, and each is posted
// once that is possible, after the end too.
func TestServiceLogsAreLate(t *testing.T) {
	logs := []upgradeconfig.State{"StateControlPlaneStartedSL", "StateControlPlaneFinishedSL", "StateWorkerPlaneFinishedSL"}
	for name, until := range map[string]time.Duration{"during the upgrade": 75 * time.Minute, "after its end": 5 * time.Hour} {
		checktest.Bubble(t, name, func(t *testing.T) {
			w := newSite(t, nil)
			start := time.Now()
			w.fault = func(request string, do func() error) error {
				if strings.HasSuffix(request, "SL") && time.Since(start) < until {
					return errors.New("503")
				}
				return do()
			}
			o := upgrade.Options{ServiceLogs: true}
			if errs := w.run(o, 6*time.Hour, never); errs != nil {
				t.Error(errs)
			}
			e := w.entry()
			if e.Phase != upgradeconfig.PhaseUpgraded || e.CompleteTime.Sub(e.StartTime.Time) > 30*time.Minute {
				t.Errorf("the upgrade took from %s to %s", e.StartTime, e.CompleteTime)
			}
			_, c := w.operator(o) // another process
			for time.Since(start) < 6*time.Hour {
				p := must(c.Sync(t.Context()))
				time.Sleep(p.After)
			}
			times := map[upgradeconfig.State]int{}
			for _, s := range w.provider.told {
				times[s]++
			}
			for _, s := range append(logs, startedAndCompleted...) {
				if times[s] != 1 {
					t.Errorf("%s was told %d times", s, times[s])
				}
			}
			if text, ok := w.object().Annotations[annotationSent]; ok {
				t.Errorf("left is %s", text)
			}
		})
	}
}
