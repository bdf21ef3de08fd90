package clusterupdate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// driftRun is an update of the sample in virtual time, and what comes after.
type driftRun struct {
	*reconcile.Virtual
	t       testing.TB
	ctx     context.Context // of what somebody else does
	c       *testCluster
	u       *clusterupdate.Updater
	to      *manifest.Payload
	calls   []string // about objects of the payload
	drifts  []string
	passes  int
	events  []clusterapi.Event
	payload map[manifest.Identity]bool
}

func newDriftRun(t testing.TB, o clusterupdate.Options, v reconcile.VirtualOptions, api func(*testCluster) clusterapi.ClusterAPI) *driftRun {
	t.Helper()
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	r := &driftRun{t: t, ctx: context.WithValue(t.Context(), reactionKey{}, true), to: to, payload: make(map[manifest.Identity]bool)}
	r.c = newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
		cv.UID = "11111111-2222-3333-4444-555555555555"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
	})
	for _, text := range []string{"Proxy", "Infrastructure", "APIServer"} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": text, "metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{}}}
		if _, err := r.c.Create(r.ctx, u, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, m := range to.Manifests {
		r.payload[m.Identity()] = true
	}
	r.c.called = func(call memory.Call) {
		if call.Key == clusterapi.Key("openshift-config", "admin-acks") || call.Key == clusterapi.Key("openshift-config-managed", "admin-gates") {
			return // preconditions read these at each look
		}
		if call.Verb != "List" && call.Verb != "Watch" && r.payload[manifest.Identity{Group: call.GVK.Group, Kind: call.GVK.Kind, Namespace: call.Key.Namespace, Name: call.Key.Name}] {
			r.calls = append(r.calls, call.Verb+" "+call.GVK.Kind+" "+call.Key.String())
		}
	}
	base := sampleOptions(t)
	o.Payloads, o.Graph, o.Verifier = base.Payloads, base.Graph, base.Verifier
	if api != nil {
		o.API = api(r.c)
	}
	o.Logger = logOfPasses(func() { r.passes++ })
	o.Observe = func(e clusterapi.Event) {
		r.events = append(r.events, e)
		if p := dataOf(e).Pass; p != nil && p.Type == runlevel.EventDrifted {
			r.drifts = append(r.drifts, progressOf(p).Drift.Text())
		}
	}
	run := virtually(t, r.c, o, v)
	r.u, r.Virtual = run.u, run.Virtual
	checktest.OK(t, r.RunWhile(6*time.Hour, func() bool { return historyOf(r.c.version(t)) != completedHistory }))
	return r
}

// after runs on and returns what passes asked of objects of the payload, and how
// many passes there were.
func (r *driftRun) after(d time.Duration) (calls []string, passes int) {
	r.t.Helper()
	r.calls, r.passes, r.drifts = nil, 0, nil
	if err := r.RunUntil(r.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
	return r.calls, r.passes
}

var driftedDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// plant makes three objects drift: one is deleted, one is changed by hand, one by
// another manager.
func (r *driftRun) plant() {
	r.t.Helper()
	if err := r.c.Delete(r.ctx, driftedDeployment, clusterapi.Key("openshift-etcd-operator", "etcd-operator"), clusterapi.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
	u, err := r.c.Get(r.ctx, driftedDeployment, clusterapi.Key("openshift-dns-operator", "dns-operator"))
	if err != nil {
		r.t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "containers")
	containers.([]any)[0].(map[string]any)["image"] = "registry.example/theirs"
	if _, err := r.c.Update(r.ctx, u, clusterapi.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		r.t.Fatal(err)
	}
}

// TestReconcileWithoutCalls: passes over an unchanged cluster make no call for the
// objects of the payload, but once an hour.
func TestReconcileWithoutCalls(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	calls, _ := r.after(10 * time.Minute)
	if len(calls) == 0 {
		t.Error("nothing was applied after the update")
	}
	calls, passes := r.after(40 * time.Minute)
	if len(calls) > 0 || passes < 9 {
		t.Errorf("%d passes made %d calls: %.400q", passes, len(calls), calls)
	}
	calls, _ = r.after(15 * time.Minute)
	if len(calls) < len(r.to.Manifests)/2 {
		t.Errorf("%d calls after an hour", len(calls))
	}
	if calls, passes = r.after(30 * time.Minute); len(calls) > 0 || passes < 6 {
		t.Errorf("%d passes made %d calls: %.400q", passes, len(calls), calls)
	}
	checkApplied(t, r.c, r.to)
}

// TestReconcileAppliesAlways: where nothing can be watched, or it is switched off,
// every pass applies everything.
func TestReconcileAppliesAlways(t *testing.T) {
	for name, r := range map[string]*driftRun{
		"switched off": newDriftRun(t, clusterupdate.Options{ApplyAlways: true}, reconcile.VirtualOptions{Seed: 1}, nil),
		"no watch":     newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, func(c *testCluster) clusterapi.ClusterAPI { return struct{ clusterapi.ClusterAPI }{c.Cluster} }),
	} {
		r.after(10 * time.Minute)
		r.plant()
		if calls, passes := r.after(30 * time.Minute); len(calls) < passes*len(r.to.Manifests)/2 || len(r.drifts) > 0 {
			t.Errorf("%s: %d passes made %d calls; told %q", name, passes, len(calls), r.drifts)
		}
		checkApplied(t, r.c, r.to)
	}
}

// TestDriftRepaired: drift is repaired at the next pass, and told as an event, by
// Drifts and in the lines of Progress, with who did it.
func TestDriftRepaired(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	r.after(10 * time.Minute)
	r.plant()
	calls, passes := r.after(5 * time.Minute)
	want := []string{
		"Deployment openshift-dns-operator/dns-operator was changed: spec.template.spec.containers[name=dns-operator].image by kubectl-edit (Update)",
		"Deployment openshift-etcd-operator/etcd-operator was deleted",
	}
	less := func(a, b string) bool { return a < b }
	if diff := cmp.Diff(want, r.drifts, cmpopts.SortSlices(less)); diff != "" || passes == 0 {
		t.Errorf("told in %d passes: %s", passes, diff)
	}
	if n := len(calls); n != 4 { // a Get and an Apply of each
		t.Errorf("calls %q", calls)
	}
	checkApplied(t, r.c, r.to)
	if n := len(r.u.Drifts()); n != 2 {
		t.Errorf("%d drifts are kept", n)
	}
	var drifted string
	for _, e := range r.events {
		if dataOf(e).Pass != nil && dataOf(e).Pass.Type == runlevel.EventDrifted {
			raw := checktest.Get(json.Marshal(e))(t)
			drifted += string(raw)
		}
	}
	for _, text := range []string{`"type":"Drifted"`, `"manager":"kubectl-edit"`, `"gone":true`, `"found":"registry.example/theirs"`} {
		if !strings.Contains(drifted, text) {
			t.Errorf("events lack %s: %s", text, drifted)
		}
	}
	if calls, _ := r.after(10 * time.Minute); len(calls) > 0 || len(r.drifts) > 0 {
		t.Errorf("after the repair: %q", calls)
	}
}

// TestDriftUnderFaults: drift is repaired under faults of the API and of watches,
// and crashes at calls.
func TestDriftUnderFaults(t *testing.T) {
	for seed := range seeds(10, 3) {
		mode := []runlevel.Mode{runlevel.ApplyServerSide, runlevel.ApplyMerge}[seed%2]
		t.Run(fmt.Sprint(seed, " ", mode), func(t *testing.T) {
			r := newDriftRun(t, clusterupdate.Options{ApplyMode: mode}, reconcile.VirtualOptions{Seed: seed, Order: reconcile.Random, Faults: reconcile.Faults{
				Before: 0.02, After: 0.02, Conflict: 0.05, Slow: 0.01, Stale: 0.02, Late: 0.3, Double: 0.2, Merge: 0.2, Crash: 0.002, Outage: 0.1, ClockBack: 0.1, Until: 4 * time.Hour,
			}}, nil)
			for range 6 {
				r.after(9 * time.Minute)
				r.plant()
			}
			if left := toyStart.Add(4*time.Hour + 6*time.Minute).Sub(r.Now()); left > 0 {
				r.after(left)
			}
			r.after(20 * time.Minute)
			checkApplied(t, r.c, r.to)
		})
	}
}

// An update by merges comes to its end without any apply; passes over the unchanged
// cluster make no call, and drift is repaired and told.
func TestApplyMerge(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{ApplyMode: runlevel.ApplyMerge}, reconcile.VirtualOptions{Seed: 1}, nil)
	for _, call := range r.calls {
		if strings.HasPrefix(call, "Apply ") {
			t.Fatalf("in mode ApplyMerge: %s", call)
		}
	}
	checkApplied(t, r.c, r.to)
	r.after(10 * time.Minute)
	if calls, passes := r.after(40 * time.Minute); len(calls) > 0 || passes < 9 {
		t.Errorf("%d passes made %d calls: %.400q", passes, len(calls), calls)
	}
	r.plant()
	calls, _ := r.after(5 * time.Minute)
	less := func(a, b string) bool { return a < b }
	want := []string{
		"Create Deployment openshift-etcd-operator/etcd-operator", "Get Deployment openshift-etcd-operator/etcd-operator",
		"Get Deployment openshift-dns-operator/dns-operator", "Update Deployment openshift-dns-operator/dns-operator",
	}
	checktest.Same(t, want, calls, cmpopts.SortSlices(less))
	want = []string{
		"Deployment openshift-dns-operator/dns-operator was changed: spec.template.spec.containers[name=dns-operator].image by kubectl-edit (Update)",
		"Deployment openshift-etcd-operator/etcd-operator was deleted",
	}
	checktest.Same(t, want, r.drifts, cmpopts.SortSlices(less))
	checkApplied(t, r.c, r.to)
	if _, err := clusterupdate.New(clusterupdate.Options{API: memory.New(memory.Options{}), Payloads: sampleSource(), ApplyMode: "Sideways"}); err == nil {
		t.Error("an unknown mode")
	}
}
