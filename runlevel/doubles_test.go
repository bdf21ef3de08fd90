package runlevel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// doubleRun is a cluster that notes the writes which change something, and passes over it.
type doubleRun struct {
	*memory.Cluster
	t        testing.TB
	tracker  *Tracker
	writes   []string // "Apply Kind ns/name"
	applies  int      // calls, also those that change nothing
	warnings []string
}

func newDoubleRun(t testing.TB) *doubleRun {
	r := &doubleRun{t: t, tracker: NewTracker(nil)}
	r.Cluster = memory.NewOpenShift(memory.Options{Intercept: r.call})
	return r
}

func (r *doubleRun) call(ctx context.Context, c memory.Call, do func(context.Context) error) error {
	if c.Object == nil && c.Verb != "Delete" {
		return do(ctx)
	}
	version := func() string {
		u, err := r.Get(ctx, c.GVK, c.Key)
		if err != nil {
			return ""
		}
		return u.GetResourceVersion()
	}
	if c.Verb == "Apply" {
		r.applies++
	}
	before := version()
	err := do(ctx)
	if version() != before {
		r.writes = append(r.writes, c.Verb+" "+c.GVK.Kind+" "+shortName(c.Key))
	}
	return err
}

// pass applies manifests, each "file: YAML", and returns what it wrote.
func (r *doubleRun) pass(state State, texts ...string) []string {
	r.t.Helper()
	var ms []*manifest.Manifest
	for _, text := range texts {
		file, text, _ := strings.Cut(text, ": ")
		ms = append(ms, newManifest(r.t, file, text))
	}
	_, err := r.run(state, manifest.NewTasks(ms))
	if err != nil {
		r.t.Fatal(err, causeOf(err))
	}
	return r.writes
}

// run makes a pass over tasks.
func (r *doubleRun) run(state State, tasks []*manifest.Task) (*Result, error) {
	r.writes, r.applies = nil, 0
	return Run(r.t.Context(), tasks, Options{
		API: r, State: state, Tracker: r.tracker, Workers: 1, Backoff: &Backoff{Steps: 1},
		Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
		Observe: func(e clusterapi.Event) {
			if e.Type == EventWarning {
				r.warnings = append(r.warnings, e.Message)
			}
		},
	})
}

func (r *doubleRun) get(apiVersion, kind, name string) *unstructured.Unstructured {
	r.t.Helper()
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	return checktest.Get(r.Get(r.t.Context(), gvk, clusterapi.Key("ns", name)))(r.t)
}

func dataOf(u *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return data
}

// Where two manifests of one object differ in a field, the later one wins:
// each pass writes once, the second one not at all, and one event says what
// was overridden. What goes from the payload goes from the object.
func TestDoublesAreMerged(t *testing.T) {
	texts := []string{
		"0000_10_a_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns, labels: {l: first}, annotations: {x.y/z: '1'}}, data: {both: a, same: s, one: a}}",
		"0000_20_b_2.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns, labels: {l: second}, annotations: {x.y/z: '2'}}, data: {both: b, same: s, two: b}}",
	}
	for _, state := range []State{Initializing, Updating, Reconciling} {
		t.Run(string(state), func(t *testing.T) {
			r := newDoubleRun(t)
			once := []string{"Apply ConfigMap ns/two"}
			if diff := cmp.Diff(once, r.pass(state, texts...)); diff != "" || r.applies != 1 {
				t.Errorf("%d calls, first pass %s", r.applies, diff)
			}
			checktest.Same(t, map[string]string{"both": "b", "same": "s", "one": "a", "two": "b"}, dataOf(r.get("v1", "ConfigMap", "two")))
			if writes := r.pass(Reconciling, texts...); len(writes) > 0 || r.applies != 1 {
				t.Errorf("%d calls, second pass %q", r.applies, writes)
			}
			want := []string{`Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "two": applied as one from 0000_10_a_1.yaml, 0000_20_b_2.yaml; ` +
				`overridden: data.both (by 0000_20_b_2.yaml), metadata.annotations["x.y/z"] (by 0000_20_b_2.yaml), metadata.labels.l (by 0000_20_b_2.yaml)`}
			checktest.Same(t, want, r.warnings)
			r.pass(Updating, texts[1])
			checktest.Same(t, map[string]string{"both": "b", "same": "s", "two": "b"}, dataOf(r.get("v1", "ConfigMap", "two")))
			r.pass(Updating, texts[0])
			checktest.Same(t, map[string]string{"both": "a", "same": "s", "one": "a"}, dataOf(r.get("v1", "ConfigMap", "two")))
		})
	}
}

// Three manifests, of which the last word counts; what adds without
// contradicting is nothing new.
func TestThreeManifestsOfOneResource(t *testing.T) {
	r := newDoubleRun(t)
	texts := []string{
		"0000_10_a_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: '1', w: '1'}}",
		"0000_10_a_2.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: '2', z: '2'}}",
		"0000_10_a_3.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: '3', w: '3'}}",
		"0000_10_a_4.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: ns}, data: {x: '1'}}",
		"0000_10_a_5.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: ns}, data: {w: '1'}}",
	}
	r.pass(Updating, texts...)
	checktest.Same(t, map[string]string{"w": "3", "x": "3", "z": "2"}, dataOf(r.get("v1", "ConfigMap", "c")))
	if len(r.warnings) != 1 || !strings.HasSuffix(r.warnings[0], "overridden: data.w (by 0000_10_a_3.yaml), data.x (by 0000_10_a_3.yaml)") {
		t.Errorf("%q", r.warnings)
	}
}

// A manifest that only creates does so if it comes first, and is never merged:
// what it set stays as somebody may have changed it.
func TestDoublesWithCreateOnly(t *testing.T) {
	create := "0000_10_a_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/create-only: 'TRUE'}}, data: {user: default, both: created}}"
	normal := "0000_20_b_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {both: applied, ours: x}}"
	for name, c := range map[string]struct {
		texts  []string
		writes []string
		want   map[string]string
	}{
		"created, then applied":          {[]string{create, normal}, []string{"Create ConfigMap ns/c", "Apply ConfigMap ns/c"}, map[string]string{"user": "default", "both": "applied", "ours": "x"}},
		"applied, so there is no need":   {[]string{normal, create}, []string{"Apply ConfigMap ns/c"}, map[string]string{"both": "applied", "ours": "x"}},
		"two that create: the first":     {[]string{create, strings.ReplaceAll(create, "default", "other")}, []string{"Create ConfigMap ns/c"}, map[string]string{"user": "default", "both": "created"}},
		"two applied and one in between": {[]string{normal, create, strings.ReplaceAll(normal, "ours", "more")}, []string{"Apply ConfigMap ns/c"}, map[string]string{"both": "applied", "ours": "x", "more": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDoubleRun(t)
			checktest.Same(t, c.writes, r.pass(Updating, c.texts...))
			u := r.get("v1", "ConfigMap", "c")
			checktest.Same(t, c.want, dataOf(u))
			if writes := r.pass(Updating, c.texts...); len(writes) > 0 {
				t.Errorf("second pass: %q", writes)
			}
			if _, ok := c.want["user"]; !ok {
				return
			}
			// the user's own value stays
			u.Object["data"].(map[string]any)["user"] = "mine"
			checktest.Get(r.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "user"}))(t)
			if writes := r.pass(Updating, c.texts...); len(writes) > 0 || dataOf(r.get("v1", "ConfigMap", "c"))["user"] != "mine" {
				t.Errorf("after a change by the user: %q", writes)
			}
		})
	}
}

// A manifest that deletes is never merged: it asks once for the object to be
// gone, and the others apply it as before.
func TestDoublesWithDelete(t *testing.T) {
	remove := "0000_10_a_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/delete: 'true'}}, data: {old: x}}"
	one := "0000_20_b_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}"
	two := "0000_30_b_1.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: x}}"
	r := newDoubleRun(t)
	r.pass(Updating, "x.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {old: x}}")
	want := []string{"Delete ConfigMap ns/c", "Apply ConfigMap ns/c"}
	checktest.Same(t, want, r.pass(Updating, remove, one, two))
	checktest.Same(t, map[string]string{"a": "x", "b": "x"}, dataOf(r.get("v1", "ConfigMap", "c")))
	for _, state := range []State{Updating, Reconciling} {
		if writes := r.pass(state, remove, one, two); len(writes) > 0 {
			t.Errorf("%s again: %q", state, writes)
		}
	}
}

// Of a ClusterOperator labels and annotations are merged; each manifest's
// versions are awaited.
func TestDoubleClusterOperators(t *testing.T) {
	r := newDoubleRun(t)
	co := object(t, "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co}, spec: {}, status: {conditions: [{type: Available, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}, {type: Degraded, status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z'}], versions: [{name: a, version: '1'}]}}")
	checktest.OK(t, r.Load(co))
	text := "0000_10_%s_1.yaml: {apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co, annotations: {%s: x, both: %s}}, spec: {}, status: {versions: [{name: %s, version: '1'}]}}"
	texts := []string{fmt.Sprintf(text, "a", "a", "a", "a"), fmt.Sprintf(text, "b", "b", "b", "a")}
	checktest.Same(t, []string{"Apply ClusterOperator co"}, r.pass(Reconciling, texts...))
	if writes := r.pass(Reconciling, texts...); len(writes) > 0 {
		t.Errorf("second pass: %q", writes)
	}
	var ms []*manifest.Manifest
	for i, text := range []string{texts[0], fmt.Sprintf(text, "b", "b", "b", "operator")} {
		_, text, _ := strings.Cut(text, ": ")
		ms = append(ms, newManifest(t, fmt.Sprintf("0000_10_%d_x.yaml", i), text))
	}
	_, err := r.run(Reconciling, manifest.NewTasks(ms))
	if te, ok := errors.AsType[*TaskError](err); !ok || te.Task.Index != 2 || te.Wait.Undone[0] != "operator to 1" {
		t.Errorf("%v", err)
	}
}

// When the first apply fails, the task of the other manifest tries it too;
// the capability that excludes one takes its fields away.
func TestDoublesFailAndVanish(t *testing.T) {
	var ms []*manifest.Manifest
	for i := range 2 {
		ms = append(ms, newManifest(t, fmt.Sprintf("0000_10_c%d_x.yaml", i), fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {capability.openshift.io/name: %s}}, data: {k%d: x}}", []string{"A", "B"}[i], i)))
	}
	api := newFake()
	n := 0
	api.before = func(_ context.Context, verb, _, _ string) error {
		if n++; verb == "Apply" && n == 1 {
			return errors.New("first apply fails")
		}
		return nil
	}
	o := Options{API: api, Workers: 1, Backoff: &Backoff{Steps: 1}}
	res, err := Run(t.Context(), manifest.NewTasks(ms), o)
	if err == nil || res.Done != 1 || len(api.writes()) != 2 {
		t.Fatalf("%+v %v %q", res, err, api.writes())
	}
	checktest.Same(t, map[string]string{"k0": "x", "k1": "x"}, dataOf(api.get("ConfigMap", "ns/c")))
	c := memory.NewOpenShift(memory.Options{})
	for _, enabled := range [][]string{{"A", "B"}, {"A"}, {"B"}} {
		o := Options{API: c, Filter: manifest.Filter{Capabilities: &manifest.Capabilities{Known: sets.New("A", "B"), Enabled: sets.New(enabled...)}}}
		checktest.Get(Run(t.Context(), manifest.NewTasks(ms), o))(t)
		u := checktest.Get(c.Get(t.Context(), ms[0].GVK(), clusterapi.Key("ns", "c")))(t)
		if got := slices.Sorted(maps.Keys(dataOf(u))); len(got) != len(enabled) || len(got) == 1 && got[0] != map[string]string{"A": "k0", "B": "k1"}[enabled[0]] {
			t.Errorf("with %v: %v", enabled, got)
		}
	}
}

// Each manifest of a workload waits for it, and keyed lists are merged.
func TestDoubleDeployment(t *testing.T) {
	text := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [%s]}}}}"
	var ms []*manifest.Manifest
	for i, containers := range []string{
		"{name: a, image: a1, env: [{name: X, value: '1'}, {name: W, value: '1'}], ports: [{containerPort: 80, name: web}]}, {name: b, image: b1}",
		"{name: c, image: c2}, {name: a, image: a2, env: [{name: X, value: '2'}], ports: [{containerPort: 80, protocol: TCP, hostPort: 80}]}",
	} {
		ms = append(ms, newManifest(t, fmt.Sprintf("0000_10_c%d_x.yaml", i), fmt.Sprintf(text, containers)))
	}
	api := newFake()
	api.after = func(_ string, stored *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(stored.Object, []any{map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "R", "message": "M"}}, "status", "conditions")
	}
	var warning string
	res, _ := Run(t.Context(), manifest.NewTasks(ms), Options{API: api, Observe: func(e clusterapi.Event) {
		if e.Type == EventWarning {
			warning += e.Message
		}
	}})
	if len(res.Errors) != 2 || len(api.writes()) != 1 {
		t.Fatalf("%v %v %q", res.Errors, causeOf(res.Errors[0]), api.writes())
	}
	got, _, _ := unstructured.NestedSlice(api.get("Deployment", "ns/d").Object, "spec", "template", "spec", "containers")
	want := object(t, `{apiVersion: v1, kind: X, l: [
		{name: a, image: a2, env: [{name: X, value: '2'}, {name: W, value: '1'}], ports: [{containerPort: 80, name: web, protocol: TCP, hostPort: 80}]},
		{name: b, image: b1}, {name: c, image: c2}]}`).Object["l"]
	checktest.Same(t, want, any(got))
	if !strings.HasSuffix(warning, "overridden: spec.template.spec.containers[name=a].env[name=X].value (by 0000_10_c1_x.yaml), spec.template.spec.containers[name=a].image (by 0000_10_c1_x.yaml)") {
		t.Error(warning)
	}
}

// The real payload with a double: the Namespace of the insights operator,
// under technology preview. Its manifests are applied as one, and nothing is
// rewritten.
func TestRealDoubles(t *testing.T) {
	t.Parallel()
	set, f := "TechPreviewNoUpgrade", manifest.DefaultFilter()
	f.FeatureSet = &set
	p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), "payload-4.18.15")), manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
	count := map[manifest.Identity]int{}
	for _, m := range p.Manifests {
		count[m.Identity()]++
	}
	maps.DeleteFunc(count, func(_ manifest.Identity, n int) bool { return n < 2 })
	if len(count) != 1 {
		t.Fatalf("doubles: %v", count)
	}
	r := newDoubleRun(t)
	checktest.OK(t, r.Load(operatorsAt(t, p)...))
	for i, state := range []State{Updating, Reconciling, Reconciling, Updating} {
		res, err := r.run(state, p.Tasks())
		if err != nil || res.Done != 827 {
			t.Fatalf("%+v %v", res, err)
		}
		slices.Sort(r.writes)
		if twice := len(r.writes) - len(slices.Compact(slices.Clone(r.writes))); twice > 0 {
			t.Errorf("pass %d: %d objects are written twice", i, twice)
		}
		if i > 1 && len(r.writes) > 0 { // the second pass writes the metadata of ClusterOperators
			t.Errorf("pass %d: %q", i, r.writes)
		}
	}
	ns := checktest.Get(r.Get(t.Context(), object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: x}}").GroupVersionKind(), clusterapi.Key("", "openshift-insights")))(t)
	if l := ns.GetLabels(); l["pod-security.kubernetes.io/enforce"] != "privileged" || l["openshift.io/cluster-monitoring"] != "true" {
		t.Errorf("labels %v", l)
	}
}
