package clusterupdate_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// waitsTest is a cluster that is kept as it is, with an interval of eight minutes and
// no chance in its waits.
type waitsTest struct {
	*testing.T
	c *testCluster
	u *clusterupdate.Updater
	v *reconcile.Virtual
	// of each pass: when it began, and the component that was first
	began []time.Duration
	first []string
}

func newWaitsTest(t *testing.T, change func(*configv1.ClusterVersion)) *waitsTest {
	t.Helper()
	w := &waitsTest{T: t}
	w.c = newTestCluster(t, loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage), change)
	o := sampleOptions(t)
	o.Graph, o.Workers, o.Interval, o.ApplyAlways = nil, 1, 8*time.Minute, true
	o.Logger = logOfPasses(func() { w.began = append(w.began, w.v.Now().Sub(toyStart)) })
	r := virtually(t, w.c, o, reconcile.VirtualOptions{Seed: 1})
	w.u, w.v = r.u, r.Virtual
	components := make(map[string]string)
	for _, m := range loadSample(t, sample.From(), sample.FromImage).Manifests {
		_, component, _ := manifest.ParseName(m.Filename)
		components[m.GVK().Kind+clusterapi.KeyOf(m.Object()).String()] = component
	}
	w.c.called = func(call memory.Call) {
		if component := components[call.GVK.Kind+call.Key.String()]; call.Verb == "Apply" && component != "" && len(w.first) < len(w.began) {
			w.first = append(w.first, component)
		}
	}
	return w
}

// logOfPasses is a log that calls f whenever an Updater begins a pass.
func logOfPasses(f func()) *slog.Logger {
	return slog.New(slog.NewTextHandler(lineWriter(func(line string) {
		if strings.Contains(line, `msg="a pass begins"`) {
			f()
		}
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lineWriter is a function as the output of a log.
type lineWriter func(line string)

func (f lineWriter) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

func (w *waitsTest) run(d time.Duration) {
	w.Helper()
	checktest.OK(w, w.v.RunUntil(w.v.Now().Add(d)))
}

// taken returns when passes began since it was last called, since since.
func (w *waitsTest) taken(since time.Duration) (out []time.Duration) {
	for _, at := range w.began {
		out = append(out, at-since)
	}
	w.began, w.first = nil, nil
	return out
}

func (w *waitsTest) operator(f func(*configv1.ClusterOperatorStatus)) {
	w.Helper()
	ctx := context.WithValue(w.Context(), reactionKey{}, true)
	checktest.Get(clusterapi.Modify(ctx, w.c.Cluster, clusterapi.Key("", "dns"), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		f(&co.Status)
		return nil
	}))(w)
}

func setStatus(s *configv1.ClusterOperatorStatus, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason string) {
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == kind {
			c.Status, c.Reason, c.Message = status, reason, reason
			return
		}
	}
	s.Conditions = append(s.Conditions, configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Reason: reason, Message: reason})
}

func dnsDegraded(status configv1.ConditionStatus) func(*configv1.ClusterOperatorStatus) {
	return func(s *configv1.ClusterOperatorStatus) { setStatus(s, configv1.OperatorDegraded, status, "R") }
}

// TestWaitsBetweenPasses: the waits after failures grow to the interval, each failure
// is followed by another order, and a success begins both anew.
func TestWaitsBetweenPasses(t *testing.T) {
	w := newWaitsTest(t, nil)
	w.run(time.Minute)
	if len(w.first) != 1 {
		t.Fatalf("passes at %v", w.began)
	}
	order := w.first[0] // of the attempt 0
	w.taken(0)
	for round := range 2 {
		w.operator(dnsDegraded(configv1.ConditionTrue)) // which is seen at the time of the next pass
		w.run(40 * time.Minute)
		if len(w.began) < 6 {
			t.Fatalf("round %d: passes at %v", round, w.began)
		}
		orders := map[string]bool{}
		for _, first := range w.first[:4] {
			orders[first] = true
		}
		if w.first[0] != order || len(orders) != 4 {
			t.Errorf("round %d: passes begin with %v, want %s and then others", round, w.first, order)
		}
		const m = time.Minute
		for i, wait := range []time.Duration{m, 2 * m, 4 * m, 8 * m, 8 * m} {
			if got := w.began[i+1] - w.began[i]; got < wait || got > wait*6/5 {
				t.Errorf("round %d: wait %d is %s, want %s and up to a fifth more", round, i, got, wait)
			}
		}
		w.taken(0)
		healed := w.v.Now()
		w.operator(dnsDegraded(configv1.ConditionFalse))
		w.run(20 * time.Minute)
		first := w.began[0]
		if diff := cmp.Diff([]time.Duration{0, 8 * m, 16 * m}, w.taken(first)); diff != "" {
			t.Errorf("round %d: passes after the operator was good again at %s (-want +got):\n%s", round, healed, diff)
		}
	}
}

// TestChangedWorkBeginsAnew: a change of the work begins a pass at once, and the
// waits after failures are the first ones again.
func TestChangedWorkBeginsAnew(t *testing.T) {
	w := newWaitsTest(t, nil)
	w.run(time.Minute)
	order := w.first[0]
	w.operator(dnsDegraded(configv1.ConditionTrue))
	w.run(40 * time.Minute)
	next := func() (at time.Duration) {
		for _, a := range w.u.Explain().Actions {
			if a.Step == "apply" && !a.At.IsZero() {
				at = a.At.Sub(w.v.Now())
			}
		}
		return at
	}
	for next() < 2*time.Minute {
		w.run(time.Minute)
	}
	if n := len(w.taken(0)); n < 6 {
		t.Fatalf("%d passes", n)
	}
	modify(t, w.c.Cluster, false, func(cv *configv1.ClusterVersion) {
		cv.Spec.Overrides = []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "ns", Name: "none", Unmanaged: true}}
	})
	w.run(0)
	// It is brought to the cluster in the order of an update.
	_, first, _ := manifest.ParseName(loadSample(t, sample.From(), sample.FromImage).Manifests[0].Filename)
	if len(w.first) != 1 || w.first[0] != first || first == order {
		t.Errorf("the pass begins with %v, want %q; one that reconciles begins with %s", w.first, first, order)
	}
	if n := len(w.taken(0)); n != 1 || next() < time.Minute || next() > 72*time.Second {
		t.Errorf("%d passes begin at once, the next one comes after %s", n, next())
	}
}

// TestReportOfAnInstallation: an operator that is degraded does not keep an
// installation from its end, but it is told.
func TestReportOfAnInstallation(t *testing.T) {
	w := newWaitsTest(t, func(cv *configv1.ClusterVersion) {
		cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: sample.FromVersion, Image: sample.FromImage, StartedTime: metav1.Now()}}
	})
	w.operator(dnsDegraded(configv1.ConditionTrue))
	w.run(time.Minute)
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), w.c.Cluster, clusterapi.Key("", "version")))(t)
	if n := len(w.taken(0)); n != 1 || historyOf(cv) != "4.20.3 Completed" {
		t.Errorf("after %d passes the history is %s", n, historyOf(cv))
	}
	if got := condition(cv, clusterversion.ConditionFailing); !strings.HasPrefix(got, "True ClusterOperatorDegraded: ") {
		t.Errorf("Failing is %s", got)
	}
	if got := condition(cv, configv1.OperatorAvailable); !strings.HasPrefix(got, "True ") {
		t.Errorf("Available is %s", got)
	}
}

// TestActivity: what an operator reports begins a pass at once where that may get
// further, and else waits for its time.
func TestActivity(t *testing.T) {
	version := func(name, version string) func(*configv1.ClusterOperatorStatus) {
		return func(s *configv1.ClusterOperatorStatus) {
			for i := range s.Versions {
				if s.Versions[i].Name == name {
					s.Versions[i].Version = version
					return
				}
			}
			s.Versions = append(s.Versions, configv1.OperandVersion{Name: name, Version: version})
		}
	}
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason string) func(*configv1.ClusterOperatorStatus) {
		return func(s *configv1.ClusterOperatorStatus) { setStatus(s, kind, status, reason) }
	}
	for _, tt := range []struct {
		name   string
		failed bool // the pass before
		change func(*configv1.ClusterOperatorStatus)
		wakes  bool
	}{
		{"degraded, all was well", false, dnsDegraded(configv1.ConditionTrue), false},
		{"unavailable, all was well", false, condition(configv1.OperatorAvailable, "False", "R"), false},
		{"not degraded any more", true, dnsDegraded(configv1.ConditionFalse), true},
		{"degraded is unknown", true, dnsDegraded(configv1.ConditionUnknown), true},
		{"unavailable", true, condition(configv1.OperatorAvailable, "False", "R"), true},
		{"version of the operator", true, version("operator", "9"), true},
		{"version of another operand", true, version("other", "9"), false},
		{"another reason", true, condition(configv1.OperatorDegraded, "True", "Other"), false},
		{"progressing", true, condition(configv1.OperatorProgressing, "True", "Other"), false},
	} {
		t.Run(fmt.Sprint(tt.name), func(t *testing.T) {
			w := newWaitsTest(t, nil)
			if tt.failed {
				w.operator(dnsDegraded(configv1.ConditionTrue))
			}
			w.run(10 * time.Minute) // a good one, and two minutes; or failures, the last of them three minutes ago
			w.taken(0)
			w.operator(tt.change)
			w.run(time.Second)
			if n := len(w.taken(0)); (n > 0) != tt.wakes {
				t.Errorf("%d passes begin", n)
			}
		})
	}
}
