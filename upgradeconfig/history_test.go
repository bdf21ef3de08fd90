package upgradeconfig_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestHistory(t *testing.T) {
	var s upgradeconfig.Status
	if _, ok := s.Entry("4.20.3"); ok || s.Phase("4.20.3") != upgradeconfig.PhaseUnknown {
		t.Error("an entry of an empty history")
	}
	s.SetEntry(upgradeconfig.HistoryEntry{Version: "4.20.3", Phase: upgradeconfig.PhaseUpgraded})
	s.SetEntry(upgradeconfig.HistoryEntry{Version: "4.20.4", Phase: upgradeconfig.PhaseNew})
	versions := func() (out []string) {
		for _, e := range s.History {
			out = append(out, e.Version+" "+string(e.Phase))
		}
		return out
	}
	checktest.Same(t, []string{"4.20.4 New", "4.20.3 Upgraded"}, versions())
	e, ok := s.Entry("4.20.3")
	if !ok {
		t.Fatal("no entry")
	}
	start := metav1.NewTime(at("2031-02-04T03:00:00Z"))
	e.Phase, e.StartTime = upgradeconfig.PhaseFailed, &start
	e.SetCondition(upgradeconfig.Condition{Type: "X", Status: metav1.ConditionTrue}, start.Time)
	if s.Phase("4.20.3") != upgradeconfig.PhaseUpgraded || len(s.History[1].Conditions) != 0 {
		t.Error("a change of the copy counts before it is set")
	}
	s.SetEntry(e)
	checktest.Same(t, []string{"4.20.4 New", "4.20.3 Failed"}, versions())
	e.StartTime.Time = start.Add(time.Hour)
	e.Conditions[0].Message = "changed"
	*e.Conditions[0].LastProbeTime = metav1.Time{}
	if got := s.History[1]; got.StartTime.Time != at("2031-02-04T03:00:00Z") || got.Conditions[0].Message != "" || got.Conditions[0].LastProbeTime.IsZero() {
		t.Errorf("the history shares memory with what was set: %+v", got)
	}

	// Of several entries of a version the first counts.
	s = upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{Version: "a", Phase: upgradeconfig.PhaseNew}, {Version: "a", Phase: upgradeconfig.PhaseFailed}}}
	s.SetEntry(upgradeconfig.HistoryEntry{Version: "a", Phase: upgradeconfig.PhasePending})
	if d := cmp.Diff([]string{"a Pending", "a Failed"}, versions()); d != "" || s.Phase("a") != upgradeconfig.PhasePending {
		t.Error(d)
	}
}

func TestConditions(t *testing.T) {
	first, second, third := at("2031-02-04T03:00:00Z"), at("2031-02-04T03:01:00Z"), at("2031-02-04T03:02:00Z")
	stamp := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }
	var e upgradeconfig.HistoryEntry
	if !e.IsUnknown("A") || e.IsTrue("A") || e.IsFalse("A") {
		t.Error("an absent condition is unknown and nothing else")
	}
	if _, ok := e.Condition("A"); ok {
		t.Error("a condition of an empty entry")
	}
	set := func(now time.Time, changed bool, c upgradeconfig.Condition) {
		t.Helper()
		checktest.Equal(t, changed, e.SetCondition(c, now), "changed")
	}
	set(first.Add(300*time.Millisecond), true, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "r", Message: "m"})
	set(first, true, upgradeconfig.Condition{Type: "B", Status: metav1.ConditionUnknown})
	set(second, false, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "r", Message: "m", StartTime: stamp(first), LastTransitionTime: stamp(third)})
	want := []upgradeconfig.Condition{
		{Type: "B", Status: metav1.ConditionUnknown, LastProbeTime: stamp(first), LastTransitionTime: stamp(first)},
		{Type: "A", Status: metav1.ConditionFalse, Reason: "r", Message: "m", StartTime: stamp(first), LastProbeTime: stamp(second), LastTransitionTime: stamp(first)},
	}
	checktest.Same(t, want, e.Conditions)
	begun := stamp(first)
	set(second, false, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "r", Message: "m", StartTime: begun})
	if begun.Time = third; e.Conditions[1].StartTime.Time != first {
		t.Error("the entry shares memory with what was set")
	}
	if !e.IsFalse("A") || e.IsTrue("A") || e.IsUnknown("A") || !e.IsUnknown("B") {
		t.Error("the answers are wrong")
	}
	set(third, true, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "other", Message: "m"})
	set(third, true, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "other", Message: "other"})
	if c, _ := e.Condition("A"); c.LastTransitionTime.Time != first {
		t.Errorf("the status is as before, but the transition at %v", c.LastTransitionTime)
	}
	set(third, true, upgradeconfig.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "other", Message: "other"})
	c, ok := e.Condition("A")
	if !ok || c.LastTransitionTime.Time != third || !e.IsTrue("A") || e.Conditions[0].Type != "B" {
		t.Errorf("%+v", e.Conditions)
	}
	c.Message = "copy"
	c.LastProbeTime.Time = first
	if again, _ := e.Condition("A"); again.Message != "other" || again.LastProbeTime.Time != third {
		t.Error("Condition does not return a copy")
	}

	e.Conditions = []upgradeconfig.Condition{{Type: "A", Status: metav1.ConditionTrue}, {Type: "A", Status: metav1.ConditionFalse}}
	if e.SetCondition(upgradeconfig.Condition{Type: "A", Status: metav1.ConditionTrue}, first); len(e.Conditions) != 2 || !e.IsTrue("A") || e.IsFalse("A") {
		t.Error("of several conditions the first counts")
	}
	if e.Conditions[0].LastTransitionTime != nil {
		t.Error("the old transition time is kept, an absent one too")
	}
}

// The wire's names, on a backend that knows nothing of the type.
func TestWire(t *testing.T) {
	c := object(specA, upgradeconfig.Status{})
	u := must(clusterapi.ToUnstructured(c))
	got := must(json.Marshal(u))
	want := `{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig",` +
		`"metadata":{"name":"managed-upgrade-config","namespace":"openshift-managed-upgrade-operator"},` +
		`"spec":{"PDBForceDrainTimeout":45,"capacityReservation":true,"desired":{"channel":"stable-4.20","version":"4.20.3"},"type":"OSD","upgradeAt":"2031-02-04T03:00:00Z"}}`
	checktest.Same(t, want, strings.TrimSpace(string(got)))

	now := metav1.NewTime(at("2031-02-04T03:00:00Z"))
	full := upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{
		Version: "4.20.3", PrecedingVersion: "4.20.1", Phase: upgradeconfig.PhaseUpgrading,
		StartTime: &now, CompleteTime: &now, WorkerStartTime: &now, WorkerCompleteTime: &now,
		Conditions: []upgradeconfig.Condition{{Type: upgradeconfig.UpgradeCommenced, Status: metav1.ConditionTrue, LastProbeTime: &now, LastTransitionTime: &now, StartTime: &now, CompleteTime: &now, Reason: "r", Message: "m"}},
	}}}
	status := must(json.Marshal(full))
	const ts = `"2031-02-04T03:00:00Z"`
	wantStatus := `{"history":[{"version":"4.20.3","precedingVersion":"4.20.1","phase":"Upgrading","startTime":` + ts + `,"completeTime":` + ts +
		`,"workerStartTime":` + ts + `,"workerCompleteTime":` + ts + `,"conditions":[{"type":"UpgradeCommenced","status":"True","lastProbeTime":` + ts +
		`,"lastTransitionTime":` + ts + `,"startTime":` + ts + `,"completeTime":` + ts + `,"reason":"r","message":"m"}]}]}`
	checktest.Same(t, wantStatus, string(status))
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	stored := store(t, cluster, object(specA, full))
	if d := cmp.Diff(full, stored.Status); d != "" || stored.Spec != specA {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestInProgress(t *testing.T) {
	cluster := func(status configv1.ConditionStatus) *memory.Cluster {
		c := newCluster(t, memory.Options{}, false)
		_, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
			cv.Status.Conditions[0].Status = status
			return nil
		})
		return must(c, err)
	}
	edit := func(f func(*upgradeconfig.HistoryEntry)) *upgradeconfig.UpgradeConfig {
		c := object(specA, underWay("4.20.3"))
		f(&c.Status.History[0])
		return c
	}
	for name, tt := range map[string]struct {
		current *upgradeconfig.UpgradeConfig
		cv      configv1.ConditionStatus // of Progressing
		want    bool
	}{
		"nothing":                {nil, configv1.ConditionFalse, false},
		"a step is done":         {object(specA, underWay("4.20.3")), configv1.ConditionFalse, true},
		"progressing":            {nil, configv1.ConditionTrue, true},
		"progressing, no step":   {object(specA, upgradeconfig.Status{}), configv1.ConditionTrue, true},
		"not progressing":        {object(specA, upgradeconfig.Status{}), configv1.ConditionFalse, false},
		"progress unknown":       {object(specA, upgradeconfig.Status{}), configv1.ConditionUnknown, false},
		"another version's step": {object(specA, underWay("4.20.4")), configv1.ConditionFalse, false},
		"no step done":           {edit(func(e *upgradeconfig.HistoryEntry) { e.Conditions[0].Status = metav1.ConditionFalse }), configv1.ConditionFalse, false},
		"another phase":          {edit(func(e *upgradeconfig.HistoryEntry) { e.Phase = upgradeconfig.PhasePending }), configv1.ConditionFalse, false},
		"finished":               {edit(func(e *upgradeconfig.HistoryEntry) { e.Phase = upgradeconfig.PhaseUpgraded }), configv1.ConditionFalse, false},
	} {
		if got, err := upgradeconfig.ReadInProgress(t.Context(), cluster(tt.cv), tt.current); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	_, err := upgradeconfig.ReadInProgress(t.Context(), serving(memory.NewOpenShift(memory.Options{})), nil)
	if !errors.Is(err, upgradeconfig.ErrClusterVersion) || !apierrors.IsNotFound(err) {
		t.Errorf("not known: %v", err)
	}
}
