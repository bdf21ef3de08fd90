package main

import (
	"bytes"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

// newCluster is a healthy cluster that has been offered a recommended and a
// conditional update.
func newCluster(t *testing.T, change func(*configv1.ClusterVersion)) *memory.Cluster {
	t.Helper()
	c := checktest.Get(simulation.New(simulation.Options{
		Release:        simulation.Release{Version: "4.17.30", Operators: []simulation.Operator{{Name: "machine-config"}}},
		ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.17"},
	}))(t)
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), c, clusterVersion, clusterapi.ModifyOptions{Status: true},
			func(cv *configv1.ClusterVersion) error {
				cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.17.31", Image: "registry.example/release@sha256:31"}}
				cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
					Release: configv1.Release{Version: "4.17.32", Image: "registry.example/release@sha256:32"},
					Risks:   []configv1.ConditionalUpdateRisk{{Name: "SlowDisks", URL: "https://example.com", Message: "x", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}},
				}}
				if change != nil {
					change(cv)
				}
				return nil
			})))
	return c.Cluster
}

func desired(t *testing.T, api clusterapi.ClusterAPI) string {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), api, clusterVersion))(t)
	if cv.Spec.DesiredUpdate == nil {
		return ""
	}
	return cv.Spec.DesiredUpdate.Version
}

func TestShow(t *testing.T) {
	notUpgradeable := func(cv *configv1.ClusterVersion) {
		cv.Status.AvailableUpdates[0].Version = "4.18.15"
		cv.Status.Conditions = append(cv.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: "Upgradeable", Status: configv1.ConditionFalse, Reason: "AdminAckRequired", Message: "somebody must agree", LastTransitionTime: metav1.Now(),
		})
	}
	for _, tc := range []struct {
		name, to, answer string
		change           func(*configv1.ClusterVersion)
		want             []string
		err              string
		requested        string
	}{
		{name: "look", want: []string{"runs 4.17.30, channel stable-4.17", "4.17.31 is recommended", "4.17.32 is not recommended", "SlowDisks", "Passed        ClusterVersionUpgradeable"}},
		{name: "nothing offered", change: func(cv *configv1.ClusterVersion) { cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates = nil, nil }, want: []string{"no updates available"}},
		{name: "confirmed", to: "4.17.31", answer: "4.17.31\n", want: []string{"requested 4.17.31"}, requested: "4.17.31"},
		{name: "confirmed without a line end", to: "4.17.31", answer: "4.17.31", want: []string{"requested 4.17.31"}, requested: "4.17.31"},
		{name: "not confirmed", to: "4.17.31", answer: "yes\n", want: []string{"nothing was changed"}},
		{name: "no answer", to: "4.17.31", want: []string{"nothing was changed"}},
		{name: "not offered", to: "4.19.0", answer: "4.19.0\n", err: "4.19.0 is not among the updates"},
		{name: "blocked", to: "4.18.15", answer: "4.18.15\n", change: notUpgradeable, want: []string{"somebody must agree"}, err: "preconditions are not met"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := newCluster(t, tc.change)
			var out bytes.Buffer
			err := show(t.Context(), api, tc.to, strings.NewReader(tc.answer), &out)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			for _, text := range tc.want {
				checktest.Has(t, out.String(), text)
			}
			checktest.Equal(t, tc.requested, desired(t, api), "requested")
			if t.Failed() {
				t.Logf("output:\n%s", out.String())
			}
		})
	}
}

// Without -to nothing is written at all.
func TestReadOnly(t *testing.T) {
	inner := newCluster(t, nil)
	checktest.Good(t, show(t.Context(), reader{Reader: inner}, "", strings.NewReader("4.17.31\n"), &bytes.Buffer{}))
}

// reader has no writing verbs: a call of one is a nil dereference.
type reader struct {
	clusterapi.Reader
	clusterapi.Writer
	clusterapi.Evictor
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }
