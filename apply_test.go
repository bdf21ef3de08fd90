package clusterupdate_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// TestPassTakesItsTime: a pass that installs may take one interval, another one two.
func TestPassTakesItsTime(t *testing.T) {
	const interval = 2 * time.Minute
	for _, tt := range []struct {
		name       string
		installing bool
		want       time.Duration
	}{
		{"installing", true, interval},
		{"updating", false, 2 * interval},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, nil, func(s *sampleTest) {
				var began, took time.Duration
				start := time.Now()
				s.restart(func(o *clusterupdate.Options) {
					o.Interval, o.Workers = interval, 1
					o.Observe = func(e clusterapi.Event) {
						switch p := dataOf(e).Pass; {
						case p == nil || !tt.installing && dataOf(e).Release.Version != sample.ToVersion:
						case p.Type == runlevel.EventPassStarted:
							began = time.Since(start)
						case p.Type == runlevel.EventPassDone && took == 0:
							took = time.Since(start) - began
						}
					}
				})
				s.onCall(func(call memory.Call) {
					if call.Verb == "Apply" {
						time.Sleep(10 * time.Second)
					}
				})
				if tt.installing {
					modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
						cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: sample.FromVersion, Image: sample.FromImage, StartedTime: metav1.Now()}}
					})
				} else {
					s.request(s, configv1.Update{Version: sample.ToVersion})
				}
				s.running(func() { time.Sleep(20 * time.Minute) })
				if took < tt.want || took > tt.want+10*time.Second {
					s.Errorf("a pass that does not get to its end takes %s, want %s", took, tt.want)
				}
			})
		})
	}
}

// hanging is a cluster in which the Apply of one object does not return, not
// even when its context ends, until hang is closed.
type hanging struct {
	*testCluster
	hang    chan struct{}
	name    string // of the object
	version string // of the release

	mu      sync.Mutex
	applied []string // releases and objects, in the order of the calls
}

func (h *hanging) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	version := u.GetAnnotations()[annotationRelease]
	h.mu.Lock()
	h.applied = append(h.applied, version+" "+u.GetName())
	h.mu.Unlock()
	if u.GetName() == h.name && version == h.version {
		<-h.hang
		return nil, context.DeadlineExceeded
	}
	return h.testCluster.Apply(ctx, u, o)
}

// calls are those since the first n.
func (h *hanging) calls(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.applied[n:])
}

// branchedReleases are toy releases with two components in one runlevel.
func branchedReleases(t *testing.T) []*toyRelease {
	releases := toyReleases(t)
	for i, r := range releases {
		files := maps.Clone(r.files.(fstest.MapFS))
		last := string(files["release-manifests/0000_90_config_00_config.yaml"].Data)
		files["release-manifests/0000_50_extra_00_config.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(last, "name: last", "name: extra", 1))}
		p := checktest.Get(manifest.Load(t.Context(), files, manifest.LoadOptions{Image: r.Image, Filter: manifest.DefaultFilter()}))(t)
		releases[i] = &toyRelease{Release: r.Release, files: files, payload: p}
	}
	return releases
}

// TestCalledOffPassEndsFirst: while a call of a pass that was called off is
// under way, no other pass makes one; decisions go on.
func TestCalledOffPassEndsFirst(t *testing.T) {
	releases := branchedReleases(t)
	for _, tc := range []struct {
		name    string
		change  func(*configv1.ClusterVersionSpec)
		history string
		version string // of the pass that follows
	}{
		{"another release", func(s *configv1.ClusterVersionSpec) { s.DesiredUpdate.Version = "1.0.2" },
			"1.0.2 Partial, 1.0.1 Partial, 1.0.0 Completed", "1.0.2"},
		{"the same release", func(s *configv1.ClusterVersionSpec) {
			s.Overrides = []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "toy", Name: "last", Unmanaged: true}}
		}, "1.0.1 Partial, 1.0.0 Completed", "1.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hanging{hang: make(chan struct{}), name: "extra", version: "1.0.1"}
				h.testCluster = newTestCluster(t, releases[0].payload, releases[1].payload, func(cv *configv1.ClusterVersion) {
					cv.Spec.DesiredUpdate = &configv1.Update{Version: "1.0.1"}
				})
				u := checktest.Get(clusterupdate.New(clusterupdate.Options{
					API: h, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Workers: 4,
				}))(t)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- u.Run(ctx) }()
				time.Sleep(time.Second)
				before := len(h.calls(0))
				if !slices.Contains(h.calls(0), "1.0.1 extra") {
					t.Fatalf("the call did not hang: %v", h.calls(0))
				}
				modify(t, h.Cluster, false, func(cv *configv1.ClusterVersion) { tc.change(&cv.Spec) })
				time.Sleep(10 * time.Minute)
				if got := h.calls(before); len(got) > 0 {
					t.Errorf("calls besides the one that hangs: %v", got)
				}
				cv := h.testCluster.version(t)
				if got := historyOf(cv); got != tc.history || cv.Status.ObservedGeneration != cv.Generation {
					t.Errorf("history is %s, generation %d is seen of %d", got, cv.Status.ObservedGeneration, cv.Generation)
				}
				if !slices.ContainsFunc(u.Explain().Actions, func(a clusterupdate.Action) bool {
					return a.Step == "apply" && a.Waits && a.Reason == "calls of the pass before, which was called off, are under way"
				}) {
					t.Errorf("the plan does not say why nothing is applied: %+v", u.Explain().Actions)
				}
				close(h.hang)
				time.Sleep(time.Second)
				if got := h.calls(before); len(got) == 0 || got[0] != tc.version+" cluster-version-operator" {
					t.Errorf("the next pass made the calls %v", got)
				}
				cancel()
				checktest.Good(t, <-ended)
			})
		})
	}
}

// TestHealsWhileWaiting: what somebody deletes comes back though an operator is
// waited for, be it that operator's own workload in an update, or another
// component's while the cluster is only kept as it is.
func TestHealsWhileWaiting(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, tc := range []struct {
		name   string
		update bool
		waits  string
	}{
		{"updating", true, "etcd"},
		{"reconciling", false, "dns"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), reactionKey{}, true)
			c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
				if tc.update {
					cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
				}
			})
			c.hold[tc.waits] = tc.update
			v := virtually(t, c, sampleOptions(t), reconcile.VirtualOptions{Seed: 1})
			v.after(t, 10*time.Minute)
			if !tc.update {
				checktest.Get(clusterapi.Modify(ctx, c.Cluster, clusterapi.Key("", tc.waits), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
					for i := range co.Status.Conditions {
						if co.Status.Conditions[i].Type == configv1.OperatorDegraded {
							co.Status.Conditions[i].Status = configv1.ConditionTrue
						}
					}
					return nil
				}))(t)
				v.after(t, 10*time.Minute)
			}
			key := clusterapi.Key("openshift-etcd-operator", "etcd-operator")
			checktest.OK(t, c.Delete(ctx, deployment, key, clusterapi.DeleteOptions{}))
			v.after(t, 20*time.Minute)
			if _, err := c.Get(ctx, deployment, key); err != nil {
				t.Errorf("after 20 minutes: %v", err)
			}
			if tc.update && historyOf(c.version(t)) == completedHistory {
				t.Error("the update did not wait")
			}
		})
	}
}

// phases bring a cluster to each phase of its life, with the history that it has then.
var phases = []struct {
	name, history string
	options       func(*clusterupdate.Options)
	reach         func(*sampleTest)
}{
	{"installing", "4.20.3 Partial", nil, func(s *sampleTest) {
		s.hold["dns"] = true
		modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
			cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: sample.FromVersion, Image: sample.FromImage, StartedTime: metav1.Now()}}
		})
		checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, clusterapi.Key("", "dns"), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
			co.Status.Versions, co.Status.Conditions = nil, nil
			return nil
		}))(s)
	}},
	{"reconciling", "4.20.3 Completed", nil, func(*sampleTest) {}},
	{"refused", "4.20.3 Completed", func(o *clusterupdate.Options) { o.Verifier = refusing{} }, func(s *sampleTest) { s.request(s.T, configv1.Update{Version: sample.ToVersion}) }},
	{"updating", "4.21.1 Partial, 4.20.3 Completed", nil, func(s *sampleTest) {
		s.hold["dns"] = true
		s.request(s.T, configv1.Update{Version: sample.ToVersion})
	}},
	{"done", "4.21.1 Completed, 4.20.3 Completed", nil, func(s *sampleTest) { s.request(s.T, configv1.Update{Version: sample.ToVersion}) }},
}

// modify changes the ClusterVersion: its status, or all else.
func modify(t testing.TB, api clusterapi.ClusterAPI, status bool, f func(*configv1.ClusterVersion)) {
	t.Helper()
	o := clusterapi.ModifyOptions{Status: status}
	checktest.Get(clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), o, func(cv *configv1.ClusterVersion) error {
		f(cv)
		return nil
	}))(t)
}

// In every phase a capability is enabled as soon as it is asked for, stays when it is
// not any more, and an override keeps its object as somebody else made it.
func TestCapabilitiesAndOverridesInEveryPhase(t *testing.T) {
	for _, phase := range phases {
		t.Run(phase.name, func(t *testing.T) {
			withSample(t, phase.options, func(s *sampleTest) {
				goOn := func() {
					for range 12 {
						time.Sleep(max(s.sync().After, time.Minute))
					}
				}
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) {
					cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
				})
				phase.reach(s)
				goOn()
				s.wantHistory(phase.history)
				has := func(want bool) {
					s.Helper()
					if got := slices.Contains(s.version(s).Status.Capabilities.EnabledCapabilities, "openshift-samples"); got != want {
						s.Errorf("the capability is enabled: %v", got)
					}
				}
				has(false)
				ask := func(names ...configv1.ClusterVersionCapability) {
					modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Capabilities.AdditionalEnabledCapabilities = names })
					goOn()
				}
				ask("openshift-samples")
				has(true)
				s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities, "False AsExpected: Capabilities match configured spec")
				ask()
				has(true)
				s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities, "True CapabilitiesImplicitlyEnabled: The following capabilities could not be disabled: openshift-samples")

				const overrides = "Disabling ownership via cluster version overrides prevents updates between minor or major versions."
				if got := condition(s.version(s), configv1.OperatorUpgradeable); strings.Contains(got, overrides) {
					s.Errorf("Upgradeable is %s", got)
				}
				deployment := anyDeployment(s)
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) {
					cv.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: deployment.Namespace, Name: deployment.Name, Unmanaged: true}}
				})
				goOn()
				key := clusterapi.Key(deployment.Namespace, deployment.Name)
				checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, key, clusterapi.ModifyOptions{}, func(d *appsv1.Deployment) error {
					seven := int32(7)
					d.Spec.Replicas = &seven
					return nil
				}))(s)
				goOn()
				if d, err := clusterapi.Get[appsv1.Deployment](s.Context(), s.Cluster, key); err != nil || *d.Spec.Replicas != 7 {
					s.Errorf("the object is managed all the same: %v", err)
				}
				got := condition(s.version(s), configv1.OperatorUpgradeable)
				if !strings.HasPrefix(got, "False ") || !strings.Contains(got, overrides) {
					s.Errorf("Upgradeable is %s", got)
				}
				if strings.Contains(phase.history, "Partial") && !strings.HasPrefix(got, "False MultipleReasons: ") {
					s.Errorf("Upgradeable is %s", got)
				}
				s.wantHistory(phase.history)
				modify(s, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Overrides = nil })
				goOn()
				if d, err := clusterapi.Get[appsv1.Deployment](s.Context(), s.Cluster, key); err != nil || *d.Spec.Replicas == 7 {
					s.Errorf("the object is not managed again: %v", err)
				}
				if cv := s.version(s); cv.Status.ObservedGeneration != cv.Generation || cv.Status.VersionHash == "" {
					s.Errorf("generation %d of %d, hash %q", cv.Status.ObservedGeneration, cv.Generation, cv.Status.VersionHash)
				}
			})
		})
	}
}

// anyDeployment is one that the cluster has from its release: of the operator of etcd.
func anyDeployment(s *sampleTest) appsv1.Deployment {
	s.Helper()
	all := checktest.Get(clusterapi.List[appsv1.Deployment](s.Context(), s.Cluster, clusterapi.ListOptions{}))(s)
	for _, d := range all {
		if strings.Contains(d.Namespace, "etcd") {
			return d
		}
	}
	s.Fatal("no Deployment")
	return appsv1.Deployment{}
}

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
// leads to a new order, and a success resets both.
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
