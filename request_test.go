package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/signature"
)

// refusing finds no signature.
type refusing struct{}

func (refusing) Verify(_ context.Context, digest string) (*signature.Verification, error) {
	return nil, errors.New("no signature of " + digest)
}

// sampleTest is an Updater on a cluster that runs the first built-in release.
type sampleTest struct {
	*testing.T
	*testCluster
	u      *clusterupdate.Updater
	events []clusterapi.Event
}

// withSample runs f in a bubble of virtual time.
func withSample(t *testing.T, change func(*clusterupdate.Options), f func(*sampleTest)) {
	t.Helper()
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	synctest.Test(t, func(t *testing.T) {
		s := &sampleTest{T: t, testCluster: newTestCluster(t, from, to, nil)}
		s.restart(change)
		f(s)
	})
}

// restart begins with a new Updater, as a new process does.
func (s *sampleTest) restart(change func(*clusterupdate.Options)) {
	s.Helper()
	o := clusterupdate.Options{
		PreflightChecks: rules.Default(rules.Options{}),
		API:             s.Cluster, Payloads: sampleSource(), Graph: sampleGraph(s), Verifier: signature.Insecure(), Workers: 1,
		Observe: func(e clusterapi.Event) { s.events = append(s.events, e) },
	}
	if change != nil {
		change(&o)
	}
	u := checktest.Get(clusterupdate.New(o))(s)
	s.u = u
}

func (s *sampleTest) sync() clusterupdate.Result {
	s.Helper()
	r := checktest.Get(s.u.Sync(s.Context()))(s)
	return r
}

// syncs goes on until the cluster is as wanted, or for n times.
func (s *sampleTest) syncs(n int) (r clusterupdate.Result) {
	s.Helper()
	for range n {
		if r = s.sync(); r.Done {
			break
		}
		time.Sleep(max(r.After, time.Second))
	}
	return r
}

// complete does as syncs, and ends the test if the cluster is not as wanted then.
func (s *sampleTest) complete(n int) {
	s.Helper()
	if r := s.syncs(n); !r.Done {
		s.Fatalf("not done: %v", r.Failure)
	}
}

func (s *sampleTest) wantHistory(want string) {
	s.Helper()
	if got := historyOf(s.version(s)); got != want {
		s.Errorf("history is %s, want %s", got, want)
	}
}

func (s *sampleTest) wantCondition(t configv1.ClusterStatusConditionType, want string) {
	s.Helper()
	if got := condition(s.version(s), t); got != want {
		s.Errorf("%s is %q, want %q", t, got, want)
	}
}

func (s *sampleTest) saw(typ clusterapi.EventType) (out []string) {
	for _, e := range s.events {
		if e.Type == typ {
			out = append(out, e.Message)
		}
	}
	return out
}

// block makes the cluster not upgradeable to another minor version.
func (s *sampleTest) block() {
	s.Helper()
	checktest.Get(clusterapi.Modify(context.Background(), s.Cluster, clusterapi.Key("", "etcd"), clusterapi.ModifyOptions{Status: true},
		func(co *configv1.ClusterOperator) error {
			co.Status.Conditions = append(co.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "Defrag", Message: "etcd must be defragmented first", LastTransitionTime: metav1.Unix(0, 0),
			})
			return nil
		}))(s)
}

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

const fromQuoted = `version="4.20.3" image="` + sample.FromImage + `"`
const toQuoted = `version="4.21.1" image="` + sample.ToImage + `"`

func TestUpgradeableBlocksAMinorUpdate(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.block()
		s.sync()
		s.wantCondition(configv1.OperatorUpgradeable, "False ClusterOperatorUpgradeable: etcd must be defragmented first")
		s.request(s, configv1.Update{Version: sample.ToVersion})
		r := s.syncs(3)
		var load *clusterupdate.LoadError
		if !errors.As(r.Failure, &load) || load.Step != clusterupdate.PreconditionChecks || load.Reason != clusterupdate.ReasonPreconditionFailed {
			t.Fatalf("failure is %v", r.Failure)
		}
		summary := `Precondition "ClusterVersionUpgradeable" failed because of "ClusterOperatorUpgradeable": etcd must be defragmented first`
		s.wantCondition(clusterversion.ConditionReleaseAccepted, "False PreconditionChecks: Preconditions failed for payload loaded "+toQuoted+": "+summary)
		s.wantHistory("4.20.3 Completed")
		s.wantCondition(configv1.OperatorProgressing, "False : Cluster version is 4.20.3")
		if cv := s.version(s); cv.Status.ObservedGeneration != cv.Generation {
			t.Errorf("observed generation %d of %d", cv.Status.ObservedGeneration, cv.Generation)
		}

		// Forced, it goes on, and says so from then on.
		s.request(s, configv1.Update{Version: sample.ToVersion, Force: true})
		s.complete(10)
		s.wantHistory(completedHistory)
		want := "Forced through blocking failures: " + summary
		if got := s.version(s).Status.History[0].AcceptedRisks; got != want {
			t.Errorf("accepted risks are %q, want %q", got, want)
		}
		if got := s.saw(clusterupdate.EventPreconditionWarn); len(got) != 1 || got[0] != "precondition warning for payload loaded "+toQuoted+": "+want {
			t.Errorf("warnings: %q", got)
		}
	})
}

func TestBypass(t *testing.T) {
	bypass := preconditions.Bypass{Check: "ClusterVersionUpgradeable", By: "on-call", Why: "defragmented by hand", Image: sample.ToImage}
	withSample(t, func(o *clusterupdate.Options) { o.Bypasses = []preconditions.Bypass{bypass} }, func(s *sampleTest) {
		t := s.T
		s.block()
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.complete(10)
		want := `Bypassed precondition "ClusterVersionUpgradeable" (on-call: defragmented by hand): ClusterOperatorUpgradeable: etcd must be defragmented first`
		if got := s.version(s).Status.History[0].AcceptedRisks; got != want {
			t.Errorf("accepted risks are %q, want %q", got, want)
		}
	})
}

func TestUnverified(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Verifier = refusing{} }, func(s *sampleTest) {
		t := s.T
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		r := s.syncs(2)
		digest := signature.Digest(sample.ToImage)
		want := "Retrieving payload failed " + toQuoted + " failure=The update cannot be verified: no signature of " + digest
		if r.Failure == nil || r.Failure.Error() != want {
			t.Errorf("failure is %v, want %s", r.Failure, want)
		}
		s.wantCondition(clusterversion.ConditionReleaseAccepted, "False RetrievePayload: "+want)
		s.wantHistory("4.20.3 Completed")

		// The wish goes back to what is running: the refusal is history.
		s.request(s, configv1.Update{Version: sample.FromVersion})
		s.sync()
		s.wantCondition(clusterversion.ConditionReleaseAccepted, "True PayloadLoaded: Payload loaded "+fromQuoted)

		s.request(s, configv1.Update{Version: sample.ToVersion, Force: true})
		s.complete(10)
		risk := "Target release " + toQuoted + " cannot be verified, but continuing anyway because the update was forced: no signature of " + digest
		h := s.version(s).Status.History[0]
		if h.AcceptedRisks != risk || h.Verified {
			t.Errorf("verified=%v, accepted risks %q", h.Verified, h.AcceptedRisks)
		}
	})
}

func TestDefaultVerifierFailsClosed(t *testing.T) {
	// The running release names a key whose private half nobody has, and a
	// store that is not on this machine.
	withSample(t, func(o *clusterupdate.Options) { o.Verifier = nil; o.RetrieveTimeout = time.Nanosecond }, func(s *sampleTest) {
		t := s.T
		s.request(s, configv1.Update{Version: sample.ToVersion, Image: sample.ToImage})
		r := s.sync()
		var load *clusterupdate.LoadError
		if !errors.As(r.Failure, &load) || load.Reason != clusterupdate.ReasonVerificationFailed {
			t.Errorf("failure is %v", r.Failure)
		}
		s.wantHistory("4.20.3 Completed")
	})
}

// broken serves a changed second release.
func broken(change func(fstest.MapFS)) manifest.PayloadSource { return changed(sample.ToImage, change) }

// changed serves both releases, and one of them changed.
func changed(image string, change func(fstest.MapFS)) manifest.PayloadSource {
	return manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
		fsys, err := sampleSource().Payload(ctx, r)
		if err != nil || r.Image != image {
			return fsys, err
		}
		copied := fstest.MapFS{}
		err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				data, err := fs.ReadFile(fsys, path)
				copied[path] = &fstest.MapFile{Data: data}
				return err
			}
			return err
		})
		change(copied)
		return copied, err
	})
}

func TestBadPayloads(t *testing.T) {
	const service = "release-manifests/0000_70_bad_service.yaml"
	request := configv1.Update{Version: sample.ToVersion}
	tests := []struct {
		name    string
		request configv1.Update
		change  func(fstest.MapFS)
		step    clusterupdate.Step
		want    []string // in the failure
	}{
		{"the image of the cluster as another version", configv1.Update{Version: sample.ToVersion, Image: sample.FromImage},
			func(fstest.MapFS) {}, clusterupdate.VerifyPayloadVersion,
			[]string{"release image version 4.20.3 does not match the expected upstream version 4.21.1"}},
		{"no release-metadata", request, func(f fstest.MapFS) { delete(f, "release-manifests/release-metadata") }, clusterupdate.LoadPayload,
			[]string{"release-manifests/release-metadata", "file does not exist"}},
		{"no manifests", request, func(f fstest.MapFS) {
			for name := range f {
				if strings.HasPrefix(name, "manifests/") {
					delete(f, name)
				}
			}
		}, clusterupdate.LoadPayload, []string{"manifests", "file does not exist"}},
		{"not YAML", request, func(f fstest.MapFS) { f[service] = &fstest.MapFile{Data: []byte("kind: [\n")} }, clusterupdate.LoadPayload,
			[]string{"0000_70_bad_service.yaml", "error parsing"}},
		{"one identity twice", request, func(f fstest.MapFS) {
			doc := "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\n"
			f[service] = &fstest.MapFile{Data: []byte(doc + "---\n" + doc)}
		}, clusterupdate.LoadPayload, []string{`0000_70_bad_service.yaml: duplicate resource: (Group: "" Kind: "Service" Namespace: "b" Name: "a")`}},
		{"another version", request, func(f fstest.MapFS) {
			for _, name := range []string{"release-metadata", "image-references"} {
				file := f["release-manifests/"+name]
				file.Data = []byte(strings.ReplaceAll(string(file.Data), sample.ToVersion, "4.21.2"))
			}
		}, clusterupdate.VerifyPayloadVersion, []string{"release image version 4.21.2 does not match the expected upstream version 4.21.1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) { o.Payloads = broken(tt.change) }, func(s *sampleTest) {
				t := s.T
				s.sync()
				before := s.objects()
				s.request(s, tt.request)
				r := s.syncs(3)
				var load *clusterupdate.LoadError
				if !errors.As(r.Failure, &load) || load.Step != tt.step || r.Done {
					t.Fatalf("done is %v, failure %v", r.Done, r.Failure)
				}
				for _, want := range tt.want {
					if !strings.Contains(load.Message, want) {
						t.Errorf("failure is %s, lacks %s", load.Message, want)
					}
				}
				if got := s.objects(); got != before {
					t.Errorf("something was applied:\n%s\nwas\n%s", got, before)
				}
				s.wantHistory("4.20.3 Completed")
			})
		})
	}
}

// objects tells whether workloads have changed.
func (s *sampleTest) objects() string {
	s.Helper()
	list := checktest.Get(s.List(context.Background(), deployments, clusterapi.ListOptions{}))(s)
	var b strings.Builder
	for _, o := range list.Items {
		fmt.Fprintln(&b, o.GetNamespace(), o.GetName(), o.GetResourceVersion())
	}
	return b.String()
}

func TestAuto(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Auto = true }, func(s *sampleTest) {
		t := s.T
		s.complete(10)
		for range 3 {
			s.sync()
		}
		s.wantHistory(completedHistory)
		if got := s.saw(clusterupdate.EventUpdateRequested); len(got) != 1 || got[0] != "requesting 4.21.1" {
			t.Errorf("requests: %q", got)
		}
	})
}

func TestStartedUpdateIsNotTurnedAround(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.hold["etcd"] = true
		s.sync()
		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.syncs(3)
		s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
		s.wantCondition(configv1.OperatorUpgradeable, "False ClusterVersionUpdating: An update is already in progress and the details are in the Progressing condition.")
		progress := condition(s.version(s), configv1.OperatorProgressing)
		if !strings.HasPrefix(progress, "True ClusterOperatorUpdating: Working towards 4.21.1: ") || !strings.HasSuffix(progress, ", waiting on etcd") {
			t.Errorf("Progressing is %q", progress)
		}
		for name, spec := range map[string]*configv1.Update{
			"removed":                     nil,
			"faulty":                      {Version: "4.21"},
			"empty":                       {},
			"older version without image": {Version: sample.FromVersion},
		} {
			modify(t, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = spec })
			for range 2 { // the same process, then another one
				s.syncs(2)
				if got := historyOf(s.version(s)); got != "4.21.1 Partial, 4.20.3 Completed" {
					t.Fatalf("request %s: history is %s", name, got)
				}
				s.restart(func(o *clusterupdate.Options) { o.Graph = nil })
			}
		}

		// Going back by name is a rollback, which must be allowed.
		s.request(s, configv1.Update{Version: sample.FromVersion, Image: sample.FromImage})
		r := s.syncs(2)
		if r.Failure == nil || !strings.Contains(r.Failure.Error(), `Precondition "ClusterVersionRollback" failed because of "LowDesiredVersion"`) {
			t.Errorf("failure is %v", r.Failure)
		}
		s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
	})
}

func TestInvalidRequest(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.request(s, configv1.Update{Version: "4.99.0"})
		r := s.sync()
		if r.Resolution.Outcome != clusterversion.Invalid {
			t.Errorf("outcome is %+v", r.Resolution)
		}
		s.wantCondition(clusterversion.ConditionInvalid,
			`True InvalidClusterVersion: The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "4.99.0": when image is empty the update must be an available update`)
		s.wantCondition(configv1.OperatorProgressing, "False InvalidClusterVersion: Stopped at 4.20.3: the cluster version is invalid")

		s.request(s, configv1.Update{Version: sample.ToVersion})
		s.complete(10)
		s.wantCondition(clusterversion.ConditionInvalid, "")
	})
}

// TestRequestBeforeTheGraph: what is not known yet is not invalid.
func TestRequestBeforeTheGraph(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.request(s, configv1.Update{Version: sample.ToVersion})
		invalid := false
		s.restart(func(o *clusterupdate.Options) {
			o.Observe = func(e clusterapi.Event) {
				invalid = invalid || condition(s.version(s), clusterversion.ConditionInvalid) != ""
			}
		})
		s.complete(10)
		if invalid {
			t.Error("the request was called invalid")
		}
		s.wantHistory(completedHistory)
	})
}

func TestOverrides(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		key := clusterapi.Key("openshift-etcd-operator", "etcd-operator")
		if _, err := s.Get(context.Background(), deployments, key); !apierrors.IsNotFound(err) {
			t.Fatalf("the deployment is there already: %v", err)
		}
		override := configv1.ComponentOverride{Kind: "Deployment", Group: "apps", Namespace: key.Namespace, Name: key.Name, Unmanaged: true}
		modify(t, s.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.Overrides = []configv1.ComponentOverride{override} })
		s.complete(5)
		if _, err := s.Get(context.Background(), deployments, key); !apierrors.IsNotFound(err) {
			t.Errorf("the overridden deployment was applied: %v", err)
		}
		s.wantCondition(configv1.OperatorUpgradeable, "False ClusterVersionOverrides: Disabling ownership via cluster version overrides prevents updates between minor or major versions. Please remove overrides before requesting a minor or major version update.")
	})
}

// TestNoHistory: a cluster without a history and without operators that report a
// version is being installed; operators that report Own's show that the history was
// lost.
func TestNoHistory(t *testing.T) {
	noHistory := func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} }
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, installing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, from, to, noHistory)
			want := []string{"Completed: Done applying 4.21.1"}
			if installing {
				for _, op := range from.Operators() {
					reportVersion(t, c.Cluster, op.Name, "")
				}
				// A request made while the cluster is installed has to wait.
				want = []string{"RequestIgnored: the cluster is still being installed", "Completed: Done applying 4.20.3", "Completed: Done applying 4.21.1"}
			}
			o := clusterupdate.Options{API: c.Cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure()}
			u, err := clusterupdate.New(o)
			checktest.OK(t, err)
			if _, err := u.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "set Options.Own") {
				t.Errorf("error is %v", err)
			}
			o.Own = configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}
			var seen []string
			o.Observe = func(e clusterapi.Event) {
				if e.Type == clusterupdate.EventRequestIgnored || e.Type == clusterupdate.EventCompleted {
					seen = append(seen, string(e.Type)+": "+e.Message)
				}
			}
			if u, err = clusterupdate.New(o); err != nil {
				t.Fatal(err)
			}
			c.request(t, configv1.Update{Version: sample.ToVersion, Image: sample.ToImage})
			r, err := u.Sync(t.Context())
			if err != nil || !r.Done {
				t.Fatalf("%+v, %v", r, err)
			}
			checktest.SameIn(t, "events", want, seen)
			if got := historyOf(c.version(t)); got != completedHistory {
				t.Errorf("history is %s", got)
			}
			if got := c.version(t).Status.History[1]; got.Verified {
				t.Error("what the cluster runs was not verified, but says so")
			}
		})
	}
}

// reportVersion makes a ClusterOperator report a version of its operator; none if it
// is empty.
func reportVersion(t testing.TB, api clusterapi.ClusterAPI, name, version string) {
	t.Helper()
	ctx := context.WithValue(context.Background(), reactionKey{}, true)
	checktest.Get(clusterapi.Modify(ctx, api, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		co.Status.Versions = slices.DeleteFunc(co.Status.Versions, func(v configv1.OperandVersion) bool { return v.Name == "operator" })
		if version != "" {
			co.Status.Versions = append(co.Status.Versions, configv1.OperandVersion{Name: "operator", Version: version})
		}
		return nil
	}))(t)
}

func TestBusy(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.u.Run(ctx) }()
		synctest.Wait()
		if _, err := s.u.Sync(t.Context()); !errors.Is(err, clusterupdate.ErrBusy) {
			t.Errorf("error is %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// TestRun follows an update that is driven by events alone.
func TestRun(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.u.Run(ctx) }()
		synctest.Wait()
		s.wantHistory("4.20.3 Completed")
		s.hold["etcd"] = true
		s.request(s, configv1.Update{Version: sample.ToVersion})
		time.Sleep(time.Minute)
		s.wantHistory("4.21.1 Partial, 4.20.3 Completed")

		// The operator gets there: the next pass does not wait for its time.
		s.mu.Lock()
		s.hold["etcd"] = false
		for _, op := range s.next {
			if op.Name == "etcd" {
				checktest.Good(t, s.report(context.WithValue(ctx, reactionKey{}, true), op))
			}
		}
		s.mu.Unlock()
		time.Sleep(time.Second)
		s.wantHistory(completedHistory)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestNewRefusesBoundlessBypass(t *testing.T) {
	o := clusterupdate.Options{API: memory.NewOpenShift(memory.Options{}), Payloads: sampleSource(), Bypasses: []preconditions.Bypass{{Check: "X", By: "me", Why: "so"}}}
	if _, err := clusterupdate.New(o); err == nil || !strings.Contains(err.Error(), "the bypass of X names no image") {
		t.Errorf("error is %v", err)
	}
}

func TestNewNeeds(t *testing.T) {
	if _, err := clusterupdate.New(clusterupdate.Options{}); err == nil || !strings.Contains(err.Error(), "Options.API") {
		t.Errorf("error is %v", err)
	}
}

func TestNewRefusesNegatives(t *testing.T) {
	for field, change := range map[string]func(*clusterupdate.Options){
		"Interval":        func(o *clusterupdate.Options) { o.Interval = -time.Second },
		"RetrieveTimeout": func(o *clusterupdate.Options) { o.RetrieveTimeout = -1 },
		"StatusInterval":  func(o *clusterupdate.Options) { o.StatusInterval = -1 },
		"Workers":         func(o *clusterupdate.Options) { o.Workers = -1 },
	} {
		o := clusterupdate.Options{API: memory.New(memory.Options{}), Payloads: manifest.PayloadSourceFunc(nil)}
		change(&o)
		if _, err := clusterupdate.New(o); err == nil || !strings.Contains(err.Error(), field+" is negative") {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// reportAll makes an operator that was held up report what it would have.
func (s *sampleTest) reportAll(name string) {
	s.Helper()
	for _, op := range s.next {
		if op.Name == name {
			checktest.OK(s, s.report(context.WithValue(context.Background(), reactionKey{}, true), op))
		}
	}
}
