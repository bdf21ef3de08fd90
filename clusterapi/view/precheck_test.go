package view_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// alert makes a firing alert from labels and annotations, as in "severity=critical".
func alert(name string, set ...string) clusterapi.Alert {
	a := clusterapi.Alert{State: "firing", Labels: map[string]string{"alertname": name}, Annotations: map[string]string{}}
	for _, s := range set {
		key, value, _ := strings.Cut(s, "=")
		switch key {
		case "state":
			a.State = value
		case "summary", "description", "message", "runbook_url":
			a.Annotations[key] = value
		default:
			a.Labels[key] = value
		}
	}
	return a
}

// checkAlerts returns what the precheck finds in an answer with alerts.
func checkAlerts(t *testing.T, alerts ...clusterapi.Alert) []view.PrecheckCondition {
	t.Helper()
	found := view.RunPrechecks(t.Context(), view.AlertPrecheck(func(context.Context) ([]clusterapi.Alert, error) { return alerts, nil }))[0]
	if found.Err != nil {
		t.Fatal(found.Err)
	}
	return found.Conditions
}

// asExpected are the findings of classes without alerts.
func asExpected(classes ...string) []view.PrecheckCondition {
	var all []view.PrecheckCondition
	for _, class := range classes {
		all = append(all, view.PrecheckCondition{Condition: view.Condition{Type: "recommended/" + class, Status: "True", Reason: "AsExpected"}})
	}
	return all
}

const (
	undescribed = " The alert has no description. <alert does not have a runbook_url annotation>"
	slowsNodes  = "which may slow workload redistribution during rolling node updates. "
)

func TestCheckAlertsClasses(t *testing.T) {
	const critical, budgets, pulls, nodes, prechecks = "CriticalAlerts", "PodDisruptionBudgetAlerts", "PodImagePullAlerts", "NodeAlerts", "UpdatePrecheckAlerts"
	all := []string{critical, budgets, pulls, nodes, prechecks}
	except := func(classes ...string) []string {
		var rest []string
		for _, class := range all {
			if !strings.Contains(strings.Join(classes, " "), class) {
				rest = append(rest, class)
			}
		}
		return rest
	}
	for _, tt := range []struct {
		name  string
		alert clusterapi.Alert
		typ   string // empty: none
		text  string // the message
		quiet []string
	}{
		{"critical", alert("Any", "severity=critical", "summary=Bad."), "CriticalAlerts/Any/0", "critical alert Any firing, suggesting significant cluster issues worth investigating. Bad." + undescribed, except(critical)},
		{"critical first", alert("KubeNodeNotReady", "severity=critical"), "CriticalAlerts/KubeNodeNotReady/0", "critical alert KubeNodeNotReady firing, suggesting significant cluster issues worth investigating. KubeNodeNotReady." + undescribed, except(critical)},
		{"critical budget", alert("PodDisruptionBudgetLimit", "severity=critical", "namespace=n", "poddisruptionbudget=p"), "CriticalAlerts/PodDisruptionBudgetLimit/0",
			"critical alert PodDisruptionBudgetLimit firing, suggesting significant cluster issues worth investigating. Namespace=n, PodDisruptionBudget=p. PodDisruptionBudgetLimit." + undescribed, except(critical, budgets)},
		{"critical budget at its limit", alert("PodDisruptionBudgetAtLimit", "severity=critical", "namespace=n", "poddisruptionbudget=p"), "CriticalAlerts/PodDisruptionBudgetAtLimit/0",
			"critical alert PodDisruptionBudgetAtLimit firing, suggesting significant cluster issues worth investigating. Namespace=n, PodDisruptionBudget=p. PodDisruptionBudgetAtLimit." + undescribed, except(critical)},
		{"budget that is not critical", alert("PodDisruptionBudgetLimit", "severity=warning"), "", "", all},
		{"budget at its limit", alert("PodDisruptionBudgetAtLimit", "severity=warning", "namespace=n", "poddisruptionbudget=p"), "PodDisruptionBudgetAlerts/PodDisruptionBudgetAtLimit/0",
			"warning alert PodDisruptionBudgetAtLimit firing, which might slow node drains. Namespace=n, PodDisruptionBudget=p. PodDisruptionBudgetAtLimit." + undescribed, except(budgets)},
		{"waiting", alert("KubeContainerWaiting", "severity=warning"), "PodImagePullAlerts/KubeContainerWaiting/0", "warning alert KubeContainerWaiting firing, " + slowsNodes + "KubeContainerWaiting." + undescribed, except(pulls)},
		{"kubelet", alert("KubeletHealthState", "severity=warning"), "NodeAlerts/KubeletHealthState/0", "warning alert KubeletHealthState firing, " + slowsNodes + "KubeletHealthState." + undescribed, except(nodes)},
		{"not ready", alert("KubeNodeNotReady", "severity=info"), "NodeAlerts/KubeNodeNotReady/0", "info alert KubeNodeNotReady firing, " + slowsNodes + "KubeNodeNotReady." + undescribed, except(nodes)},
		{"flapping", alert("KubeNodeReadinessFlapping"), "NodeAlerts/KubeNodeReadinessFlapping/0", " alert KubeNodeReadinessFlapping firing, " + slowsNodes + "KubeNodeReadinessFlapping." + undescribed, except(nodes)},
		{"unreachable", alert("KubeNodeUnreachable", "severity=warning", "openShiftUpdatePrecheck=true"), "NodeAlerts/KubeNodeUnreachable/0", "warning alert KubeNodeUnreachable firing, " + slowsNodes + "KubeNodeUnreachable." + undescribed, except(nodes)},
		{"labelled", alert("Own", "severity=warning", "openShiftUpdatePrecheck=true"), "UpdatePrecheckAlerts/Own/0", "warning alert Own firing, suggesting issues worth investigating before updating the cluster. Own." + undescribed, except(prechecks)},
		{"labelled otherwise", alert("Own", "severity=warning", "openShiftUpdatePrecheck=True"), "", "", all},
		{"handler", alert("VirtHandlerDaemonSetRolloutFailing", "severity=warning"), "VirtAlerts/VirtHandlerDaemonSetRolloutFailing/0", "warning alert VirtHandlerDaemonSetRolloutFailing firing, " + slowsNodes + "VirtHandlerDaemonSetRolloutFailing." + undescribed, all},
		{"eviction", alert("VMCannotBeEvicted", "severity=warning"), "VirtAlerts/VMCannotBeEvicted/0", "warning alert VMCannotBeEvicted firing, " + slowsNodes + "VMCannotBeEvicted." + undescribed, all},
		{"other", alert("Other", "severity=warning"), "", "", all},
		{"pending", alert("Other", "severity=critical", "state=pending"), "", "", all},
		{"nameless", alert("", "severity=critical"), "", "", all},
		{"other state", alert("Other", "severity=critical", "state=odd"), "CriticalAlerts/Other/0", "critical alert Other odd, suggesting significant cluster issues worth investigating. Other." + undescribed, except(critical)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []view.PrecheckCondition
			if tt.typ != "" {
				want = append(want, view.PrecheckCondition{
					Condition:      view.Condition{Type: "recommended/" + tt.typ, Status: "False", Reason: "Alert:" + tt.alert.State, Message: tt.text},
					AcceptanceName: tt.alert.Labels["alertname"],
				})
			}
			want = append(want, asExpected(tt.quiet...)...)
			checktest.Same(t, want, checkAlerts(t, tt.alert))
		})
	}
	checktest.SameIn(t, "without alerts", asExpected(all...), checkAlerts(t))
}

// TestCheckAlertsDetails holds the sentences about an alert.
func TestCheckAlertsDetails(t *testing.T) {
	const missing = "<alert does not have a runbook_url annotation>"
	for _, tt := range []struct {
		set  []string
		want string
	}{
		{nil, "Any. The alert has no description. " + missing},
		{[]string{"summary=A summary"}, "A summary. The alert has no description. " + missing},
		{[]string{"summary=A summary."}, "A summary. The alert has no description. " + missing},
		{[]string{"summary=A summary", "description=D"}, "A summary. The alert description is: D " + missing},
		{[]string{"message=M"}, "Any. The alert description is: M " + missing},
		{[]string{"description=D", "message=M", "runbook_url=https://run.example"}, "Any. The alert description is: D | M https://run.example"},
	} {
		got := checkAlerts(t, alert("Any", append(tt.set, "severity=critical")...))[0].Message
		_, got, _ = strings.Cut(got, "worth investigating. ")
		checktest.FailIf(t, got != tt.want, "%v: %q, want %q", tt.set, got, tt.want)
	}
}

// TestCheckAlertsNumbers counts what was found, over all classes, in the order of
// the alerts.
func TestCheckAlertsNumbers(t *testing.T) {
	first := alert("KubeNodeNotReady")
	first.ActiveAt = time.Date(2024, 2, 7, 16, 0, 0, 5, time.UTC)
	found := checkAlerts(t, first, alert("Ignored"), alert("A", "severity=critical"), alert("KubeNodeNotReady"), alert("VMCannotBeEvicted"))
	var got []string
	for _, c := range found {
		got = append(got, strings.TrimPrefix(c.Type, "recommended/"))
	}
	if since := found[0].Since; !since.Equal(first.ActiveAt) {
		t.Errorf("since %v", since)
	}
	want := []string{"NodeAlerts/KubeNodeNotReady/0", "CriticalAlerts/A/1", "NodeAlerts/KubeNodeNotReady/2", "VirtAlerts/VMCannotBeEvicted/3",
		"PodDisruptionBudgetAlerts", "PodImagePullAlerts", "UpdatePrecheckAlerts"}
	checktest.Same(t, want, got)
}

// TestAlertPrecheck goes from the monitoring's answer to the text.
func TestAlertPrecheck(t *testing.T) {
	answer := func(text string, err error) view.PrecheckFunc {
		return view.AlertPrecheck(func(context.Context) ([]clusterapi.Alert, error) {
			if err != nil {
				return nil, err
			}
			return clusterapi.DecodeAlerts([]byte(text))
		})
	}
	const quiet = "The following conditions found no cause for concern in updating this cluster to later releases: " +
		"recommended/CriticalAlerts (AsExpected), recommended/NodeAlerts (AsExpected), recommended/PodDisruptionBudgetAlerts (AsExpected), recommended/PodImagePullAlerts (AsExpected)"
	for _, tt := range []struct {
		name  string
		check view.PrecheckFunc
		want  string
	}{
		{"an alert", answer(`{"status":"success","data":{"alerts":[{"labels":{"alertname":"Own","severity":"warning","openShiftUpdatePrecheck":"true"},"annotations":{"summary":"Wait","description":"one\ntwo","runbook_url":"https://run.example"},"state":"firing","activeAt":"2024-02-07T16:31:06.123Z","value":"1"}]}}`, nil),
			quiet + "\n\nThe following conditions found cause for concern in updating this cluster to later releases: recommended/UpdatePrecheckAlerts/Own/0\n\n" +
				"recommended/UpdatePrecheckAlerts/Own/0=False:\n\n  Reason: Alert:firing\n  Message: warning alert Own firing, suggesting issues worth investigating before updating the cluster. Wait. The alert description is: one\n  two https://run.example\n\n"},
		{"an alert of rules", answer(`{"data":{"groups":[{"rules":[{"alerts":[]},{"alerts":[{"labels":{"alertname":"Own","severity":"info","openShiftUpdatePrecheck":"true"},"state":"firing"}]}]}]}}`, nil),
			quiet + "\n\nThe following conditions found cause for concern in updating this cluster to later releases: recommended/UpdatePrecheckAlerts/Own/0\n\n" +
				"recommended/UpdatePrecheckAlerts/Own/0=False:\n\n  Reason: Alert:firing\n  Message: info alert Own firing, suggesting issues worth investigating before updating the cluster. Own." + undescribed + "\n\n"},
		{"none", answer(`{"data":{}}`, nil), quiet + ", recommended/UpdatePrecheckAlerts (AsExpected)\n\n"},
		{"no answer", answer("", errors.New("forbidden")), "Failed to check for at least some preconditions: fetching alerts: forbidden\n"},
		{"not JSON", answer("{", nil), "Failed to check for at least some preconditions: fetching alerts: decoding alerts: unexpected end of JSON input\n"},
		{"a panic", func(context.Context) ([]view.PrecheckCondition, error) { panic("oh") }, "Failed to check for at least some preconditions: panic: oh\n"},
		{"nothing", nil, "Failed to check for at least some preconditions: panic: runtime error: invalid memory address or nil pointer dereference\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := view.RecommendInput{ClusterVersion: healthy(), Prechecks: view.RunPrechecks(t.Context(), tt.check)}
			wantTexts(t, tt.want+noUpdates, "", recommendWriter(t, in, view.RecommendText{}))
		})
	}
}

// TestRunPrechecks keeps conditions beside an error, and the order of the checks.
func TestRunPrechecks(t *testing.T) {
	broken := errors.New("broken")
	found := view.RunPrechecks(t.Context(),
		func(context.Context) ([]view.PrecheckCondition, error) { return asExpected("a"), broken },
		func(context.Context) ([]view.PrecheckCondition, error) { return asExpected("b"), nil },
	)
	checktest.FatalIf(t, len(found) != 2 || !errors.Is(found[0].Err, broken) || found[1].Err != nil, "found %v", found)
	checktest.Same(t, [][]view.PrecheckCondition{asExpected("a"), asExpected("b")}, [][]view.PrecheckCondition{found[0].Conditions, found[1].Conditions})
}

// FuzzAlerts decodes answers of the monitoring's API and checks their alerts. Each
// condition says what it is about, and none of a name comes twice.
func FuzzAlerts(f *testing.F) {
	for _, answer := range []string{
		`{"data":{"alerts":[{"labels":{"alertname":"A","severity":"critical"},"annotations":{"summary":"S"},"state":"firing","activeAt":"2024-02-07T16:31:06.123Z"}]}}`,
		`{"data":{"groups":[{"rules":[{"alerts":[{"labels":{"alertname":"PodDisruptionBudgetAtLimit","namespace":"n"},"state":"pending"},{"labels":{"alertname":"PodDisruptionBudgetLimit","severity":"critical"}}]}]}]}}`,
		`{"data":{"alerts":[{"labels":{"alertname":"VMCannotBeEvicted"}},{"labels":null},{}]}}`,
		`{"data":{"alerts":[{"labels":{"alertname":1}}]}}`,
		`{"data":null}`,
		`[]`,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		seen := map[string]bool{}
		check := view.AlertPrecheck(func(context.Context) ([]clusterapi.Alert, error) { return clusterapi.DecodeAlerts(answer) })
		for _, c := range view.RunPrechecks(t.Context(), check)[0].Conditions {
			if seen[c.Type] || !strings.HasPrefix(c.Type, "recommended/") || c.Reason == "" {
				t.Errorf("condition %+v", c)
			}
			seen[c.Type] = true
			if found := c.Status == "False"; found != (c.AcceptanceName != "") || found != (c.Message != "") {
				t.Errorf("condition %+v", c)
			}
		}
	})
}
