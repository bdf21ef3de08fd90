package clusterupdate_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/israce"
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
