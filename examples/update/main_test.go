package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestUpdate(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{
		{Stdout: []string{
			"recommended updates of 4.20.3: 4.21.1", "verified by rehearsal: OpenPGP key ", "preconditions passed for payload loaded",
			"waiting on etcd: ", "runlevel 80", "nodes master", "nodes worker", "nodes infra", "Done applying 4.21.1",
			"  4.21.1 Completed, started ", "  4.20.3 Completed, started "}},
		// The same runs against the clock.
		{Args: "-speed 600", Stdout: []string{"nodes master", "Done applying 4.21.1", "  4.21.1 Completed, started "}},
		{Args: "-fail etcd", Code: 1, Stderr: "stuck: ClusterOperatorDegraded: Cluster operator etcd is degraded", Stdout: []string{
			"waiting on etcd: Available=True Degraded=True Rehearsal: made to fail by -fail etcd", "  4.21.1 Partial", "  4.20.3 Completed"}},
	})
}

func TestJSON(t *testing.T) {
	code, out, errs := programtest.Run(t, command(), "-o", "json")
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

func TestTamper(t *testing.T) {
	code, out, errs := programtest.Run(t, command(), "-tamper")
	if code != 1 {
		t.Fatalf("exit %d", code)
	}
	checktest.Has(t, errs, "refused: RetrievePayload: ", "The update cannot be verified: unable to verify sha256:")
	if strings.Contains(out, "4.21.1 Partial") {
		t.Errorf("the release was accepted:\n%s", out)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("terminated signal received"))
	var out, errs bytes.Buffer
	if code := command().Execute(ctx, nil, &out, &errs); code != 1 || errs.String() != "update: terminated signal received\n" {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
