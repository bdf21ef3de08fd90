package clusterupdate_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// TestAnotherOneUpdated: an Updater that was away while another one updated the
// cluster finds the new release to be the cluster's own, and keeps it.
func TestAnotherOneUpdated(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync() // it reconciles the first release
		away := s.u
		s.restart(nil)
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.complete(10)
		s.wantHistory(completedHistory)
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = nil })
		s.events = nil
		s.u = away
		away = nil
		for range 5 {
			time.Sleep(10 * time.Minute)
			if r := s.sync(); r.Failure != nil {
				s.Errorf("failure: %v", r.Failure)
			}
			s.wantHistory(completedHistory)
		}
		if r := s.sync(); !r.Done || r.ClusterVersion.Status.Desired.Version != sample.ToVersion {
			s.Errorf("%+v", r)
		}
		for _, e := range s.events {
			if e.Type == clusterupdate.EventTask && dataOf(e).Release.Version == sample.FromVersion {
				s.Fatalf("something of the old release was applied: %s", e.Message)
			}
		}
	})
}

// TestReplaced: of a process that was replaced in the middle of a pass nothing
// is written to the status, and no call begins once it saw the new entry.
func TestReplaced(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		replaced := false
		var late []string
		s.running(func() {
			time.Sleep(10 * time.Second)
			applies := 0
			s.onCall(func(call memory.Call) {
				switch {
				case call.Verb != "Apply":
				case replaced && s.version(s).Status.History[0].Image == "registry.example/other@sha256:1":
					late = append(late, call.GVK.Kind+" "+call.Key.Name)
				default:
					if applies++; applies == 20 && !replaced {
						replaced = true
						s.entry(configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.21.9", Image: "registry.example/other@sha256:1", StartedTime: metav1.Now()})
						time.Sleep(time.Millisecond)
					}
				}
			})
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(time.Minute)
		})
		if !replaced || len(late) > 16 { // calls that had begun
			s.Errorf("replaced: %v, applied after that: %q", replaced, late)
		}
		if h := s.version(s).Status.History; h[0].Version != "4.21.9" || h[0].State != configv1.PartialUpdate {
			s.Errorf("history is %s", historyOf(s.version(s)))
		}
	})
}

// entry puts an entry on top of the history, as another Updater does.
func (s *sampleTest) entry(h configv1.UpdateHistory) {
	s.Helper()
	modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
		cv.Status.History = append([]configv1.UpdateHistory{h}, cv.Status.History...)
		cv.Status.Desired = configv1.Release{Version: h.Version, Image: h.Image}
	})
}

// TestConditionalIsNamed: a version that has risks is reported as such.
func TestConditionalIsNamed(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		s.request(s, configv1.Update{Version: "4.21.0"})
		r := s.sync()
		if r.Done || r.Resolution.Outcome != clusterversion.NotFound || !strings.Contains(r.Resolution.Why, "because of the risks RouterReload") {
			s.Errorf("done=%v, %+v", r.Done, r.Resolution)
		}
		if told := s.saw(clusterupdate.EventRequestIgnored); len(told) != 1 || told[0] != r.Resolution.Why {
			s.Errorf("told: %q", told)
		}
		if got := condition(s.version(s), clusterversion.ConditionInvalid); !strings.Contains(got, "the update must be an available update") {
			s.Errorf("Invalid is %q", got)
		}
	})
}

// TestVerifiedOnce: after a restart, an update that was verified when it was
// accepted goes on though no signature can be found any more, and the condition
// ReleaseAccepted stays as it was.
func TestVerifiedOnce(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.hold["etcd"] = true
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.syncs(3)
		s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
		var seen []string
		before := condition(s.version(s), clusterversion.ConditionReleaseAccepted)
		s.restart(func(o *clusterupdate.Options) {
			o.Verifier = refusing{}
			o.Observe = func(e clusterapi.Event) {
				seen = append(seen, condition(s.version(s), clusterversion.ConditionReleaseAccepted))
			}
		})
		s.hold["etcd"] = false
		s.complete(10)
		for _, c := range seen {
			if c != before {
				s.Fatalf("ReleaseAccepted became %q, was %q", c, before)
			}
		}
		if h := s.version(s).Status.History[0]; !h.Verified {
			s.Errorf("%+v", h)
		}
	})
}

// TestRetrieveTimeout: a deadline of the caller's that is further off does not
// lift the limit of a retrieval.
func TestRetrieveTimeout(t *testing.T) {
	slow := verifierFunc(func(ctx context.Context, _ string) (*signature.Verification, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, tt := range map[string]struct{ limit, deadline, want time.Duration }{
		"the limit":    {4 * time.Minute, 12 * time.Hour, 2 * time.Minute},
		"the deadline": {4 * time.Hour, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Verifier, o.RetrieveTimeout = slow, tt.limit }, func(s *sampleTest) {
				s.sync()
				s.request(s, configv1.Update{Version: sample.ToVersion})
				ctx, cancel := context.WithTimeout(s.Context(), tt.deadline)
				defer cancel()
				start := time.Now()
				r, err := s.u.Sync(ctx)
				if took := time.Since(start); took != tt.want {
					s.Errorf("it took %s, want %s", took, tt.want)
				}
				if tt.deadline < tt.limit {
					if !errors.Is(err, context.DeadlineExceeded) {
						s.Errorf("error is %v", err)
					}
				} else if err != nil || !errors.As(r.Failure, new(*clusterupdate.LoadError)) {
					s.Errorf("%v, %v", r.Failure, err)
				}
			})
		})
	}
}

// TestUpgradeableOfThisPass: the condition Upgradeable says what the rest of the
// same status says.
func TestUpgradeableOfThisPass(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		s.onCall(func(call memory.Call) {
			if call.Verb != "UpdateStatus" || call.GVK.Kind != "ClusterVersion" {
				return
			}
			cv := checktest.Get(clusterapi.FromUnstructured[configv1.ClusterVersion](call.Object))(s)
			progressing := strings.HasPrefix(condition(cv, configv1.OperatorProgressing), "True")
			if updating := strings.Contains(condition(cv, configv1.OperatorUpgradeable), "ClusterVersionUpdating"); updating != progressing {
				s.Errorf("Progressing is %q, Upgradeable %q", condition(cv, configv1.OperatorProgressing), condition(cv, configv1.OperatorUpgradeable))
			}
		})
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.complete(10)
	})
}

// TestDefaultConditions: conditions come in the operator's order.
func TestDefaultConditions(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) {
		o.Payloads = manifest.PayloadSourceFunc(func(context.Context, configv1.Release) (fs.FS, error) { return nil, errors.New("no registry") })
		o.Verifier = nil
	}, func(s *sampleTest) {
		s.sync()
		var types []string
		for _, c := range s.version(s).Status.Conditions {
			types = append(types, string(c.Type))
		}
		want := []string{"RetrievedUpdates", "ReleaseAccepted", "Available", "Failing", "Progressing"}
		types = append([]string(nil), types...)
		if i := len(types); i == 5 && types[0] != "RetrievedUpdates" { // the first write may come before the retrieval
			want = []string{"Available", "Failing", "Progressing", "RetrievedUpdates", "ReleaseAccepted"}
		}
		checktest.Same(s, want, types)
	})
}

// TestWaitsInOnePass: a pass stays while it waits for an operator, and goes on
// where it waited.
func TestWaitsInOnePass(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.hold["etcd"] = true
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		var r clusterupdate.Result
		for range 8 {
			r = s.sync()
			time.Sleep(r.After)
		}
		passes, tasks := 0, 0
		for _, e := range s.events {
			if p := dataOf(e).Pass; p != nil && dataOf(e).Release.Version == sample.ToVersion {
				switch p.Type {
				case runlevel.EventPassStarted:
					passes++
				case runlevel.EventTaskDone:
					tasks++
				}
			}
		}
		if passes != 1 || tasks == 0 || r.Done || r.Failure != nil {
			s.Errorf("%d passes, %d tasks done, %v", passes, tasks, r.Failure)
		}
		if len(r.Awaits) != 1 || r.Awaits[0].Subject != "clusteroperator/etcd" || r.Awaits[0].Since.IsZero() || !r.Awaits[0].Since.Before(time.Now()) {
			s.Errorf("awaits %+v", r.Awaits)
		}
		checktest.SameIn(s, "outcome", clusterversion.UnderWay, r.Resolution.Outcome)
		p := s.u.Explain()
		if n := len(p.Actions); n == 0 || p.Actions[n-1].Step != "apply" || !p.Actions[n-1].Waits || !strings.Contains(p.Actions[n-1].Reason, "etcd") {
			s.Errorf("%+v", p)
		}
		checktest.SameIn(s, "decision", r.Awaits, p.Awaits)
		checktest.SameIn(s, "failures", 0, len(p.Failures))
		for _, e := range s.events {
			if e.Type == clusterupdate.EventWaiting && (e.Err != nil || len(dataOf(e).Awaits) == 0) {
				s.Errorf("a wait is told as a failure: %+v", e)
			}
		}
		p.Actions[0].Reason = "the caller's" // who may change what was returned
		if s.u.Explain().Actions[0].Reason == "the caller's" {
			s.Error("a plan that was returned is the Updater's own")
		}
	})
}

// What is requested is carried out: by the Updater, as by the cluster's own
// operator.
func TestSubmittedUpdate(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		checktest.Get(clusterversion.Submit(s.Context(), s.Cluster, clusterversion.UpdateRequest{ToLatest: true}))(s)
		s.syncs(20)
		s.wantHistory(completedHistory)
		_, err := clusterversion.Submit(s.Context(), s.Cluster, clusterversion.RollbackRequest{})
		if err == nil || !strings.Contains(err.Error(), "rollbacks that change major or minor versions are not recommended") {
			s.Errorf("rollback: %v", err)
		}
	})
}

// dataOf returns the data of an event of an Updater.
func dataOf(e clusterapi.Event) *clusterupdate.EventData {
	return e.Data.(*clusterupdate.EventData)
}
