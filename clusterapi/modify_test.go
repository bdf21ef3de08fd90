package clusterapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// fake serves one object and counts its writes.
type fake struct {
	clusterapi.ReadWriter
	obj       *unstructured.Unstructured
	conflicts int // so many writes fail
	reads     int
	writes    []string
}

func (f *fake) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	f.reads++
	return f.obj.DeepCopy(), nil
}

func (f *fake) Update(_ context.Context, u *unstructured.Unstructured, _ clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return f.write("Update", u)
}

func (f *fake) UpdateStatus(_ context.Context, u *unstructured.Unstructured, _ clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return f.write("UpdateStatus", u)
}

func (f *fake) write(verb string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if f.conflicts > 0 {
		f.conflicts--
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "things"}, u.GetName(), errors.New("stale"))
	}
	f.writes = append(f.writes, verb)
	f.obj = u.DeepCopy()
	return u.DeepCopy(), nil
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data := checktest.Get(yaml.YAMLToJSON([]byte(text)))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, u.UnmarshalJSON(data))
	return u
}

// modified runs Modify over one object and compares what is stored.
func modified[T any](t *testing.T, o clusterapi.ModifyOptions, before, want string, f func(*T) error) {
	t.Helper()
	api := &fake{obj: object(t, before)}
	got := checktest.Get(clusterapi.Modify(t.Context(), api, clusterapi.KeyOf(api.obj), o, f))(t)
	checktest.SameIn(t, "stored object", object(t, want).Object, api.obj.Object)
	checktest.SameIn(t, "result (-stored +got)", checktest.Get(clusterapi.FromUnstructured[T](api.obj))(t), got)
}

func TestModifyKeepsUnknownFields(t *testing.T) {
	t.Run("elements by type", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd, newMeta: 1}
status:
  newStatus: {a: 1}
  conditions:
  - {type: Degraded, status: "False", lastTransitionTime: null, newField: d}
  - {type: Available, status: "True", lastTransitionTime: null, newField: a}
`, `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd, newMeta: 1}
status:
  newStatus: {a: 1}
  extension: null
  conditions:
  - {type: Progressing, status: "True", lastTransitionTime: null}
  - {type: Available, status: "False", lastTransitionTime: null, newField: a}
  - {type: Degraded, status: "False", lastTransitionTime: null, newField: d}
`, func(co *configv1.ClusterOperator) error {
			c := co.Status.Conditions
			c[1].Status = configv1.ConditionFalse
			co.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Progressing", Status: "True"}, c[1], c[0]}
			return nil
		})
	})
	t.Run("elements by name, nested", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{}, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns}
spec:
  newSpec: x
  selector: null
  template:
    spec:
      containers:
      - {name: a, image: one, newField: a, env: [{name: X, value: "1", newField: x}], resources: {newField: 1}}
      - {name: b, image: two, newField: b, ports: [{containerPort: 1, protocol: TCP, new: t}, {containerPort: 1, protocol: UDP, new: u}]}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns}
spec:
  newSpec: x
  selector: null
  template:
    spec:
      containers:
      - {name: b, image: two, newField: b, ports: [{containerPort: 1, protocol: UDP, hostPort: 9, new: u}, {containerPort: 1, protocol: TCP, new: t}]}
      - {name: a, image: three, newField: a, env: [{name: W}, {name: X, value: "1", newField: x}], resources: {newField: 1, limits: {cpu: "1"}}}
`, func(d *appsv1.Deployment) error {
			c := d.Spec.Template.Spec.Containers
			c[0].Image = "three"
			c[0].Env = append([]corev1.EnvVar{{Name: "W"}}, c[0].Env...)
			c[0].Resources.Limits = corev1.ResourceList{"cpu": *quantity("1")}
			c[1].Ports[1].HostPort = 9
			c[1].Ports[0], c[1].Ports[1] = c[1].Ports[1], c[1].Ports[0]
			c[0], c[1] = c[1], c[0]
			return nil
		})
	})
	t.Run("elements by several keys", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{}, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec:
  clusterID: x
  overrides:
  - {kind: Deployment, group: apps, namespace: a, name: x, unmanaged: true, new: 1}
  - {kind: Deployment, group: apps, namespace: b, name: x, unmanaged: true, new: 2}
  signatureStores:
  - {url: "https://b", new: b}
  - {url: "https://a", new: a}
`, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec:
  clusterID: x
  overrides:
  - {kind: Deployment, group: apps, namespace: b, name: x, unmanaged: false, new: 2}
  signatureStores:
  - {url: "https://a", new: a, ca: {name: c}}
`, func(cv *configv1.ClusterVersion) error {
			cv.Spec.Overrides = cv.Spec.Overrides[1:]
			cv.Spec.Overrides[0].Unmanaged = false
			cv.Spec.SignatureStores = cv.Spec.SignatureStores[1:]
			cv.Spec.SignatureStores[0].CA.Name = "c"
			return nil
		})
	})
	t.Run("elements by position", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{}, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  tolerations: [{key: a, new: 1}, {key: b, new: 2}]
`, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  tolerations: [{key: c, new: 1}, {key: b, operator: Exists, new: 2}]
`, func(p *corev1.Pod) error {
			p.Spec.Tolerations[0].Key = "c"
			p.Spec.Tolerations[1].Operator = "Exists"
			return nil
		})
	})
	t.Run("history grows at the front", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  availableUpdates: null
  history:
  - {state: Partial, startedTime: "2026-01-02T00:00:00Z", completionTime: null, version: 4.18.2, image: b, verified: true, new: b}
  - {state: Completed, startedTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T01:00:00Z", version: 4.18.1, image: a, verified: false, new: a}
`, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  availableUpdates: null
  history:
  - {state: Partial, startedTime: "2026-01-03T00:00:00Z", completionTime: null, version: 4.18.3, image: c, verified: true}
  - {state: Partial, startedTime: "2026-01-02T00:00:00Z", completionTime: "2026-01-03T00:00:00Z", version: 4.18.2, image: b, verified: true, new: b}
  - {state: Completed, startedTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T01:00:00Z", version: 4.18.1, image: a, verified: false, new: a}
`, func(cv *configv1.ClusterVersion) error {
			now := metav1.NewTime(*date("2026-01-03T00:00:00Z"))
			cv.Status.History[0].CompletionTime = &now
			cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, StartedTime: now, Version: "4.18.3", Image: "c", Verified: true}}, cv.Status.History...)
			return nil
		})
	})
	t.Run("elements of a key that occurs twice, by position", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd}
status:
  extension: null
  conditions: [{type: A, status: "True", lastTransitionTime: null, new: 1}, {type: A, status: "True", lastTransitionTime: null, new: 2}]
`, `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: etcd}
status:
  extension: null
  conditions: [{type: A, status: "False", lastTransitionTime: null, new: 1}, {type: A, status: Unknown, lastTransitionTime: null, new: 2}]
`, func(co *configv1.ClusterOperator) error {
			co.Status.Conditions[0].Status = "False"
			co.Status.Conditions[1].Status = "Unknown"
			return nil
		})
	})
	t.Run("elements within a map", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{}, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x}
groups:
  one: {new: 1, members: [{name: a, size: 1, new: a}, {name: b, size: 2, new: b}]}
  two: {new: 2}
  three: {new: 3}
`, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x}
groups:
  one: {new: 1, members: [{name: b, size: 3, new: b}, {name: a, size: 4, new: a}]}
  two: {new: 2, members: [{name: c}]}
`, func(x *thing) error {
			delete(x.Groups, "three")
			x.Groups["one"] = thingGroup{Members: []thingMember{{"b", 3}, {"a", 4}}}
			x.Groups["two"] = thingGroup{Members: []thingMember{{Name: "c"}}}
			return nil
		})
	})
	t.Run("a struct that becomes zero", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{}, `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker, annotations: {a: b}}
spec: {paused: true, configuration: {name: x, new: 1}}
`, `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec: {paused: false, configuration: {new: 1}}
`, func(p *mcfgv1.MachineConfigPool) error {
			p.Annotations = nil
			p.Spec.Paused = false
			p.Spec.Configuration.Name = ""
			return nil
		})
	})
}

func TestModifyWritesNulls(t *testing.T) {
	modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  availableUpdates: [{version: 4.18.2, image: b}]
  history: [{state: Partial, startedTime: null, completionTime: "2026-01-01T01:00:00Z", image: a, version: v, verified: false}]
`, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status:
  availableUpdates: null
  history: [{state: Partial, startedTime: null, completionTime: null, image: a, version: v, verified: false}]
`, func(cv *configv1.ClusterVersion) error {
		cv.Status.AvailableUpdates = nil
		cv.Status.History[0].CompletionTime = nil
		return nil
	})
	t.Run("that were absent", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {versionHash: a}
`, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {versionHash: b, availableUpdates: null}
`, func(cv *configv1.ClusterVersion) error { cv.Status.VersionHash = "b"; return nil })
	})
	t.Run("status for the first time", func(t *testing.T) {
		modified(t, clusterapi.ModifyOptions{Status: true}, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
`, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {versionHash: b, availableUpdates: null, observedGeneration: 0, capabilities: {}, desired: {version: "", image: ""}}
`, func(cv *configv1.ClusterVersion) error { cv.Status.VersionHash = "b"; return nil })
	})
}

// thing is a kind of ours, with a status that may be absent.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   thingSpec             `json:"spec,omitzero"`
	Groups map[string]thingGroup `json:"groups,omitempty"`
	Status *thingStatus          `json:"status,omitempty"`
}

type thingGroup struct {
	Members []thingMember `json:"members,omitempty" patchMergeKey:"name"`
}

type thingMember struct {
	Name string `json:"name"`
	Size int8   `json:"size,omitempty"`
}

type thingSpec struct {
	Size int8 `json:"size,omitempty"`
}

type thingStatus struct {
	Phase string `json:"phase,omitempty"`
}

func (*thing) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
}

func TestModifyRemovesStatus(t *testing.T) {
	const without = `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}`
	const with = `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, status: {phase: A, new: 1}}`
	status := clusterapi.ModifyOptions{Status: true}
	modified(t, status, with, without, func(x *thing) error { x.Status = nil; return nil })
	modified(t, status, with, strings.Replace(with, "phase: A, ", "", 1), func(x *thing) error { x.Status.Phase = ""; return nil })
	modified(t, status, without, strings.Replace(with, ", new: 1", "", 1), func(x *thing) error { x.Status = &thingStatus{Phase: "A"}; return nil })
}

func TestModifyOfStatusWritesNothingElse(t *testing.T) {
	modified(t, clusterapi.ModifyOptions{Status: true},
		`{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {size: 1}}`,
		`{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {size: 1}, status: {phase: A}}`,
		func(x *thing) error {
			x.Labels = map[string]string{"a": "b"}
			x.Spec.Size = 2
			x.Status = &thingStatus{Phase: "A"}
			return nil
		})
}

func TestModifyKeepsUnknownFieldsOfAZeroStruct(t *testing.T) {
	const before = `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {size: 1, new: 1}}`
	clear := func(x *thing) error { x.Spec = thingSpec{}; return nil }
	modified(t, clusterapi.ModifyOptions{}, before, strings.Replace(before, "size: 1, ", "", 1), clear)
	modified(t, clusterapi.ModifyOptions{}, strings.Replace(before, ", new: 1", "", 1), `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}`, clear)
}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: ns, resourceVersion: "5"}
data: {count: "0"}
`

func TestModifyWrites(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name      string
		opts      clusterapi.ModifyOptions
		conflicts int
		f         func(*corev1.ConfigMap) error
		calls     int
		writes    []string
		want      func(error) bool
	}{
		{name: "no difference", f: func(cm *corev1.ConfigMap) error { cm.Data["count"] = "0"; return nil }, calls: 1},
		{name: "a difference", f: func(cm *corev1.ConfigMap) error { cm.Data["count"] = "1"; return nil }, calls: 1, writes: []string{"Update"}},
		{name: "an error of the function", f: func(cm *corev1.ConfigMap) error { cm.Data["count"] = "1"; return boom }, calls: 1,
			want: func(err error) bool { return err == boom }},
		{name: "five conflicts", conflicts: 5, f: func(cm *corev1.ConfigMap) error { cm.Data["count"] += "1"; return nil }, calls: 6, writes: []string{"Update"}},
		{name: "six conflicts", conflicts: 6, f: func(cm *corev1.ConfigMap) error { cm.Data["count"] += "1"; return nil }, calls: 6, want: apierrors.IsConflict},
		{name: "one retry", conflicts: 2, opts: clusterapi.ModifyOptions{Retries: 1}, f: func(cm *corev1.ConfigMap) error { cm.Data["count"] += "1"; return nil }, calls: 2, want: apierrors.IsConflict},
		{name: "no retry", conflicts: 1, opts: clusterapi.ModifyOptions{Once: true}, f: func(cm *corev1.ConfigMap) error { cm.Data["count"] += "1"; return nil }, calls: 1, want: apierrors.IsConflict},
		{name: "another kind", f: func(cm *corev1.ConfigMap) error {
			cm.TypeMeta = metav1.TypeMeta{APIVersion: "v2", Kind: "Other"}
			return nil
		}, calls: 1},
		{name: "outside of status", opts: clusterapi.ModifyOptions{Status: true}, f: func(cm *corev1.ConfigMap) error { cm.Data["count"] = "1"; return nil }, calls: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the delays between attempts take no time
				testModifyWrites(t, tc.opts, tc.conflicts, tc.f, tc.calls, tc.writes, tc.want)
			})
		})
	}
}

func testModifyWrites(t *testing.T, opts clusterapi.ModifyOptions, conflicts int, f func(*corev1.ConfigMap) error, wantCalls int, wantWrites []string, wantErr func(error) bool) {
	api := &fake{obj: object(t, configMap), conflicts: conflicts}
	calls := 0
	_, err := clusterapi.Modify(t.Context(), api, clusterapi.KeyOf(api.obj), opts, func(cm *corev1.ConfigMap) error {
		calls++
		checktest.Equal(t, "0", cm.Data["count"], "call %d saw", calls)
		return f(cm)
	})
	checktest.FailIf(t, (err != nil) != (wantErr != nil) || err != nil && !wantErr(err), "error %v", err)
	checktest.FailIf(t, calls != wantCalls, "the function was called %d times, want %d", calls, wantCalls)
	checktest.SameIn(t, "writes", wantWrites, api.writes)
	checktest.FailIf(t, len(api.writes) > 0 && api.obj.GetResourceVersion() != "5",
		"written with resourceVersion %q, want the one read", api.obj.GetResourceVersion())
}

func TestModifyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	api := &fake{obj: object(t, configMap), conflicts: 1000}
	_, err := clusterapi.Modify(ctx, api, clusterapi.KeyOf(api.obj), clusterapi.ModifyOptions{Retries: 1000}, func(cm *corev1.ConfigMap) error {
		cancel()
		cm.Data["count"] = "1"
		return nil
	})
	checktest.ErrorIs(t, context.Canceled, err)
}

func TestFromUnstructured(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"string for number", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: "3"}}`,
			"Deployment ns/d: spec.replicas: got a JSON string, want int32"},
		{"element", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: a}, {name: 5}]}}}}`,
			"Deployment d: spec.template.spec.containers[1].name: got a JSON number, want string"},
		{"list for map", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: [a]}}`,
			"Deployment d: metadata.labels: got a JSON array, want map[string]string"},
		{"number out of range", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3000000000}}`,
			"Deployment d: spec.replicas: got a JSON number 3000000000, want int32"},
		{"negative number out of range", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{}, {ports: [{containerPort: -2147483649}]}]}}}}`,
			"Deployment d: spec.template.spec.containers[1].ports[0].containerPort: got a JSON number -2147483649, want int32"},
		{"float out of range", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 1.0e+30}}`,
			"Deployment d: metadata.generation: got a JSON number 1e+30, want int64"},
		{"time", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, creationTimestamp: yesterday}}`,
			`Deployment d: metadata.creationTimestamp: parsing time`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := clusterapi.FromUnstructured[appsv1.Deployment](object(t, tc.text))
			checktest.FailIf(t, err == nil || !strings.HasPrefix(err.Error(), tc.want),
				"got %v, want %s", err, tc.want)
		})
	}
	d, err := clusterapi.FromUnstructured[appsv1.Deployment](object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {unknown: 1}}`))
	checktest.FailIf(t, err != nil || d.Name != "d", "an unknown field: got %v, %v", d, err)
	ends := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 9223372036854775807}, spec: {replicas: 2147483647, minReadySeconds: -2147483648, unknown: 3000000000, revisionHistoryLimit: null}}`)
	if d, err = clusterapi.FromUnstructured[appsv1.Deployment](ends); err != nil || *d.Spec.Replicas != math.MaxInt32 || d.Generation != math.MaxInt64 {
		t.Errorf("the ends of the ranges: %v", err)
	}
	network := object(t, `{apiVersion: config.openshift.io/v1, kind: Network, metadata: {name: cluster}, spec: {clusterNetwork: [{cidr: 10.0.0.0/8, hostPrefix: -1}]}}`)
	checktest.ErrorHas(t, "spec.clusterNetwork[0].hostPrefix", checktest.Err(
		clusterapi.FromUnstructured[configv1.Network](network)))
	small := object(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {size: 128}}`)
	if _, err := clusterapi.FromUnstructured[thing](small); err == nil || err.Error() != "Thing x: spec.size: got a JSON number 128, want int8" {
		t.Errorf("the smallest type: %v", err)
	}
	checktest.Fails(t, checktest.Err(clusterapi.FromUnstructured[appsv1.Deployment](nil)), "nil converted")
}

func TestToUnstructured(t *testing.T) {
	u := checktest.Get(clusterapi.ToUnstructured(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}))(t)
	checktest.Equal(t, (schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}),
		u.GroupVersionKind(), "kind")
	named := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Own"}}
	if o, err := clusterapi.ToUnstructured(named); err != nil || o.GetAPIVersion() != "example.com/v1" || o.GetKind() != "Own" {
		t.Errorf("a kind that the object names: got %v, %v", o, err)
	}
	same := checktest.Get(clusterapi.ToUnstructured(u))(t)
	same.SetName("changed")
	checktest.Equal(t, "d", u.GetName(), "the result shares the object")
	for _, bad := range []any{nil, appsv1.Deployment{}, (*appsv1.Deployment)(nil), &struct{}{}, new(int)} {
		checktest.Fails(t, checktest.Err(clusterapi.ToUnstructured(bad)), "%T converted", bad)
	}
	type own struct {
		Name string `json:"name"`
	}
	checktest.Fails(t, checktest.Err(
		clusterapi.Get[own](t.Context(), nil, clusterapi.Key("", "x"))), "a type without a kind was read")
	data, _ := json.Marshal(u.Object["metadata"])
	checktest.Equal(t, `{"name":"d"}`, string(data), "metadata %s", data)
}
