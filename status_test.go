package clusterupdate_test

import (
	"context"
	"fmt"
	"io/fs"
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
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
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
