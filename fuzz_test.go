package clusterupdate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// lifeOf has an Updater look after a cluster with a ClusterVersion of this spec and
// status for some minutes. It returns the ClusterVersion, nil where it cannot be
// decoded, and the errors of the Updater.
func lifeOf(t testing.TB, releases []*toyRelease, spec, status any) (*configv1.ClusterVersion, []error) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"}, "spec": spec, "status": status,
	}}
	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(u); err != nil {
		return nil, nil // an API server would not have it either
	}
	clock := reconcile.NewClock(toyStart)
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Clock: clock, Interval: time.Minute,
		Own: releases[0].payload.Release,
	}))(t)
	var errs []error
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1, Observe: func(e clusterapi.Event) {
		if e.Err != nil {
			errs = append(errs, e.Err)
		}
	}}, updater.Process())
	defer v.Close()
	checktest.Good(t, v.RunUntil(toyStart.Add(3*time.Minute)))
	for _, err := range errs {
		if fault := new(clusterapi.PanicError); errors.As(err, &fault) {
			t.Errorf("%v\n%s", err, fault.Stack)
		}
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](t.Context(), cluster, clusterapi.Key("", "version"))
	if err != nil {
		return nil, append(errs, err)
	}
	seen := map[configv1.ClusterStatusConditionType]bool{}
	for _, c := range cv.Status.Conditions {
		if seen[c.Type] && len(errs) == 0 {
			t.Errorf("condition %s stands twice", c.Type)
		}
		seen[c.Type] = true
	}
	return cv, errs
}

// FuzzClusterVersion: whatever is in the object, the Updater decides, and says what it
// cannot read.
func FuzzClusterVersion(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"clusterID":"8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01","desiredUpdate":{"version":"1.0.1"}},"status":{"history":[{"state":"Completed","version":"1.0.0","image":"x","startedTime":"2026-01-01T00:00:00Z","completionTime":null,"verified":false}],"availableUpdates":null,"desired":{"version":"1.0.0","image":"x"},"observedGeneration":1,"versionHash":""}}`,
		`{"spec":{"channel":"c","upstream":":","overrides":[{"kind":"Deployment","group":"apps","namespace":"toy","name":"alpha","unmanaged":true}],"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["x"]}}}`,
		`{"spec":{"desiredUpdate":{"architecture":"Multi","version":"v1","image":"i"}},"status":{"conditions":[{"type":"Progressing","status":"Maybe"}],"conditionalUpdates":[{"release":{"version":"1.0.1"},"risks":[]}],"history":[{"state":"Odd"}]}}`,
		`{"spec":"x","status":[1]}`, `{"spec":{"desiredUpdate":7}}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	releases := toyReleases(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var object struct{ Spec, Status any }
		if json.Unmarshal(data, &object) != nil {
			return
		}
		lifeOf(t, releases, object.Spec, object.Status)
	})
}

// What cannot be read is told with its place, and what is large is borne.
func TestOddClusterVersion(t *testing.T) {
	releases := toyReleases(t)
	entry := func(version, image string) map[string]any {
		return map[string]any{"state": "Completed", "version": version, "image": image, "startedTime": "2025-01-01T00:00:00Z", "completionTime": "2025-01-01T01:00:00Z", "verified": true}
	}
	var long []any
	for i := range 1000 {
		long = append(long, entry(fmt.Sprintf("0.%d.%d", i/100, i%100), fmt.Sprintf("old@%d", i)))
	}
	long[0] = entry("1.0.0", releases[0].payload.Release.Image)
	for _, tt := range []struct {
		name         string
		spec, status any
		err          string
	}{
		{name: "spec is a text", spec: "x", err: "spec: got a JSON string"},
		{name: "request is a number", spec: map[string]any{"desiredUpdate": int64(7)}, err: "spec.desiredUpdate: got a JSON number"},
		{name: "history is a text", status: map[string]any{"history": "x"}, err: "status.history: got a JSON string"},
		{name: "a time is not one", status: map[string]any{"history": []any{map[string]any{"startedTime": "soon"}}}, err: "status.history[0].startedTime"},
		{name: "null lists", status: map[string]any{"history": nil, "availableUpdates": nil, "conditions": nil, "conditionalUpdates": nil}},
		{name: "unknown words", status: map[string]any{"history": []any{map[string]any{"state": "Odd", "version": "1.0.0", "image": releases[0].payload.Release.Image, "startedTime": "2025-01-01T00:00:00Z", "completionTime": nil, "verified": false}},
			"conditions": []any{map[string]any{"type": "Progressing", "status": "Maybe", "lastTransitionTime": "2025-01-01T00:00:00Z"}}}},
		{name: "a long history", status: map[string]any{"history": long}},
		{name: "a long text", spec: map[string]any{"channel": strings.Repeat("x", 1<<20)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cv, errs := lifeOf(t, releases, tt.spec, tt.status)
			text := fmt.Sprint(errs)
			if tt.err != "" && !strings.Contains(text, tt.err) || tt.err == "" && cv == nil {
				t.Errorf("errors %.600s", text)
			}
			if tt.err == "" && (len(cv.Status.History) == 0 || len(cv.Status.History) > 100) {
				t.Errorf("%d entries of history", len(cv.Status.History))
			}
		})
	}
}
