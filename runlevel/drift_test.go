package runlevel

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// watched is a cluster whose changes reach a Tracker, as watches would bring them.
type watched struct {
	t       testing.TB
	c       *memory.Cluster
	tasks   []*manifest.Task
	tracker *Tracker
	clock   *testclock.FakeClock
	kinds   []WatchedKind
	cursor  clusterapi.Cursor
	always  bool
	api     API // of passes
	mode    Mode
	filter  manifest.Filter
	uid     types.UID // of the owner
	fail    func(memory.Call) error

	mu     sync.Mutex
	calls  []string // "Verb Kind name", of passes alone
	events []clusterapi.Event
	count  bool
}

func watch(t testing.TB, tasks []*manifest.Task, loaded ...*unstructured.Unstructured) *watched {
	t.Helper()
	return watchIn(t, ApplyServerSide, tasks, loaded...)
}

// watchIn watches for passes in a mode.
func watchIn(t testing.TB, mode Mode, tasks []*manifest.Task, loaded ...*unstructured.Unstructured) *watched {
	t.Helper()
	w := &watched{t: t, tasks: tasks, mode: mode, uid: "uid", clock: testclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	w.c = memory.NewOpenShift(memory.Options{Clock: w.clock, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		w.mu.Lock()
		if w.count {
			w.calls = append(w.calls, call.Verb+" "+call.GVK.Kind+" "+shortName(call.Key))
		}
		w.mu.Unlock()
		if w.fail != nil {
			if err := w.fail(call); err != nil {
				return err
			}
		}
		return do(ctx)
	}})
	checktest.OK(t, w.c.Load(loaded...))
	w.api = w.c
	w.tracker = NewTracker(w.clock)
	w.begin()
	return w
}

// begin begins to watch.
func (w *watched) begin() {
	w.t.Helper()
	w.kinds = w.tracker.Watch(w.tasks, w.filter)
	w.cursor = w.c.Follow()
	for _, k := range w.kinds {
		list, err := w.c.List(w.t.Context(), k.GVK, clusterapi.ListOptions{Namespace: k.Namespace})
		if err != nil {
			continue
		}
		for i := range list.Items {
			w.tracker.Observe(nil, w.kept(clusterapi.NewObject(&list.Items[i])))
		}
	}
}

func (w *watched) kept(o *clusterapi.Object) *clusterapi.Object {
	if o == nil {
		return nil
	}
	for _, k := range w.kinds {
		if k.GVK.GroupKind() == o.Kind().GroupKind() && (k.Namespace == "" || k.Namespace == o.Key().Namespace) {
			return clusterapi.NewObject(k.Trim(o.Unstructured()))
		}
	}
	return nil
}

// tell hands on what has changed.
func (w *watched) tell() {
	for change, ok := w.cursor.Next(); ok; change, ok = w.cursor.Next() {
		w.deliver(change)
	}
}

func (w *watched) deliver(change clusterapi.Change) {
	w.tracker.Observe(w.kept(change.Old), w.kept(change.New))
}

// pass makes a pass and returns its calls.
func (w *watched) pass(state State) []string {
	w.t.Helper()
	w.mu.Lock()
	w.calls, w.count, w.events = nil, true, nil
	w.mu.Unlock()
	_, err := Run(w.t.Context(), w.tasks, Options{
		API: w.api, State: state, Tracker: w.tracker, Backoff: &Backoff{Steps: 1}, Workers: 1, ApplyAlways: w.always, Mode: w.mode, Filter: w.filter,
		Clock: testclock.NewFakeClock(w.clock.Now()), Owner: w.owner(),
		Observe: func(e clusterapi.Event) { w.events = append(w.events, e) },
	})
	if err != nil {
		w.t.Fatal(causeOf(err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count = false
	return w.calls
}

func (w *watched) owner() *metav1.OwnerReference {
	return &metav1.OwnerReference{Name: "version", UID: w.uid}
}

// settled makes passes until all is recorded and trusted.
func (w *watched) settled() {
	w.t.Helper()
	w.pass(Updating)
	w.tell()
	w.pass(Reconciling)
	w.tell()
	if calls := w.pass(Reconciling); len(calls) > 0 {
		w.t.Fatalf("calls over an unchanged cluster: %v", calls)
	}
}

// told are the drifts of the last pass.
func (w *watched) told() []Drift {
	var out []Drift
	for _, e := range w.events {
		if e.Type == EventDrifted {
			out = append(out, *progressOf(e).Drift)
		}
	}
	return out
}

// texts are the texts of the drifts of the last pass.
func (w *watched) texts() []string {
	var out []string
	for _, d := range w.told() {
		out = append(out, d.Text())
	}
	return out
}

const (
	driftDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, labels: {app.io/a: x, b: w}}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: i, env: [{name: DB_PASSWORD, value: old}]}, {name: token-b, image: i, env: [{name: LEVEL, value: one}]}], volumes: [{name: v, secret: {secretName: s}}]}}}}`
	driftConfigMap  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x, b: w}}`
	driftSecret     = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, finalizers: [example.io/token, example.io/x]}, data: {a: aGlkZGVu}, type: Opaque}`
	driftCRD        = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.io}, spec: {group: example.io, scope: Namespaced, names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: one}}}]}}`
	driftOnce       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: once, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}, data: {a: x}}`
	driftNamespace  = `{apiVersion: v1, kind: Namespace, metadata: {name: ns, annotations: {}, labels: {}}}`
)

// driftOperator is a ClusterOperator's manifest.
const driftOperator = `{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: o, annotations: {a: x}}, spec: {}, status: {versions: [{name: operator, version: "1"}]}}`

// goodOperator is one as its operator reports it.
const goodOperator = `{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: o, uid: 11111111-2222-3333-4444-555555555555}, spec: {}, status: {versions: [{name: operator, version: "1"}], conditions: [{type: Available, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: Degraded, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`

const (
	driftDaemonSet = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds, namespace: ns}, spec: {selector: {matchLabels: {app: ds}}, template: {metadata: {labels: {app: ds}}, spec: {containers: [{name: a, image: i}]}}}}`
	driftJob       = `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}`
)

func driftTasks(t testing.TB) []*manifest.Task {
	return tasksOf(t, driftDaemonSet, driftJob, driftNamespace, driftConfigMap, driftSecret, driftDeployment, driftCRD, driftOnce, driftOperator)
}

func newDrift(t testing.TB) *watched { return newDriftIn(t, ApplyServerSide) }

func newDriftIn(t testing.TB, mode Mode) *watched {
	w := watchIn(t, mode, driftTasks(t), object(t, goodOperator))
	w.settled()
	return w
}

var (
	configMaps1   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployments1  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	namespaces1   = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	secrets1      = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	jobs1         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	crds1         = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	operators1    = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"}
	someoneUpdate = clusterapi.UpdateOptions{FieldManager: "someone"}
)

// change changes an object by an Update of somebody's.
func (w *watched) change(kind schema.GroupVersionKind, namespace, name string, f func(u *unstructured.Unstructured)) {
	w.t.Helper()
	u, err := w.c.Get(w.t.Context(), kind, clusterapi.Key(namespace, name))
	if err != nil {
		w.t.Fatal(err)
	}
	f(u)
	if _, err := w.c.Update(w.t.Context(), u, someoneUpdate); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) apply(text string) {
	w.t.Helper()
	if _, err := w.c.Apply(w.t.Context(), object(w.t, text), clusterapi.ApplyOptions{FieldManager: "kubectl"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) remove(kind schema.GroupVersionKind, namespace, name string) {
	w.t.Helper()
	if err := w.c.Delete(w.t.Context(), kind, clusterapi.Key(namespace, name), clusterapi.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func set(t testing.TB, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	checktest.OK(t, unstructured.SetNestedField(u.Object, value, path...))
}

// container returns a container of the Deployment.
func containers(u *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "containers")
	return list.([]any)
}

// Each way in which an object may drift is found at the next pass, told with who
// did it, and repaired by one apply.
func TestDrift(t *testing.T) {
	update := []FieldOwner{{Manager: "someone", Operation: "Update"}}
	apply := []FieldOwner{{Manager: "kubectl", Operation: "Apply"}}
	for name, tc := range map[string]struct {
		drift  func(w *watched)
		kind   string
		fields []DriftedField
		gone   bool
		again  bool
		text   string
	}{
		"field by Update": {
			drift: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
			kind: "ConfigMap", fields: []DriftedField{{Path: "data.a", Wanted: "x", Found: "z", Owners: update}},
			text: "ConfigMap ns/c was changed: data.a by someone (Update)",
		},
		"field by Apply": {
			drift: func(w *watched) {
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: z}}`)
			},
			kind: "ConfigMap", fields: []DriftedField{{Path: "data.b", Wanted: "w", Found: "z", Owners: apply}},
		},
		"fields by two": {
			drift: func(w *watched) {
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: z}}`)
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
			kind: "ConfigMap", fields: []DriftedField{
				{Path: "data.a", Wanted: "x", Found: "z", Owners: update}, {Path: "data.b", Wanted: "w", Found: "z", Owners: apply},
			},
		},
		"taken over and put back": {
			drift: func(w *watched) {
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: z}}`)
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: w}}`)
			},
			kind: "ConfigMap", fields: []DriftedField{{Path: "data.b", Wanted: "w", Found: "w", Owners: apply}},
		},
		"secret": {
			drift: func(w *watched) {
				w.change(secrets1, "ns", "s", func(u *unstructured.Unstructured) {
					set(t, u, "Zm91bmQ=", "data", "a")
				})
			},
			kind: "Secret", fields: []DriftedField{{Path: "data.a", Wanted: "(redacted)", Found: "(redacted)", Owners: update}},
		},
		"element changed": {
			drift: func(w *watched) {
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) { containers(u)[1].(map[string]any)["image"] = "other" })
			},
			kind: "Deployment", fields: []DriftedField{{Path: "spec.template.spec.containers[name=token-b].image", Wanted: "i", Found: "other", Owners: update}},
		},
		"element removed": {
			drift: func(w *watched) {
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) {
					set(t, u, containers(u)[:1], "spec", "template", "spec", "containers")
				})
			},
			kind: "Deployment", fields: []DriftedField{{Path: "spec.template.spec.containers[name=token-b]",
				Wanted: map[string]any{"name": "token-b", "image": "i", "env": []any{map[string]any{"name": "LEVEL", "value": "one"}}}}},
		},
		"credential": {
			drift: func(w *watched) {
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) {
					containers(u)[0].(map[string]any)["env"].([]any)[0].(map[string]any)["value"] = "new"
				})
			},
			kind: "Deployment", fields: []DriftedField{{
				Path:   "spec.template.spec.containers[name=a].env[name=DB_PASSWORD].value",
				Wanted: "(redacted)", Found: "(redacted)", Owners: update,
			}},
		},
		"no credential, though what holds it is named like one": {
			drift: func(w *watched) {
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) {
					containers(u)[1].(map[string]any)["env"].([]any)[0].(map[string]any)["value"] = "two"
					volumes, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "volumes")
					volumes.([]any)[0].(map[string]any)["secret"].(map[string]any)["secretName"] = "t"
				})
			},
			kind: "Deployment", fields: []DriftedField{
				{Path: "spec.template.spec.containers[name=token-b].env[name=LEVEL].value", Wanted: "one", Found: "two", Owners: update},
				{Path: "spec.template.spec.volumes[name=v].secret.secretName", Wanted: "s", Found: "t", Owners: update},
			},
		},
		"element of a set removed": {
			drift: func(w *watched) {
				w.change(secrets1, "ns", "s", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.io/x"}) })
			},
			kind: "Secret", fields: []DriftedField{{Path: `metadata.finalizers[="example.io/token"]`, Wanted: "example.io/token"}},
		},
		"credential in a value that is one": {
			drift: func(w *watched) {
				w.change(crds1, "", "widgets.example.io", func(u *unstructured.Unstructured) {
					versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
					schema := versions.([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
					schema["default"] = map[string]any{"env": []any{map[string]any{"name": "TOKEN", "value": "new"}}, "url": "http://me:new@proxy"}
				})
			},
			kind: "CustomResourceDefinition", fields: []DriftedField{{Path: "spec.versions[0].schema.openAPIV3Schema.default", Found: map[string]any{
				"env": []any{map[string]any{"name": "TOKEN", "value": "(redacted)"}}, "url": "http://(redacted)@proxy"}, Owners: update}},
		},
		"label removed": {
			drift: func(w *watched) {
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) {
					unstructured.RemoveNestedField(u.Object, "metadata", "labels", "app.io/a")
				})
			},
			kind: "Deployment", fields: []DriftedField{{Path: `metadata.labels["app.io/a"]`, Wanted: "x"}},
			text: `Deployment ns/d was changed: metadata.labels["app.io/a"] removed`,
		},
		"owner removed": {
			drift: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
			},
			kind: "ConfigMap", fields: []DriftedField{{Path: "metadata.ownerReferences[uid=uid]", Wanted: map[string]any{
				"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "uid": "uid", "controller": true}}},
		},
		"inside a value that is one": {
			drift: func(w *watched) {
				w.change(crds1, "", "widgets.example.io", func(u *unstructured.Unstructured) {
					versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
					schema := versions.([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
					schema["description"] = "two"
				})
			},
			kind: "CustomResourceDefinition", fields: []DriftedField{{Path: "spec.versions[0].schema.openAPIV3Schema.description", Wanted: "one", Found: "two", Owners: update}},
		},
		"operator's metadata": {
			drift: func(w *watched) {
				w.change(operators1, "", "o", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "z"}) })
			},
			kind: "ClusterOperator", fields: []DriftedField{{Path: "metadata.annotations.a", Wanted: "x", Found: "z", Owners: update}},
		},
		"deleted": {
			drift: func(w *watched) { w.remove(configMaps1, "ns", "c") },
			kind:  "ConfigMap", gone: true, text: "ConfigMap ns/c was deleted",
		},
		"definition deleted": {
			drift: func(w *watched) { w.remove(crds1, "", "widgets.example.io") },
			kind:  "CustomResourceDefinition", gone: true,
		},
		"created only": {
			drift: func(w *watched) { w.remove(configMaps1, "ns", "once") },
			kind:  "ConfigMap", gone: true, text: "ConfigMap ns/once was deleted",
		},
		"deleted and created again": {
			drift: func(w *watched) {
				w.remove(configMaps1, "ns", "c")
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}`)
			},
			kind: "ConfigMap", again: true, fields: []DriftedField{
				{Path: "data.a", Wanted: "x", Found: "x", Owners: apply},
				{Path: "data.b", Wanted: "w"},
				{Path: "metadata.ownerReferences[uid=uid]", Wanted: map[string]any{
					"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "uid": "uid", "controller": true}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDrift(t)
			before := w.objects()
			w.clock.Step(time.Minute)
			tc.drift(w)
			w.tell()
			w.clock.Step(time.Minute)
			calls := w.pass(Reconciling)
			told := w.told()
			if len(told) != 1 {
				t.Fatalf("told %+v; calls %v", told, calls)
			}
			d := told[0]
			if d.Identity.Kind != tc.kind || d.Gone != tc.gone || d.Recreated != tc.again || d.File != "0000_10_a_x.yaml" || !d.Time.Equal(w.clock.Now()) {
				t.Errorf("told %+v", d)
			}
			if diff := cmp.Diff(tc.fields, withoutDigits(t, d.Fields), cmpopts.IgnoreFields(FieldOwner{}, "Time"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("fields (-want +got): %s", diff)
			}
			if tc.text != "" && d.Text() != tc.text {
				t.Errorf("text %q", d.Text())
			}
			if diff := cmp.Diff(told, w.tracker.Drifts()); diff != "" {
				t.Errorf("kept: %s", diff)
			}
			if diff := cmp.Diff(before, w.objects()); diff != "" {
				t.Errorf("not repaired: %s", diff)
			}
			w.tell()
			if calls := w.pass(Reconciling); len(calls) > 0 {
				t.Errorf("calls after the repair: %v", calls)
			}
		})
	}
}

// objects are what the manifests are about, without what tells states apart.
func (w *watched) objects() map[string]any {
	w.t.Helper()
	out := make(map[string]any)
	for _, task := range w.tasks {
		u, err := w.c.Get(w.t.Context(), task.Manifest.GVK(), clusterapi.KeyOf(task.Manifest.Object()))
		if err != nil {
			if !meta.IsNoMatchError(err) {
				out[task.Manifest.Identity().String()] = err.Error()
			}
			continue
		}
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		if u.GetKind() != "ClusterOperator" {
			delete(u.Object, "status")
		}
		out[task.Manifest.Identity().String()] = u.Object
	}
	return out
}

// manyFields is a cluster in which 150 fields of an object have drifted, the first
// of them a long one.
func manyFields(t testing.TB) *watched {
	data := make(map[string]any)
	for i := range 150 {
		data[fmt.Sprintf("k%03d", i)] = "x"
	}
	data["k000"] = strings.Repeat("x", 5000)
	raw := checktest.Get(json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "ns"}, "data": data}))(t)
	w := watch(t, tasksOf(t, string(raw)))
	w.settled()
	w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) {
		for key := range data {
			set(t, u, "z", "data", key)
		}
	})
	w.tell()
	return w
}

// manyObjects is a cluster in which 120 objects are gone.
func manyObjects(t testing.TB) *watched {
	var many []string
	for i := range 120 {
		many = append(many, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: m%03d, namespace: ns}}", i))
	}
	w := watch(t, tasksOf(t, many...))
	w.settled()
	for i := range 120 {
		w.remove(configMaps1, "ns", fmt.Sprintf("m%03d", i))
	}
	w.tell()
	return w
}

// What a Tracker is told of objects that it does not know changes nothing, and
// nothing does harm.
func TestSawOdd(t *testing.T) {
	w := newDrift(t)
	w.tracker.Observe(nil, nil)
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: elsewhere, uid: x, resourceVersion: "9"}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: ns, uid: x, resourceVersion: "9"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, uid: x, resourceVersion: "1"}}`, // of another one, long ago
	} {
		w.tracker.Observe(nil, clusterapi.NewObject(object(t, text)))
		w.tracker.Observe(clusterapi.NewObject(object(t, text)), nil)
	}
	if calls := w.pass(Reconciling); len(calls) > 0 {
		t.Errorf("calls %v", calls)
	}
	// managedFields of any form
	for _, fields := range []any{nil, "x", []any{"x", map[string]any{"manager": clusterapi.ManagerPayload, "operation": "Apply", "fieldsV1": map[string]any{
		"": nil, "x": "y", "f:metadata": map[string]any{"k:{": map[string]any{}, "v:1": nil, "i:x": nil, "i:7": nil, "q:x": nil},
	}}}} {
		u := object(t, driftConfigMap)
		u.Object["metadata"].(map[string]any)["managedFields"] = fields
		w.tracker.Observe(nil, clusterapi.NewObject(WatchedKind{}.Trim(u)))
	}
}

var digits = regexp.MustCompile(`\(redacted-[0-9a-f]{12}\)`)

// withoutDigits returns fields with hidden values as (redacted); where both of a
// field are hidden, they must be seen to differ.
func withoutDigits(t *testing.T, fields []DriftedField) []DriftedField {
	t.Helper()
	var plain func(v any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case string:
			return digits.ReplaceAllString(v, "(redacted)")
		case map[string]any:
			out := map[string]any{}
			for key, e := range v {
				out[key] = plain(e)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, e := range v {
				out[i] = plain(e)
			}
			return out
		}
		return v
	}
	out := slices.Clone(fields)
	for i, f := range fields {
		if wanted, ok := f.Wanted.(string); ok && digits.MatchString(wanted) && f.Wanted == f.Found {
			t.Errorf("%s: %v in both", f.Path, wanted)
		}
		out[i].Wanted, out[i].Found = plain(f.Wanted), plain(f.Found)
	}
	return out
}
