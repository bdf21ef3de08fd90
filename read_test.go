package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// initially knows what the cluster was installed with, when it has been asked
// often enough.
type initially struct {
	manifest.PayloadSource
	failures, asked int
}

func (s *initially) InitialRelease(context.Context) (configv1.Release, error) {
	if s.asked++; s.asked <= s.failures {
		return configv1.Release{}, errors.New("the registry is away")
	}
	return configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}, nil
}

// TestInitialRelease: where the history is empty, the source is asked what the
// cluster was installed with, again after a failure.
func TestInitialRelease(t *testing.T) {
	noHistory := func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} }
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, run := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, from, to, noHistory)
			source := &initially{PayloadSource: sampleSource(), failures: 3}
			u, err := clusterupdate.New(clusterupdate.Options{API: c.Cluster, Payloads: source, Verifier: signature.Insecure()})
			checktest.OK(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if run {
				err = u.Run(ctx)
			}
			for !run && source.asked < 20 {
				var r clusterupdate.Result
				if r, err = u.Sync(ctx); r.Done {
					break
				}
				time.Sleep(max(r.After, time.Second))
			}
			if got := historyOf(c.version(t)); err != nil || source.asked != 4 || got != "4.20.3 Completed" {
				t.Errorf("run %v: asked %d times; %v; history is %s", run, source.asked, err, got)
			}
		})
	}
}

func infrastructureOf(topology configv1.TopologyMode) *configv1.Infrastructure {
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	i.Status.ControlPlaneTopology = topology
	return i
}

// hostedCluster is a cluster of a topology that notes what is written to it.
func hostedCluster(t *testing.T, topology configv1.TopologyMode, readFails *error) (*memory.Cluster, *[]string) {
	t.Helper()
	var writes []string
	api := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		switch call.Verb {
		case "Get", "List", "Watch":
			if readFails != nil && *readFails != nil && call.GVK.Kind == "Infrastructure" {
				return *readFails
			}
		default:
			writes = append(writes, call.Verb+" "+call.GVK.Kind)
		}
		return do(ctx)
	}})
	for _, o := range []any{cvtest.Requestable(), infrastructureOf(topology)} {
		checktest.OK(t, api.Load(checktest.Get(clusterapi.ToUnstructured(o))(t)))
	}
	return api, &writes
}

// TestHosted: a cluster whose control plane is hosted elsewhere is refused, whatever is
// asked for, and nothing is written.
func TestHosted(t *testing.T) {
	api, writes := hostedCluster(t, configv1.ExternalTopologyMode, nil)
	for _, r := range []clusterversion.Request{clusterversion.UpdateRequest{To: "4.20.4"}, clusterversion.ChannelRequest{Name: "fast-4.20"}, clusterversion.RollbackRequest{}, clusterversion.UpdateRequest{ToMultiArch: true}} {
		_, err := clusterversion.Submit(t.Context(), api, r)
		if refused := new(clusterversion.RefusedError); !errors.As(err, &refused) || refused.Reason != clusterversion.RefusedHosted || err.Error() != clusterversion.ErrHostedControlPlane.Error() {
			t.Errorf("%T: %v", r, err)
		}
	}
	for name, run := range map[string]func(*clusterupdate.Updater, context.Context) error{
		"Run":  func(u *clusterupdate.Updater, ctx context.Context) error { return u.Run(ctx) },
		"Sync": func(u *clusterupdate.Updater, ctx context.Context) error { _, err := u.Sync(ctx); return err },
	} {
		u := checktest.Get(clusterupdate.New(clusterupdate.Options{API: api, Payloads: sampleSource(), Verifier: signature.Insecure()}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if err := run(u, ctx); !errors.Is(err, clusterversion.ErrHostedControlPlane) || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if len(*writes) > 0 {
		t.Errorf("written: %v", *writes)
	}
}

// TestNotHosted: other topologies are not refused, nor is what cannot be read, for ever.
func TestNotHosted(t *testing.T) {
	for _, topology := range []configv1.TopologyMode{"", configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode} {
		api, _ := hostedCluster(t, topology, nil)
		if _, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"}); err != nil {
			t.Errorf("%q: %v", topology, err)
		}
	}
	fault := error(apierrors.NewServiceUnavailable("away"))
	api, _ := hostedCluster(t, configv1.HighlyAvailableTopologyMode, &fault)
	if _, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"}); err != nil {
		t.Errorf("not readable: %v", err)
	}
	from := loadSample(t, sample.From(), sample.FromImage)
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{API: api, Payloads: sampleSource(), Verifier: signature.Insecure(), Own: from.Release}))(t)
	if _, err := u.Sync(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an Updater that does not know: %v", err)
	}
	fault = nil
	if _, err := u.Sync(t.Context()); apierrors.IsServiceUnavailable(err) || errors.Is(err, clusterversion.ErrHostedControlPlane) {
		t.Errorf("once it knows: %v", err)
	}
}

// loseStatus takes the status of the ClusterVersion away.
func (s *sampleTest) loseStatus() {
	s.Helper()
	modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} })
}

// payloadWrites are the writes of objects other than the ClusterVersion.
func (s *sampleTest) payloadWrites() *[]string {
	var out []string
	s.called = func(call memory.Call) {
		switch call.Verb {
		case "Apply", "Create", "Update", "Delete", "UpdateStatus":
			if call.GVK.Kind != "ClusterVersion" {
				out = append(out, fmt.Sprint(call.Verb, " ", call.GVK.Kind, " ", call.Key))
			}
		}
	}
	return &out
}

var (
	ownFrom = configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}
	ownTo   = configv1.Release{Version: sample.ToVersion, Image: sample.ToImage}
)

// TestLostStatus: where the history is empty and operators report versions, the
// cluster is at what they report, or nothing is applied.
func TestLostStatus(t *testing.T) {
	for _, tt := range []struct {
		name     string
		versions map[string]string // of operators; "" is all others
		own      configv1.Release
		history  string
		errors   []string // what the error of Sync names
	}{
		{"as Own", map[string]string{"": sample.FromVersion}, ownFrom, "4.20.3 Completed", nil},
		{"as Own, which has no version", map[string]string{"": sample.FromVersion}, configv1.Release{Image: sample.FromImage}, "4.20.3 Completed", nil},
		{"some report nothing", map[string]string{"": sample.FromVersion, "dns": "none"}, ownFrom, "4.20.3 Completed", nil},
		{"one of no release", map[string]string{"": sample.FromVersion, "dns": "v20240118.00-6b"}, ownFrom, "4.20.3 Completed", nil},
		{"another than Own", map[string]string{"": sample.ToVersion}, ownFrom, "", []string{"4.21.1 (authentication, dns, etcd", "4.20.3"}},
		{"another than Own, which has no version", map[string]string{"": sample.ToVersion}, configv1.Release{Image: sample.FromImage}, "", []string{"4.21.1 (authentication, dns, etcd", "4.20.3"}},
		{"in mid-update", map[string]string{"": sample.FromVersion, "etcd": sample.ToVersion}, ownFrom, "", []string{"4.20.3 (authentication, dns", "4.21.1 (etcd)"}},
		{"in mid-update to Own", map[string]string{"": sample.FromVersion, "etcd": sample.ToVersion}, ownTo, "", []string{"4.20.3 (authentication, dns", "4.21.1 (etcd)"}},
		{"without Own", map[string]string{"": sample.FromVersion}, configv1.Release{}, "", []string{"set Options.Own", "4.20.3 (authentication, dns, etcd"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Own = tt.own }, func(s *sampleTest) {
				for _, op := range loadSample(s, sample.From(), sample.FromImage).Operators() {
					version, ok := tt.versions[op.Name]
					if !ok {
						version = tt.versions[""]
					}
					reportVersion(s, s.Cluster, op.Name, strings.TrimPrefix(version, "none"))
				}
				s.loseStatus()
				writes := s.payloadWrites()
				var err error
				for range 4 {
					var r clusterupdate.Result
					if r, err = s.u.Sync(s.Context()); r.Done {
						break
					}
					time.Sleep(max(r.After, time.Minute))
				}
				s.wantHistory(tt.history)
				if len(tt.errors) == 0 {
					if err != nil || s.version(s).Status.History[0].Verified {
						s.Errorf("error %v, history %v", err, s.version(s).Status.History)
					}
					return
				}
				for _, want := range tt.errors {
					if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, clusterupdate.ErrNoRelease) {
						s.Errorf("error is %v, want %q in it", err, want)
					}
				}
				if len(*writes) > 0 {
					s.Errorf("wrote %q", *writes)
				}
				if tt.own.Image != "" {
					s.wantCondition(clusterversion.ConditionFailing, "True UnknownRelease: "+rootOf(err))
				}
			})
		})
	}
}

// rootOf is the text of the innermost error.
func rootOf(err error) string {
	for err != nil {
		next := errors.Unwrap(err)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			next = joined.Unwrap()[0]
		}
		if next == nil {
			return err.Error()
		}
		err = next
	}
	return ""
}

// TestUnknownOperators: operators that cannot be listed are not known to report
// nothing.
func TestUnknownOperators(t *testing.T) {
	for _, fault := range []error{errors.New("away"), clusterapi.ErrNotCollected} {
		withSample(t, func(o *clusterupdate.Options) { o.Own = ownFrom }, func(s *sampleTest) {
			s.fault = func(call memory.Call) error {
				if call.Verb == "List" && call.GVK.Kind == "ClusterOperator" {
					return fault
				}
				return nil
			}
			s.loseStatus()
			writes := s.payloadWrites()
			if _, err := s.u.Sync(s.Context()); !errors.Is(err, fault) {
				s.Errorf("error is %v", err)
			}
			s.wantHistory("")
			if len(*writes) > 0 {
				s.Errorf("wrote %q", *writes)
			}
		})
	}
}

// TestLostInMidUpdate: a status that is lost in mid-update stops everything until
// the image of a release is requested. Then the update goes on in its order, as an
// update and not as an installation, also in a process that starts later.
func TestLostInMidUpdate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		withSample(t, func(o *clusterupdate.Options) { o.Own = ownFrom }, func(s *sampleTest) {
			s.hold["dns"] = true
			s.request(s.T, configv1.Update{Version: sample.ToVersion})
			s.syncs(3)
			s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
			s.request(s.T, configv1.Update{})
			s.loseStatus()
			for range 3 {
				if _, err := s.u.Sync(s.Context()); err == nil || !strings.Contains(err.Error(), "4.20.3 (dns") {
					s.Errorf("error is %v", err)
				}
				time.Sleep(time.Minute)
			}
			s.wantHistory("")

			s.request(s.T, configv1.Update{Image: sample.ToImage})
			s.syncs(3)
			s.wantHistory("4.21.1 Partial")
			if restart {
				s.restart(nil)
			}
			if r := s.syncs(3); r.Done {
				s.Error("it is done while dns is at 4.20.3")
			}
			s.wantHistory("4.21.1 Partial")
			s.hold["dns"] = false
			s.reportAll("dns")
			if r := s.syncs(5); !r.Done {
				s.Error(r.Failure)
			}
			s.wantHistory("4.21.1 Completed")
		})
	}
}

// TestLostRequestIsChecked: what is requested after the status was lost in
// mid-update is verified, by the keys of what the cluster runs, and an older release
// is a rollback.
func TestLostRequestIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name   string
		own    configv1.Release
		verify signature.Verifier
		image  string
		want   string
	}{
		{"not signed", ownFrom, refusing{}, sample.ToImage, "False RetrievePayload"},
		{"no keys", configv1.Release{Version: "4.19.1", Image: "registry.example/other@sha256:" + strings.Repeat("0", 64)}, nil, sample.ToImage, "False RetrievePayload"},
		{"rollback", ownFrom, signature.Insecure(), sample.FromImage, "False PreconditionChecks"},
		{"goes on", ownFrom, signature.Insecure(), sample.ToImage, "True PayloadLoaded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Own, o.Verifier = tt.own, tt.verify }, func(s *sampleTest) {
				reportVersion(s, s.Cluster, "etcd", sample.ToVersion)
				s.loseStatus()
				s.request(s.T, configv1.Update{Image: tt.image})
				for range 3 {
					_, _ = s.u.Sync(s.Context())
					time.Sleep(time.Minute)
				}
				if got := condition(s.version(s), clusterversion.ConditionReleaseAccepted); !strings.HasPrefix(got, tt.want) {
					s.Errorf("ReleaseAccepted is %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestHistoryLostByAProcess: a process that has seen a completed release never goes
// back to an installation.
func TestHistoryLostByAProcess(t *testing.T) {
	for name, lose := range map[string]func(s *sampleTest){
		"history": func(s *sampleTest) {
			modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) { cv.Status.History = nil })
		},
		"completed entries": func(s *sampleTest) {
			modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
				cv.Status.History = cv.Status.History[:1]
				cv.Status.History[0].State = configv1.PartialUpdate
			})
		},
		"status and operators": func(s *sampleTest) {
			for _, op := range s.next {
				checktest.OK(s, s.Delete(s.Context(), configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.Key("", op.Name), clusterapi.DeleteOptions{}))
			}
			s.loseStatus()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSample(t, nil, func(s *sampleTest) {
				s.request(s.T, configv1.Update{Version: sample.ToVersion})
				s.complete(5)
				lose(s)
				s.events = nil
				s.syncs(3)
				for _, e := range s.events {
					if p := dataOf(e).Pass; p != nil && dataOf(e).Release.Version != sample.ToVersion {
						s.Errorf("a pass over %s", dataOf(e).Release.Version)
					}
				}
				for _, a := range s.u.Explain().Actions {
					if strings.Contains(a.Reason, "Initializing") {
						s.Errorf("plans: %s", a.Reason)
					}
				}
				if got := historyOf(s.version(s)); !strings.HasPrefix(got, "4.21.1 ") {
					s.Errorf("history is %s", got)
				}
			})
		})
	}
}

// TestPartialEntryIsNotOwn: Own does not take the place of an entry that was begun
// when operators report something else.
func TestPartialEntryIsNotOwn(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Own = ownFrom }, func(s *sampleTest) {
		for _, op := range s.next {
			reportVersion(s, s.Cluster, op.Name, sample.ToVersion)
		}
		modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
			cv.Status.Desired = ownTo
			cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: ownTo.Version, Image: ownTo.Image, StartedTime: metav1.Now()}}
		})
		s.syncs(4)
		s.wantHistory("4.21.1 Completed")
	})
}

// TestUpdateOfAnUnfinishedRelease: while operators report another release than the
// newest entry, it is an update, even if no entry was ever completed: operators are
// awaited, also by a process that starts later.
func TestUpdateOfAnUnfinishedRelease(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		s.hold["dns"] = true
		entry := func(r configv1.Release) configv1.UpdateHistory {
			now := metav1.Now()
			return configv1.UpdateHistory{State: configv1.PartialUpdate, Version: r.Version, Image: r.Image, StartedTime: now, CompletionTime: &now}
		}
		modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
			cv.Status.Desired = ownTo
			cv.Status.History = []configv1.UpdateHistory{entry(ownTo), entry(ownFrom)}
			cv.Status.History[0].CompletionTime = nil
		})
		if r := s.syncs(4); r.Done {
			s.Error("it is done while dns is at 4.20.3")
		}
		s.wantHistory("4.21.1 Partial, 4.20.3 Partial")
		s.hold["dns"] = false
		s.reportAll("dns")
		if r := s.syncs(5); !r.Done {
			s.Error(r.Failure)
		}
		s.wantHistory("4.21.1 Completed, 4.20.3 Partial")
	})
}
