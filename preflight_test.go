package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// preflightsOf describes what the ClusterVersion has of preflights.
func (s *sampleTest) preflightsOf() string {
	var all []string
	for _, p := range clusterversion.Preflights(&s.version(s).Status) {
		all = append(all, fmt.Sprintf("%s %s %s", p.Release.Version, p.State, strings.Join(p.Risks(), " ")))
	}
	return strings.Join(all, "; ")
}

// failingCheck is a check that breaks or does not know.
type failingCheck struct{ err error }

func (failingCheck) Name() string                          { return "Own" }
func (failingCheck) Applies(preconditions.Transition) bool { return true }
func (c failingCheck) Run(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
	if c.err == nil {
		panic("made to break")
	}
	return nil, c.err
}

// TestPreflight: a preflight ends with what its checks found, without an update; the same
// request without a mode is one.
func TestPreflight(t *testing.T) {
	const sources = " CriticalAlertsUnknownFor4_21_1 EtcdBackupUnknownFor4_21_1 DisconnectedUnknownFor4_21_1"
	// The sample has neither pools nor an infrastructure: what needs them is not known.
	for _, tt := range []struct {
		name    string
		request configv1.Update
		change  func(*clusterupdate.Options)
		prepare func(*sampleTest)
		state   string
		has     string // among the risks
		updates bool   // afterwards, as without a preflight
	}{
		{name: "by version", request: configv1.Update{Version: sample.ToVersion}, state: "Completed", has: sources, updates: true},
		{name: "by image", request: configv1.Update{Image: sample.ToImage}, state: "Completed", has: sources},
		{name: "automatic mode", request: configv1.Update{Version: sample.ToVersion}, state: "Completed",
			prepare: func(s *sampleTest) { s.restart(func(o *clusterupdate.Options) { o.Auto = true }) }},
		{name: "blocked", request: configv1.Update{Version: sample.ToVersion}, state: "Completed",
			prepare: (*sampleTest).block, has: "ClusterVersionUpgradeable"},
		{name: "not signed", request: configv1.Update{Version: sample.ToVersion}, state: "Failed", has: "PreflightIncompleteFor4_21_1",
			change: func(o *clusterupdate.Options) { o.Verifier = refusing{} }},
		{name: "not signed, and forced", request: configv1.Update{Image: sample.ToImage, Force: true}, state: "Completed",
			has: "ReleaseNotVerifiedFor4_21_1", change: func(o *clusterupdate.Options) { o.Verifier = refusing{} }},
		{name: "a check that does not know", request: configv1.Update{Version: sample.ToVersion}, state: "Completed",
			has: "OwnUnknownFor4_21_1",
			change: func(o *clusterupdate.Options) {
				o.Checks = []preconditions.Check{failingCheck{errors.New("no answer")}}
			}},
		{name: "a check that breaks", request: configv1.Update{Version: sample.ToVersion}, state: "Failed",
			has:    "PreflightIncompleteFor4_21_1",
			change: func(o *clusterupdate.Options) { o.Checks = []preconditions.Check{failingCheck{}} }},
		{name: "a preview", request: configv1.Update{Version: sample.ToVersion}, state: "Completed", has: "PreviewGoneFor4_21_1",
			change: func(o *clusterupdate.Options) {
				o.PreflightPreview = func(_ context.Context, from, to *manifest.Payload) ([]preconditions.Finding, error) {
					return []preconditions.Finding{{Reason: "Gone", Message: from.Release.Version + " to " + to.Release.Version}}, nil
				}
			}},
		{name: "a preview that breaks", request: configv1.Update{Version: sample.ToVersion}, state: "Completed", has: "PreviewUnknownFor4_21_1",
			change: func(o *clusterupdate.Options) {
				o.PreflightPreview = func(context.Context, *manifest.Payload, *manifest.Payload) ([]preconditions.Finding, error) {
					panic("made to break")
				}
			}},
		{name: "a payload that is not there", request: configv1.Update{Image: "registry.example/release@sha256:" + strings.Repeat("0", 64)},
			state: "Failed", has: "PreflightIncompleteForsha256_000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, tt.change, func(s *sampleTest) {
				s.complete(5)
				if tt.prepare != nil {
					tt.prepare(s)
				}
				before, progressing := s.objects(), condition(s.version(s), configv1.OperatorProgressing)
				u := tt.request
				u.Mode = configv1.UpdateModePreflight
				s.request(s.T, u)
				for range 10 {
					time.Sleep(max(s.sync().After, time.Second))
				}
				if got := s.preflightsOf(); !strings.Contains(got, " "+tt.state+" ") || !strings.Contains(got, tt.has) {
					s.Errorf("found %q", got)
				}
				s.wantHistory("4.20.3 Completed")
				s.wantCondition(configv1.OperatorProgressing, progressing)
				if got := s.objects(); got != before {
					s.Errorf("applied:\n%s\nbefore:\n%s", got, before)
				}
				if !tt.updates {
					return
				}
				s.request(s.T, tt.request) // without the feature gate, risks do not block
				s.complete(10)
				s.wantHistory(completedHistory)
				checktest.Equal(s, "", s.preflightsOf(), "found at the release before")
			})
		})
	}
}

// TestPreflightBlocks: with the feature gate, what a preflight of a release found blocks the
// update to it until it is accepted, from whatever registry the release comes.
func TestPreflightBlocks(t *testing.T) {
	const mirror = "mirror.example/ocp/release"
	change := func(o *clusterupdate.Options) {
		o.PreflightChecks = []preconditions.Check{failingCheck{errors.New("no answer")}}
		o.Payloads = manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
			r.Image = strings.Replace(r.Image, mirror, "registry.example/ocp/release", 1)
			return sampleSource().Payload(ctx, r)
		})
	}
	withSample(t, change, func(s *sampleTest) {
		s.featureGate("", "ClusterUpdateAcceptRisks")
		s.complete(5)
		s.request(s.T, configv1.Update{Version: sample.ToVersion, Mode: configv1.UpdateModePreflight})
		s.syncs(5)
		_, digest, _ := strings.Cut(sample.ToImage, "@")
		update := configv1.Update{Image: mirror + "@" + digest}
		s.request(s.T, update)
		const text = "the preflight of 4.21.1 found risks that are not accepted: OwnUnknownFor4_21_1"
		checktest.ErrorHas(s.T, text, s.syncs(10).Failure)
		update.AcceptRisks = []configv1.AcceptRisk{{Name: "OwnUnknownFor4_21_1"}}
		s.request(s.T, update)
		s.complete(10)
		s.wantHistory(completedHistory)
	})
}

// TestPreflightRepeats: while it is requested, a preflight runs at least once an hour, and at
// most once in ten minutes.
func TestPreflightRepeats(t *testing.T) {
	type minutely = func(t *testing.T, r *preflightRun, n int)
	budget := func(change func(b *policyv1.PodDisruptionBudget, n int32), status bool) minutely {
		return func(t *testing.T, r *preflightRun, n int) {
			o := clusterapi.ModifyOptions{Status: status}
			checktest.Get(clusterapi.Modify(t.Context(), r.testCluster, clusterapi.Key("toy", "budget"), o,
				func(b *policyv1.PodDisruptionBudget) error {
					change(b, int32(n%2))
					return nil
				}))(t)
		}
	}
	request := configv1.Update{Version: "1.0.1", Mode: configv1.UpdateModePreflight}
	for _, tt := range []struct {
		name     string
		happens  minutely
		from, to int // runs in three hours
	}{
		{name: "at rest", happens: func(*testing.T, *preflightRun, int) {}, from: 3, to: 4},
		{name: "an operator changes", from: 15, to: 19, happens: func(t *testing.T, r *preflightRun, n int) {
			checktest.Get(clusterapi.Modify(t.Context(), r.testCluster, clusterapi.Key("", "alpha"), clusterapi.ModifyOptions{Status: true},
				func(co *configv1.ClusterOperator) error {
					status := []configv1.ConditionStatus{configv1.ConditionTrue, configv1.ConditionFalse}[n%2]
					co.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
						{Type: configv1.OperatorUpgradeable, Status: status, LastTransitionTime: metav1.NewTime(r.Now())},
					}
					return nil
				}))(t)
		}},
		{name: "what is wanted of an object that a check reads changes", from: 15, to: 19,
			happens: budget(func(b *policyv1.PodDisruptionBudget, n int32) {
				b.Spec.MinAvailable = new(intstr.FromInt32(n))
			}, false)},
		{name: "its status changes", from: 3, to: 4,
			happens: budget(func(b *policyv1.PodDisruptionBudget, n int32) { b.Status.DisruptionsAllowed = n }, true)},
		{name: "what is wanted of an object of the payload changes", from: 15, to: 19,
			happens: func(t *testing.T, r *preflightRun, n int) {
				checktest.Get(clusterapi.Modify(t.Context(), r.testCluster, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{},
					func(i *configv1.Infrastructure) error {
						i.Spec.CloudConfig.Name = fmt.Sprint(n)
						return nil
					}))(t)
			}},
		{name: "the process starts again", from: 15, to: 19, happens: func(_ *testing.T, r *preflightRun, _ int) { r.Crash("updater") }},
		{name: "it is requested again", from: 15, to: 19, happens: func(t *testing.T, r *preflightRun, n int) {
			if n%2 == 0 {
				r.request(t, request)
				return
			}
			checktest.Get(clusterversion.Submit(t.Context(), r.testCluster, clusterversion.ClearPreflight{}))(t)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newPreflightRun(t, toyReleases(t), false, 1)
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "toy", Name: "budget"}}
			checktest.Get(clusterapi.Create(t.Context(), r.testCluster, b, clusterapi.CreateOptions{}))(t)
			infra := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
			checktest.Get(clusterapi.Create(t.Context(), r.testCluster, infra, clusterapi.CreateOptions{}))(t)
			r.request(t, request)
			for n := range 180 {
				r.after(t, time.Minute)
				tt.happens(t, r, n)
			}
			if r.runs < tt.from || r.runs > tt.to {
				t.Errorf("%d runs in three hours", r.runs)
			}
		})
	}
}

// TestPreflightAges: on clusters of all ages the server refuses nothing that is written about
// a preflight; one that does not know the mode is not asked.
func TestPreflightAges(t *testing.T) {
	request := clusterversion.PreflightRequest{To: sample.ToVersion}
	ages := []string{"4.12", "4.14", "4.15", "4.17", "4.19", "4.22", "5.0", "5.0-DevPreviewNoUpgrade", "5.0-CustomNoUpgrade"}
	for i, age := range append(ages, "short texts", "no conditional updates", "short lists") {
		t.Run(age, func(t *testing.T) {
			definition := aged(t, "5.0-CustomNoUpgrade")
			switch age {
			case "short texts":
				statusOf(definition, "conditionalUpdates", "[]", "conditions", "[]", "message")["maxLength"] = int64(40)
				statusOf(definition, "conditionalUpdates", "[]", "risks", "[]", "conditions", "[]", "message")["maxLength"] = int64(40)
			case "no conditional updates":
				delete(statusOf(definition)["properties"].(map[string]any), "conditionalUpdates")
			case "short lists":
				statusOf(definition, "conditionalUpdates", "[]", "risks")["maxItems"] = int64(1)
			default:
				definition = aged(t, age)
			}
			from := withDefinition(t, sample.From(), definition)
			payloads := map[string]fs.FS{sample.FromImage: from, sample.ToImage: sample.To()}
			own, to := loadSample(t, from, sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
			synctest.Test(t, func(t *testing.T) {
				s := &sampleTest{T: t, testCluster: newTestCluster(t, own, to, nil)}
				s.define(definition)
				refused, writes := 0, 0
				s.restart(func(o *clusterupdate.Options) {
					o.API = &witness{Cluster: s.Cluster, wrote: func(err error) {
						writes++
						if apierrors.IsInvalid(err) {
							refused++
						}
					}}
					o.Payloads = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) { return payloads[r.Image], nil })
				})
				s.complete(5)
				_, err := clusterversion.Submit(t.Context(), s.Cluster, request)
				if i < 7 {
					checktest.ErrorHas(t, "forecast.Update", err)
					if u := s.version(t).Spec.DesiredUpdate; u != nil {
						t.Errorf("requested: %+v", u)
					}
					return
				}
				checktest.OK(t, err)
				for range 4 {
					time.Sleep(s.sync().After)
				}
				want := age != "no conditional updates" && age != "short lists"
				if got := s.preflightsOf(); want != strings.HasPrefix(got, "4.21.1 Completed ") {
					t.Errorf("found %q", got)
				}
				if n := len(s.version(t).Status.AvailableUpdates); n != 2 {
					t.Errorf("%d available updates", n)
				}
				before := writes
				for range 4 { // nothing more to do
					time.Sleep(s.sync().After)
				}
				if writes > before {
					t.Errorf("%d statuses of a cluster at rest", writes-before)
				}
				if refused > 0 {
					t.Errorf("%d statuses were refused", refused)
				}
				s.wantHistory("4.20.3 Completed")
			})
		})
	}
}

// preflightRun is a toy cluster in virtual time whose preflights are counted.
type preflightRun struct {
	*virtualRun
	runs int // that have begun
}

func newPreflightRun(t *testing.T, releases []*toyRelease, auto bool, seed uint64) *preflightRun {
	r := &preflightRun{}
	o := toyOptions(t, releases)
	o.Interval, o.Workers, o.Auto, o.PreflightChecks = 3*time.Minute, 1, auto, rules.Default(rules.Options{})
	o.Observe = func(e clusterapi.Event) {
		if e.Type == clusterupdate.EventPreflight && strings.HasPrefix(e.Message, "checking ") {
			r.runs++
		}
	}
	c := newTestCluster(t, releases[0].payload, releases[1].payload, nil)
	r.virtualRun = virtually(t, c, o, reconcile.VirtualOptions{Seed: seed})
	return r
}

// TestPreflightKilled ends the process at each call from the request of a preflight until it
// has ended, before the call takes effect and after it: another process finishes it.
func TestPreflightKilled(t *testing.T) {
	step := 1
	if israce.Enabled {
		step = 7
	}
	for _, after := range []bool{false, true} {
		r := newPreflightRun(t, toyReleases(t), false, 1)
		r.after(t, 10*time.Minute)
		k := killer{after: after, v: r.Virtual}
		r.fault = k.call
		n, reached := 1, true
		for ; reached && !t.Failed(); n += step {
			r.after(t, 11*time.Minute) // from the last preflight
			began := r.Now()
			r.request(t, configv1.Update{Version: "1.0.1", Mode: configv1.UpdateModePreflight})
			k.made, k.at = 0, n
			r.after(t, 2*time.Minute)
			reached, k.at = k.made >= n, 0
			cv := r.version(t)
			found := clusterversion.Preflights(&cv.Status)
			if len(found) != 1 || found[0].State != clusterversion.PreflightCompleted || found[0].Ended.Before(began) {
				t.Errorf("call %d, after=%v: found %+v", n, after, found)
			}
			checktest.Equal(t, "1.0.0 Completed", historyOf(cv), "call %d", n)
			checktest.Get(clusterversion.Submit(t.Context(), r.testCluster.Cluster, clusterversion.ClearPreflight{}))(t)
		}
		t.Logf("%d calls", n)
		if n < 30 {
			t.Errorf("the preflight took only %d calls", n)
		}
	}
}

// slowCheck finds nothing until it is told to.
type slowCheck struct{ wait time.Duration }

func (slowCheck) Name() string                          { return "Slow" }
func (slowCheck) Applies(preconditions.Transition) bool { return true }
func (c slowCheck) Run(ctx context.Context, _ *preconditions.Input) ([]preconditions.Finding, error) {
	if c.wait > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(c.wait):
			return nil, nil
		}
	}
	return []preconditions.Finding{{Severity: preconditions.Blocking, Reason: "Broken", Message: "it is broken"}}, nil
}

// TestPreflightAgain: another process checks again, and until it is done what was found
// stays, even if the request is taken back meanwhile.
func TestPreflightAgain(t *testing.T) {
	const broken = "SlowBrokenFor4_21_1"
	for _, cleared := range []bool{false, true} {
		withSample(t, func(o *clusterupdate.Options) { o.Checks = []preconditions.Check{slowCheck{}} }, func(s *sampleTest) {
			s.complete(5)
			s.request(s.T, configv1.Update{Version: sample.ToVersion, Mode: configv1.UpdateModePreflight})
			for range 10 {
				time.Sleep(max(s.sync().After, time.Second))
			}
			checktest.Has(s, s.preflightsOf(), broken)
			time.Sleep(10 * time.Minute)
			s.restart(func(o *clusterupdate.Options) { o.Checks = []preconditions.Check{slowCheck{30 * time.Second}} })
			ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
			_, _ = s.u.Sync(ctx)
			cancel()
			checktest.Has(s, s.preflightsOf(), broken)
			if cleared {
				checktest.Get(clusterversion.Submit(s.Context(), s.Cluster, clusterversion.ClearPreflight{}))(s)
			}
			for range 10 {
				time.Sleep(max(s.sync().After, time.Minute))
			}
			checktest.Equal(s, cleared, strings.Contains(s.preflightsOf(), broken), "found %s", s.preflightsOf())
			checktest.Has(s, s.preflightsOf(), "Completed")
		})
	}
}

// TestPreflightNeverUpdates: whatever an administrator does, as long as the mode is set no
// release is accepted, and no object of another release than the newest entry of the history
// is written.
func TestPreflightNeverUpdates(t *testing.T) {
	releases := toyReleases(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := newPreflightRun(t, releases, rapid.Bool().Draw(rt, "auto"), rapid.Uint64().Draw(rt, "seed"))
		defer c.Close()
		newest := ""
		check := func() {
			cv := c.version(rt)
			h := cv.Status.History
			if now := fmt.Sprint(h[0].Version, h[0].StartedTime); isPreflight(cv) && newest != "" && now != newest {
				rt.Errorf("%s was accepted while a check was requested", now)
			} else {
				newest = now
			}
		}
		c.onCall(func(call memory.Call) {
			if call.Object == nil || call.Object.GetAnnotations()[annotationRelease] == "" {
				return
			}
			if v := call.Object.GetAnnotations()[annotationRelease]; v != c.version(rt).Status.History[0].Version {
				rt.Errorf("%s of %s was written", call.Key.Name, v)
			}
		})
		wait := func(longest int) {
			c.after(rt, time.Duration(rapid.IntRange(1, longest).Draw(rt, "seconds"))*time.Second)
		}
		wait(60)
		for range rapid.IntRange(1, 6).Draw(rt, "actions") {
			r := releases[rapid.IntRange(0, len(releases)-1).Draw(rt, "release")]
			switch rapid.IntRange(0, 5).Draw(rt, "action") {
			case 0, 1, 2:
				u := configv1.Update{Version: r.Version, Mode: configv1.UpdateModePreflight, Force: rapid.Bool().Draw(rt, "force")}
				if rapid.Bool().Draw(rt, "image") {
					u.Image = r.Image
				}
				c.request(t, u)
				newest = ""
			case 3:
				c.request(t, configv1.Update{Version: r.Version, Image: r.Image, Force: true})
			case 4:
				checktest.Get(clusterversion.Submit(context.Background(), c.testCluster.Cluster, clusterversion.ClearPreflight{}))(rt)
			default:
				c.Crash("updater")
			}
			check()
			wait(1200)
			check()
		}
	})
}

func isPreflight(cv *configv1.ClusterVersion) bool {
	return cv.Spec.DesiredUpdate != nil && cv.Spec.DesiredUpdate.Mode != ""
}
