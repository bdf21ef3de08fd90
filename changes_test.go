package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
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

// running runs the Updater while f does.
func (s *sampleTest) running(f func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- s.u.Run(ctx) }()
	f()
	cancel()
	if err := <-ended; err != nil {
		s.Errorf("Run ended with %v", err)
	}
}

// whenLoading serves the releases, and calls f when the second is first asked
// for.
func whenLoading(f func()) manifest.PayloadSource {
	var once sync.Once
	return manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
		if r.Image == sample.ToImage {
			once.Do(f)
		}
		return sampleSource().Payload(ctx, r)
	})
}

// TestWithdrawnWhileLoading: what is not wanted any more is not accepted,
// whether it changes its mind while the payload is fetched or just after.
func TestWithdrawnWhileLoading(t *testing.T) {
	withdraw := func(s *sampleTest) { s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = nil }) }
	retarget := func(s *sampleTest) {
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = &configv1.Update{Version: "4.20.4"} })
	}
	for name, change := range map[string]func(*sampleTest){"withdrawn": withdraw, "retargeted": retarget} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s late=%v", name, late), func(t *testing.T) {
				withSample(t, nil, func(s *sampleTest) {
					changed := false
					s.restart(func(o *clusterupdate.Options) {
						if !late {
							o.Payloads = whenLoading(func() { change(s) })
							return
						}
						o.Observe = func(e clusterapi.Event) {
							if e.Type == clusterupdate.EventPayloadLoaded && dataOf(e).Release.Version == sample.ToVersion && !changed {
								changed = true
								change(s)
							}
						}
					})
					s.sync()
					s.request(s, configv1.Update{Version: sample.ToVersion})
					s.syncs(4)
					s.wantHistory("4.20.3 Completed")
				})
			})
		}
	}
}

// TestWithdrawnUnderRun: the load is called off, and the status says what runs.
func TestWithdrawnUnderRun(t *testing.T) {
	slow := manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
		if r.Image == sample.ToImage {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Minute):
			}
		}
		return sampleSource().Payload(ctx, r)
	})
	withSample(t, func(o *clusterupdate.Options) { o.Payloads = slow }, func(s *sampleTest) {
		s.running(func() {
			time.Sleep(10 * time.Second)
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(10 * time.Second)
			s.wantCondition(clusterversion.ConditionReleaseAccepted, "Unknown RetrievePayload: Retrieving and verifying payload "+toQuoted)
			s.wantCondition(configv1.OperatorProgressing, "False : Cluster version is 4.20.3")
			s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = nil })
			time.Sleep(time.Second)
			s.wantCondition(clusterversion.ConditionReleaseAccepted, "True PayloadLoaded: Payload loaded "+fromQuoted)
		})
		if failed := s.saw(clusterupdate.EventRetrievePayloadFailed); len(failed) > 0 {
			s.Errorf("called a withdrawn load failed: %q", failed)
		}
	})
}

func TestAfter(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Interval = 2 * time.Minute }, func(s *sampleTest) {
		t := s.T
		if r := s.sync(); r.After != 2*time.Minute {
			t.Errorf("a cluster that is as wanted: look again after %s", r.After)
		}
		s.hold["etcd"] = true
		s.request(s, configv1.Update{Version: sample.ToVersion})
		if r := s.sync(); r.After < 15*time.Second || r.After > 18*time.Second {
			t.Errorf("waiting for an operator: look again after %s, want an eighth of the interval and a bit", r.After)
		}
		s.restart(func(o *clusterupdate.Options) { o.Graph, o.Interval = nil, 2*time.Minute })
		s.hold["etcd"] = false
		if r := s.syncs(5); r.After != 2*time.Minute {
			t.Errorf("without a graph: look again after %s", r.After)
		}
	})
}

// TestStatusThrottle: mere progress is written every 15 seconds.
func TestStatusThrottle(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		writes, applies := 0, 0
		s.running(func() {
			time.Sleep(10 * time.Second)
			s.onCall(func(call memory.Call) {
				switch {
				case call.Verb == "UpdateStatus" && call.GVK.Kind == "ClusterVersion":
					writes++
				case call.Verb == "Apply":
					applies++
					time.Sleep(time.Second)
				}
			})
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(100 * time.Second)
		})
		// Some steps on the way, and six or seven times for the progress.
		if writes > 13 || applies < 80 {
			s.Errorf("%d status writes for %d applies in 100 s", writes, applies)
		}
	})
}

// TestRefusedAndSlow: a refused request does not keep a Sync busy that applies
// something slowly.
func TestRefusedAndSlow(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.restart(func(o *clusterupdate.Options) { o.Verifier = refusing{} })
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		reads := 0
		s.onCall(func(call memory.Call) {
			if call.Verb == "Get" && call.GVK.Kind == "ClusterVersion" {
				if reads++; reads > 1000 {
					panic("Sync spins")
				}
			}
			if call.Verb == "Apply" {
				time.Sleep(time.Second)
			}
		})
		s.sync()
	})
}

// TestPassLimit: a pass that merely runs out of time is not a failure of the
// cluster.
func TestPassLimit(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		s.onCall(func(call memory.Call) {
			if call.Verb == "Apply" {
				time.Sleep(20 * time.Second)
			}
		})
		s.request(s, configv1.Update{Version: sample.ToVersion})
		r := s.sync()
		if !errors.Is(r.Failure, context.DeadlineExceeded) || r.Done {
			s.Errorf("result is %v, done=%v", r.Failure, r.Done)
		}
		s.wantCondition(clusterversion.ConditionFailing, "False :")
		if got := condition(s.version(s), configv1.OperatorProgressing); !strings.HasPrefix(got, "True : Working towards 4.21.1: ") {
			s.Errorf("Progressing is %s", got)
		}
	})
}

// TestImplicitCapability: an object that moves into a disabled capability
// stays managed, also when the update is the first thing a process does.
func TestImplicitCapability(t *testing.T) {
	source := manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
		return changed(r.Image, func(f fstest.MapFS) {
			annotations := "    include.release.openshift.io/self-managed-high-availability: \"true\"\n"
			if r.Image == sample.ToImage {
				annotations += "    capability.openshift.io/name: Console\n"
			}
			f["release-manifests/0000_70_moving_configmap.yaml"] = &fstest.MapFile{Data: []byte(
				"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: moving\n  namespace: default\n  annotations:\n" + annotations)}
		}).Payload(ctx, r)
	})
	for _, fresh := range []bool{false, true} {
		t.Run(fmt.Sprintf("fresh=%v", fresh), func(t *testing.T) {
			prepare := func(o *clusterupdate.Options) { o.Payloads = source }
			withSample(t, prepare, func(s *sampleTest) {
				s.setSpec(func(spec *configv1.ClusterVersionSpec) {
					spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
				})
				s.sync()
				if fresh {
					s.restart(prepare)
				}
				s.request(s, configv1.Update{Version: sample.ToVersion})
				s.syncs(5)
				s.wantHistory(completedHistory)
				s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities,
					"True CapabilitiesImplicitlyEnabled: The following capabilities could not be disabled: Console")
			})
		})
	}
}

// TestActivityInMidPass: an operator that becomes ready while the pass is
// still busy elsewhere lets its part of the pass go on at once.
func TestActivityInMidPass(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		var ready, wentOn time.Time
		passes := 0
		s.restart(func(o *clusterupdate.Options) {
			o.Observe = func(e clusterapi.Event) {
				switch p := dataOf(e).Pass; {
				case p == nil || dataOf(e).Release.Version != sample.ToVersion:
				case p.Type == runlevel.EventPassStarted:
					passes++
				case p.Type == runlevel.EventTaskDone && progressOf(p).Component == "etcd-operator" && progressOf(p).Task.Manifest.GVK().Kind == "ClusterOperator":
					if wentOn.IsZero() {
						wentOn = time.Now()
					}
				case p.Type == runlevel.EventWaiting && progressOf(p).Wait != nil && progressOf(p).Wait.Operator == "etcd" && ready.IsZero():
					ready = time.Now().Add(7 * time.Second)
					go func() {
						time.Sleep(7 * time.Second)
						s.mu.Lock()
						defer s.mu.Unlock()
						s.hold["etcd"] = false
						op := s.next[slices.IndexFunc(s.next, func(op manifest.Operator) bool { return op.Name == "etcd" })]
						checktest.Good(s, s.report(context.WithValue(context.Background(), reactionKey{}, true), op))
					}()
				}
			}
			o.Workers = 0
		})
		s.hold["etcd"] = true
		s.running(func() {
			time.Sleep(time.Minute)
			s.onCall(func(call memory.Call) {
				if call.Verb == "Get" && call.GVK.Kind == "ClusterOperator" && call.Key.Name == "kube-apiserver" {
					time.Sleep(20 * time.Second)
				}
			})
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(10 * time.Minute)
		})
		if ready.IsZero() || wentOn.Sub(ready) > time.Second {
			s.Errorf("etcd was ready at %s, and the pass went on at %s", ready, wentOn)
		}
		s.wantHistory(completedHistory)
	})
}

// TestGatesOfTheNewRelease: a cluster that is on its way to a release goes by
// the gates of that release, as its operator does, and does not begin again
// when it has arrived.
func TestGatesOfTheNewRelease(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		fg := &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		fg.Status.FeatureGates = []configv1.FeatureGateDetails{
			{Version: sample.FromVersion, Enabled: []configv1.FeatureGateAttributes{{Name: "A"}}},
			{Version: sample.ToVersion, Enabled: []configv1.FeatureGateAttributes{{Name: "A"}, {Name: "B"}}},
		}
		u := checktest.Get(clusterapi.ToUnstructured(fg))(s)
		checktest.OK(s, s.Load(u))
		s.running(func() {
			time.Sleep(time.Minute)
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(20 * time.Minute)
		})
		s.wantHistory(completedHistory)
		var completed int
		for _, e := range s.events {
			if e.Type == clusterupdate.EventCompleted && dataOf(e).Release.Version == sample.ToVersion {
				completed++
			}
		}
		if completed != 1 {
			s.Errorf("completed %d times", completed)
		}
	})
}

// TestGatesWhileRefused: the running release goes by new gates also while a
// request that is refused stands.
func TestGatesWhileRefused(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Verifier = refusing{} }, func(s *sampleTest) {
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.sync()
		before := s.version(s).Status.VersionHash
		s.featureGate(configv1.TechPreviewNoUpgrade)
		time.Sleep(time.Second)
		s.syncs(2)
		if after := s.version(s).Status.VersionHash; after == before {
			s.Error("the new gates are not taken over")
		}
		s.wantHistory("4.20.3 Completed")
	})
}

// TestRecreated: a ClusterVersion that is created again describes the cluster as
// it is, not as it was installed.
func TestRecreated(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.syncs(5)
		s.wantHistory(completedHistory)
		gvk := configv1.GroupVersion.WithKind("ClusterVersion")
		orphan := clusterapi.DeleteOptions{Propagation: metav1.DeletePropagationOrphan} // it owns its own definition
		checktest.OK(s, s.Delete(context.Background(), gvk, clusterapi.Key("", "version"), orphan))
		if _, err := s.u.Sync(s.Context()); err == nil {
			s.Error("no error without a cluster version")
		}
		cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
		cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
		checktest.Get(clusterapi.Create(context.Background(), s.Cluster, cv, clusterapi.CreateOptions{}))(s)
		if r := s.syncs(3); !r.Done {
			s.Errorf("%+v", r)
		}
		s.wantHistory("4.21.1 Completed")
		ns := checktest.Get(s.Get(context.Background(), namespaces, clusterapi.Key("", "openshift-etcd-operator")))(s)
		owners := ns.GetOwnerReferences()
		if len(owners) == 0 || owners[len(owners)-1].UID != s.version(s).UID {
			s.Errorf("owners are %+v", owners)
		}
	})
}

// TestAutoYields: automatic mode does not overrule an administrator.
func TestAutoYields(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Auto = true }, func(s *sampleTest) {
		s.block()
		s.syncs(3)
		if got := s.version(s).Spec.DesiredUpdate; got == nil || got.Version != sample.ToVersion {
			s.Fatalf("automatic mode asks for %+v", got)
		}
		s.request(s, configv1.Update{Version: "4.20.4"})
		s.syncs(3)
		if got := s.version(s).Spec.DesiredUpdate; got.Version != "4.20.4" {
			s.Errorf("the request was replaced by %s", got.Version)
		}
	})
}

// TestListsFollowTheVersion: the updates are those of the version that the
// cluster is at.
func TestListsFollowTheVersion(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.complete(5)
		checktest.SameIn(s, "available updates", []string(nil), versions(s.version(s).Status.AvailableUpdates))
	})
}

// TestRunWithoutHistory: what can never get better ends Run.
func TestRunWithoutHistory(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) { cv.Status.History = nil })
		if err := s.u.Run(s.Context()); !errors.Is(err, clusterupdate.ErrNoRelease) {
			s.Errorf("Run ended with %v", err)
		}
	})
}

// TestLastStatus: a Run that is stopped tells how far its pass had come.
func TestLastStatus(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.running(func() {
			time.Sleep(10 * time.Second)
			applies := 0
			s.onCall(func(call memory.Call) {
				if call.Verb == "Apply" {
					applies++
					time.Sleep(time.Second)
				}
			})
			s.request(s, configv1.Update{Version: sample.ToVersion})
			time.Sleep(12*time.Second + time.Millisecond)
		})
		got := condition(s.version(s), configv1.OperatorProgressing)
		if !regexp.MustCompile(`: 1[0-3] of 102 done`).MatchString(got) {
			s.Errorf("Progressing is %s", got)
		}
	})
}

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

// TestRequestIgnored: what changes nothing is not done, and says why: a version that has
// risks, one that no list has, and no version.
func TestRequestIgnored(t *testing.T) {
	const unavailable = "the update must be an available update"
	for _, tt := range []struct {
		version          string
		outcome          clusterversion.Outcome
		why, invalidates string
	}{
		{"4.21.0", clusterversion.NotFound, "because of the risks RouterReload", unavailable},
		{"4.99.0", clusterversion.Invalid, unavailable, unavailable},
		{"v4.21.1", clusterversion.Invalid, "must be a semantic version", "must be a semantic version"},
	} {
		withSample(t, nil, func(s *sampleTest) {
			s.sync()
			s.request(s, configv1.Update{Version: tt.version})
			r := s.sync()
			if r.Done || r.Resolution.Outcome != tt.outcome || !strings.Contains(r.Resolution.Why, tt.why) {
				s.Errorf("done=%v, %+v", r.Done, r.Resolution)
			}
			checktest.Same(s, []string{r.Resolution.Why}, s.saw(clusterupdate.EventRequestIgnored))
			checktest.Has(s, condition(s.version(s), clusterversion.ConditionInvalid), tt.invalidates)
		})
	}
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
