package runlevel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/manifest"
)

const operatorManager = "cluster-version-operator"

// writtenAs is an API whose writes are in the name of another manager.
type writtenAs struct {
	API
	manager string
}

func (w writtenAs) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	o.FieldManager = w.manager
	return w.API.Create(ctx, obj, o)
}

func (w writtenAs) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	o.FieldManager = w.manager
	return w.API.Update(ctx, obj, o)
}

func (w writtenAs) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	o.FieldManager = w.manager
	return w.API.UpdateStatus(ctx, obj, o)
}

// managers are the entries of an object's managedFields.
func managers(u *unstructured.Unstructured) []string {
	var out []string
	for _, e := range u.GetManagedFields() {
		out = append(out, strings.TrimSpace(strings.Join([]string{e.Manager, string(e.Operation), e.Subresource}, " ")))
	}
	slices.Sort(out)
	return out
}

const (
	mounting = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, labels: {old: x}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
  spec: {containers: [{name: c, image: "i:1", volumeMounts: [{name: v, mountPath: /v}]}, {name: dropped, image: "i:1"}], volumes: [{name: v, configMap: {name: gone}}]}}}}`
	unmounted = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
  spec: {containers: [{name: c, image: "i:2"}]}}}}`
)

// What the operator wrote and a release drops goes, in one write more at the first
// apply, and what others have set stays.
func TestAdoption(t *testing.T) {
	for _, manager := range []string{operatorManager, clusterapi.ManagerPayload} {
		t.Run(manager, func(t *testing.T) {
			c := newCalled(t)
			c.run(Options{SkipChecks: true, Tracker: NewTracker(nil), API: writtenAs{defaulting{c.Cluster}, manager}, Mode: ApplyMerge}, mounting)
			sidecar := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, labels: {mine: x}}, spec: {template: {spec: {containers: [{name: sidecar, image: "s:1"}]}}}}`)
			checktest.Get(c.Cluster.Apply(t.Context(), sidecar, clusterapi.ApplyOptions{FieldManager: "someone"}))(t)
			u := c.get(mounting)
			checktest.OK(t, unstructured.SetNestedField(u.Object, int64(1), "status", "replicas"))
			checktest.Get(c.Cluster.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{FieldManager: manager}))(t)

			checktest.Same(t, []string{"Get Deployment ns/d", "Update Deployment ns/d", "Apply Deployment ns/d"}, c.ours(unmounted))
			u = c.get(mounting)
			want := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
  spec: {containers: [{name: c, image: "i:2"}, {name: sidecar, image: "s:1"}]}}}, status: {replicas: 1}}`)
			got := objects.WithoutServerFields(u)
			got.Object["status"] = u.Object["status"]
			want.SetLabels(map[string]string{"mine": "x"})
			checktest.Same(t, want.Object, got.Object)
			checktest.Same(t, []string{clusterapi.ManagerPayload + " Apply", "someone Apply", manager + " Update status"}, managers(u), sorted)
			if diff := cmp.Diff([]string{"Apply Deployment ns/d"}, c.ours(unmounted)); diff != "" {
				t.Errorf("second pass: %s", diff)
			}
			if got := c.get(mounting); got.GetResourceVersion() != u.GetResourceVersion() {
				t.Error("the second pass has written")
			}
		})
	}
}

var sorted = cmp.Transformer("sorted", func(in []string) []string { return slices.Sorted(slices.Values(in)) })

// Once an object had something to adopt, the others are read first, each once;
// where nothing is to be adopted, none is.
func TestAdoptionCalls(t *testing.T) {
	texts := []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {x: "1"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}, data: {x: "1"}}`,
	}
	c := newCalled(t)
	c.operator(texts...)
	want := []string{
		"Apply ConfigMap ns/a", "Update ConfigMap ns/a", "Apply ConfigMap ns/a", // nothing is known yet
		"Get ConfigMap ns/b", "Update ConfigMap ns/b", "Apply ConfigMap ns/b",
	}
	checktest.Same(t, want, c.ours(texts...))
	plain := []string{"Apply ConfigMap ns/a", "Apply ConfigMap ns/b"}
	checktest.Same(t, plain, c.ours(texts...))
	c.tracker = NewTracker(nil)
	if diff := cmp.Diff(plain, c.ours(texts...)); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	// the operator is back for a while, and drops nothing by itself
	c.operator(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}, data: {old: "1"}}`)
	c.ours(texts...)
	checktest.Same(t, map[string]string{"x": "1"}, dataOf(c.get(texts[1])))
}

// Adopt names who is taken over.
func TestAdoptNames(t *testing.T) {
	const before, after = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: "1", old: "1"}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: "1"}}`
	for _, tt := range []struct {
		name, writer string
		adopt        []string
		goes         bool
	}{
		{"default", operatorManager, nil, true},
		{"nobody", operatorManager, []string{}, false},
		{"somebody else", "installer", nil, false},
		{"who is named", "installer", []string{"installer"}, true},
		{"others than are named", operatorManager, []string{"installer"}, false},
	} {
		c := newCalled(t)
		c.run(Options{SkipChecks: true, Tracker: NewTracker(nil), API: writtenAs{c, tt.writer}, Mode: ApplyMerge}, before)
		c.run(Options{SkipChecks: true, Tracker: NewTracker(nil), Adopt: tt.adopt}, after)
		_, stays := dataOf(c.get(before))["old"]
		if stays == tt.goes {
			t.Errorf("%s: it stays: %t", tt.name, stays)
		}
	}
}

// What a manifest that only creates has set stays, whoever created the object.
func TestAdoptionOfCreated(t *testing.T) {
	create := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}, data: {user: default}}`
	normal := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {ours: x}}`
	c := newCalled(t)
	c.operator(create, normal)
	c.ours(create, normal)
	checktest.Same(t, map[string]string{"user": "default", "ours": "x"}, dataOf(c.get(normal)))
}

// Of a ClusterOperator labels and annotations are ours, and not the spec, which its
// definition requires.
func TestAdoptionOfClusterOperators(t *testing.T) {
	definition := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clusteroperators.config.openshift.io, annotations: {}}, spec: {group: config.openshift.io, scope: Cluster,
  names: {plural: clusteroperators, singular: clusteroperator, kind: ClusterOperator, listKind: ClusterOperatorList}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
  schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}]}}`
	text := func(annotation string) string {
		return `{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co, annotations: {` + annotation + `: x}}, spec: {}, status: {versions: [{name: operator, version: "1"}]}}`
	}
	c := newCalled(t)
	c.ours(definition)
	operator := object(t, text("old"))
	checktest.Get(c.Cluster.Create(t.Context(), operator, clusterapi.CreateOptions{FieldManager: operatorManager}))(t)
	c.run(Options{SkipChecks: true, Tracker: NewTracker(nil), State: Reconciling}, text("new"))
	u := c.get(text("old"))
	checktest.Same(t, map[string]string{"new": "x"}, u.GetAnnotations())
	if _, ok := u.Object["spec"]; !ok {
		t.Error("the spec has gone")
	}
}

// All fields of all versions are taken over, whatever manager wrote last.
func TestAdoptionOfVersions(t *testing.T) {
	c := newCalled(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.io}, spec: {group: example.io, scope: Namespaced,
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}, versions: [
    {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, additionalProperties: {type: string}}}}}},
    {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, additionalProperties: {type: string}}}}}}]}}`)
	c.operator(`{apiVersion: example.io/v1beta1, kind: Thing, metadata: {name: t, namespace: ns}, spec: {a: x, old: x}}`)
	c.operator(`{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}, spec: {a: x, old: x, b: x, newer: x}}`)
	u := c.get(`{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}}`)
	if n := len(u.GetManagedFields()); n != 2 {
		t.Fatalf("%d entries", n)
	}
	c.ours(`{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}, spec: {a: x, b: x}}`)
	u = c.get(`{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}}`)
	checktest.Same(t, map[string]any{"a": "x", "b": "x"}, u.Object["spec"])
}

// refusing is an API that refuses updates with an error.
type refusing struct {
	API
	err error
}

func (r refusing) Update(context.Context, *unstructured.Unstructured, clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, r.err
}

// An update that is refused is an error of the task, after the apply, which may
// mend its cause; the next try adopts.
func TestAdoptionRefused(t *testing.T) {
	things := schema.GroupResource{Resource: "deployments"}
	for _, err := range []error{
		apierrors.NewConflict(things, "d", errors.New("somebody was faster")),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "d", nil),
		apierrors.NewForbidden(things, "d", errors.New("no")),
	} {
		c := newCalled(t)
		c.operator(mounting)
		_, got := Run(t.Context(), tasksOf(t, unmounted), Options{API: refusing{c, err}, Tracker: c.tracker, Backoff: &Backoff{Steps: 1}})
		if got == nil || !strings.Contains(causeOf(got), "adopting the fields of cluster-version-operator: ") || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, causeOf(got))
		}
		c.ours(unmounted)
		if volumes, ok, _ := unstructured.NestedSlice(c.get(mounting).Object, "spec", "template", "spec", "volumes"); ok {
			t.Errorf("%v: %v", err, volumes)
		}
	}
}

// A pass that watches drift tells nothing of what it has adopted, and is quiet then.
func TestAdoptionWatched(t *testing.T) {
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: "1"}}`
	w := watch(t, tasksOf(t, text))
	u := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {x: "1", old: "1"}}`)
	checktest.Get(w.c.Create(t.Context(), u, clusterapi.CreateOptions{FieldManager: operatorManager}))(t)
	w.tell()
	w.settled()
	got := checktest.Get(w.c.Get(t.Context(), configMaps1, clusterapi.Key("ns", "c")))(t)
	if diff := cmp.Diff(map[string]string{"x": "1"}, dataOf(got)); diff != "" || len(w.told()) > 0 {
		t.Errorf("%s, told %v", diff, w.told())
	}
}

// endsDifferently are the fields in which the modes end differently, with reasons:
// what lies below the path of an object, in server-side apply or in merges.
var endsDifferently = []struct{ object, path, suffix, reason string }{
	{"Deployment openshift-cloud-controller-manager-operator/cluster-cloud-controller-manager-operator", "spec.template.spec.containers", ".hostPort",
		"a merge gives each port of a pod on the host's network that number on the host, as servers did in templates until Kubernetes 1.28"},
	{"Deployment openshift-cluster-machine-approver/machine-approver", "spec.template.spec.containers", ".hostPort", "likewise"},
}

// verbs counts the writes of a cluster by verb.
type verbs struct {
	*memory.Cluster
	calls map[string]int
}

func (v verbs) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	v.calls["Apply"]++
	return v.Cluster.Apply(ctx, obj, o)
}

func (v verbs) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	v.calls["Create"]++
	return v.Cluster.Create(ctx, obj, o)
}

func (v verbs) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	v.calls["Update"]++
	return v.Cluster.Update(ctx, obj, o)
}

// A cluster that the operator wrote comes to the same state in both modes.
func TestTakeoverReal(t *testing.T) {
	if testing.Short() || israce.Enabled {
		t.Skip("updates a cluster of real size twice")
	}
	t.Parallel()
	from, to := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	operator := memory.NewOpenShift(memory.Options{})
	run := func(tasks []*manifest.Task, o Options) {
		t.Helper()
		o.Backoff, o.SkipChecks, o.Owner = &Backoff{Steps: 1}, true, &metav1.OwnerReference{Name: "version", UID: "uid"}
		if _, err := Run(t.Context(), tasks, o); err != nil {
			t.Fatalf("%s: %v", o.Mode, causeOf(err))
		}
	}
	pass := func(p *manifest.Payload, o Options) {
		t.Helper()
		run(p.Tasks(), o)
		o.State = Reconciling // when metadata of ClusterOperators is written
		run(slices.DeleteFunc(slices.Clone(p.Tasks()), func(t *manifest.Task) bool { return t.Manifest.GVK().Kind != "ClusterOperator" }), o)
	}
	pass(from, Options{API: writtenAs{defaulting{operator}, operatorManager}, Mode: ApplyMerge})
	calls := make(map[string]int) // of server-side apply
	applied := memory.NewOpenShift(memory.Options{Base: operator})
	merged := memory.NewOpenShift(memory.Options{Base: operator})
	pass(to, Options{API: verbs{applied, calls}, Workers: 1})
	pass(to, Options{API: defaulting{merged}, Mode: ApplyMerge})
	if n := calls["Apply"] + calls["Create"]; calls["Update"] == 0 || calls["Update"] > n || n > len(to.Tasks()) {
		t.Errorf("%v for %d tasks", calls, len(to.Tasks()))
	}

	met, compared := make([]bool, len(endsDifferently)), make(map[manifest.Identity]bool)
	for _, task := range append(to.Tasks(), from.Tasks()...) {
		m := task.Manifest
		if compared[m.Identity()] {
			continue
		}
		compared[m.Identity()] = true
		get := func(c *memory.Cluster) *unstructured.Unstructured {
			u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
			if err != nil {
				return nil
			}
			return apiserver.Fill(objects.WithoutServerFields(u))
		}
		object := m.GVK().Kind + " " + shortName(clusterapi.KeyOf(m.Object()))
		a, b := get(applied), get(merged)
		if (a == nil) != (b == nil) {
			t.Errorf("%s: it is there after server-side apply: %t, after merges: %t", object, a != nil, b != nil)
		}
		if a == nil || b == nil {
			continue
		}
	fields:
		for _, f := range clusterapi.Compare(a, b, nil) {
			for i, e := range endsDifferently {
				if e.object == object && strings.HasPrefix(f.Path, e.path) && strings.HasSuffix(f.Path, e.suffix) {
					met[i] = true
					continue fields
				}
			}
			t.Errorf("%s: %s is %s after server-side apply, %s after merges", object, f.Path, fmt.Sprint(f.Old), fmt.Sprint(f.New))
		}
	}
	if len(compared) < 800 {
		t.Errorf("%d objects compared", len(compared))
	}
	for i, e := range endsDifferently {
		if !met[i] {
			t.Errorf("%s: no %s differs", e.object, e.suffix)
		}
	}
}
