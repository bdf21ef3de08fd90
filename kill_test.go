package clusterupdate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

var errKilled = errors.New("the process was killed")

// killer ends a process at a call: before the call takes effect, or after, but before the
// answer arrives.
type killer struct {
	at, made int // the call to end it at, and calls until now; 0: none
	after    bool
	v        *reconcile.Virtual
}

// call is the fault of a [testCluster].
func (k *killer) call(memory.Call) error {
	k.made++
	if k.made != k.at {
		return nil
	}
	k.v.Crash("updater") // the answer of this call, and all that follow, do not reach it
	if k.after {
		return nil
	}
	return errKilled
}

// TestKilled ends an update at every fifth call that it makes; another process finishes it.
func TestKilled(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			step, n := 5, 1 // calls in between: the seeds of TestVirtualFaults
			if after {
				n = 3
			}
			if israce.Enabled {
				step = 53
			}
			for k := (killer{}); k.made >= k.at && !t.Failed(); n += step {
				k = killer{at: n, after: after}
				virtualUpdate(t, from, to, reconcile.VirtualOptions{Seed: 1}, func(r *virtualRun) {
					k.v, r.fault = r.Virtual, k.call
				})
			}
			t.Logf("%d calls", n)
			if n < 150 {
				t.Errorf("the update took only %d calls", n)
			}
		})
	}
}

// killedRun is a driftRun whose process can be ended at a call.
type killedRun struct {
	*driftRun
	end     killer
	deletes []string
}

func newKilledRun(t *testing.T, mode runlevel.Mode) *killedRun {
	r := &killedRun{driftRun: newDriftRun(t, clusterupdate.Options{Workers: 1, ApplyMode: mode}, reconcile.VirtualOptions{Seed: 1}, nil)}
	r.end.v = r.Virtual
	r.c.fault = func(call memory.Call) error {
		if call.Verb == "Delete" {
			r.deletes = append(r.deletes, call.GVK.Kind+" "+call.Key.String())
		}
		return r.end.call(call)
	}
	return r
}

// kill plants drift, ends the process at its n-th call from then on, and reports
// whether it came to that call. Before, it has settled, and goes by what watches
// show; or it has just been started, and looks at everything.
func (r *killedRun) kill(settled, after bool, n int) (reached bool) {
	r.driftRun.after(10 * time.Minute)
	r.plant()
	r.plantKept()
	if !settled {
		r.Crash("updater")
	}
	r.deletes = nil
	r.end = killer{at: n, after: after, v: r.Virtual}
	r.driftRun.after(6 * time.Minute)
	reached, r.end.at = r.end.made >= n, 0
	r.driftRun.after(6 * time.Minute)
	return reached
}

// plantKept makes what is to stay as somebody else wants it: an object that the
// release only creates, and one that the update has deleted.
func (r *killedRun) plantKept() {
	r.t.Helper()
	for _, m := range r.to.Manifests {
		id := m.Identity()
		switch {
		case m.Annotations()["release.openshift.io/delete"] == "true":
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(m.GVK())
			u.SetNamespace(id.Namespace)
			u.SetName(id.Name)
			if _, err := r.c.Create(r.ctx, u, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				r.t.Fatal(err)
			}
		case m.Annotations()["release.openshift.io/create-only"] == "true":
			u, err := r.c.Get(r.ctx, m.GVK(), clusterapi.Key(id.Namespace, id.Name))
			if err != nil {
				r.t.Fatal(err)
			}
			u.SetLabels(map[string]string{"release": "theirs"})
			u.SetAnnotations(map[string]string{"example.com/kept": "true"})
			if _, err := r.c.Update(r.ctx, u, clusterapi.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// check holds that the cluster is whole, and that nothing was done besides.
func (r *killedRun) check() {
	r.t.Helper()
	kept := 0
	for _, m := range r.to.Manifests {
		id := m.Identity()
		remove, createOnly := m.Annotations()["release.openshift.io/delete"] == "true", m.Annotations()["release.openshift.io/create-only"] == "true"
		if !remove && !createOnly {
			continue
		}
		kept++
		u, err := r.c.Get(r.ctx, m.GVK(), clusterapi.Key(id.Namespace, id.Name))
		switch {
		case err != nil:
			r.t.Errorf("%s: %v", m, err)
		case createOnly && u.GetAnnotations()["example.com/kept"] == "":
			r.t.Errorf("%s was written", m)
		}
		if remove && err == nil {
			if err := r.c.Delete(r.ctx, m.GVK(), clusterapi.Key(id.Namespace, id.Name), clusterapi.DeleteOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	if kept < 2 {
		r.t.Errorf("the release keeps %d objects", kept)
	}
	if len(r.deletes) > 0 {
		r.t.Errorf("it deleted %q", r.deletes)
	}
	checkApplied(r.t, r.c, r.to)
	cv := r.c.version(r.t)
	if got := historyOf(cv); got != completedHistory {
		r.t.Errorf("history %s", got)
	}
	for _, c := range cv.Status.Conditions {
		want := map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
			configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorProgressing: configv1.ConditionFalse, "Failing": configv1.ConditionFalse,
		}[c.Type]
		if want != "" && c.Status != want {
			r.t.Errorf("%s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}

// TestKilledReconciling ends the process at the calls of a pass that keeps a
// cluster as it is, while there is drift to repair, before the call takes effect
// and after it: at every call of one that goes by watches, and at some of one that looks
// at everything, whose calls are alike.
func TestKilledReconciling(t *testing.T) {
	for _, tt := range []struct {
		mode           runlevel.Mode
		settled, after bool
		step           int // from one call to the next
	}{
		{runlevel.ApplyServerSide, true, false, 1},
		{runlevel.ApplyServerSide, true, true, 1},
		{runlevel.ApplyServerSide, false, false, 4},
		{runlevel.ApplyServerSide, false, true, 4},
		{runlevel.ApplyMerge, true, false, 1},
		{runlevel.ApplyMerge, true, true, 1},
		{runlevel.ApplyMerge, false, false, 9},
		{runlevel.ApplyMerge, false, true, 9},
	} {
		t.Run(fmt.Sprintf("%s/settled=%v/after=%v", tt.mode, tt.settled, tt.after), func(t *testing.T) {
			t.Parallel()
			r, n := newKilledRun(t, tt.mode), 1
			if tt.after {
				n += tt.step / 2
			}
			if israce.Enabled {
				tt.step = 17
			}
			for ; r.kill(tt.settled, tt.after, n); n += tt.step {
				if r.check(); t.Failed() {
					t.Fatalf("killed at call %d", n)
				}
			}
			r.check()
			if least := map[bool]int{true: 4, false: len(r.to.Manifests)}[tt.settled]; n < least {
				t.Errorf("it made only %d calls", n)
			}
		})
	}
}
