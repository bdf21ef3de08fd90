package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// rehearsed runs the program.
func rehearsed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func want(t *testing.T, got string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		checktest.Has(t, got, text)
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
	checktest.Equal(t, 9, types["NodeDone"], "nodes are done")
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

// One line says what is wrong with which flag.
func TestBadFlags(t *testing.T) {
	empty := t.TempDir()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-from", "x"}, 2, "-from and -payload go together; update -h shows the usage"},
		{[]string{"-payload", "x"}, 2, "-from and -payload go together; update -h shows the usage"},
		{[]string{"-channel", "x"}, 2, "-channel goes with -upstream; update -h shows the usage"},
		{[]string{"extra"}, 2, `unexpected argument "extra"; update -h shows the usage`},
		{[]string{"-speed", "0"}, 2, `invalid value "0" for flag -speed: not a number above 0; update -h shows the usage`},
		{[]string{"-speed", "-1"}, 2, `invalid value "-1" for flag -speed: not a number above 0; update -h shows the usage`},
		{[]string{"-speed", "NaN"}, 2, `invalid value "NaN" for flag -speed: not a number above 0; update -h shows the usage`},
		{[]string{"-speed", "+Inf"}, 2, `invalid value "+Inf" for flag -speed: not a number above 0; update -h shows the usage`},
		{[]string{"-nope"}, 2, "flag provided but not defined: -nope; update -h shows the usage"},
		{[]string{"-fail", "nobody"}, 1, "-fail nobody: the release has no such operator"},
		{[]string{"-from", empty, "-payload", empty}, 1, empty + " does not hold a release: stat release-manifests: no such file or directory"},
		{[]string{"-from", "/nowhere", "-payload", empty}, 1, "/nowhere does not hold a release: stat release-manifests: no such file or directory"},
	} {
		code, out, errs := rehearsed(t, tt.args...)
		if code != tt.code || errs != "update: "+tt.want+"\n" || out != "" {
			t.Errorf("%v: exit %d, %q, %q", tt.args, code, out, errs)
		}
	}
	code, out, errs := rehearsed(t, "-h")
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	want(t, out, "usage: update [flags]\n", "-speed factor", "exit codes: 0: the update completed;")
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if code := command().Execute(ctx, nil, &out, &errs); code != 1 || errs.String() != "update: terminated signal received\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
