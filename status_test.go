package clusterupdate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// TestQuiet: a cluster that is as wanted is only read.
func TestQuiet(t *testing.T) {
	spy := func(o *clusterupdate.Options) {
		o.Interval = 2 * time.Minute
	}
	withSample(t, spy, func(s *sampleTest) {
		t := s.T
		s.sync()
		s.sync()
		before := s.version(t).ResourceVersion
		ns := clusterapi.Key("", "openshift-etcd-operator")
		object := checktest.Get(s.Get(context.Background(), namespaces, ns))(t)
		for range 3 {
			time.Sleep(10 * time.Minute)
			if r := s.sync(); !r.Done || r.Failure != nil {
				t.Fatalf("%+v", r)
			}
		}
		if after := s.version(t).ResourceVersion; after != before {
			t.Errorf("the status was written: %s, was %s", after, before)
		}
		again, err := s.Get(context.Background(), namespaces, ns)
		if err != nil || again.GetResourceVersion() != object.GetResourceVersion() {
			t.Errorf("a namespace was written: %v", err)
		}
	})
}

var namespaces = corev1.SchemeGroupVersion.WithKind("Namespace")

func (s *sampleTest) featureGate(set configv1.FeatureSet, enabled ...configv1.FeatureGateName) {
	s.Helper()
	ctx := context.Background()
	fg := &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	_, err := clusterapi.Create(ctx, s.Cluster, fg, clusterapi.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	details := configv1.FeatureGateDetails{Version: sample.FromVersion}
	for _, g := range enabled {
		details.Enabled = append(details.Enabled, configv1.FeatureGateAttributes{Name: g})
	}
	for _, status := range []bool{false, true} {
		_, err = clusterapi.Modify(ctx, s.Cluster, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{Status: status}, func(fg *configv1.FeatureGate) error {
			fg.Spec.FeatureSet = set
			fg.Status.FeatureGates = []configv1.FeatureGateDetails{details}
			return nil
		})
		checktest.OK(s, err)
	}
}

// TestGates: other gates mean that the payload is read again.
func TestGates(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.sync()
		before := s.version(t).Status.VersionHash
		s.featureGate(configv1.TechPreviewNoUpgrade, "Odd")
		s.complete(5)
		after := s.version(t).Status.VersionHash
		if after == before {
			t.Error("the hash is still that of the default feature set")
		}
		if got := len(s.saw(clusterupdate.EventPayloadLoaded)); got != 2 {
			t.Errorf("the payload was loaded %d times", got)
		}
		s.wantHistory("4.20.3 Completed")
	})
}

func TestArchitecture(t *testing.T) {
	// A payload that declares itself multi-architecture.
	multi := func(o *clusterupdate.Options) {
		o.Payloads = changed(sample.FromImage, func(f fstest.MapFS) {
			file := f["release-manifests/release-metadata"]
			file.Data = []byte(strings.Replace(string(file.Data), `"metadata": {`, `"metadata": {"release.openshift.io/architecture": "multi",`, 1))
		})
	}
	for _, enabled := range []bool{false, true} {
		t.Run(fmt.Sprintf("gate=%v", enabled), func(t *testing.T) {
			withSample(t, multi, func(s *sampleTest) {
				t := s.T
				if enabled {
					fg := &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
					fg.Status.FeatureGates = []configv1.FeatureGateDetails{{
						Version: sample.FromVersion, Enabled: []configv1.FeatureGateAttributes{{Name: "ImageStreamImportMode"}},
					}}
					u := checktest.Get(clusterapi.ToUnstructured(fg))(t)
					checktest.OK(t, s.Load(u))
				}
				s.sync()
				want := configv1.ClusterVersionArchitecture("")
				if enabled {
					want = configv1.ClusterVersionArchitectureMulti
				}
				cv := s.version(t)
				if cv.Status.Desired.Architecture != want {
					t.Errorf("architecture is %q, want %q", cv.Status.Desired.Architecture, want)
				}
				accepted := condition(cv, clusterversion.ConditionReleaseAccepted)
				if !strings.HasSuffix(accepted, `architecture="Multi"`) {
					t.Errorf("ReleaseAccepted is %s", accepted)
				}
			})
		})
	}
}

// discarding notes what it is to drop.
type discarding struct {
	payloadSource
	dropped []string
}

type payloadSource interface {
	Payload(context.Context, configv1.Release) (fs.FS, error)
}

func (d *discarding) Discard(_ context.Context, r configv1.Release) error {
	d.dropped = append(d.dropped, r.Image)
	return nil
}

func TestDiscard(t *testing.T) {
	tests := []struct {
		name   string
		change func(fstest.MapFS)
		want   []string
	}{
		{"faulty", func(f fstest.MapFS) { delete(f, "release-manifests/image-references") }, []string{sample.ToImage}},
		{"not applicable", func(f fstest.MapFS) {
			file := f["release-manifests/release-metadata"]
			file.Data = []byte(strings.ReplaceAll(string(file.Data), sample.FromVersion, "4.20.99"))
		}, []string{sample.ToImage}},
		{"refused for the state of the cluster", func(fstest.MapFS) {}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := &discarding{payloadSource: broken(tt.change)}
			withSample(t, func(o *clusterupdate.Options) { o.Payloads, o.Graph = source, nil }, func(s *sampleTest) {
				t := s.T
				if tt.want == nil {
					s.block()
				}
				s.sync()
				s.request(t, configv1.Update{Version: sample.ToVersion, Image: sample.ToImage})
				if r := s.sync(); r.Failure == nil {
					t.Error("the release was accepted")
				}
				checktest.SameIn(t, "dropped", tt.want, source.dropped)
				s.wantHistory("4.20.3 Completed")
			})
		})
	}
}

// TestLoadBacksOff: a refused release is not fetched at every look, unless the
// request changes.
func TestLoadBacksOff(t *testing.T) {
	withSample(t, func(o *clusterupdate.Options) { o.Verifier = refusing{}; o.Interval = 2 * time.Minute }, func(s *sampleTest) {
		t := s.T
		s.sync()
		s.request(t, configv1.Update{Version: sample.ToVersion})
		var at []time.Duration
		start, seen := time.Now(), 0
		for range 400 {
			s.sync()
			if n := len(s.saw(clusterupdate.EventRetrievePayloadFailed)); n > seen {
				seen = n
				at = append(at, time.Since(start).Round(time.Second))
			}
			time.Sleep(time.Second)
		}
		want := []time.Duration{0, 15 * time.Second, 45 * time.Second, 105 * time.Second, 225 * time.Second, 345 * time.Second}
		checktest.SameIn(t, "attempts", want, at)
		s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate.Image = sample.ToImage })
		s.sync()
		if n := len(s.saw(clusterupdate.EventRetrievePayloadFailed)); n != seen+1 {
			t.Errorf("a changed request was tried %d times", n-seen)
		}
	})
}

func TestCapabilities(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.setSpec(func(spec *configv1.ClusterVersionSpec) {
			spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
		})
		s.complete(3)
		status := s.version(t).Status.Capabilities
		if len(status.EnabledCapabilities) != 0 || !slices.Contains(status.KnownCapabilities, "openshift-samples") {
			t.Errorf("%+v", status)
		}
		s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities, "False AsExpected: Capabilities match configured spec")

		enable := func(names ...configv1.ClusterVersionCapability) {
			s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Capabilities.AdditionalEnabledCapabilities = names })
			s.complete(3)
		}
		enable("openshift-samples")
		enable() // what is on stays on
		s.wantCondition(clusterversion.ConditionImplicitlyEnabledCapabilities,
			"True CapabilitiesImplicitlyEnabled: The following capabilities could not be disabled: openshift-samples")
		s.restart(nil)
		s.syncs(3)
		if got := s.version(t).Status.Capabilities.EnabledCapabilities; !slices.Equal(got, []configv1.ClusterVersionCapability{"openshift-samples"}) {
			t.Errorf("enabled: %v", got)
		}
	})
}

// TestStatusConflict: what others write meanwhile is neither lost nor an error.
func TestStatusConflict(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		var once bool
		s.onCall(func(call memory.Call) {
			if call.Verb == "UpdateStatus" && !once {
				once = true
				s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Channel = "fast-4.21" })
			}
		})
		s.complete(3)
		cv := s.version(t)
		if cv.Spec.Channel != "fast-4.21" || cv.Status.ObservedGeneration != cv.Generation {
			t.Errorf("channel %s, observed generation %d of %d", cv.Spec.Channel, cv.Status.ObservedGeneration, cv.Generation)
		}
	})
}

// TestAPIFaults: a fault of the API is an error of Sync, and says nothing about
// the cluster.
func TestAPIFaults(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		s.sync()
		before := s.version(t)
		failing := memory.NewOpenShift(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error {
			return apierrors.NewServiceUnavailable("down")
		}})
		s.restart(func(o *clusterupdate.Options) { o.API = failing })
		for range 20 {
			if _, err := s.u.Sync(t.Context()); !apierrors.IsServiceUnavailable(err) {
				t.Fatalf("error is %v", err)
			}
		}
		checktest.SameIn(t, "status changed (-before +after)", before.Status, s.version(t).Status)
	})
}

func TestNoDesiredImage(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		t := s.T
		modify(t, s.Cluster, true, func(cv *configv1.ClusterVersion) {
			cv.Status.History[0].Image, cv.Status.Desired.Image = "", ""
		})
		if r := s.sync(); r.Done {
			t.Errorf("%+v", r)
		}
		s.wantCondition(clusterversion.ConditionFailing, "True NoDesiredImage: No configured operator version, unable to update cluster")
	})
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", 32<<10+1)
	cut := func(t *testing.T, text string) {
		t.Helper()
		if len(text) > 32<<10 || !strings.HasSuffix(text, " more bytes)") {
			t.Errorf("%d bytes: %q", len(text), text[max(0, len(text)-40):])
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "message of a condition", Default: 32 << 10, Bytes: 512 << 20, Run: func(t *testing.T) int64 {
			withSample(t, nil, func(s *sampleTest) {
				operators, err := clusterapi.List[configv1.ClusterOperator](s.Context(), s.Cluster, clusterapi.ListOptions{})
				if err != nil || len(operators) == 0 {
					s.Fatal(err)
				}
				checktest.Get(clusterapi.Modify(s.Context(), s.Cluster, clusterapi.Key("", operators[0].Name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
					co.Status.Conditions = append(co.Status.Conditions, configv1.ClusterOperatorStatusCondition{
						Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "Held", Message: long, LastTransitionTime: metav1.Now()})
					return nil
				}))(s)
				s.sync()
				_, text, _ := strings.Cut(condition(s.version(s), configv1.OperatorUpgradeable), ": ")
				cut(s.T, text)
			})
			return 0
		}},
	})
}

// A cluster in which nothing happens is silent: no event, no write, and few reads
// between the passes that apply everything, once an hour.
func TestUnchangedClusterIsSilent(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	r.after(10 * time.Minute)
	r.events = nil
	calls := map[string]int{}
	r.c.called = func(call memory.Call) { calls[call.Verb+" "+call.GVK.Kind]++ }
	if _, passes := r.after(50 * time.Minute); passes < 12 {
		t.Errorf("%d passes", passes)
	}
	for _, e := range r.events {
		t.Errorf("event %s: %s", e.Type, e.Message)
	}
	want := map[string]int{"Get ClusterVersion": 5, "Get FeatureGate": 5, "Get ConfigMap": 10, "List ClusterOperator": 5}
	checktest.SameIn(t, "calls", want, calls)
}

var errInternal = errors.New("the database is away")

// An hour of a cluster that a real release keeps unchanged, in which one pass applies
// everything, takes at most 900 calls, none of which writes the status.
func TestCallsOfAnUnchangedCluster(t *testing.T) {
	files := os.DirFS(filepath.Join(testdata.Dir(t), "payload-4.17.30"))
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	calls, writes, events := 0, 0, 0
	cluster := checktest.Get(simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(loadSample(t, files, sample.FromImage)),
		Memory: memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if !simulation.FromSimulation(ctx) {
				calls++
			}
			if call.Verb == "UpdateStatus" && call.GVK.Kind == "ClusterVersion" {
				writes++
			}
			return do(ctx)
		}},
	}))(t)
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Verifier: signature.Insecure(), Clock: clock, Observe: func(clusterapi.Event) { events++ },
		Payloads: manifest.PayloadSourceFunc(func(context.Context, configv1.Release) (fs.FS, error) { return files, nil }),
	}))(t)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, cluster.Process(), u.Process())
	t.Cleanup(v.Close)
	checktest.OK(t, v.RunUntil(v.Now().Add(10*time.Minute)))
	calls, writes, events = 0, 0, 0
	checktest.OK(t, v.RunUntil(v.Now().Add(time.Hour)))
	if calls < 700 || calls > 900 || writes > 0 || events > 0 {
		t.Errorf("%d calls, %d writes of the status, %d events", calls, writes, events)
	}
}

// requestMissing asks for a release that the source of payloads does not have.
func requestMissing(t *testing.T, r *driftRun) {
	t.Helper()
	modify(t, r.c.Cluster, false, func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Image: "registry.example/none@sha256:" + strings.Repeat("0", 64)}
	})
}

// A release that is refused stays so in the status while it is tried again, and is a
// failure since the first time.
func TestRefusedReleaseStays(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	requestMissing(t, r)
	r.after(time.Minute)
	since := r.Now()
	tries, writes := 0, 0
	r.events = nil
	r.c.called = func(call memory.Call) {
		if call.Verb == "UpdateStatus" {
			writes++
		}
	}
	r.after(time.Hour)
	for _, e := range r.events {
		if e.Type == clusterupdate.EventRetrievePayloadFailed {
			tries++
		}
	}
	if tries < 10 || writes > 0 {
		t.Errorf("%d writes of the status in %d tries", writes, tries)
	}
	checktest.SameIn(t, "condition", true, strings.HasPrefix(condition(r.c.version(t), clusterversion.ConditionReleaseAccepted), "False RetrievePayload: "))
	d := r.u.Explain()
	if len(d.Failures) != 1 || !strings.HasPrefix(d.Failures[0].Subject, "release registry.example/none@") || d.Failures[0].Since.After(since) || len(d.Awaits) > 0 {
		t.Errorf("awaits %+v, failures %+v", d.Awaits, d.Failures)
	}
}

// Writes that fail are an event when that begins and when it ends, and stand in the
// decision as long as it lasts.
func TestFailedWritesAreShown(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	r.after(10 * time.Minute)
	r.events = nil
	failed := func() (out []clusterapi.EventType) {
		for _, e := range r.events {
			if e.Type == clusterupdate.EventFailed || e.Type == clusterupdate.EventRecovered {
				out = append(out, e.Type)
			}
		}
		return out
	}
	r.c.fault = func(call memory.Call) error {
		if call.Verb == "UpdateStatus" {
			return apierrors.NewInternalError(errInternal)
		}
		return nil
	}
	requestMissing(t, r)
	began := r.Now()
	r.after(20 * time.Minute)
	checktest.SameIn(t, "events", []clusterapi.EventType{clusterupdate.EventFailed}, failed())
	d := r.u.Explain()
	n := len(d.Failures)
	if n == 0 || d.Failures[n-1].Subject != "clusterversion/version" || d.Failures[n-1].Since != began || !strings.Contains(d.Failures[n-1].Message, errInternal.Error()) {
		t.Errorf("failures %+v, want the write's since %s", d.Failures, began)
	}
	r.c.fault = nil
	r.after(time.Minute)
	checktest.SameIn(t, "events", []clusterapi.EventType{clusterupdate.EventFailed, clusterupdate.EventRecovered}, failed())
	for _, f := range r.u.Explain().Failures {
		checktest.SameIn(t, "what fails", true, strings.HasPrefix(f.Subject, "release "))
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestEventJSON: the form of the data of events, which programs depend on.
func TestEventJSON(t *testing.T) {
	task := loadSample(t, sample.To(), sample.ToImage).Tasks()[3]
	to := configv1.Release{Version: "4.21.1", Image: "new"}
	pass := clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Task: task, Level: "10", Component: "etcd-operator", Attempt: 2, Done: 3, Total: 9,
		Wait: &runlevel.Wait{Operator: "etcd", Undone: []string{"operator to 4.21.1"}}}}
	var b bytes.Buffer
	for i, e := range []clusterapi.Event{
		{Type: clusterupdate.EventRetrievedUpdates, Data: &clusterupdate.EventData{Release: to, Updates: []configv1.Release{to}}},
		{Type: clusterupdate.EventSignatureVerified, Message: "verified", Data: &clusterupdate.EventData{Release: to, Verification: &signature.Verification{
			Digest: "sha256:0", Version: "4.21.1", Signers: []signature.Signer{{Reference: "quay.example/release:4.21.1", Fit: signature.FitSame}, {Reference: "quay.example/release:1"}}}}},
		{Type: clusterupdate.EventTask, Message: "waits", Err: errors.New("no route"), Data: &clusterupdate.EventData{Release: to, Pass: &pass}},
		{Type: clusterupdate.EventCompleted, Message: "Done applying 4.21.1", Data: &clusterupdate.EventData{Release: to}},
	} {
		e.Time, e.Subject = time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), "release 4.21.1"
		line := checktest.Get(json.Marshal(e))(t)
		b.Write(append(line, '\n'))
	}
	golden := filepath.Join("testdata", "events.jsonl")
	if *update {
		checktest.OK(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want := checktest.Get(os.ReadFile(golden))(t)
	checktest.Same(t, string(want), b.String())
}

func TestActionText(t *testing.T) {
	a := clusterupdate.Action{Step: "apply", Release: configv1.Release{Version: "4.21.1"}, Reason: "it is requested"}
	checktest.Equal(t, "apply 4.21.1: it is requested", a.String(), "an action")
	checktest.Equal(t, "fetch waits: an hour", clusterupdate.Action{Step: "fetch", Reason: "an hour", Waits: true}.String(), "one that waits")
}
