package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// A process that is down, or has not begun, cannot crash: one instance begins.
func TestVirtualCrashWhileDown(t *testing.T) {
	for _, begun := range []bool{true, false} {
		w := newWorld(reconcile.VirtualOptions{})
		lives := 0
		w.Add(reconcile.Process{Name: "p", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
			lives++
			life := lives
			return []reconcile.Reconciler{&toy{name: "r", keys: []reconcile.Key{name("k")},
				reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					w.say("life %d", life)
					return reconcile.Result{At: r.Now.Add(2 * time.Second)}, nil
				}}}
		}})
		want := []string{"0s life 1", "2s life 1"}
		if begun {
			w.run(t, 0)
			want = []string{"0s life 1", "1s life 2", "3s life 2"}
		}
		w.Crash("p")
		w.Crash("p")
		w.run(t, 3*time.Second)
		w.check(t, want...)
	}
}
