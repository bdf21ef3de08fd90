package clusterupdate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

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
