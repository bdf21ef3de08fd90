package runlevel

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

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
