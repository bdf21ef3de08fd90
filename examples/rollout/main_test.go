package main

import (
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
		"extra":                 `unexpected argument "extra"`,
		"-o yaml":               "-o yaml: not text or json",
		"-nodes -1":             "-nodes must not be below 0",
		"-until 0s":             "-until must be above 0",
		"-faults 0.6":           "-faults must be from 0 to 0.5",
		"-faults NaN":           "-faults must be from 0 to 0.5",
		"-max-unavailable 0":    "-max-unavailable 0: not a number above 0 or a percentage",
		"-max-unavailable many": "-max-unavailable many: not a number above 0 or a percentage",
		"-pools infra":          "-pools infra: not as infra=2",
		"-pools master=3":       "a second pool of that name",
		"-break worker-0=Bad":   "-break worker-0=Bad: not a node and one of NodeDegraded, ",
		"-break x=NodeDegraded": "the cluster does not have it, but master-0, master-1",
		"-canary 0":             "-canary 0: not a number above 0",
		"-canary 7":             "the groups have 7 nodes together, pool worker has 6",
	} {
		if code, out, errs := run(t, strings.Fields(args)...); code != 2 || out != "" || !strings.HasPrefix(errs, "rollout: ") || !strings.Contains(errs, text) {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
}

// An update that nothing holds up, in all forms.
func TestCompletes(t *testing.T) {
	dir := t.TempDir()
	svg := filepath.Join(dir, "rollout.svg")
	args := []string{"-nodes", "4", "-max-unavailable", "50%", "-pools", "infra=2"}
	code, out, errs := run(t, append(args, "-svg", svg)...)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	golden(t, "completes.txt", out)
	text := checktest.Get(os.ReadFile(svg))(t)
	golden(t, "completes.svg", string(text))
	_, out, _ = run(t, append(args, "-o", "json")...)
	var result struct {
		Outcome  string
		Timeline struct{ Entries []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if result.Outcome != "Completed" || len(result.Timeline.Entries) < 9*5 {
		t.Errorf("%+v", result)
	}
	if code, _, errs := run(t, "-svg", filepath.Join(dir, "nowhere", "x.svg")); code != 1 || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// What stands in the way is named.
func TestStuck(t *testing.T) {
	const worker = "why: MachineConfigPool worker: "
	for args, text := range map[string]string{
		"-block":                       worker + "0 of 6 nodes updated > Node worker-0: Draining, Degraded: failed to drain node: worker-0 after 1 hour.",
		"-break worker-1=NodeDegraded": "> ClusterOperator machine-config: Progressing=True (RollingOut) > MachineConfigPool worker: NodeDegraded=True",
		"-break worker-1=NodeStaysNotReady -until 30m":         worker + "2 of 6 nodes updated > Node worker-1: Updating",
		"-break master-0=NodeUnreconcilable -until 10m":        "> MachineConfigPool master: 0 of 3 nodes updated > Node master-0: ",
		"-break worker-0=NodeReturnsOld,worker-1=NodeDegraded": "> MachineConfigPool worker: NodeDegraded=True",
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
	want(t, out, "plan/wait-workerpool-a ", "pool workerpool-canary", "\ncompleted after ")
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

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if code := command().Execute(ctx, nil, &out, &errs); code != 1 || errs.String() != "rollout: terminated signal received\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
