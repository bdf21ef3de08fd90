package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// rehearsed runs the program.
func rehearsed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func want(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("the output lacks %q:\n%s", text, got)
		}
	}
}

func TestUpdate(t *testing.T) {
	code, out, errs := rehearsed(t)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	want(t, out,
		"recommended updates of 4.20.3: 4.21.1", "verified by rehearsal: OpenPGP key ", "preconditions passed for payload loaded",
		"waiting on etcd: ", "runlevel 80", "nodes master", "nodes worker", "nodes infra", "Done applying 4.21.1",
		"  4.21.1 Completed, started ", "  4.20.3 Completed, started ")
}

// TestLive: the same runs against the clock.
func TestLive(t *testing.T) {
	code, out, errs := rehearsed(t, "-speed", "600")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	want(t, out, "nodes master", "Done applying 4.21.1", "  4.21.1 Completed, started ")
}

func TestJSON(t *testing.T) {
	code, out, errs := rehearsed(t, "-json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	types := map[string]int{}
	for line := range strings.Lines(out) {
		var event struct{ Type string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		types[event.Type]++
	}
	for _, typ := range []string{"RetrievedUpdates", "SignatureVerified", "PreconditionsPassed", "Task", "Completed", "NodeDone", "PoolDone", "History"} {
		if types[typ] == 0 {
			t.Errorf("no event %s in %v", typ, types)
		}
	}
	if types["NodeDone"] != 9 {
		t.Errorf("%d nodes are done, want 9", types["NodeDone"])
	}
}

func TestFail(t *testing.T) {
	code, out, errs := rehearsed(t, "-fail", "etcd")
	if code != 1 {
		t.Fatalf("exit %d", code)
	}
	want(t, errs, "stuck: ClusterOperatorDegraded: Cluster operator etcd is degraded")
	want(t, out, "waiting on etcd: Available=True Degraded=True Rehearsal: made to fail by -fail etcd", "  4.21.1 Partial", "  4.20.3 Completed")
}

func TestTamper(t *testing.T) {
	code, out, errs := rehearsed(t, "-tamper")
	if code != 1 {
		t.Fatalf("exit %d", code)
	}
	want(t, errs, "refused: RetrievePayload: ", "The update cannot be verified: unable to verify sha256:")
	if strings.Contains(out, "4.21.1 Partial") {
		t.Errorf("the release was accepted:\n%s", out)
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-from", "x"}, {"-payload", "x"}, {"extra"}, {"-speed", "0"}, {"-speed", "NaN"}, {"-speed", "+Inf"}, {"-nope"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit %d, %q", args, code, errs.String())
		}
	}
	code, _, errs := rehearsed(t, "-fail", "nobody")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	want(t, errs, "-fail nobody: the release has no such operator")
	code, _, errs = rehearsed(t, "-from", t.TempDir(), "-payload", t.TempDir())
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	want(t, errs, "manifests: no such file or directory")
}
