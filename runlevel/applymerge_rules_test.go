package runlevel

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

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
