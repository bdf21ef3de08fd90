package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

var update = flag.Bool("update", false, "write the golden files")

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// want fails the test for each text that the output lacks.
func want(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		checktest.Has(t, got, text)
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	text := checktest.Get(os.ReadFile(file))(t)
	checktest.SameIn(t, file, string(text), got)
}

func TestUsage(t *testing.T) {
	for args, text := range map[string]string{
		"extra":                  `unexpected argument "extra"`,
		"-o yaml":                "-o yaml: not text or json",
		"-nodes -1":              "-nodes must not be below 0",
		"-until 0s":              "-until must be above 0",
		"-faults 0.6":            "-faults must be from 0 to 0.5",
		"-faults NaN":            "-faults must be from 0 to 0.5",
		"-max-unavailable 0":     "-max-unavailable 0: not a number above 0 or a percentage",
		"-max-unavailable many":  "-max-unavailable many: not a number above 0 or a percentage",
		"-pools infra":           "-pools infra: not as infra=2",
		"-pools master=3":        "a second pool of that name",
		"-break worker-0=Bad":    "-break worker-0=Bad: not a node and one of NodeDegraded, ",
		"-break x=NodeDegraded":  `nodes "x" not found`,
		"-canary 0":              "-canary 0: not a number above 0",
		"-canary 7":              "the groups have 7 nodes together, pool worker has 6",
		"-canary 1 -explain":     "with -canary nothing is",
		"-dump x -block":         "they do not go with -dump",
		"-dump x -canary 1":      "they do not go with -dump",
		"-dump x -pools infra=1": "they do not go with -dump",
	} {
		if code, out, errs := run(t, strings.Fields(args)...); code != 2 || out != "" || !strings.HasPrefix(errs, "rollout: ") || !strings.Contains(errs, text) {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
}

// A rollout that nothing holds up, in all forms.
func TestCompletes(t *testing.T) {
	dir := t.TempDir()
	svg := filepath.Join(dir, "rollout.svg")
	args := []string{"-nodes", "4", "-max-unavailable", "50%", "-pools", "infra=2", "-explain"}
	code, out, errs := run(t, append(args, "-svg", svg)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	golden(t, "completes.txt", out)
	text := checktest.Get(os.ReadFile(svg))(t)
	golden(t, "completes.svg", string(text))
	_, out, _ = run(t, append(args, "-o", "json")...)
	var result struct {
		Outcome, Duration string
		Pools             []struct {
			Name           string
			Updated, Nodes int
		}
		Explained []struct{ Node, Verdict string }
		Timeline  struct{ Entries []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if result.Outcome != "Completed" || len(result.Pools) != 3 || len(result.Explained) != 9 || len(result.Timeline.Entries) < 9*5 {
		t.Errorf("%+v", result)
	}
	for _, p := range result.Pools {
		if p.Updated != p.Nodes || p.Nodes == 0 {
			t.Errorf("%+v", p)
		}
	}
	if code, _, errs := run(t, "-svg", filepath.Join(dir, "nowhere", "x.svg")); code != 1 || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// What stands in the way is named, down to the pod, and was predicted.
func TestStuck(t *testing.T) {
	code, out, errs := run(t, "-block", "-estimate", "-explain")
	if code != 1 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	want(t, out, "by the formula of the documentation", "worker > worker-0: pod shop/db-", "NeverAllows",
		"pool master: 3 of 3 nodes updated after ", "pool worker: 0 of 6 nodes updated\n",
		"why:\n  worker > worker-0 > Failed in Draining: shop/db-", "Cannot evict pod as it would violate the pod's disruption budget.",
		"as it is now:\n", "  worker/worker-1: NoCapacity: maxUnavailable is 1, taken by worker-0", "\nstuck after 3h")
	for args, text := range map[string]string{
		"-break worker-1=NodeDegraded":                         "worker > worker-1 > Failed: a simulated fault: NodeDegraded",
		"-break worker-2=NodeDegraded -max-unavailable 3":      "worker > worker-2 > Failed in Applying: a simulated fault: NodeDegraded",
		"-break worker-1=NodeStaysNotReady -until 30m":         "worker > worker-1: Rebooting",
		"-break master-0=NodeUnreconcilable -until 10m":        "master > master-0 > Failed in Preparing: can't reconcile config ",
		"-break worker-0=NodeReturnsOld,worker-1=NodeDegraded": "worker > worker-1 > Failed: a simulated fault: NodeDegraded",
	} {
		code, out, _ := run(t, strings.Fields(args)...)
		checktest.Equal(t, 1, code, "%s: exit", args)
		want(t, out, text, "\nstuck after ")
	}
}

// A plan moves nodes to pools of their own, updates these one after the other, and
// moves the nodes back.
func TestCanary(t *testing.T) {
	code, out, errs := run(t, "-canary", "1,2")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	want(t, out, "Plan canary (Canary)", "  wait-workerpool-a ", "workerpool-canary/worker-", "pool worker: 6 of 6 nodes updated", "\ncompleted after ")
	if code, out, _ := run(t, "-canary", "2", "-break", "worker-0=NodeDegraded"); code != 1 || !strings.Contains(out, "stuck after ") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// The same seed gives the same output; faults only take time.
func TestSeeds(t *testing.T) {
	outputs := map[string]bool{}
	for _, seed := range []string{"1", "2", "3"} {
		args := []string{"-faults", "0.2", "-o", "json", "-seed", seed}
		code, first, _ := run(t, args...)
		_, second, _ := run(t, args...)
		if code != 0 || first != second {
			t.Errorf("seed %s: exit %d:\n%s", seed, code, cmp.Diff(first, second))
		}
		outputs[first] = true
	}
	checktest.Equal(t, 3, len(outputs), "different outputs")
}

// Every recording ends with an outcome.
func TestRecorded(t *testing.T) {
	clusters := filepath.Join(testdata.Dir(t), "clusters")
	for name, ends := range map[string]int{
		"4.14.1-degraded": 0, "4.14.1-workers-started-updating-multiple-pools": 0, "4.15.0-ec2-early": 0, "not-upgrading": 0, "recommend": 3,
	} {
		dir := filepath.Join(clusters, name)
		code, out, errs := run(t, "-dump", dir, "-explain", "-estimate")
		if code != ends {
			t.Errorf("%s: exit %d, want %d: %s\n%s", name, code, ends, errs, out)
		}
		if ends == 0 {
			want(t, out, "assumed:\n", "pods were not recorded: all drains succeed at once", "the ControllerConfig was not recorded", "\ncompleted after ")
		}
		_, again, _ := run(t, "-dump", dir, "-explain", "-estimate")
		checktest.SameIn(t, name, again, out)
	}
	_, out, _ := run(t, "-dump", filepath.Join(clusters, "4.14.1-workers-started-updating-multiple-pools"))
	want(t, out, "pool master: 3 of 3 nodes updated", "pool infra: 2 of 2 nodes updated", "pool infra counts 3 nodes, the recording has 2")
	_, out, _ = run(t, "-dump", filepath.Join(clusters, "not-upgrading"))
	want(t, out, "no pool has anything to roll out: each gets a new configuration")
	_, out, _ = run(t, "-dump", filepath.Join(clusters, "recommend"))
	want(t, out, "the recording has no machine config pools", "\nunknown after 0s\n")
}

// An archive without nodes leaves the answer unknown.
func TestUnknown(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	const text = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
  configuration: {name: rendered-worker-2}
status:
  machineCount: 5
  configuration: {name: rendered-worker-1}
`
	checktest.OK(t,
		w.WriteHeader(&tar.Header{Name: "dump/cluster-scoped-resources/machineconfiguration.openshift.io/machineconfigpools/worker.yaml", Mode: 0o644, Size: int64(len(text))}))
	w.Write([]byte(text))
	w.Close()
	file := filepath.Join(t.TempDir(), "dump.tar")
	checktest.OK(t, os.WriteFile(file, archive.Bytes(), 0o644))
	code, out, errs := run(t, "-dump", file)
	if code != 3 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	want(t, out, "why:\n  pool worker counts 5 nodes, the recording has 0\nunknown after ")
	if code, _, errs := run(t, "-dump", file+".gone"); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if code := command().Execute(ctx, nil, &out, &errs); code != 1 || errs.String() != "rollout: terminated signal received\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
