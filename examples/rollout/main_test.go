package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

// No flag is ignored.
func TestFlags(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{
		{Args: "-nodes worker=3 -nodes worker=4", Code: 2, Stderr: "worker comes twice"},
		{Args: "-nodes Worker=3", Code: 2, Stderr: "not POOL=N"},
		{Args: "-max-unavailable infra=1", Code: 2, Stderr: "-nodes has no such pool"},
		{Args: "-break worker-0=NodeVanishes,worker-0=NodeDegraded", Code: 2, Stderr: "worker-0 comes twice"},
		{Args: "-break worker-6=NodeVanishes", Code: 2, Stderr: "Faults[node/worker-6]: the cluster does not have it"},
	})
}

// An update that nothing holds up, in all forms.
func TestCompletes(t *testing.T) {
	rollout := func(format string) string {
		code, out, errs := programtest.Run(t, command(), "-nodes", "worker=4,infra=2", "-max-unavailable", "worker=50%,infra=50%", "-o", format)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		return out
	}
	programtest.Golden(t, "completes.txt", rollout("text"))
	programtest.Golden(t, "completes.svg", rollout("svg"))
	var result struct {
		Outcome  string
		Timeline struct{ Entries []json.RawMessage }
	}
	checktest.OK(t, json.Unmarshal([]byte(rollout("json")), &result))
	if result.Outcome != "Completed" || len(result.Timeline.Entries) < 9*5 {
		t.Errorf("%+v", result)
	}
}

// What stands in the way is named.
func TestStuck(t *testing.T) {
	const worker = "why: MachineConfigPool worker: "
	const stuck = "\nstuck after "
	programtest.Test(t, command, []programtest.Case{
		{Args: "-block", Code: 1, Stdout: []string{stuck, worker + "0 of 6 nodes updated > Node worker-0: Draining, Degraded: failed to drain node: worker-0 after 1 hour."}},
		{Args: "-break worker-1=NodeDegraded", Code: 1, Stdout: []string{stuck, "> ClusterOperator machine-config: Progressing=True (RollingOut) > MachineConfigPool worker: NodeDegraded=True"}},
		{Args: "-break worker-1=NodeStaysNotReady -until 30m", Code: 1, Stdout: []string{stuck, worker + "2 of 6 nodes updated > Node worker-1: Updating"}},
		{Args: "-break master-0=NodeUnreconcilable -until 10m", Code: 1, Stdout: []string{stuck, "> MachineConfigPool master: 0 of 3 nodes updated > Node master-0: "}},
		{Args: "-break worker-0=NodeReturnsOld,worker-1=NodeDegraded", Code: 1, Stdout: []string{stuck, "> MachineConfigPool worker: NodeDegraded=True"}},
	})
}

// A plan moves nodes to pools of their own, updates these one after the other, and
// moves the nodes back.
func TestCanary(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{
		{Args: "-canary 1,2", Stdout: []string{"plan/wait-workerpool-a ", "pool workerpool-canary", "\ncompleted after "}},
		{Args: "-canary 2 -break worker-0=NodeDegraded", Code: 1, Stdout: []string{"stuck after "}},
	})
}

// The same seed gives the same output; faults only take time.
func TestSeeds(t *testing.T) {
	outputs := map[string]bool{}
	for _, seed := range []string{"1", "2", "3"} {
		args := []string{"-faults", "0.2", "-o", "json", "-seed", seed}
		code, first, _ := programtest.Run(t, command(), args...)
		_, second, _ := programtest.Run(t, command(), args...)
		if code != 0 || first != second {
			t.Errorf("seed %s: exit %d:\n%s", seed, code, cmp.Diff(first, second))
		}
		outputs[first] = true
	}
	checktest.Equal(t, 3, len(outputs), "different outputs")
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if code := command().Execute(ctx, nil, &out, &errs); code != 1 || errs.String() != "rollout: terminated signal received\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
