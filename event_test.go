package clusterupdate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

var update = flag.Bool("update", false, "write the golden files")

// TestEventJSON: the form of the data of events, which programs depend on.
func TestEventJSON(t *testing.T) {
	task := loadSample(t, sample.To(), sample.ToImage).Tasks()[3]
	to := configv1.Release{Version: "4.21.1", Image: "new"}
	pass := clusterapi.Event{Type: runlevel.EventWaiting, Data: &runlevel.Progress{Task: task, Level: "10", Component: "etcd-operator", Attempt: 2, Done: 3, Total: 9,
		Wait: &runlevel.Wait{Operator: "etcd", Undone: []string{"operator to 4.21.1"}}}}
	var b bytes.Buffer
	for i, e := range []clusterapi.Event{
		{Type: clusterupdate.EventRetrievedUpdates, Data: &clusterupdate.EventData{Release: to, Updates: []configv1.Release{to}}},
		{Type: clusterupdate.EventSignatureVerified, Message: "verified", Data: &clusterupdate.EventData{Release: to, Verification: &signature.Verification{
			Digest: "sha256:0", Version: "4.21.1", Signers: []signature.Signer{{Reference: "quay.example/release:4.21.1", Fit: signature.FitSame}, {Reference: "quay.example/release:1"}}}}},
		{Type: clusterupdate.EventTask, Message: "waits", Err: errors.New("no route"), Data: &clusterupdate.EventData{Release: to, Pass: &pass}},
		{Type: clusterupdate.EventCompleted, Message: "Done applying 4.21.1", Data: &clusterupdate.EventData{Release: to}},
	} {
		e.Time, e.Subject = time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), "release 4.21.1"
		line := checktest.Get(json.Marshal(e))(t)
		b.Write(append(line, '\n'))
	}
	golden := filepath.Join("testdata", "events.jsonl")
	if *update {
		checktest.OK(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want := checktest.Get(os.ReadFile(golden))(t)
	checktest.Same(t, string(want), b.String())
}

func TestActionText(t *testing.T) {
	a := clusterupdate.Action{Step: "apply", Release: configv1.Release{Version: "4.21.1"}, Reason: "it is requested"}
	checktest.Equal(t, "apply 4.21.1: it is requested", a.String(), "an action")
	checktest.Equal(t, "fetch waits: an hour", clusterupdate.Action{Step: "fetch", Reason: "an hour", Waits: true}.String(), "one that waits")
}
