package runlevel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// once runs a pass with a single attempt per task.
func once(t *testing.T, api *fakeAPI, o Options, texts ...string) error {
	t.Helper()
	o.API, o.Backoff = api, &Backoff{Steps: 1}
	_, err := Run(t.Context(), tasksOf(t, texts...), o)
	return err
}

// causeOf returns the text of what a task error wraps.
func causeOf(err error) string {
	if te, ok := errors.AsType[*TaskError](err); ok && te.Err != nil {
		return te.Err.Error()
	}
	return fmt.Sprint(err)
}

func TestCreateOnly(t *testing.T) {
	for value, want := range map[string]string{"true": "Create", "TRUE": "Create", "false": "Apply", "yes": "Apply"} {
		text := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: obj, namespace: ns, annotations: {release.openshift.io/create-only: %q}}}", value)
		api := newFake()
		for range 2 {
			if err := once(t, api, Options{}, text); err != nil {
				t.Fatalf("%s: %v", value, err)
			}
		}
		w := want + " ConfigMap ns/obj"
		if diff := cmp.Diff([]string{w, w}, api.writes()); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

// An object that is to be created only and exists is not judged.
func TestCreateOnlyExistingIsNotChecked(t *testing.T) {
	text := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}, spec: {}}`
	failed := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, status: {conditions: [{type: ReplicaFailure, status: "True"}]}}`)
	checktest.OK(t, once(t, newFake(failed), Options{}, text))
}

func TestOwners(t *testing.T) {
	owner := &metav1.OwnerReference{Name: "version", UID: "uid"}
	cv := func(controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Name: "version", UID: "uid", Controller: controller}}
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "x", UID: "y"}
	const refOther, refCV = `{apiVersion: v1, kind: Namespace, name: x, uid: "y"}`, `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: old, uid: old}`
	for _, c := range []struct {
		name       string
		owner      *metav1.OwnerReference
		refs, only string
		want       []metav1.OwnerReference
	}{
		{"none named", owner, "", "", cv(new(true))},
		{"ClusterVersion named", owner, refCV, "", cv(new(true))},
		{"others named", owner, refCV + "," + refOther, "", []metav1.OwnerReference{other}},
		{"create-only", owner, "", "true", cv(nil)},
		{"create-only not exactly true", owner, "", "True", cv(new(true))},
		{"no owner known", nil, refOther, "", []metav1.OwnerReference{other}},
		{"no owner at all", nil, "", "", []metav1.OwnerReference{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			annotations := ""
			if c.only != "" {
				annotations = fmt.Sprintf("release.openshift.io/create-only: %q", c.only)
			}
			api := newFake()
			text := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: obj, annotations: {%s}, ownerReferences: [%s]}}", annotations, c.refs)
			checktest.OK(t, once(t, api, Options{Owner: c.owner}, text))
			if diff := cmp.Diff(c.want, api.get("Namespace", "obj").GetOwnerReferences()); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestStatusAndServerMetadataAreNotApplied(t *testing.T) {
	api := newFake()
	tasks := tasksOf(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: obj, creationTimestamp: null, generation: 3, labels: {a: b}}, spec: {x: 1}, status: {y: 2}}`)
	checktest.Get(Run(t.Context(), tasks, Options{API: api}))(t)
	applied := api.get("Thing", "obj")
	delete(applied.Object, "metadata")
	checktest.Same(t, map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"x": int64(1)}}, applied.Object)
	fields := appliedFields(api.get("Thing", "obj")).String()
	checktest.Equal(t, false, strings.Contains(fields, "creationTimestamp") || strings.Contains(fields, "generation"), "applied %s", fields)
	if tasks[0].Manifest.Object().Object["status"] == nil {
		t.Fatal("the manifest was changed")
	}
}

func TestUnknownFields(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // paths in the warning
		left       string // JSON path that must have stayed, with its value
	}{
		{"top level", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: obj}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, userNames: [a]}", "userNames", ""},
		{"in list elements", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: obj, namespace: ns}
spec:
  template:
    spec:
      containers:
      - {name: a, image: i}
      - {name: b, image: i, extra.field: 1, livenessProbe: {exec: {command: [x], periodSeconds: 3}}}
`, "spec.template.spec.containers[1].extra.field, spec.template.spec.containers[1].livenessProbe.exec.periodSeconds", ""},
		{"case counts", "{apiVersion: v1, kind: Service, metadata: {name: obj, namespace: ns}, spec: {ClusterIP: None}}", "spec.ClusterIP", ""},
		{"keys of maps are not fields", `{apiVersion: v1, kind: ConfigMap, metadata: {name: obj, namespace: ns}, data: {"a.b[0]": c}}`, "", ""},
		{"custom resources stay", "{apiVersion: example.com/v1, kind: Thing, metadata: {name: obj, namespace: ns}, spec: {whatever: 1}}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var warnings []string
			tr := NewTracker(nil)
			for range 2 { // one warning only, however many passes
				tasks := tasksOf(t, c.text)
				checktest.Get(Run(t.Context(), tasks, Options{API: newFake(), Tracker: tr, State: Reconciling, Observe: func(e clusterapi.Event) {
					if e.Type == EventWarning {
						warnings = append(warnings, e.Message)
						if progressOf(e).Task != tasks[0] {
							t.Error("warning without its task")
						}
					}
				}}))(t)
			}
			if c.want == "" {
				if len(warnings) > 0 {
					t.Fatalf("warnings %q", warnings)
				}
				return
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], `Filename: "0000_10_a_x.yaml" Group: `) || !strings.HasSuffix(warnings[0], ": "+c.want) {
				t.Fatalf("warnings %q, want %s", warnings, c.want)
			}
		})
	}
}

func TestUnknownFieldsAreRemovedAndNothingElse(t *testing.T) {
	var fields, list strings.Builder
	for i := range 250 { // more than a decoder reports at once
		fmt.Fprintf(&fields, "x%d: 1, ", i)
		fmt.Fprintf(&list, "{name: p%d, port: %d, y: 1},", i, i+1)
	}
	api := newFake()
	text := fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: obj, namespace: ns}, spec: {%s selector: {a.b: c}, ports: [%s]}}", fields.String(), list.String())
	checktest.OK(t, once(t, api, Options{}, text))
	spec := api.get("Service", "ns/obj").Object["spec"].(map[string]any)
	ports := spec["ports"].([]any)
	if len(spec) != 2 || len(ports) != 250 || len(ports[249].(map[string]any)) != 2 {
		t.Fatalf("%d fields, %d ports, last %v", len(spec), len(ports), ports[249])
	}
}

func TestWrongTypeIsAnError(t *testing.T) {
	api := newFake()
	err := once(t, api, Options{}, "{apiVersion: v1, kind: Service, metadata: {name: obj, namespace: ns}, spec: {ports: 3}}")
	if err == nil || !strings.Contains(causeOf(err), `Filename: "0000_10_a_x.yaml"`) || !strings.Contains(causeOf(err), "ports") {
		t.Fatalf("error %v", causeOf(err))
	}
	if len(api.writes()) > 0 {
		t.Fatalf("wrote %v", api.writes())
	}
}

func TestWorkloads(t *testing.T) {
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {}}"
	daemonSet := "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: ns}, spec: {}}"
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: d, namespace: ns}, spec: {}}"
	crd := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}, spec: {}}"
	const unclassified = "Could not update "
	for _, c := range []struct {
		name, text, status string
		deleted            bool
		reason, message    string // of an update error; empty: retried
		cause              string
	}{
		{"deployment without conditions", deployment, "{}", false, "", "", ""},
		{"deployment rolling out", deployment, `{conditions: [{type: Available, status: "False"}, {type: Progressing, status: "True"}]}`, false, "", "", ""},
		{"deployment being deleted", deployment, `{conditions: [{type: ReplicaFailure, status: "True"}]}`, true, "", "", "deployment ns/d is being deleted"},
		{"replica failure first", deployment, `{conditions: [{type: Progressing, status: "False", reason: P, message: p}, {type: Available, status: "False", reason: A, message: a}, {type: ReplicaFailure, status: "True", reason: R, message: m}]}`, false, "WorkloadNotProgressing", "deployment ns/d has a replica failure R: m", ""},
		{"unavailable and not progressing", deployment, `{conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: p}, {type: Available, status: "False", reason: A, message: a}]}`, false, "WorkloadNotAvailable", "deployment ns/d is not available A (a) or progressing ProgressDeadlineExceeded (p)", ""},
		{"deadline", deployment, `{conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: p}, {type: Available, status: "True"}]}`, false, "WorkloadNotProgressing", "deployment ns/d is Progressing=False: ProgressDeadlineExceeded: p", ""},
		{"not progressing for another reason", deployment, `{conditions: [{type: Progressing, status: "False", reason: Other}]}`, false, "", "", ""},
		{"deadline of a roll-out that may go on", deployment, `{conditions: [{type: Progressing, status: Unknown, reason: ProgressDeadlineExceeded}]}`, false, "", "", ""},
		{"no replica failure", deployment, `{conditions: [{type: ReplicaFailure, status: "False", reason: R}]}`, false, "", "", ""},
		{"available unknown", deployment, `{conditions: [{type: Available, status: Unknown}, {type: Progressing, status: "False", reason: X}]}`, false, "", "", ""},
		{"deployment of another version", strings.Replace(deployment, "apps/v1", "apps/v1beta1", 1), `{conditions: [{type: ReplicaFailure, status: "True"}]}`, false, "", "", ""},
		{"daemonset of another version", strings.Replace(daemonSet, "apps/v1", "apps/v1beta2", 1), "{}", true, "", "", ""},
		{"job of another version", strings.Replace(job, "batch/v1", "batch/v1beta1", 1), "{failed: 1}", false, "", "", ""},
		{"definition of another version", strings.Replace(crd, "io/v1", "io/v1beta1", 1), "{}", false, "", "", ""},
		{"daemonset rolling out", daemonSet, "{desiredNumberScheduled: 5, updatedNumberScheduled: 1}", false, "", "", ""},
		{"daemonset being deleted", daemonSet, "{}", true, "", "", "daemonset ns/d is being deleted"},
		{"job running", job, "{active: 1, failed: 1}", false, "", "", ""},
		{"job just created", job, "{}", false, "", "", ""},
		{"job succeeded", job, "{succeeded: 1, failed: 2}", false, "", "", ""},
		{"job failed", job, "{failed: 1}", false, "", "", `deadline exceeded, reason: "DeadlineExceeded", message: "Job was active longer than specified deadline"`},
		{"job failed with a condition", job, `{failed: 1, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: m}]}`, false, "", "", `deadline exceeded, reason: "BackoffLimitExceeded", message: "m"`},
		{"job over its deadline", job, `{conditions: [{type: Failed, status: "True", reason: DeadlineExceeded, message: m}]}`, false, "", "", `deadline exceeded, reason: "DeadlineExceeded", message: "m"`},
		{"job failed for another reason without failed pods", job, `{conditions: [{type: Failed, status: "True", reason: X, message: m}]}`, false, "", "", ""},
		{"job with a condition that is not True", job, `{conditions: [{type: Failed, status: "False", reason: DeadlineExceeded, message: m}]}`, false, "", "", ""},
		{"job with another condition", job, `{conditions: [{type: FailureTarget, status: "True", reason: DeadlineExceeded, message: m}]}`, false, "", "", ""},
		{"crd new", crd, "{}", false, "", "", "CustomResourceDefinition d does not declare an Established status condition: []"},
		{"crd with other conditions", crd, `{conditions: [{type: NamesAccepted, status: "True"}]}`, false, "", "", "CustomResourceDefinition d does not declare an Established status condition: [NamesAccepted=True]"},
		{"crd not established", crd, `{conditions: [{type: Established, status: "False", reason: R, message: m}]}`, false, "", "", "CustomResourceDefinition d Established=False, R: m"},
		{"crd established", crd, `{conditions: [{type: Established, status: "True"}]}`, false, "", "", ""},
		{"anything else", "{apiVersion: v1, kind: Namespace, metadata: {name: d}}", "{phase: Terminating}", true, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFake()
			api.after = func(_ string, stored *unstructured.Unstructured) {
				stored.Object["status"] = object(t, "{apiVersion: v1, kind: X, status: "+c.status+"}").Object["status"]
				if c.deleted {
					stored.SetDeletionTimestamp(&metav1.Time{Time: now})
				}
			}
			err := once(t, api, Options{}, c.text)
			te, _ := errors.AsType[*TaskError](err)
			switch {
			case c.reason == "" && c.cause == "":
				if err != nil {
					t.Fatalf("error %v", causeOf(err))
				}
			case c.cause != "":
				if te == nil || causeOf(err) != c.cause || !strings.HasPrefix(te.Message, unclassified) {
					t.Fatalf("error %v because of %v, want %v", err, causeOf(err), c.cause)
				}
			default:
				if te == nil || te.Reason != c.reason || te.Message != c.message || te.Effect != "" || te.Name != "ns/d" {
					t.Fatalf("error %+v", te)
				}
			}
			if err := once(t, api, Options{State: Initializing}, c.text); err != nil {
				t.Fatalf("checked while initializing: %v", err)
			}
		})
	}
}

// A CRD needs a moment: the attempt after the next finds it, and what needs
// it.
func TestCRDThenItsResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		api := newFake()
		api.after = func(_ string, stored *unstructured.Unstructured) {
			if stored.GetKind() == "CustomResourceDefinition" && time.Since(start) == 0 {
				delete(stored.Object, "status")
			}
		}
		api.before = func(_ context.Context, verb, kind, _ string) error {
			if kind == "Thing" && time.Since(start) < 15*time.Second {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
			}
			return nil
		}
		tasks := tasksOf(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}}",
			"{apiVersion: example.com/v1, kind: Thing, metadata: {name: obj}}")
		checktest.Get(Run(t.Context(), tasks, Options{API: api}))(t)
		want := []string{"Apply CustomResourceDefinition d", "Apply CustomResourceDefinition d", "Apply Thing obj", "Apply Thing obj"}
		if diff := cmp.Diff(want, api.writes()); diff != "" {
			t.Fatal(diff)
		}
		if d := time.Since(start); d != 20*time.Second {
			t.Fatalf("took %v", d)
		}
	})
}

func TestAwaitJobs(t *testing.T) {
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {completions: 2}}"
	next := "{apiVersion: v1, kind: ConfigMap, metadata: {name: after, namespace: ns}}"
	run := func(t *testing.T, limit time.Duration, await bool, status func(d time.Duration) string) ([]string, []string, error) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		api := newFake()
		set := func(o *unstructured.Unstructured) {
			o.Object["status"] = object(t, "{apiVersion: v1, kind: X, status: "+status(time.Since(start))+"}").Object["status"]
		}
		api.after = func(_ string, stored *unstructured.Unstructured) {
			if stored.GetKind() == "Job" {
				set(stored)
			}
		}
		api.before = func(_ context.Context, verb, kind, _ string) error {
			if verb == "Get" && kind == "Job" {
				job := api.get("Job", "ns/j")
				set(job)
				api.load(job)
			}
			return nil
		}
		var waits []string
		_, err := Run(ctx, tasksOf(t, job, next), Options{API: api, AwaitJobs: await, Observe: func(e clusterapi.Event) {
			if e.Type == EventWaiting {
				waits = append(waits, e.Message)
			}
		}})
		return api.writes(), waits, err
	}
	until := func(d time.Duration, before, after string) func(time.Duration) string {
		return func(t time.Duration) string {
			if t < d {
				return before
			}
			return after
		}
	}
	synctest.Test(t, func(t *testing.T) {
		writes, waits, err := run(t, time.Hour, true, until(time.Minute, "{active: 1, succeeded: 1}", "{succeeded: 2}"))
		checktest.OK(t, err)
		checktest.Same(t, []string{"Apply Job ns/j", "Apply ConfigMap ns/after"}, writes)
		checktest.Same(t, []string{"waiting on job ns/j"}, waits)
	})
	synctest.Test(t, func(t *testing.T) {
		writes, _, err := run(t, time.Minute, true, until(time.Hour, "{active: 1}", ""))
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.Effect != EffectNone || te.Name != "ns/j" || len(writes) != 1 {
			t.Errorf("error %v after %v", err, writes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, _, err := run(t, time.Hour, true, until(time.Minute, "{active: 1}", `{succeeded: 1, conditions: [{type: Failed, status: "True", reason: R, message: m}]}`))
		if causeOf(err) != "job ns/j failed: R: m" {
			t.Errorf("error %v", causeOf(err))
		}
	})
	synctest.Test(t, func(t *testing.T) { // complete, as the Job itself sees it
		writes, _, err := run(t, time.Hour, true, until(time.Minute, "{active: 1}", `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`))
		if err != nil || len(writes) != 2 {
			t.Errorf("error %v after %v", err, writes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if writes, waits, err := run(t, time.Hour, false, until(time.Hour, "{active: 1}", "")); err != nil || len(writes) != 2 || len(waits) != 0 {
			t.Errorf("without the option: %v, %v, %v", writes, waits, err)
		}
	})
}

func TestDelete(t *testing.T) {
	text := `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/delete: "true"}}}`
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	key := clusterapi.Key("ns", "s")
	svc := object(t, "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, uid: u}}")
	pending := []string{`service "ns/s"`}

	api, tr := newFake(svc), NewTracker(nil)
	step := func(name string, state State, wantWrites, wantReads int, wantPending []string) {
		t.Helper()
		var warnings int
		api.calls, api.reads = nil, nil
		err := once(t, api, Options{State: state, Tracker: tr, Observe: func(e clusterapi.Event) {
			if e.Type == EventWarning {
				warnings++
			}
		}}, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(api.calls) != wantWrites || len(api.reads) != wantReads {
			t.Errorf("%s: calls %v, %v", name, api.calls, api.reads)
		}
		if diff := cmp.Diff(wantPending, tr.PendingDeletions()); diff != "" {
			t.Errorf("%s: pending %s", name, diff)
		}
		if (warnings > 0) != (name == "back again") {
			t.Errorf("%s: %d warnings", name, warnings)
		}
	}
	step("nothing but in updating", Reconciling, 0, 0, nil)
	step("nor initializing", Initializing, 0, 0, nil)
	step("requested", Updating, 1, 1, pending)
	step("only once", Updating, 0, 1, pending)
	step("looked after", Reconciling, 0, 1, pending)
	checktest.OK(t, api.Remove(gvk, key))
	step("gone", Reconciling, 0, 1, nil)
	step("gone is not looked after", Reconciling, 0, 0, nil)
	step("stays gone", Updating, 0, 1, nil)
	api.load(svc)
	step("back again", Updating, 0, 1, nil)

	api, tr = newFake(), NewTracker(nil)
	step("absent from the start", Updating, 0, 1, nil)
	api.load(svc)
	step("back again", Updating, 0, 1, nil)

	// gone between the look and the request
	api, tr = newFake(svc), NewTracker(nil)
	api.before = func(_ context.Context, verb, _, _ string) error {
		if verb == "Delete" {
			return notFound(gvk, "s")
		}
		return nil
	}
	step("gone just now", Updating, 1, 1, pending)
	checktest.OK(t, api.Remove(gvk, key))
	step("found gone", Updating, 0, 1, nil)
}

func TestDeleteErrors(t *testing.T) {
	refuse := apierrors.NewForbidden(schema.GroupResource{Resource: "r"}, "n", errors.New("no"))
	for _, c := range []struct{ name, kind, meta, verb, want string }{
		{"get", "{apiVersion: v1, kind: Service,", "namespace: ns,", "Get", `error running delete for service "ns/obj", err=cannot get service "ns/obj" to delete, err=` + refuse.Error()},
		{"delete", "{apiVersion: v1, kind: Service,", "namespace: ns,", "Delete", `delete request for service "ns/obj" failed, err=` + refuse.Error()},
		{"generic kinds as written", "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor,", "namespace: ns,", "Delete", `delete request for ServiceMonitor "ns/obj" failed, err=` + refuse.Error()},
		{"other versions are generic", "{apiVersion: apps/v1beta1, kind: Deployment,", "namespace: ns,", "Delete", `delete request for Deployment "ns/obj" failed, err=` + refuse.Error()},
		{"no namespace", "{apiVersion: v1, kind: Namespace,", "", "Delete", `delete request for namespace "obj" failed, err=` + refuse.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.kind + ` metadata: {` + c.meta + ` name: obj, annotations: {release.openshift.io/delete: "true"}}}`
			api := newFake(object(t, text))
			api.before = func(_ context.Context, verb, _, _ string) error {
				if verb == c.verb {
					return refuse
				}
				return nil
			}
			tr := NewTracker(nil)
			err := once(t, api, Options{Tracker: tr}, text)
			te, _ := errors.AsType[*TaskError](err)
			if te == nil || te.Reason != "UpdatePayloadResourceForbidden" || causeOf(err) != c.want {
				t.Fatalf("error %v\nwant  %v", causeOf(err), c.want)
			}
			if p := tr.PendingDeletions(); len(p) > 0 {
				t.Errorf("pending %v", p)
			}
		})
	}
	for _, state := range []State{Updating, Reconciling} {
		api := newFake()
		err := once(t, api, Options{State: state}, `{apiVersion: v1, kind: Service, metadata: {name: obj, annotations: {release.openshift.io/delete: "True"}}}`)
		if causeOf(err) != `invalid delete annotation "release.openshift.io/delete" value: "True"` || len(api.writes()) > 0 {
			t.Errorf("%s: error %v", state, causeOf(err))
		}
	}
}

// TestDeleteUnservedKind: where the kind is gone, so is the object.
func TestDeleteUnservedKind(t *testing.T) {
	api := newFake()
	api.before = func(_ context.Context, verb, _, _ string) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "old.example", Kind: "Relic"}}
	}
	tr := NewTracker(nil)
	err := once(t, api, Options{Tracker: tr}, `{apiVersion: old.example/v1, kind: Relic, metadata: {name: obj, annotations: {release.openshift.io/delete: "true"}}}`)
	if err != nil || len(tr.PendingDeletions()) > 0 {
		t.Errorf("error %v, pending %v", err, tr.PendingDeletions())
	}
}

// Kinds with rules of their own are in lower case in texts, in version v1 of their
// group; all others are as written.
func TestDeletionTexts(t *testing.T) {
	for group, kinds := range map[string]map[string]string{
		"v1":                                {"Namespace": "namespace", "ConfigMap": "configmap", "ServiceAccount": "serviceaccount", "Service": "service", "Secret": "Secret"},
		"rbac.authorization.k8s.io/v1":      {"Role": "role", "RoleBinding": "rolebinding", "ClusterRole": "clusterrole", "ClusterRoleBinding": "clusterrolebinding"},
		"rbac.authorization.k8s.io/v1beta1": {"Role": "Role"},
		"apps/v1":                           {"Deployment": "deployment", "DaemonSet": "daemonset", "StatefulSet": "StatefulSet"},
		"batch/v1":                          {"Job": "job", "CronJob": "cronjob"},
		"batch/v1beta1":                     {"CronJob": "CronJob"},
		"apiextensions.k8s.io/v1":           {"CustomResourceDefinition": "customresourcedefinition"},
		"admissionregistration.k8s.io/v1":   {"ValidatingWebhookConfiguration": "validatingwebhookconfiguration", "MutatingWebhookConfiguration": "MutatingWebhookConfiguration"},
		"security.openshift.io/v1":          {"SecurityContextConstraints": "securitycontextconstraints"},
		"image.openshift.io/v1":             {"ImageStream": "imagestream"},
		"operators.coreos.com/v1":           {"OperatorGroup": "operatorgroup"},
		"operators.coreos.com/v1alpha1":     {"Subscription": "Subscription"},
	} {
		for kind, want := range kinds {
			text := fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: obj, namespace: ns, annotations: {release.openshift.io/delete: "true"}}}`, group, kind)
			tr := NewTracker(nil)
			checktest.OK(t, once(t, newFake(object(t, text)), Options{Tracker: tr}, text))
			if diff := cmp.Diff([]string{want + ` "ns/obj"`}, tr.PendingDeletions()); diff != "" {
				t.Errorf("%s: %s", group, diff)
			}
		}
	}
}

// A manifest that asks for a deletion is subject to inclusion like any other; an
// object that a release does not name any more stays.
func TestDeletionIsSubjectToInclusion(t *testing.T) {
	text := `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/delete: "true", capability.openshift.io/name: Extra}}}`
	other := "{apiVersion: v1, kind: Service, metadata: {name: other, namespace: ns}}"
	for _, c := range []struct {
		name string
		caps *manifest.Capabilities
		want []string
	}{
		{"included", nil, []string{"Delete Service ns/s"}},
		{"excluded", &manifest.Capabilities{Known: sets.New("Extra")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			api, tr := newFake(object(t, text), object(t, other)), NewTracker(nil)
			checktest.OK(t, once(t, api, Options{Tracker: tr, Filter: manifest.Filter{Capabilities: c.caps}}, text))
			checktest.Same(t, c.want, api.writes())
			if n := len(tr.PendingDeletions()); n != len(c.want) {
				t.Errorf("%d pending", n)
			}
		})
	}
}

// TestDeletionEnds plays passes over manifests that delete an object, apply it, or
// both, with one Tracker. An object that is deleted keeps existing until the next
// pass, as one with a finalizer does.
func TestDeletionEnds(t *testing.T) {
	const (
		remove = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/delete: "true"}}}`
		apply  = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {}}}`
		once   = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}}`
		other  = `{apiVersion: serving.example/v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {}}}`
		config = `{apiVersion: a.example/v1, kind: Config, metadata: {name: cluster, annotations: {release.openshift.io/delete: "true"}}}`
		twin   = `{apiVersion: b.example/v1, kind: Config, metadata: {name: cluster, annotations: {}}}`
		twins  = `{apiVersion: b.example/v1, kind: Config, metadata: {name: cluster, annotations: {release.openshift.io/delete: "true"}}}`

		service = `service "ns/s"`
		cluster = `Config "cluster"`
	)
	type pass struct {
		state   State
		texts   []string
		deletes int
		pending []string
	}
	const updating, reconciling = Updating, Reconciling
	for _, tt := range []struct {
		name   string
		exists []string
		passes []pass
	}{
		{"rolled back and updated again", []string{apply}, []pass{
			{updating, []string{remove}, 1, []string{service}},
			{updating, []string{apply}, 0, nil},
			{updating, []string{remove}, 1, []string{service}},
		}},
		{"created again only if it is gone", []string{apply}, []pass{
			{updating, []string{remove}, 1, []string{service}},
			{updating, []string{once}, 0, nil},
			{updating, []string{remove}, 1, []string{service}},
		}},
		{"deleted, then applied", []string{apply}, []pass{
			{updating, []string{remove, apply}, 1, nil},
			{updating, []string{remove, apply}, 0, nil},
			{reconciling, []string{remove, apply}, 0, nil},
		}},
		{"applied, then deleted", []string{apply}, []pass{
			{updating, []string{apply, remove}, 1, []string{service}},
			{updating, []string{apply, remove}, 0, nil},
			{reconciling, []string{apply, remove}, 0, nil},
		}},
		{"another group", []string{apply, config, twin}, []pass{
			{updating, []string{remove, config}, 2, []string{cluster, service}},
			{updating, []string{other, twin}, 0, []string{cluster, service}},
			{updating, []string{twins}, 1, []string{cluster, service}},
			{updating, []string{apply}, 0, []string{cluster}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var exists []*unstructured.Unstructured
			for _, text := range tt.exists {
				exists = append(exists, object(t, text))
			}
			api, tracker := newFake(exists...), NewTracker(nil)
			for i, p := range tt.passes {
				api.calls = nil
				if _, err := Run(t.Context(), tasksOf(t, p.texts...), Options{
					API: api, State: p.state, Tracker: tracker, Workers: 1, Backoff: &Backoff{Steps: 1}}); err != nil {
					t.Fatalf("pass %d: %v", i+1, err)
				}
				deletes := 0
				for _, c := range api.writes() {
					if strings.HasPrefix(c, "Delete ") {
						deletes++
					}
				}
				if deletes != p.deletes {
					t.Errorf("pass %d: %d deletions, want %d", i+1, deletes, p.deletes)
				}
				if diff := cmp.Diff(p.pending, tracker.PendingDeletions()); diff != "" {
					t.Errorf("pass %d: pending (-want +got):\n%s", i+1, diff)
				}
				// What is saved is what is known.
				data := checktest.Get(json.Marshal(tracker))(t)
				tracker = NewTracker(nil)
				checktest.OK(t, json.Unmarshal(data, tracker))
			}
		})
	}
}
