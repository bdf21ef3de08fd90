package runlevel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// What others add is not drift. It costs one apply, which changes nothing; what an
// operator or a controller reports costs none.
func TestForeignChangesAreNoDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *watched)
		calls  []string
	}{
		"label": {func(w *watched) {
			w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"theirs": "x"}) })
		}, []string{"Get ConfigMap ns/c", "Apply ConfigMap ns/c"}},
		"label where ours are none": {func(w *watched) {
			w.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {theirs: x}}}`)
		}, []string{"Get Namespace ns", "Apply Namespace ns"}},
		"annotation where ours are none": {func(w *watched) {
			w.change(namespaces1, "", "ns", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"theirs": "x"}) })
		}, []string{"Get Namespace ns", "Apply Namespace ns"}},
		"field": {func(w *watched) {
			w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {theirs: x}}`)
		}, []string{"Get ConfigMap ns/c", "Apply ConfigMap ns/c"}},
		"element": {func(w *watched) {
			w.apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: sidecar, image: x}]}}}}`)
		}, []string{"Get Deployment ns/d", "Apply Deployment ns/d"}},
		"same value": {func(w *watched) {
			w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}`)
		}, nil},
		"created only": {func(w *watched) {
			w.change(configMaps1, "ns", "once", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
		}, nil},
		"status": {func(w *watched) {
			checktest.Get(clusterapi.Modify(t.Context(), w.c, clusterapi.Key("", "o"), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
				co.Status.Conditions[0].Message = "new"
				return nil
			}))(t)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDrift(t)
			tc.change(w)
			for _, calls := range [][]string{tc.calls, nil} {
				w.tell()
				checktest.Same(t, calls, w.pass(Reconciling))
				checktest.Equal(t, 0, len(w.told()), "drifts: %+v", w.told())
			}
		})
	}
}

// Readiness is judged by what the watch showed last.
func TestLedgerJudges(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      schema.GroupVersionKind
		namespace string
		object    string
		status    map[string]any
		want      string
	}{
		"deployment": {deployments1, "ns", "d", map[string]any{"conditions": []any{
			map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "Quota", "message": "no room"}}}, "replica failure"},
		"definition": {crds1, "", "widgets.example.io", map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "False", "reason": "Gone", "message": "not served"}}}, "not served"},
		"job": {schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "ns", "j", map[string]any{"failed": int64(1), "conditions": []any{
			map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}}}, "too often"},
		"daemon set": {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, "ns", "ds", nil, "is being deleted"},
		"operator": {operators1, "", "o", map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "status": "False", "reason": "Down", "message": "it is down", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}, "it is down"},
	} {
		for _, mode := range []Mode{ApplyServerSide, ApplyMerge} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				w := newDriftIn(t, mode)
				u := checktest.Get(w.c.Get(t.Context(), tc.kind, clusterapi.Key(tc.namespace, tc.object)))(t)
				if u.Object["status"] = tc.status; tc.status == nil {
					u.SetDeletionTimestamp(&metav1.Time{Time: w.clock.Now()})
				}
				// as a watch brings it: a server would judge the condition itself
				version := u.GetResourceVersion()
				u.SetResourceVersion(version + "0")
				w.tracker.Observe(nil, w.kept(clusterapi.NewObject(u)))
				w.count, w.calls = true, nil
				res, err := Run(t.Context(), w.tasks, Options{
					API: w.c, State: Reconciling, Mode: mode, Tracker: w.tracker, Backoff: &Backoff{Steps: 1}, Owner: w.owner(),
				})
				if err == nil || !strings.Contains(fmt.Sprint(causeOf(err)), tc.want) || len(w.calls) > 0 {
					t.Errorf("%+v: %v; calls %v", res, err, w.calls)
				}
			})
		}
	}
}

// All is applied where there is nothing to go by.
func TestLedgerNotTrusted(t *testing.T) {
	one := func(kind string) func(calls []string) bool {
		return func(calls []string) bool { return slices.Equal(calls, []string{kind}) }
	}
	all := func(calls []string) bool { return len(calls) >= 7 }
	for name, tc := range map[string]struct {
		change func(w *watched)
		state  State
		want   func(calls []string) bool
	}{
		"nothing changed": {func(*watched) {}, Reconciling, func(calls []string) bool { return len(calls) == 0 }},
		"updating":        {func(*watched) {}, Updating, all},
		"apply always":    {func(w *watched) { w.always = true }, Reconciling, all},
		"after an hour":   {func(w *watched) { w.clock.Step(time.Hour) }, Reconciling, all},
		"clock set back":  {func(w *watched) { w.clock.SetTime(w.clock.Now().Add(-time.Hour)) }, Reconciling, all},
		"watches ended":   {func(w *watched) { w.tracker.Unwatched() }, Reconciling, all},
		"watches began again": {func(w *watched) {
			w.tracker.Unwatched()
			w.begin()
		}, Reconciling, all},
		"another manifest": {func(w *watched) {
			w.tasks = slices.Clone(w.tasks)
			fresh := tasksOf(t, strings.Replace(driftConfigMap, "b: w", "b: v", 1))
			at := slices.IndexFunc(w.tasks, func(task *manifest.Task) bool { return task.Manifest.Identity() == fresh[0].Manifest.Identity() })
			fresh[0].Index = w.tasks[at].Index
			w.tasks[at] = fresh[0]
			w.tracker.Watch(w.tasks, w.filter)
		}, Reconciling, one("Apply ConfigMap ns/c")},
		"an owner with another UID": {func(w *watched) { w.uid = "other" }, Reconciling, all},
		"another mode":              {func(w *watched) { w.mode = ApplyMerge }, Reconciling, all},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDrift(t)
			tc.change(w)
			if calls := w.pass(tc.state); !tc.want(calls) || len(w.told()) > 0 {
				t.Errorf("calls %v, told %v", calls, w.told())
			}
		})
	}
}

// What the cluster's configuration puts into objects is read from the watch, and
// applied when it changes.
func TestLedgerConfiguration(t *testing.T) {
	manifests := tasksOf(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {config.openshift.io/inject-proxy: a}}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: i}]}}}}`)
	w := watch(t, manifests, object(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: one}}`))
	w.settled()
	checktest.Get(clusterapi.Modify(t.Context(), w.c, clusterapi.Key("", "cluster"), clusterapi.ModifyOptions{Status: true}, func(p *configv1.Proxy) error {
		p.Status.HTTPProxy = "two"
		return nil
	}))(t)
	w.tell()
	calls := w.pass(Reconciling)
	if diff := cmp.Diff([]string{"Apply Deployment ns/d"}, calls); diff != "" || len(w.told()) > 0 {
		t.Errorf("calls %s, told %v", diff, w.told())
	}
}

// An object that went stays gone, though its last state is told once more; one that
// another process of ours has created again is another one.
func TestLedgerGone(t *testing.T) {
	w := newDrift(t)
	u := checktest.Get(w.c.Get(t.Context(), configMaps1, clusterapi.Key("ns", "c")))(t)
	last := w.kept(clusterapi.NewObject(u))
	w.remove(configMaps1, "ns", "c")
	w.tracker.Observe(last, nil)
	w.tracker.Observe(nil, last)
	if calls := w.pass(Reconciling); len(calls) != 2 || len(w.told()) != 1 || !w.told()[0].Gone {
		t.Errorf("calls %v, told %+v", calls, w.told())
	}
	w.tell()

	w.remove(configMaps1, "ns", "c")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	u.SetAnnotations(map[string]string{})
	checktest.Get(w.c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}))(t)
	w.tell()
	if calls := w.pass(Reconciling); len(calls) != 2 || len(w.told()) != 1 || !w.told()[0].Recreated {
		t.Errorf("calls %v, told %+v", calls, w.told())
	}
}

// A ClusterOperator that went is created again, which is told once; from then on its
// operator is awaited.
func TestLedgerOperatorGone(t *testing.T) {
	w := newDrift(t)
	w.remove(operators1, "", "o")
	var told []string
	for range 3 {
		w.tell()
		_, err := Run(t.Context(), w.tasks, Options{
			API: w.c, State: Reconciling, Tracker: w.tracker, Backoff: &Backoff{Steps: 1}, Owner: w.owner(),
			Observe: func(e clusterapi.Event) {
				if e.Type == EventDrifted {
					told = append(told, progressOf(e).Drift.Text())
				}
			},
		})
		if err == nil || !strings.Contains(err.Error(), "not available") {
			t.Errorf("%v", err)
		}
	}
	checktest.Same(t, []string{"ClusterOperator o was deleted"}, told)
	checktest.Get(clusterapi.Modify(t.Context(), w.c, clusterapi.Key("", "o"), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		good, err := clusterapi.FromUnstructured[configv1.ClusterOperator](object(t, goodOperator))
		if err == nil {
			co.Status = good.Status
		}
		return err
	}))(t)
	w.tell()
	if calls := w.pass(Reconciling); len(calls) > 0 {
		t.Errorf("calls %v", calls)
	}
}

// What is ours and empty does not drift when others put something into it.
func TestLedgerEmpty(t *testing.T) {
	w := watch(t, tasksOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {}}`))
	w.settled()
	for i := range 3 {
		w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "x", "data", fmt.Sprint("theirs", i)) })
		w.tell()
		checktest.Same(t, []string{"Get ConfigMap ns/c", "Apply ConfigMap ns/c"}, w.pass(Reconciling))
		checktest.Equal(t, 0, len(w.told()), "drifts: %+v", w.told())
		w.tell()
	}
}

// Two manifests of one object are one record.
func TestLedgerDoubles(t *testing.T) {
	w := watch(t, tasksOf(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: x}}`))
	w.settled()
	w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "b") })
	w.tell()
	w.pass(Reconciling)
	if d := w.told(); len(d) != 1 || len(d[0].Fields) != 1 || d[0].Fields[0].Path != "data.b" {
		t.Errorf("told %+v", d)
	}
}

// A Secret whose data the server makes of another field is as it was applied, until
// somebody changes that.
func TestLedgerStringData(t *testing.T) {
	w := watch(t, tasksOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, stringData: {a: x}}`))
	w.settled()
	before := w.objects()
	w.change(secrets1, "ns", "s", func(u *unstructured.Unstructured) { set(t, u, "dGhlaXJz", "data", "a") })
	w.tell()
	checktest.Same(t, []string{"Get Secret ns/s", "Apply Secret ns/s"}, w.pass(Reconciling))
	checktest.Same(t, before, w.objects())
}

// What a new manifest changes is not drift, but what somebody has changed besides is.
func TestLedgerNewManifest(t *testing.T) {
	w := watch(t, tasksOf(t, driftConfigMap))
	w.settled()
	w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
	w.tasks = tasksOf(t, strings.Replace(driftConfigMap, "b: w", "b: v", 1))
	w.tracker.Watch(w.tasks, w.filter)
	w.tell()
	checktest.Same(t, []string{"Get ConfigMap ns/c", "Apply ConfigMap ns/c"}, w.pass(Reconciling))
	checktest.Same(t, []string{"ConfigMap ns/c was changed: data.a by someone (Update)"}, w.texts())
}

// A kind whose generation never moves drifts like any other.
func TestLedgerWithoutGeneration(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	w := watch(t, tasksOf(t, `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p, generation: 1}, value: 5, description: ours}`))
	w.settled()
	w.change(kind, "", "p", func(u *unstructured.Unstructured) { set(t, u, "theirs", "description") })
	w.tell()
	w.pass(Reconciling)
	checktest.Same(t, []string{"PriorityClass p was changed: description by someone (Update)"}, w.texts())
}

// The lists of a custom resource are compared by the keys of its definition.
func TestLedgerDefinition(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	definition := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.io}, spec: {
		group: example.io, scope: Namespaced, names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget},
		versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
			parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [shelf, name], items: {type: object, required: [shelf, name],
				properties: {name: {type: string}, shelf: {type: string}, size: {type: integer}}}}}}}}}}]}}`
	w := watch(t, tasksOf(t, strings.ReplaceAll(definition, "\t", " "),
		`{apiVersion: example.io/v1, kind: Widget, metadata: {name: w, namespace: ns}, spec: {parts: [{shelf: x, name: a, size: 1}, {shelf: x, name: b, size: 1}]}}`))
	w.settled()
	for _, step := range []struct {
		change func(parts []any) []any
		want   []string
	}{
		{func(parts []any) []any {
			return append(parts, map[string]any{"shelf": "y", "name": "a", "size": int64(7)})
		}, nil},
		{func(parts []any) []any {
			parts[1].(map[string]any)["size"] = int64(2)
			return parts
		}, []string{"Widget ns/w was changed: spec.parts[shelf=x,name=b].size by someone (Update)"}},
	} {
		w.change(kind, "ns", "w", func(u *unstructured.Unstructured) {
			parts, _, _ := unstructured.NestedSlice(u.Object, "spec", "parts")
			set(t, u, step.change(parts), "spec", "parts")
		})
		w.tell()
		w.pass(Reconciling)
		checktest.Same(t, step.want, w.texts())
		w.tell()
	}
}

// A drift that cannot be repaired is told once, and again when it is another one.
func TestDriftToldOnce(t *testing.T) {
	w := newDrift(t)
	drift := func(value string) {
		w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, value, "data", "a") })
		w.tell()
	}
	refused := fmt.Errorf("refused")
	pass := func() int {
		w.fail = func(call memory.Call) error {
			if call.Verb == "Apply" && call.Key.Name == "c" {
				return refused
			}
			return nil
		}
		defer func() { w.fail = nil }()
		var told int
		_, err := Run(t.Context(), w.tasks, Options{
			API: w.c, State: Reconciling, Tracker: w.tracker, Backoff: &Backoff{Steps: 1}, Owner: w.owner(),
			Observe: func(e clusterapi.Event) {
				if e.Type == EventDrifted {
					told++
				}
			},
		})
		if err == nil {
			t.Fatal("not refused")
		}
		return told
	}
	drift("y")
	got := []int{pass(), pass()}
	drift("z")
	got = append(got, pass(), pass())
	checktest.Same(t, []int{1, 0, 1, 0}, got)
}

// Whatever happens, and in whatever order and how often the watches tell of it,
// a pass after all has been told leaves the cluster as one does that applies
// everything.
func TestLedgerRapid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newDriftIn(t, rapid.SampledFrom([]Mode{ApplyServerSide, ApplyMerge}).Draw(rt, "mode"))
		var late []clusterapi.Change
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		hear := func(all bool) {
			for change, ok := w.cursor.Next(); ok; change, ok = w.cursor.Next() {
				late = append(late, change)
			}
			r.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
			for i, change := range slices.Clone(late) {
				if all || r.IntN(2) == 0 {
					w.deliver(change)
					if r.IntN(2) == 0 {
						w.deliver(late[r.IntN(i+1)]) // an old one once more
					}
				}
			}
			if all {
				late = nil
			}
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0:
				w.pass(Reconciling)
			case 1:
				_ = w.c.Delete(t.Context(), configMaps1, clusterapi.Key("ns", "c"), clusterapi.DeleteOptions{})
			case 2:
				w.apply(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: v%d}}`, r.IntN(3)))
			case 3:
				if _, err := w.c.Get(t.Context(), configMaps1, clusterapi.Key("ns", "c")); err == nil {
					w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, fmt.Sprint("w", r.IntN(3)), "data", "b") })
				}
			case 4:
				_ = w.c.Delete(t.Context(), configMaps1, clusterapi.Key("ns", "once"), clusterapi.DeleteOptions{})
			case 5:
				w.change(deployments1, "ns", "d", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"b": "w"}) })
			case 6:
				hear(false)
			case 7:
				hear(true)
			}
		}
		hear(true)
		w.pass(Reconciling)
		got := w.objects()
		w.always = true
		w.pass(Reconciling)
		if diff := cmp.Diff(w.objects(), got); diff != "" {
			rt.Fatalf("-all applied +by the ledger: %s", diff)
		}
	})
}

// What is watched of a real payload is few enough for one connection.
func TestWatchReal(t *testing.T) {
	t.Parallel()
	p := loadReal(t, "payload-4.18.15")
	w := watch(t, p.Tasks(), append(operatorsAt(t, p),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}}"),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}"))...)
	if n := len(w.kinds); n != 52 {
		t.Errorf("%d watches", n)
	}
	w.settled()
}
