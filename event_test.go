package clusterupdate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

var update = flag.Bool("update", false, "write the golden files")

// TestEventJSON: the form of every type of event, which programs depend on.
func TestEventJSON(t *testing.T) {
	task := loadSample(t, sample.To(), sample.ToImage).Tasks()[3]
	failed := errors.New("no route")
	var b bytes.Buffer
	for i, e := range []clusterupdate.Event{
		{Type: clusterupdate.EventRetrievedUpdates, Updates: []configv1.Release{{Version: "4.21.1", Image: "new"}}},
		{Type: clusterupdate.EventUpdateRequested, Message: "requesting 4.21.1"},
		{Type: clusterupdate.EventRequestIgnored, Message: "version 4.9.9 is not an available update"},
		{Type: clusterupdate.EventRetrievePayload, Message: "Retrieving and verifying payload"},
		{Type: clusterupdate.EventRetrievePayloadFailed, Message: "Retrieving payload failed", Err: failed},
		{Type: clusterupdate.EventLoadPayload, Message: "Loading payload"},
		{Type: clusterupdate.EventLoadPayloadFailed, Message: "Loading payload failed", Err: failed},
		{Type: clusterupdate.EventSignatureVerified, Message: "verified", Verification: &signature.Verification{
			Signers: []signature.Signer{{Reference: "quay.example/release:4.21.1", Fit: signature.FitSame}, {Reference: "quay.example/release:1"}}}},
		{Type: clusterupdate.EventVerifyPayloadVersionFailed, Message: "Verifying payload failed", Err: failed},
		{Type: clusterupdate.EventPreconditionsPassed, Message: "preconditions passed"},
		{Type: clusterupdate.EventPreconditionWarn, Message: "precondition warning"},
		{Type: clusterupdate.EventPreconditionBlock, Message: "Preconditions failed", Err: failed},
		{Type: clusterupdate.EventPayloadLoaded, Message: "Payload loaded"},
		{Type: clusterupdate.EventTask, Progress: &clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Task: task, Level: "10", Component: "etcd-operator", Attempt: 2, Done: 3, Total: 9,
			Wait: &runlevel.Wait{Operator: "etcd", Undone: []string{"operator to 4.21.1"}}}}, Message: "waits", Err: failed},
		{Type: clusterupdate.EventWaiting, Message: "waits", Err: failed},
		{Type: clusterupdate.EventPassFailed, Message: "fails", Err: failed},
		{Type: clusterupdate.EventHookWaiting, Message: "waiting on hook checks: 2 are left"},
		{Type: clusterupdate.EventHookFailed, Message: "hook checks failed", Err: failed},
		{Type: clusterupdate.EventHookDone, Message: "hook checks is done"},
		{Type: clusterupdate.EventCompleted, Message: "Done applying 4.21.1"},
		{Type: clusterupdate.EventStatus, Message: "Cluster version is 4.21.1"},
	} {
		e.Time, e.Release = time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), configv1.Release{Version: "4.21.1", Image: "new"}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	golden := filepath.Join("testdata", "events.jsonl")
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEventLog(t *testing.T) {
	var b bytes.Buffer
	e := clusterupdate.Event{Type: clusterupdate.EventPassFailed, Release: configv1.Release{Version: "4.21.1"}, Err: errors.New("no route")}
	slog.New(slog.NewTextHandler(&b, nil)).Info("update", "event", e)
	if want := `event.type=PassFailed event.version=4.21.1 event.error="no route"`; !strings.Contains(b.String(), want) {
		t.Errorf("%s lacks %s", b.String(), want)
	}
}
