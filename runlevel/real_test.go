package runlevel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// loadReal loads a real payload, once for all tests.
func loadReal(tb testing.TB, name string) *manifest.Payload {
	tb.Helper()
	dir := filepath.Join(testdata.Dir(tb), name)
	load, _ := realPayloads.LoadOrStore(dir, sync.OnceValues(func() (*manifest.Payload, error) {
		return manifest.Load(context.Background(), os.DirFS(dir), manifest.LoadOptions{
			Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter(),
		})
	}))
	p := checktest.Get(load.(func() (*manifest.Payload, error))())(tb)
	return p
}

var realPayloads sync.Map

// operatorsAt makes the ClusterOperators that a payload waits for, good and at
// its versions.
func operatorsAt(t testing.TB, p *manifest.Payload) []*unstructured.Unstructured {
	var objs []*unstructured.Unstructured
	for _, op := range p.Operators() {
		versions := make([]any, 0, len(op.Versions))
		for _, v := range op.Versions {
			versions = append(versions, map[string]any{"name": v.Name, "version": v.Version})
		}
		co := object(t, "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: x}, status: {conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'False'}]}}")
		co.SetName(op.Name)
		checktest.OK(t, unstructured.SetNestedSlice(co.Object, versions, "status", "versions"))
		objs = append(objs, co)
	}
	return objs
}

// In Updating no task of a component starts before the levels below it are
// done; an operator that is behind stops what comes later and nothing else.
func TestRealPayloadStuckOperator(t *testing.T) {
	p := loadReal(t, "payload-4.18.15")
	api := newFake(operatorsAt(t, p)...)
	stuck := api.get("ClusterOperator", "kube-apiserver")
	_ = unstructured.SetNestedSlice(stuck.Object, nil, "status", "versions")
	api.load(stuck)

	var mu sync.Mutex
	finished := make(map[*manifest.Task]bool)
	started := make(map[*manifest.Task]bool)
	g := graphFor(Updating, p.Tasks(), 0)
	var wait *Wait
	tasks := p.Tasks()
	res, err := Run(t.Context(), tasks, Options{API: api, Observe: func(e clusterapi.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Type {
		case EventTaskStarted:
			started[progressOf(e).Task] = true
		case EventTaskDone:
			finished[progressOf(e).Task] = true
		case EventWaiting:
			wait = progressOf(e).Wait
		}
	}})
	te, ok := errors.AsType[*TaskError](err)
	if !ok || te.Effect != EffectNone || te.Name != "kube-apiserver" {
		t.Fatalf("error %v", err)
	}
	if wait == nil || wait.Operator != "kube-apiserver" || len(wait.Undone) == 0 || wait.Available != configv1.ConditionTrue {
		t.Fatalf("waits on %+v", wait)
	}
	if res.Done == 0 || res.Done >= res.Total {
		t.Fatalf("%+v", res)
	}
	level := func(t *manifest.Task) string {
		l, _, _ := manifest.ParseName(t.Manifest.Filename)
		return l
	}
	for _, task := range tasks {
		if started[task] && task.Index > te.Task.Index && level(task) != level(te.Task) {
			t.Errorf("%s started behind the stuck operator", task)
		}
		if task.Index < te.Task.Index && level(task) != level(te.Task) && !finished[task] {
			t.Errorf("%s was not done", task)
		}
	}
	checktest.OK(t, g.Validate())
}

// A real payload goes onto a cluster that enforces schemas, and reconciling it
// afterwards changes nothing.
func TestRealPayloadOnMemory(t *testing.T) {
	t.Parallel()
	p := loadReal(t, "payload-4.18.15")
	tasks := p.Tasks()
	c := memory.NewOpenShift(memory.Options{})
	checktest.OK(t, c.Load(operatorsAt(t, p)...))
	tr := NewTracker(nil)
	pass := func(state State) {
		t.Helper()
		res, err := Run(t.Context(), tasks, Options{
			API: c, State: state, Tracker: tr, Backoff: &Backoff{Steps: 1}, Observe: func(e clusterapi.Event) {
				if e.Type == EventWarning && !strings.Contains(e.Message, "userNames") { // of the node-tuning operator's bindings
					t.Errorf("warning %s", e.Message)
				}
			},
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
	checktest.OK(b, c.Load(operatorsAt(b, p)...))
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

// TestProfilesOnMemory installs real payloads, or updates to them, under every
// cluster profile, on clusters that enforce schemas: a pass comes to its end
// without an error, and what it has written is what is included.
func TestProfilesOnMemory(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		payload, profile, featureSet, capabilities string
		state                                      State
	}{
		{"payload-4.17.30", "self-managed-high-availability", "", "None", Initializing},
		{"payload-4.17.30", "hypershift", "", "vCurrent", Initializing},
		{"payload-4.17.30", "ibm-cloud-managed", "TechPreviewNoUpgrade", "v4.11", Initializing},
		{"payload-4.17.30", "single-node-developer", "DevPreviewNoUpgrade", "None", Updating},
		{"payload-4.18.15", "self-managed-high-availability", "CustomNoUpgrade", "vCurrent", Initializing},
		{"payload-4.18.15", "hypershift", "TechPreviewNoUpgrade", "None", Updating},
		{"payload-4.18.15", "ibm-cloud-managed", "", "v4.14", Updating},
		{"payload-4.18.15", "single-node-developer", "", "vCurrent", Initializing},
	} {
		if israce.Enabled && i%4 != 1 {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s/%s/%s/%s", tt.payload, tt.profile, tt.featureSet, tt.capabilities, tt.state), func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.Profile, f.FeatureSet = &tt.profile, &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.payload)), manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			capabilities := manifest.ResolveCapabilities(&configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(tt.capabilities)}, nil, nil)
			profilePass(t, p, tt.state, manifest.Filter{Gates: sets.New[string](), Capabilities: &capabilities})
		})
	}
}

func profilePass(t *testing.T, p *manifest.Payload, state State, f manifest.Filter) {
	included, excluded := p.Included(f)
	want, gone := sets.New[manifest.Identity](), sets.New[manifest.Identity]()
	for _, m := range included {
		if m.Annotations()["release.openshift.io/delete"] == "" {
			want.Insert(m.Identity())
		} else if state == Updating { // an installation deletes nothing
			gone.Insert(m.Identity())
		}
	}
	var mu sync.Mutex
	written, deleted := sets.New[manifest.Identity](), sets.New[manifest.Identity]()
	ready := false
	c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		mu.Lock()
		id := manifest.Identity{Group: call.GVK.Group, Kind: call.GVK.Kind, Namespace: call.Key.Namespace, Name: call.Key.Name}
		switch {
		case !ready:
		case call.Verb == "Delete":
			deleted.Insert(id)
		case call.Verb != "Get" && call.Verb != "List" && call.Verb != "Watch":
			written.Insert(id)
		}
		mu.Unlock()
		return do(ctx)
	}})
	if p.Release.Version == "4.17.30" { // whose OLM is not yet of v1; no manifest defines it
		olm := schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1alpha1", Kind: "OLM"}
		checktest.Get(c.Apply(t.Context(), memory.Definition(olm, "Cluster"), clusterapi.ApplyOptions{FieldManager: "test"}))(t)
	}
	operators := *p
	operators.Manifests = included
	checktest.OK(t, c.Load(operatorsAt(t, &operators)...))
	others := notIncluded(p, excluded)
	all, old := append(included, others...), sets.New[manifest.Identity]() // what earlier releases have left
	for _, m := range all {
		if m.Annotations()["release.openshift.io/delete"] != "" && c.Load(m.Object().DeepCopy()) == nil {
			old.Insert(m.Identity())
		}
	}
	ready = true
	res := checktest.Get(Run(t.Context(), p.Tasks(), Options{
		API: c, State: state, Filter: f, Backoff: &Backoff{Steps: 1}, Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
	}))(t)
	if res.Done != len(included) || res.Skipped != len(excluded) || res.Total != len(p.Manifests) || res.Report != nil {
		t.Errorf("%+v; %d included and %d excluded", res, len(included), len(excluded))
	}
	for id := range want {
		if id.Kind == "ClusterOperator" {
			written.Insert(id) // is there already, where it is only looked at
		}
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("what is included (-) and what was written (+): %s", diff)
	}
	if diff := cmp.Diff(gone.Intersection(old), deleted); diff != "" {
		t.Errorf("what is to be deleted (-) and what was (+): %s", diff)
	}
	for _, m := range all {
		id := m.Identity()
		u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		ours := err == nil && len(u.GetOwnerReferences()) > 0
		switch {
		case want.Has(id):
			if err != nil || !ours && id.Kind != "ClusterOperator" && m.Annotations()["release.openshift.io/create-only"] == "" {
				t.Errorf("%s is not there, or has no owner: %v", m, err)
			}
		case old.Has(id) && !gone.Has(id):
			if err != nil || ours {
				t.Errorf("%s was touched: %v", m, err)
			}
		case id.Kind == "CustomResourceDefinition" && err == nil: // of the cluster itself
			if ours {
				t.Errorf("%s was applied", m)
			}
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			t.Errorf("%s is there: %v", m, err)
		}
	}
	t.Logf("%d written, %d deleted, %d skipped, %d not loaded", len(written), len(deleted), res.Skipped, len(p.Excluded))
}

// notIncluded are the manifests of a payload that a pass skips, and those that were
// not loaded.
func notIncluded(p *manifest.Payload, skipped []manifest.Exclusion) (out []*manifest.Manifest) {
	for _, e := range append(skipped, p.Excluded...) {
		out = append(out, e.Manifest)
	}
	return out
}
