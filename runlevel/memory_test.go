package runlevel

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// A real payload goes onto a cluster that enforces schemas, and reconciling it
// afterwards changes nothing.
func TestRealPayloadOnMemory(t *testing.T) {
	t.Parallel()
	p := loadReal(t, "payload-4.18.15")
	tasks := p.Tasks()
	c := memory.NewOpenShift(memory.Options{})
	if err := c.Load(operatorsAt(t, p)...); err != nil {
		t.Fatal(err)
	}
	tr := NewTracker(nil)
	pass := func(state State) {
		t.Helper()
		res, err := Run(t.Context(), tasks, Options{
			API: c, State: state, Tracker: tr, Backoff: &Backoff{Steps: 1},
			Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
		})
		if err != nil || res.Done != 806 {
			t.Fatalf("%s: %+v %v", state, res, err)
		}
	}
	versions := func() map[string]string {
		out := make(map[string]string)
		for _, task := range tasks {
			u, err := c.Get(t.Context(), task.Manifest.GVK(), clusterapi.KeyOf(task.Manifest.Object()))
			if err == nil {
				out[task.String()] = u.GetResourceVersion()
			}
		}
		return out
	}
	deletions := 0
	for _, task := range tasks {
		if _, ok := task.Manifest.Annotations()["release.openshift.io/delete"]; ok {
			deletions++
		}
	}

	pass(Updating)
	pass(Reconciling) // applies the metadata of ClusterOperators
	before := versions()
	if len(before) != 806-deletions || deletions == 0 {
		t.Fatalf("%d objects and %d deletions of 806", len(before), deletions)
	}
	pass(Reconciling)
	pass(Updating)
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("objects are rewritten: %s", diff)
	}
}

// What was injected by hand into a keyed list stays; what an earlier manifest
// set and the next one does not name goes.
func TestApplyOnMemory(t *testing.T) {
	c := memory.NewOpenShift(memory.Options{})
	run := func(texts ...string) {
		t.Helper()
		if _, err := Run(t.Context(), tasksOf(t, texts...), Options{API: c, Backoff: &Backoff{Steps: 1}}); err != nil {
			t.Fatal(causeOf(err))
		}
	}
	run("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, labels: {old: x, both: x}}, spec: {ports: [{name: a, port: 1, protocol: TCP}]}}")
	foreign := object(t, "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {ports: [{name: b, port: 2, protocol: TCP}]}}")
	if _, err := c.Apply(t.Context(), foreign, clusterapi.ApplyOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	run("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, labels: {both: x}}, spec: {ports: [{name: a, port: 1, protocol: TCP}]}}")
	u, err := c.Get(t.Context(), foreign.GroupVersionKind(), clusterapi.KeyOf(foreign))
	if err != nil {
		t.Fatal(err)
	}
	ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
	if diff := cmp.Diff(map[string]string{"both": "x"}, u.GetLabels()); diff != "" || len(ports) != 2 {
		t.Fatalf("%d ports, labels %s", len(ports), diff)
	}
}

// Two manifests of one resource, as feature sets bring them: both hold, and
// neither takes back in every pass what the other sets.
func TestTwoManifestsOfOneResource(t *testing.T) {
	c := memory.NewOpenShift(memory.Options{})
	texts := []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: two, labels: {a: x}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: two, labels: {b: x}}}",
	}
	var before string
	for i := range 3 {
		if _, err := Run(t.Context(), tasksOf(t, texts...), Options{API: c, Workers: 1}); err != nil {
			t.Fatal(err)
		}
		u, err := c.Get(t.Context(), object(t, texts[0]).GroupVersionKind(), clusterapi.Key("", "two"))
		if err != nil {
			t.Fatal(err)
		}
		if l := u.GetLabels(); l["a"] != "x" || l["b"] != "x" {
			t.Fatalf("labels %v", l)
		}
		if i > 0 && u.GetResourceVersion() != before {
			t.Fatal("rewritten")
		}
		before = u.GetResourceVersion()
	}
}

// BenchmarkUnchangedPass makes a pass over a cluster that is as a real payload
// wants it, and counts what it asks of the API.
func BenchmarkUnchangedPass(b *testing.B) {
	p := loadReal(b, "payload-4.18.15")
	tasks := p.Tasks()
	var reads, writes atomic.Int64
	c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if call.Verb == "Get" || call.Verb == "List" {
			reads.Add(1)
		} else {
			writes.Add(1)
		}
		return do(ctx)
	}})
	if err := c.Load(operatorsAt(b, p)...); err != nil {
		b.Fatal(err)
	}
	tr := NewTracker(nil)
	pass := func(state State, mode Mode) {
		b.Helper()
		res, err := Run(b.Context(), tasks, Options{
			API: c, State: state, Mode: mode, Tracker: tr, Backoff: &Backoff{Steps: 1},
			Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
		})
		if err != nil || res.Done != 806 {
			b.Fatalf("%s: %+v %v", state, res, err)
		}
	}
	for _, mode := range []Mode{ApplyServerSide, ApplyMerge} {
		pass(Updating, mode)
		for _, state := range []State{Updating, Reconciling} {
			pass(state, mode)
			b.Run(fmt.Sprintf("%s %s", mode, state), func(b *testing.B) {
				reads.Store(0)
				writes.Store(0)
				b.ReportAllocs()
				for b.Loop() {
					pass(state, mode)
				}
				b.ReportMetric(float64(reads.Load())/float64(b.N), "reads/op")
				b.ReportMetric(float64(writes.Load())/float64(b.N), "applies/op")
			})
		}
	}
}
