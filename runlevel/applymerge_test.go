package runlevel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// calledCluster is a cluster that knows what was asked of it.
type calledCluster struct {
	*memory.Cluster
	t       testing.TB
	fail    func(memory.Call) error
	tracker *Tracker // of passes by run

	mu              sync.Mutex
	calls, warnings []string // of the last pass
}

func newCalled(t testing.TB, loaded ...string) *calledCluster {
	t.Helper()
	c := &calledCluster{t: t, tracker: NewTracker(nil)}
	c.Cluster = memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		c.mu.Lock()
		c.calls = append(c.calls, call.Verb+" "+call.GVK.Kind+" "+shortName(call.Key))
		c.mu.Unlock()
		if c.fail != nil {
			if err := c.fail(call); err != nil {
				return err
			}
		}
		return do(ctx)
	}})
	for _, text := range loaded {
		checktest.OK(t, c.Load(object(t, text)))
	}
	return c
}

// try makes a pass, with one attempt unless o says how many, and returns its calls.
func (c *calledCluster) try(o Options, texts ...string) ([]string, error) {
	c.t.Helper()
	var ms []*manifest.Manifest
	for i, text := range texts {
		ms = append(ms, newManifest(c.t, fmt.Sprintf("0000_10_a_%d.yaml", i), text))
	}
	c.mu.Lock()
	c.calls, c.warnings = nil, nil
	c.mu.Unlock()
	o.Workers = 1
	if o.API == nil {
		o.API = c
	}
	if o.Backoff == nil {
		o.Backoff = &Backoff{Steps: 1}
	}
	if o.Observe == nil {
		o.Observe = func(e clusterapi.Event) {
			if e.Type == EventWarning {
				c.warnings = append(c.warnings, e.Message)
			}
		}
	}
	_, err := Run(c.t.Context(), manifest.NewTasks(ms), o)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls), err
}

// run makes a pass that ends well, by the cluster's Tracker, and returns its calls.
func (c *calledCluster) run(o Options, texts ...string) []string {
	c.t.Helper()
	if o.Tracker == nil {
		o.Tracker = c.tracker
	}
	calls, err := c.try(o, texts...)
	if err != nil {
		c.t.Fatal(err, causeOf(err))
	}
	return calls
}

// pass makes a pass in mode ApplyMerge.
func (c *calledCluster) pass(o Options, texts ...string) ([]string, error) {
	c.t.Helper()
	o.Mode = ApplyMerge
	return c.try(o, texts...)
}

// operator makes a pass as the cluster-version operator does.
func (c *calledCluster) operator(texts ...string) {
	c.t.Helper()
	api := writtenAs{defaulting{c.Cluster}, operatorManager}
	c.run(Options{API: api, Mode: ApplyMerge, SkipChecks: true, Tracker: NewTracker(nil)}, texts...)
}

// ours makes a pass in the default mode, and returns its calls.
func (c *calledCluster) ours(texts ...string) []string {
	c.t.Helper()
	return c.run(Options{SkipChecks: true}, texts...)
}

// defaulting fills in defaults as an API server does, which one in memory does not.
type defaulting struct{ *memory.Cluster }

func (c defaulting) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.Cluster.Create(ctx, apiserver.Fill(obj), o)
}

func (c defaulting) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.Cluster.Update(ctx, apiserver.Fill(obj), o)
}

// updatesOf are the calls that update.
func updatesOf(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.HasPrefix(call, "Update") })
}

func (c *calledCluster) get(text string) *unstructured.Unstructured {
	c.t.Helper()
	o := object(c.t, text)
	u, err := c.Get(c.t.Context(), o.GroupVersionKind(), clusterapi.KeyOf(o))
	if err != nil {
		c.t.Fatal(err)
	}
	return u
}

const (
	mergeConfigMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {ours: x}}, data: {a: x}}`
)

// What a pass asks of a cluster for one object, and what becomes of it.
func TestApplyMergeCalls(t *testing.T) {
	const createOnly = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/create-only: %q}}, data: {a: x}}`
	deleted := strings.Replace(mergeConfigMap, "labels: {ours: x}", `annotations: {release.openshift.io/delete: "true"}`, 1)
	for _, tt := range []struct {
		name, manifest string
		loaded         []string
		o              Options
		want           []string
		data           map[string]any // of ConfigMaps, afterwards
	}{
		{
			name: "absent", manifest: mergeConfigMap,
			want: []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "unchanged", manifest: mergeConfigMap, loaded: []string{mergeConfigMap},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "others have added", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: x, theirs: z", 1)},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "x", "theirs": "z"},
		},
		{
			name: "changed", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old, theirs: z", 1)},
			want: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"}, data: map[string]any{"a": "x", "theirs": "z"},
		},
		{
			name: "create-only, absent", manifest: fmt.Sprintf(createOnly, "true"),
			want: []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "create-only, there", manifest: fmt.Sprintf(createOnly, "True"), loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "old"},
		},
		{
			name: "not create-only", manifest: fmt.Sprintf(createOnly, "yes"), loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			want: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "deleted", manifest: deleted, loaded: []string{mergeConfigMap},
			want: []string{"Get ConfigMap ns/c", "Delete ConfigMap ns/c"},
		},
		{
			name: "overridden", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			o:    Options{Filter: manifest.Filter{Overrides: []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "ns", Name: "c", Unmanaged: true}}}},
			data: map[string]any{"a": "old"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCalled(t, tt.loaded...)
			before := ""
			if len(tt.loaded) > 0 {
				before = c.get(mergeConfigMap).GetResourceVersion()
			}
			c.fail = func(call memory.Call) error {
				if call.Verb == "Update" && (before == "" || call.Object.GetResourceVersion() != before) {
					return fmt.Errorf("an update of %q, not of the state that was read", call.Object.GetResourceVersion())
				}
				return nil
			}
			calls, err := c.pass(tt.o, tt.manifest)
			if err != nil {
				t.Fatal(causeOf(err))
			}
			checktest.Same(t, tt.want, calls)
			if tt.data != nil {
				checktest.Same(t, tt.data, c.get(mergeConfigMap).Object["data"])
			}
		})
	}
}

// A conflict is tried again by the task, over what the cluster has then.
func TestApplyMergeConflict(t *testing.T) {
	changed := strings.Replace(mergeConfigMap, "a: x", "a: old", 1)
	for _, steps := range []int{1, 2} {
		c := newCalled(t, changed)
		conflicts := 0
		c.fail = func(call memory.Call) error {
			if call.Verb != "Update" || conflicts > 0 {
				return nil
			}
			conflicts++ // somebody is faster
			c.fail = nil
			u := c.get(mergeConfigMap)
			set(t, u, "z", "data", "theirs")
			_, err := c.Update(t.Context(), u, someoneUpdate)
			return err
		}
		var retries []string
		calls, err := c.pass(Options{Backoff: &Backoff{Steps: steps}, Observe: func(e clusterapi.Event) {
			if e.Type == EventTaskRetry {
				retries = append(retries, e.Message)
			}
		}}, mergeConfigMap)
		te, _ := errors.AsType[*TaskError](err)
		switch steps {
		case 1:
			if te == nil || te.Reason != ReasonResourceConflict || !apierrors.IsConflict(te.Err) {
				t.Errorf("error %v", err)
			}
		case 2:
			if err != nil || len(retries) != 1 {
				t.Errorf("error %v after retries %q", err, retries)
			}
			checktest.Same(t, map[string]any{"a": "x", "theirs": "z"}, c.get(mergeConfigMap).Object["data"])
		}
		updates := updatesOf(calls)
		if len(updates) != steps+1 { // one of them somebody's
			t.Errorf("%d attempts: %v", steps, calls)
		}
	}
}

const (
	mergeDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: i}]}}}}`
	foreignPod      = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: sidecar, image: x}]}}}}`
	rule            = `{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: r, namespace: ns%s}, spec: {groups: [%s]}}`
)

// The owners that a manifest names, else the ClusterVersion, are added to those
// that an object has.
func TestApplyMergeOwners(t *testing.T) {
	const theirs = `{apiVersion: v1, kind: Namespace, name: t, uid: theirs}`
	ours := strings.Replace(mergeConfigMap, "labels: {ours: x}", "%s", 1)
	for _, tt := range []struct {
		name, manifest string
		want           []string
	}{
		{"ClusterVersion", fmt.Sprintf(ours, "labels: {}"), []string{"theirs", "uid controller"}},
		{"others", fmt.Sprintf(ours, "ownerReferences: [{apiVersion: v1, kind: Namespace, name: o, uid: named}]"), []string{"theirs", "named"}},
		{"its own again", fmt.Sprintf(ours, "ownerReferences: ["+theirs+"]"), []string{"theirs"}},
	} {
		c := newCalled(t, fmt.Sprintf(ours, "ownerReferences: ["+theirs+"]"))
		if _, err := c.pass(Options{Owner: &metav1.OwnerReference{Name: "version", UID: "uid"}}, tt.manifest); err != nil {
			t.Fatal(causeOf(err))
		}
		var got []string
		for _, ref := range c.get(mergeConfigMap).GetOwnerReferences() {
			text := string(ref.UID)
			if ref.Controller != nil && *ref.Controller {
				text += " controller"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// The documented differences: what somebody has added to keyed lists stays with
// server-side apply, and goes by a merge; what a manifest no longer names goes where
// an apply has set it, and stays by a merge.
func TestModesDiffer(t *testing.T) {
	for mode, want := range map[Mode]struct {
		containers int
		label      string
	}{ApplyServerSide: {2, ""}, ApplyMerge: {1, "x"}} {
		t.Run(mode.String(), func(t *testing.T) {
			c := memory.NewOpenShift(memory.Options{})
			run := func(texts ...string) {
				t.Helper()
				if _, err := Run(t.Context(), tasksOf(t, texts...), Options{API: c, Mode: mode, Backoff: &Backoff{Steps: 1}}); err != nil {
					t.Fatal(causeOf(err))
				}
			}
			run(mergeDeployment, mergeConfigMap)
			checktest.Get(c.Apply(t.Context(), object(t, foreignPod), clusterapi.ApplyOptions{FieldManager: "someone"}))(t)
			run(mergeDeployment, strings.Replace(mergeConfigMap, "ours: x", "", 1))
			d := checktest.Get(c.Get(t.Context(), deployments1, clusterapi.Key("ns", "d")))(t)
			cm := checktest.Get(c.Get(t.Context(), configMaps1, clusterapi.Key("ns", "c")))(t)
			if n := len(containers(d)); n != want.containers || cm.GetLabels()["ours"] != want.label {
				t.Errorf("%d containers, labels %v", n, cm.GetLabels())
			}
		})
	}
}

// Kinds without rules of their own are replaced, metadata and all, but not for a
// difference in metadata alone.
func TestApplyMergeGeneric(t *testing.T) {
	wanted := fmt.Sprintf(rule, ", labels: {ours: x}", "{name: a}")
	c := newCalled(t, fmt.Sprintf(rule, ", labels: {theirs: x}", "{name: a}"))
	if calls, err := c.pass(Options{}, wanted); err != nil || len(calls) != 1 {
		t.Errorf("calls %v, %v", calls, err)
	}
	checktest.Same(t, map[string]string{"theirs": "x"}, c.get(wanted).GetLabels())
	c = newCalled(t, fmt.Sprintf(rule, ", labels: {theirs: x}", "{name: a}, {name: b}"))
	if calls, err := c.pass(Options{}, wanted); err != nil || len(calls) != 2 {
		t.Errorf("calls %v, %v", calls, err)
	}
	got := c.get(wanted)
	checktest.Same(t, object(t, wanted).Object["spec"], got.Object["spec"])
	checktest.Same(t, map[string]string{"ours": "x"}, got.GetLabels())
}

// Fields that the schema lacks are left out, with one warning, whether the object is
// created or updated; a field of the wrong type, and a Job's selector, are errors.
func TestApplyMergeFaults(t *testing.T) {
	binding := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b, labels: {a: %s}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, userNames: [a]}"
	c, tracker := newCalled(t), NewTracker(nil)
	for _, value := range []string{"x", "z"} {
		warnings := 0
		text := fmt.Sprintf(binding, value)
		if _, err := c.pass(Options{Tracker: tracker, Observe: func(e clusterapi.Event) {
			if e.Type == EventWarning && strings.HasSuffix(e.Message, ": userNames") {
				warnings++
			}
		}}, text); err != nil {
			t.Fatal(causeOf(err))
		}
		u := c.get(text)
		if _, has := u.Object["userNames"]; has || u.GetLabels()["a"] != value || warnings > 1 || (warnings == 1) != (value == "x") {
			t.Errorf("%v with %d warnings", u.Object, warnings)
		}
	}
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {%s parallelism: 1, completions: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}"
	for _, tt := range []struct{ name, loaded, manifest, want string }{
		{"wrong type in the manifest", mergeConfigMap, strings.Replace(mergeConfigMap, "{a: x}", "3", 1), "data"},
		{"selector of a Job", fmt.Sprintf(job, ""), fmt.Sprintf(job, "selector: {matchLabels: {a: b}},"), "merge: the manifest: Job ns/j: spec.selector: must not be set, for the server chooses it"},
	} {
		c := newCalled(t, tt.loaded)
		calls, err := c.pass(Options{}, tt.manifest)
		if !strings.Contains(causeOf(err), tt.want) || len(calls) > 1 {
			t.Errorf("%s: %v after %v", tt.name, causeOf(err), calls)
		}
	}
}

// What the cluster's configuration puts into manifests is there before the merge.
func TestApplyMergeInjects(t *testing.T) {
	text := strings.Replace(mergeDeployment, "namespace: ns}", "namespace: ns, annotations: {config.openshift.io/inject-proxy: a}}", 1)
	c := newCalled(t, mergeDeployment, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: one}}`)
	for i, want := range []int{3, 2} { // a look at the proxy, one at the object, and a write
		if calls, err := c.pass(Options{}, text); err != nil || len(calls) != want {
			t.Errorf("pass %d: calls %v, %v", i, calls, err)
		}
	}
	env, _, _ := unstructured.NestedSlice(containers(c.get(text))[0].(map[string]any), "env")
	if len(env) != 3 {
		t.Errorf("env %v", env)
	}
}

// Of a ClusterOperator only metadata are merged, while reconciling; its turn never
// creates it.
func TestApplyMergeClusterOperator(t *testing.T) {
	for _, tt := range []struct {
		state  State
		loaded []string
		want   []string
		fails  string
	}{
		{"Updating", []string{goodOperator}, []string{"Get ClusterOperator o", "Get ClusterOperator o"}, ""},
		{"Reconciling", []string{goodOperator}, []string{"Get ClusterOperator o", "Get ClusterOperator o", "Update ClusterOperator o"}, ""},
		{"Reconciling", nil, []string{"Get ClusterOperator o", "Create ClusterOperator o", "Get ClusterOperator o"}, "may have been deleted"},
	} {
		c := newCalled(t, tt.loaded...)
		c.fail = func(call memory.Call) error {
			if call.Verb == "Create" {
				return errors.New("refused")
			}
			return nil
		}
		calls, err := c.pass(Options{State: tt.state}, driftOperator)
		if diff := cmp.Diff(tt.want, calls); diff != "" || (err != nil) != (tt.fails != "") || tt.fails != "" && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %v %s", tt.state, err, diff)
		}
		if tt.state == Reconciling && err == nil {
			co := c.get(goodOperator)
			conditions, _, _ := unstructured.NestedSlice(co.Object, "status", "conditions")
			if co.GetAnnotations()["a"] != "x" || len(conditions) != 2 {
				t.Errorf("%v", co.Object)
			}
		}
	}
}

// Two manifests of one object are merged into it as one.
func TestApplyMergeDoubles(t *testing.T) {
	other := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {b: x}}`
	c := newCalled(t, strings.Replace(mergeConfigMap, "a: x", "a: old", 1))
	for i, want := range []int{1, 0} {
		calls, err := c.pass(Options{}, mergeConfigMap, other)
		updates := updatesOf(calls)
		if err != nil || len(updates) != want {
			t.Errorf("pass %d: %v, updates %v", i, err, updates)
		}
	}
	checktest.Same(t, map[string]any{"a": "x", "b": "x"}, c.get(mergeConfigMap).Object["data"])
}

func TestUnknownMode(t *testing.T) {
	_, err := Run(t.Context(), nil, Options{API: newFake(), Mode: "Sideways"})
	if err == nil || !strings.Contains(err.Error(), `"Sideways" is not a mode`) {
		t.Errorf("error %v", err)
	}
}

// What a merge would change is drift: it is told with who did it, and repaired at
// the next pass. Everything else that happens to an object costs one look.
func TestApplyMergeDrift(t *testing.T) {
	update := []FieldOwner{{Manager: "someone", Operation: "Update"}}
	apply := []FieldOwner{{Manager: "kubectl", Operation: "Apply"}}
	for _, tt := range []struct {
		name   string
		happen func(w *watched)
		calls  []string
		text   string
		fields []DriftedField
	}{
		{name: "nothing", happen: func(*watched) {}},
		{
			name: "a value of ours",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was changed: data.a by someone (Update)", fields: []DriftedField{{Path: "data.a", Wanted: "x", Found: "z", Owners: update}},
		},
		{
			name: "a value removed",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "data", "a") })
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was changed: data.a removed", fields: []DriftedField{{Path: "data.a", Wanted: "x"}},
		},
		{
			name: "a container of somebody's",
			happen: func(w *watched) {
				w.apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {initContainers: [{name: sidecar, image: x, env: [{name: API_TOKEN, value: hidden}]}]}}}}`)
			},
			calls:  []string{"Get Deployment ns/d", "Update Deployment ns/d"},
			text:   "Deployment ns/d was changed: spec.template.spec.initContainers[name=sidecar] by kubectl (Apply)",
			fields: []DriftedField{{Path: "spec.template.spec.initContainers[name=sidecar]", Owners: apply}},
		},
		{
			name: "a Secret",
			happen: func(w *watched) {
				w.change(secrets1, "ns", "s", func(u *unstructured.Unstructured) { set(t, u, "dGhlaXJz", "data", "a") })
			},
			calls:  []string{"Get Secret ns/s", "Update Secret ns/s"},
			text:   "Secret ns/s was changed: data.a by someone (Update)",
			fields: []DriftedField{{Path: "data.a", Wanted: "(redacted)", Found: "(redacted)", Owners: update}},
		},
		{
			name:   "gone",
			happen: func(w *watched) { w.remove(configMaps1, "ns", "c") },
			calls:  []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, text: "ConfigMap ns/c was deleted",
		},
		{
			name:   "created only, gone",
			happen: func(w *watched) { w.remove(configMaps1, "ns", "once") },
			calls:  []string{"Get ConfigMap ns/once", "Create ConfigMap ns/once"}, text: "ConfigMap ns/once was deleted",
		},
		{
			name: "created again by somebody",
			happen: func(w *watched) {
				w.remove(configMaps1, "ns", "c")
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: z}}`)
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was deleted and created again: data.a by kubectl (Apply), data.b removed, metadata.ownerReferences[uid=uid] removed",
			fields: []DriftedField{
				{Path: "data.a", Wanted: "x", Found: "z", Owners: apply}, {Path: "data.b", Wanted: "w"}, {Path: "metadata.ownerReferences[uid=uid]"},
			},
		},
		{
			name: "a label of somebody's",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"theirs": "x"}) })
			},
			calls: []string{"Get ConfigMap ns/c"},
		},
		{
			name: "what is only created",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "once", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newDriftIn(t, ApplyMerge)
			tt.happen(w)
			w.tell()
			if diff := cmp.Diff(tt.calls, w.pass(Reconciling)); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			told := w.told()
			switch {
			case tt.text == "" && len(told) > 0:
				t.Errorf("told %+v", told)
			case tt.text != "" && (len(told) != 1 || told[0].Text() != tt.text):
				t.Errorf("told %+v", told)
			case tt.text != "":
				opts := cmp.Options{cmpopts.IgnoreFields(FieldOwner{}, "Time"), cmp.FilterPath(func(p cmp.Path) bool {
					return strings.HasSuffix(p.String(), "Wanted") || strings.HasSuffix(p.String(), "Found")
				}, cmp.FilterValues(func(a, b any) bool { return !isText(a) && !isText(b) }, cmp.Ignore()))}
				checktest.Same(t, tt.fields, withoutDigits(t, told[0].Fields), opts)
				if text := fmt.Sprint(told); strings.Contains(text, "hidden") {
					t.Errorf("shows a credential: %s", text)
				}
			}
			w.tell()
			if calls := w.pass(Reconciling); len(calls) > 0 {
				t.Errorf("calls of the next pass: %v", calls)
			}
		})
	}
}

func isText(v any) bool { _, ok := v.(string); return ok }

// Where there is nothing to go by, each object is looked at, and nothing written
// that is as it should be.
func TestApplyMergeNotTrusted(t *testing.T) {
	for name, change := range map[string]func(w *watched){
		"after an hour": func(w *watched) { w.clock.Step(time.Hour) },
		"watches ended": func(w *watched) { w.tracker.Unwatched() },
		"apply always":  func(w *watched) { w.always = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftIn(t, ApplyMerge)
			change(w)
			calls := w.pass(Reconciling)
			if len(updatesOf(calls)) > 0 || len(calls) < len(w.tasks) || len(w.told()) > 0 {
				t.Errorf("calls %v, told %v", calls, w.told())
			}
		})
	}
}

// An object in which the server writes a default that a merge clears again is written
// when everything is looked at, and when something has changed it, but is no drift.
func TestApplyMergeWrittenForEver(t *testing.T) {
	w := watchIn(t, ApplyMerge, tasksOf(t, driftJob))
	w.api = defaulting{w.c}
	w.settled()
	round := func(what string, want ...string) {
		t.Helper()
		w.tell()
		if diff := cmp.Diff(want, w.pass(Reconciling)); diff != "" || len(w.told()) > 0 {
			t.Errorf("%s: calls %s, told %+v", what, diff, w.told())
		}
		w.tell()
	}
	round("as it was")
	w.change(jobs1, "ns", "j", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"theirs": "x"}) })
	round("another label", "Get Job ns/j", "Update Job ns/j")
	round("as it was")
	w.clock.Step(time.Hour)
	round("after an hour", "Get Job ns/j", "Update Job ns/j")
}

// writtenForEver are objects that each pass of ApplyMerge writes, as the
// cluster-version operator does. Real releases have none of them.
var writtenForEver = []struct{ reason, manifest string }{
	{"the server sets parallelism and completions, and what the manifest does not say is cleared", driftJob},
	{"the server adds the top-level key type", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {a: eA==}}`},
	{"the server moves stringData into data", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque, stringData: {a: x}}`},
	{"the server adds the top-level key preemptionPolicy", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 1}`},
	{"the server sets a default within spec", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b]}]}, validations: [{expression: "true"}]}}`},
}

func TestWrittenForEver(t *testing.T) {
	for _, tt := range writtenForEver {
		c := newCalled(t)
		for i, want := range []string{"Create", "Update", "Update"} {
			c.calls = nil
			_, err := Run(t.Context(), tasksOf(t, tt.manifest), Options{API: defaulting{c.Cluster}, Mode: ApplyMerge, Backoff: &Backoff{Steps: 1}, State: Initializing})
			if err != nil || len(c.calls) != 2 || !strings.HasPrefix(c.calls[1], want) {
				t.Errorf("%s: pass %d: %v, %v", tt.reason, i, c.calls, causeOf(err))
			}
		}
	}
}

// A release goes onto a cluster by merges, also in the place of another one, and
// further passes over it write nothing.
func TestApplyMergeReleases(t *testing.T) {
	t.Parallel()
	data := testdata.Dir(t)
	for _, tt := range []struct {
		name     string
		releases []fs.FS
	}{
		{"sample", []fs.FS{sample.From(), sample.To()}},
		{"4.17.30 to 4.18.15", []fs.FS{os.DirFS(filepath.Join(data, "payload-4.17.30")), os.DirFS(filepath.Join(data, "payload-4.18.15"))}},
	} {
		if israce.Enabled && tt.name != "sample" {
			continue // it takes long, and TestApplyMergeWatchReal has a real one
		}
		t.Run(tt.name, func(t *testing.T) {
			c := newCalled(t)
			api := defaulting{c.Cluster}
			for _, release := range tt.releases {
				p := checktest.Get(manifest.Load(t.Context(), release, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
				for _, co := range operatorsAt(t, p) {
					if old, err := c.Get(t.Context(), co.GroupVersionKind(), clusterapi.KeyOf(co)); err == nil {
						old.Object["status"] = co.Object["status"]
						_, err = c.UpdateStatus(t.Context(), old, clusterapi.UpdateOptions{})
						checktest.OK(t, err)
					} else if err := c.Load(co); err != nil {
						t.Fatal(err)
					}
				}
				tracker := NewTracker(nil)
				pass := func(state State) (writes []string) {
					t.Helper()
					c.calls = nil
					res, err := Run(t.Context(), p.Tasks(), Options{
						API: api, Mode: ApplyMerge, State: state, Tracker: tracker, Backoff: &Backoff{Steps: 1},
						Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
					})
					if err != nil || res.Done != res.Total {
						t.Fatalf("%s %s: %+v %v", p.Release.Version, state, res, causeOf(err))
					}
					for _, call := range c.calls {
						if !strings.HasPrefix(call, "Get ") {
							writes = append(writes, call)
						}
					}
					return writes
				}
				t.Log(p.Release.Version, len(pass(Updating)), "writes")
				pass(Reconciling) // metadata of ClusterOperators
				for _, state := range []State{Reconciling, Updating} {
					if writes := pass(state); len(writes) > 0 {
						t.Errorf("%s: %q", state, writes)
					}
				}
			}
		})
	}
}

// A pass over an unchanged release makes no call in this mode either.
func TestApplyMergeWatchReal(t *testing.T) {
	t.Parallel()
	p := loadReal(t, "payload-4.18.15")
	w := watchIn(t, ApplyMerge, p.Tasks(), append(operatorsAt(t, p),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}}"),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}"))...)
	w.api = defaulting{w.c}
	w.settled()
}
