package nodeaction_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"

	corev1 "k8s.io/api/core/v1"
)

func TestRecordOf(t *testing.T) {
	annotation := nodeaction.Annotation("x")
	for _, tt := range []struct{ value, err string }{
		{`{"version":1,"action":"patch","phase":"Acting","since":"2026-01-01T00:00:00Z","attempt":1}`, ""},
		{`{"version":2,"action":"patch"}`, "version 2; this program knows 1 to 1"},
		{`{"version":1,"phase":"Dancing","attempt":1}`, `not a record: version 1, phase "Dancing", attempt 1`},
		{`true`, "cannot unmarshal bool"},
	} {
		n := actiontest.Node("w0", "worker", mcptest.Annotate(annotation, tt.value))
		_, there, err := nodeaction.RecordOf(n, "x")
		if !there || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.value, err)
		}
		if strings.Contains(tt.err, "version 2") != errors.Is(err, nodeaction.ErrVersion) {
			t.Errorf("%v", err)
		}
	}
	if _, there, err := nodeaction.RecordOf(actiontest.Node("w0", "worker"), "x"); there || err != nil {
		t.Error(there, err)
	}
}

// What a newer version has written stops the run before it does anything.
func TestNewerRecord(t *testing.T) {
	newer := `{"version":7}`
	claims := &corev1.ConfigMap{}
	claims.Namespace, claims.Name = "openshift-config", "clusterupdate-node-actions"
	claims.Data = map[string]string{"claims": newer}
	for name, w := range map[string]*actiontest.World{
		"annotation": actiontest.New("x", actiontest.Node("w0", "worker", mcptest.Annotate(nodeaction.Annotation("x"), newer))),
		"claims":     actiontest.New("x", actiontest.Node("w0", "worker"), claims),
	} {
		a := newPatch(nodeaction.Cordon)
		w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: a, Nodes: []string{"w0"}})
		if err := w.Play(time.Hour); err != nil {
			t.Fatal(err)
		}
		if w.Done || len(a.done) > 0 || w.NodeOf("w0").Spec.Unschedulable {
			t.Errorf("%s: the node was acted on", name)
		}
	}
	w := actiontest.New("x", actiontest.Node("w0", "worker", mcptest.Annotate("clusterupdate.github.io/progress.patch", newer)))
	if err := nodeaction.Func(w.Cluster, newPatch(nodeaction.None), "")(t.Context(), "w0"); !errors.Is(err, nodeaction.ErrVersion) {
		t.Error(err)
	}
}

func FuzzRecordOf(f *testing.F) {
	f.Add(`{"version":1,"action":"patch","phase":"Acting","since":"2026-01-01T00:00:00Z","attempt":1,"progress":"p","wasCordoned":true}`)
	f.Fuzz(func(t *testing.T, value string) {
		n := actiontest.Node("w0", "worker", mcptest.Annotate(nodeaction.Annotation("x"), value))
		r, _, err := nodeaction.RecordOf(n, "x")
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			return // a time that JSON cannot hold
		}
		n.Annotations[nodeaction.Annotation("x")] = string(again)
		s, _, err := nodeaction.RecordOf(n, "x")
		if diff := cmp.Diff(r, s); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
	})
}
