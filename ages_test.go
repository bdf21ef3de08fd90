package clusterupdate_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// definitionOf returns a definition of ClusterVersion as a release ships it.
func definitionOf(t testing.TB, age string) *unstructured.Unstructured {
	t.Helper()
	data := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(t), "definitions", "clusterversion-"+age+".yaml")))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, yaml.Unmarshal(data, &u.Object))
	annotations := u.GetAnnotations()
	delete(annotations, "release.openshift.io/feature-set") // the sample's cluster has the default one
	u.SetAnnotations(annotations)
	return u
}

// statusOf returns what a definition says of a field of the status.
func statusOf(u *unstructured.Unstructured, path ...string) map[string]any {
	return fieldOf(u, append([]string{"status"}, path...)...)
}

func fieldOf(u *unstructured.Unstructured, path ...string) map[string]any {
	versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	tree := versions.([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for _, name := range path {
		if name == "[]" {
			tree = tree["items"].(map[string]any)
		} else {
			tree = tree["properties"].(map[string]any)[name].(map[string]any)
		}
	}
	return tree
}

// derived are definitions that no release ships.
var derived = map[string]struct {
	of     string
	change func(*unstructured.Unstructured)
}{
	"no capability": {"4.12", func(u *unstructured.Unstructured) { setEnums(u, "Elsewhere") }},
	"one capability, and a new one": {"4.17", func(u *unstructured.Unstructured) {
		setEnums(u, "openshift-samples", "Teleport")
	}},
	"no capabilities in the status": {"4.14", func(u *unstructured.Unstructured) {
		delete(statusOf(u)["properties"].(map[string]any), "capabilities")
	}},
	"short texts": {"5.0", func(u *unstructured.Unstructured) {
		statusOf(u, "conditions", "[]", "message")["maxLength"] = int64(40)
		statusOf(u, "history", "[]", "acceptedRisks")["maxLength"] = int64(40)
		statusOf(u, "conditionalUpdates", "[]", "conditions", "[]", "message")["maxLength"] = int64(40)
	}},
	"other reasons": {"4.19", func(u *unstructured.Unstructured) {
		reason := statusOf(u, "conditions", "[]", "reason")
		reason["pattern"], reason["minLength"] = "^[A-Z][A-Za-z]{2,16}$", int64(3)
	}},
	"no conditional updates": {"4.22", func(u *unstructured.Unstructured) {
		delete(statusOf(u)["properties"].(map[string]any), "conditionalUpdates")
	}},
	"other rules": {"4.22", func(u *unstructured.Unstructured) {
		statusOf(u, "conditionalUpdates", "[]", "risks", "[]", "matchingRules", "[]", "type")["enum"] = []any{"CEL"}
		statusOf(u, "conditionalUpdates", "[]", "risks", "[]", "url")["maxLength"] = int64(3)
	}},
	"a short history, without notes": {"4.15", func(u *unstructured.Unstructured) {
		statusOf(u, "history")["maxItems"] = int64(2)
		delete(statusOf(u, "history", "[]")["properties"].(map[string]any), "acceptedRisks")
	}},
	"few conditions": {"4.15", func(u *unstructured.Unstructured) {
		statusOf(u, "conditions", "[]", "type")["enum"] = []any{"Available", "Progressing", "Failing", "Upgradeable"}
		statusOf(u, "availableUpdates")["nullable"] = false
	}},
	"releases without channels": {"4.19", func(u *unstructured.Unstructured) {
		for _, list := range [][]string{{"desired"}, {"availableUpdates", "[]"}, {"conditionalUpdates", "[]", "release"}} {
			delete(statusOf(u, list...)["properties"].(map[string]any), "channels")
			statusOf(u, list...)["properties"].(map[string]any)["url"].(map[string]any)["maxLength"] = int64(5)
		}
	}},
}

func setEnums(u *unstructured.Unstructured, names ...any) {
	for _, list := range []string{"knownCapabilities", "enabledCapabilities"} {
		statusOf(u, "capabilities", list, "[]")["enum"] = names
	}
	fieldOf(u, "spec", "capabilities", "additionalEnabledCapabilities", "[]")["enum"] = names
}

// aged returns a definition of a release, or a derived one.
func aged(t testing.TB, age string) *unstructured.Unstructured {
	d, ok := derived[age]
	if !ok {
		return definitionOf(t, age)
	}
	u := definitionOf(t, d.of)
	u.Object = runtime.DeepCopyJSON(u.Object)
	d.change(u)
	return u
}

// withDefinition is a release that brings the definition of ClusterVersion.
func withDefinition(t testing.TB, release fs.FS, definition *unstructured.Unstructured) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	checktest.OK(t, fs.WalkDir(release, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(release, path)
		out[path] = &fstest.MapFile{Data: data}
		return err
	}))
	data := checktest.Get(yaml.Marshal(definition.Object))(t)
	out["release-manifests/0000_00_cluster-version-operator_01_clusterversions.crd.yaml"] = &fstest.MapFile{Data: data}
	return out
}

// capabilitiesOf returns those of 4.18 and later that a definition accepts, and others
// that are named.
func capabilitiesOf(u *unstructured.Unstructured, others ...string) []string {
	known := statusOf(u)["properties"].(map[string]any)["capabilities"]
	if known == nil {
		return []string{}
	}
	has := sets.New(others...)
	for _, c := range configv1.ClusterVersionCapabilitySets[configv1.ClusterVersionCapabilitySet4_18] {
		has.Insert(string(c))
	}
	out := []string{}
	for _, name := range statusOf(u, "capabilities", "knownCapabilities", "[]")["enum"].([]any) {
		if has.Has(name.(string)) {
			out = append(out, name.(string))
		}
	}
	slices.Sort(out)
	return out
}

// TestAges updates the sample, refuses that at first, and turns it back at last, on
// clusters of other ages than this package: with definitions of ClusterVersion that the
// update replaces on its way.
func TestAges(t *testing.T) {
	pairs := [][2]string{
		{"4.12", "4.14"}, {"4.14", "4.15"}, {"4.15", "4.17"}, {"4.17", "4.19"}, {"4.19", "4.22"}, {"4.22", "5.0"},
		{"5.0", "5.0-DevPreviewNoUpgrade"}, {"4.12", "5.0-CustomNoUpgrade"}, {"5.0-DevPreviewNoUpgrade", "4.12"},
	}
	names := slices.Sorted(maps.Keys(derived))
	for i, name := range names {
		pairs = append(pairs, [2]string{name, names[(i+1)%len(names)]})
	}
	if testing.Short() {
		pairs = [][2]string{pairs[0], pairs[3], pairs[7], pairs[10], pairs[15]}
	}
	for _, pair := range pairs {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) { testAge(t, aged(t, pair[0]), aged(t, pair[1])) })
	}
}

func testAge(t *testing.T, first, second *unstructured.Unstructured) {
	releases := map[string]fs.FS{
		sample.FromImage: withDefinition(t, sample.From(), first),
		sample.ToImage:   withDefinition(t, sample.To(), second),
	}
	from, to := loadSample(t, releases[sample.FromImage], sample.FromImage), loadSample(t, releases[sample.ToImage], sample.ToImage)
	synctest.Test(t, func(t *testing.T) {
		s := &sampleTest{T: t, testCluster: newTestCluster(t, from, to, nil)}
		s.define(first)
		writes, refused := 0, 0
		api := &witness{Cluster: s.Cluster, wrote: func(err error) {
			writes++
			if apierrors.IsInvalid(err) {
				refused++
			}
		}}
		s.restart(func(o *clusterupdate.Options) {
			o.API, o.Interval = api, 3*time.Minute
			o.Payloads = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) { return releases[r.Image], nil })
		})
		s.block()
		for range 3 {
			s.sync()
			time.Sleep(time.Minute)
		}
		s.wantCapabilities(first)
		s.request(t, configv1.Update{Version: sample.ToVersion})
		if r := s.syncs(3); r.Failure == nil {
			t.Error("the update was not refused")
		}
		s.wantHistory("4.20.3 Completed")

		limit := 3
		for _, d := range []*unstructured.Unstructured{first, second} {
			if n, ok := statusOf(d, "history")["maxItems"].(int64); ok {
				limit = min(limit, int(n))
			}
		}
		for _, step := range []struct {
			image, history string
			definition     *unstructured.Unstructured
		}{
			{sample.ToImage, completedHistory, second},
			{sample.FromImage, "4.20.3 Completed, " + completedHistory, first},
		} {
			s.next = map[string]*manifest.Payload{sample.ToImage: to, sample.FromImage: from}[step.image].Operators()
			clear(s.applied)
			s.request(t, configv1.Update{Image: step.image, Force: true})
			s.complete(20)
			for range 2 { // the Updater may have read the definition that the pass replaced
				time.Sleep(s.sync().After)
			}
			if entries := strings.Split(step.history, ", "); len(entries) > limit {
				step.history = strings.Join(entries[:limit], ", ")
			}
			s.wantHistory(step.history)
			s.wantCapabilities(step.definition)
			before := writes
			for range 4 { // nothing more to do
				time.Sleep(s.sync().After)
			}
			if n := writes - before; n > 1 {
				t.Errorf("%d statuses of a cluster at rest", n)
			}
		}
		// Until the definition that has just been applied is read.
		if refused > 2 {
			t.Errorf("%d statuses were refused", refused)
		}
		if told := s.saw(clusterupdate.EventFailed); len(told) > 0 {
			t.Errorf("refused: %q", told)
		}
	})
}

// define replaces the definition of ClusterVersion.
func (s *sampleTest) define(definition *unstructured.Unstructured) {
	s.Helper()
	stored := checktest.Get(s.Get(s.Context(), definition.GroupVersionKind(), clusterapi.Key("", definition.GetName())))(s)
	u := definition.DeepCopy()
	u.SetResourceVersion(stored.GetResourceVersion())
	checktest.Get(s.Update(s.Context(), u, clusterapi.UpdateOptions{}))(s)
}

// wantCapabilities compares those of the status with what the definition accepts.
func (s *sampleTest) wantCapabilities(definition *unstructured.Unstructured, others ...string) {
	s.Helper()
	status := s.version(s).Status.Capabilities
	want := capabilitiesOf(definition, others...)
	for what, got := range map[string][]configv1.ClusterVersionCapability{"known": status.KnownCapabilities, "enabled": status.EnabledCapabilities} {
		names := []string{}
		for _, c := range got {
			names = append(names, string(c))
		}
		if diff := cmp.Diff(want, names); diff != "" {
			s.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// witness is a cluster that tells how each write of a ClusterVersion's status ends, and
// may keep its definition to itself.
type witness struct {
	*memory.Cluster
	wrote  func(error)
	hidden error // of reading definitions
}

// Shares reports that what w hands out may have been changed on its way.
func (w *witness) Shares(clusterapi.Reader) bool { return false }

func (w *witness) UpdateStatus(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	out, err := w.Cluster.UpdateStatus(ctx, u, o)
	if u.GetKind() == "ClusterVersion" {
		w.wrote(err)
	}
	return out, err
}

func (w *witness) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if gvk.Kind == "CustomResourceDefinition" && w.hidden != nil {
		return nil, w.hidden
	}
	return w.Cluster.Get(ctx, gvk, key)
}

// TestAgeNotKnown: where the definition cannot be read, the status names no capability
// that it does not name already.
func TestAgeNotKnown(t *testing.T) {
	resource := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	for what, hidden := range map[string]error{
		"forbidden":     apierrors.NewForbidden(resource, "clusterversions.config.openshift.io", errors.New("not allowed")),
		"no definition": apierrors.NewNotFound(resource, "clusterversions.config.openshift.io"),
		"out of reach":  errors.New("connection refused"),
	} {
		t.Run(what, func(t *testing.T) {
			definition := definitionOf(t, "4.12")
			withSample(t, nil, func(s *sampleTest) {
				s.define(definition)
				modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
					cv.Status.Capabilities = configv1.ClusterVersionCapabilitiesStatus{
						KnownCapabilities: []configv1.ClusterVersionCapability{"Console", "marketplace"}, EnabledCapabilities: []configv1.ClusterVersionCapability{"Console"}}
				})
				api := &witness{Cluster: s.Cluster, hidden: hidden, wrote: func(err error) {
					if apierrors.IsInvalid(err) {
						s.Error(err)
					}
				}}
				s.restart(func(o *clusterupdate.Options) {
					o.API = api
					o.Payloads = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
						release, err := sample.Payload(r.Image)
						if err != nil {
							return nil, err
						}
						return withDefinition(s, release, definition), nil
					})
				})
				s.request(s, configv1.Update{Version: sample.ToVersion})
				s.complete(20)
				want := configv1.ClusterVersionCapabilitiesStatus{
					KnownCapabilities:   []configv1.ClusterVersionCapability{"Console", "marketplace"},
					EnabledCapabilities: []configv1.ClusterVersionCapability{"Console", "marketplace"}}
				checktest.Same(s, want, s.version(s).Status.Capabilities)
			})
		})
	}
}

// TestNewCapability: a capability that this package has never heard of is one like any
// other, in a status too whose definition has it.
func TestNewCapability(t *testing.T) {
	definition := aged(t, "one capability, and a new one")
	release := func(fsys fs.FS) fs.FS {
		out := withDefinition(t, fsys, definition).(fstest.MapFS)
		out["release-manifests/0000_50_teleport_01_config.yaml"] = &fstest.MapFile{Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: teleport
  namespace: openshift-config
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    capability.openshift.io/name: Teleport
`)}
		return out
	}
	for _, tt := range []struct {
		name            string
		spec            configv1.ClusterVersionCapabilitiesSpec
		enabled         []configv1.ClusterVersionCapability
		applied, before bool // before: the first release has it too
	}{
		{"by default", configv1.ClusterVersionCapabilitiesSpec{}, []configv1.ClusterVersionCapability{"Teleport", "openshift-samples"}, true, false},
		{"not asked for", configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: "v4.12"}, []configv1.ClusterVersionCapability{"openshift-samples"}, false, false},
		{"asked for by name", configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: "None", AdditionalEnabledCapabilities: []configv1.ClusterVersionCapability{"Teleport"}},
			[]configv1.ClusterVersionCapability{"Teleport"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, func(o *clusterupdate.Options) {
				o.Payloads = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
					fsys, err := sample.Payload(r.Image)
					if err != nil || r.Image == sample.FromImage && !tt.before {
						return fsys, err
					}
					return release(fsys), nil
				})
			}, func(s *sampleTest) {
				if tt.before {
					s.define(definition)
				}
				s.setSpec(func(spec *configv1.ClusterVersionSpec) { spec.Capabilities = &tt.spec })
				s.syncs(3)
				s.request(s, configv1.Update{Version: sample.ToVersion})
				s.complete(20)
				status := s.version(s).Status.Capabilities
				want := configv1.ClusterVersionCapabilitiesStatus{EnabledCapabilities: tt.enabled, KnownCapabilities: []configv1.ClusterVersionCapability{"Teleport", "openshift-samples"}}
				checktest.Same(s, want, status)
				_, err := s.Get(s.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterapi.Key("openshift-config", "teleport"))
				if (err == nil) != tt.applied {
					s.Errorf("the object of the capability: %v", err)
				}
			})
		})
	}
}

// TestStatusRefused: what the server says of a status that it refuses all the same is
// told once, and stands in the decision until it accepts one.
func TestStatusRefused(t *testing.T) {
	withSample(t, nil, func(s *sampleTest) {
		const words = `status.conditions: Invalid value: "array": there must be a condition of type Blessed`
		invalid := apierrors.NewInvalid(configv1.SchemeGroupVersion.WithKind("ClusterVersion").GroupKind(), "version",
			field.ErrorList{field.Invalid(field.NewPath("status", "conditions"), "array", "there must be a condition of type Blessed")})
		refuses := true
		s.fault = func(c memory.Call) error {
			if refuses && c.Verb == "UpdateStatus" && c.GVK.Kind == "ClusterVersion" {
				return invalid
			}
			return nil
		}
		plan := func() string {
			for _, f := range s.u.Explain().Failures {
				if f.Subject == "clusterversion/version" {
					return f.Message
				}
			}
			return ""
		}
		for range 3 {
			if _, err := s.u.Sync(s.Context()); !apierrors.IsInvalid(err) {
				s.Errorf("error %v", err)
			}
			if !strings.Contains(plan(), words) {
				s.Errorf("failures: %+v", s.u.Explain().Failures)
			}
			time.Sleep(time.Minute)
		}
		told := s.saw(clusterupdate.EventFailed)
		if len(told) != 1 || !strings.Contains(told[0], words) {
			s.Errorf("told %q", told)
		}
		if history := s.version(s).Status.History; len(history) != 1 {
			s.Errorf("history %v", history)
		}
		refuses = false
		if r := s.syncs(5); !r.Done {
			s.Errorf("not done: %v", r.Failure)
		}
		if text := plan(); text != "" {
			s.Errorf("failure: %s", text)
		}
	})
}

// TestEntryRefused: where the definition does not accept the entry of an update, nothing
// of that is applied, and it is told why.
func TestEntryRefused(t *testing.T) {
	definition := definitionOf(t, "4.19")
	statusOf(definition, "history", "[]", "version")["enum"] = []any{sample.FromVersion}
	statusOf(definition, "history", "[]")["required"] = []any{"version"}
	withSample(t, nil, func(s *sampleTest) {
		s.restart(func(o *clusterupdate.Options) {
			o.Payloads = manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
				release, err := sample.Payload(r.Image)
				if err != nil {
					return nil, err
				}
				return withDefinition(s, release, definition), nil
			})
		})
		s.syncs(5)
		s.request(s, configv1.Update{Version: sample.ToVersion})
		for range 5 {
			if _, err := s.u.Sync(s.Context()); err != nil && !apierrors.IsInvalid(err) {
				s.Error(err)
			}
			time.Sleep(time.Minute)
		}
		s.wantHistory("4.20.3 Completed")
		if told := s.saw(clusterupdate.EventFailed); len(told) != 1 || !strings.Contains(told[0], "status.history[0]") {
			s.Errorf("told %q", told)
		}
	})
}
