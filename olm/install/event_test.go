package install_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/olm/install"
)

// The JSON of every type of event.
func TestEventJSON(t *testing.T) {
	refusal := &install.Refusal{Plan: "ops/install-3", Operator: "a.v1", Object: "Deployment x", Rule: install.RuleKind, Text: "kind Deployment.apps is not supported in a bundle"}
	var got []string
	for _, e := range []install.Event{
		{Type: install.EventResolutionFailed, Text: "no operators", Err: errors.New("no operators")},
		{Type: install.EventCatalogsChanged, Subscription: "a", Text: install.ReasonCatalogsAdded},
		{Type: install.EventPlanCreated, Plan: "install-3", Text: "a.v1, b.v1"},
		{Type: install.EventPlanApproved, Plan: "install-3"},
		{Type: install.EventPlanCompleted, Plan: "install-3"},
		{Type: install.EventPlanFailed, Plan: "install-3", Text: "boom", Err: errors.New("boom")},
		{Type: install.EventPlanDeleted, Plan: "install-3"},
		{Type: install.EventPlanSuperseded, Plan: "install-3", Text: "superseded"},
		{Type: install.EventPlanRefused, Plan: "install-3", Err: refusal},
		{Type: install.EventProgressing, Subscription: "a", Text: "a.v1"},
		{Type: install.EventError, Err: errors.New("away")},
	} {
		e.Time, e.Namespace = statusNow.Time, ns
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimPrefix(string(data), `{"time":"2026-05-01T12:00:00Z",`))
	}
	want := []string{
		`"type":"ResolutionFailed","namespace":"ops","message":"no operators","error":"no operators"}`,
		`"type":"CatalogsChanged","namespace":"ops","subscription":"a","message":"CatalogSourcesAdded"}`,
		`"type":"PlanCreated","namespace":"ops","plan":"install-3","message":"a.v1, b.v1"}`,
		`"type":"PlanApproved","namespace":"ops","plan":"install-3"}`,
		`"type":"PlanCompleted","namespace":"ops","plan":"install-3"}`,
		`"type":"PlanFailed","namespace":"ops","plan":"install-3","message":"boom","error":"boom"}`,
		`"type":"PlanDeleted","namespace":"ops","plan":"install-3"}`,
		`"type":"PlanSuperseded","namespace":"ops","plan":"install-3","message":"superseded"}`,
		`"type":"PlanRefused","namespace":"ops","plan":"install-3","error":"the InstallPlan contains invalid data: plan ops/install-3, step Deployment x of a.v1, rule Kind: kind Deployment.apps is not supported in a bundle"}`,
		`"type":"Progressing","namespace":"ops","subscription":"a","message":"a.v1"}`,
		`"type":"Error","namespace":"ops","error":"away"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("olm", "event", install.Event{Type: install.EventPlanCreated, Namespace: ns, Plan: "p"})
	if !strings.Contains(log.String(), "event.type=PlanCreated event.namespace=ops event.plan=p\n") {
		t.Error(log.String())
	}
}
