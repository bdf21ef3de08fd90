package risk_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

type riskSource struct {
	name  string
	risks []configv1.ConditionalUpdateRisk
	err   error
}

func (s riskSource) Name() string { return s.name }
func (s riskSource) Risks(context.Context, []string) ([]configv1.ConditionalUpdateRisk, error) {
	return s.risks, s.err
}

func TestMergeRisks(t *testing.T) {
	other := graphtest.Risk("A", "T")
	other.Message = "other"
	for name, test := range map[string]struct {
		available, conditional string // versions; conditional ones with their risks
		risks                  risk.Set
		wantAvailable          string
		want                   string
		errs                   []string
	}{
		"nothing to merge": {conditional: "4.10.0:B,A 4.9.0:C x:D", want: "x:D 4.9.0:C 4.10.0:A,B"},
		"both kinds": {available: "4.1.0 4.2.0", conditional: "4.3.0:Z", risks: risk.Set{Risks: graphtest.Named("B", "A"), Versions: map[string][]string{"A": {"4.2.0", "4.3.0"}, "B": {"4.2.0"}}},
			wantAvailable: "4.1.0", want: "4.2.0:A,B 4.3.0:A,Z"},
		"only the first of a version moves": {available: "4.2.0 4.2.0", risks: risk.Set{Risks: graphtest.Named("A", "B"), Versions: map[string][]string{"A": {"4.2.0"}, "B": {"4.2.0"}}},
			wantAvailable: "4.2.0", want: "4.2.0:A,B"},
		"every conditional one gains": {conditional: "4.2.0:B 4.2.0:C", risks: risk.Set{Risks: graphtest.Named("A"), Versions: map[string][]string{"A": {"4.2.0"}}}, want: "4.2.0:A,B 4.2.0:A,C"},
		"there already":               {conditional: "4.2.0:A", risks: risk.Set{Risks: graphtest.Named("A"), Versions: map[string][]string{"A": {"4.2.0"}}}, want: "4.2.0:A"},
		"there with other content": {conditional: "4.2.0:A", risks: risk.Set{Risks: []configv1.ConditionalUpdateRisk{other}, Versions: map[string][]string{"A": {"4.2.0"}}}, want: "4.2.0:A",
			errs: []string{`divergent definitions of risk "A":`}},
		"twice": {available: "4.2.0", risks: risk.Set{Risks: append(graphtest.Named("A", "A"), other), Versions: map[string][]string{"A": {"4.2.0"}}}, want: "4.2.0:A",
			errs: []string{`divergent definitions of risk "A" from the merging source:`}},
		"invalid name": {available: "4.2.0", risks: risk.Set{Risks: graphtest.Named("a_b"), Versions: map[string][]string{"a_b": {"4.2.0"}}}, wantAvailable: "4.2.0",
			errs: []string{`invalid risk name "a_b" does not match "^[A-Z][A-Za-z0-9.-]*$"`}},
		"unknown version": {risks: risk.Set{Risks: graphtest.Named("A"), Versions: map[string][]string{"A": {"4.2.0"}}},
			errs: []string{`cannot merge risk "A" into unknown release version "4.2.0"`}},
		"unknown risks": {available: "4.2.0", risks: risk.Set{Versions: map[string][]string{"B": nil, "A": {"4.2.0"}}}, wantAvailable: "4.2.0",
			errs: []string{"merge versions referenced unknown risks: A, B"}},
		"without versions": {available: "4.2.0", risks: risk.Set{Risks: graphtest.Named("A")}, wantAvailable: "4.2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var available []configv1.Release
			for _, v := range strings.Fields(test.available) {
				available = append(available, configv1.Release{Version: v})
			}
			var conditional []configv1.ConditionalUpdate
			for _, c := range strings.Fields(test.conditional) {
				version, risks, _ := strings.Cut(c, ":")
				conditional = append(conditional, configv1.ConditionalUpdate{Release: configv1.Release{Version: version}, Risks: graphtest.Named(strings.Split(risks, ",")...)})
			}
			a, c, err := risk.Merge(available, conditional, test.risks)
			var versions, pairs []string
			for _, r := range a {
				versions = append(versions, r.Version)
			}
			for _, u := range c {
				var names []string
				for _, r := range u.Risks {
					names = append(names, r.Name)
				}
				pairs = append(pairs, u.Release.Version+":"+strings.Join(names, ","))
			}
			checktest.Equal(t, test.wantAvailable, strings.Join(versions, " "), "available")
			checktest.Equal(t, test.want, strings.Join(pairs, " "), "conditional")
			checktest.Equal(t, len(test.errs) == 0, err == nil, "error %v, want %v", err, test.errs)
			for _, text := range test.errs {
				checktest.FailIf(t, err != nil && !strings.Contains(err.Error(), text), "error %v, want %s", err, text)
			}
		})
	}
}

func TestTargetVersions(t *testing.T) {
	got := risk.TargetVersions([]configv1.Release{graphtest.Release("4.2.1"), graphtest.Release("4.2.0"), graphtest.Release("4.2.1")}, []configv1.ConditionalUpdate{graphtest.Update("4.3.0"), graphtest.Update("4.2.0"), graphtest.Update("4.2.2")})
	checktest.Same(t, []string{"4.2.1", "4.2.0", "4.3.0", "4.2.2"}, got)
	if got := risk.TargetVersions(nil, nil); got != nil {
		t.Error(got)
	}
}

func TestConditionalUpdateRisks(t *testing.T) {
	other := graphtest.Risk("B", "F")
	updates := []configv1.ConditionalUpdate{graphtest.Update("4.2.0", graphtest.Risk("C", "T"), graphtest.Risk("B", "T")), graphtest.Update("4.2.1", other, graphtest.Risk("A", "T"))}
	want := []configv1.ConditionalUpdateRisk{graphtest.Risk("A", "T"), graphtest.Risk("B", "T"), graphtest.Risk("C", "T")}
	got := risk.ConditionalUpdateRisks(updates)
	checktest.Same(t, want, got)
	got[1].MatchingRules[0].PromQL.PromQL = "x" // the caller's
	checktest.Same(t, "T", updates[0].Risks[1].MatchingRules[0].PromQL.PromQL)
	if got := risk.ConditionalUpdateRisks(nil); got != nil {
		t.Error(got)
	}
}

func TestAggregateRisks(t *testing.T) {
	other := graphtest.Risk("A", "T")
	other.Message = "other"
	alerts := &risk.AlertRisks{Alerts: firing{{Labels: map[string]string{"alertname": "Down", "severity": "critical"}, State: "firing"}}}
	sources := []risk.RiskSource{alerts, riskSource{name: "One", risks: graphtest.Named("A"), err: errors.New("half")}, riskSource{name: "Two", risks: append(graphtest.Named("B"), other)}}
	got, err := risk.Aggregate(context.Background(), sources, "4.1.3", []string{"4.1.4", "4.2.0", "5.0.0", "odd", "4.0.9"})
	var names []string
	for _, r := range got.Risks {
		names = append(names, r.Name)
	}
	minor := []string{"4.2.0", "5.0.0", "odd"}
	checktest.Same(t, map[string][]string{"Down": {"4.1.4", "4.2.0", "5.0.0", "odd", "4.0.9"}, "A": minor, "B": minor}, got.Versions)
	checktest.Same(t, []string{"Down", "A", "B"}, names)
	if err == nil || !strings.Contains(err.Error(), "One: half") || !strings.Contains(err.Error(), `divergent definitions of risk "A" from "Two":`) {
		t.Error(err)
	}
}

type firing []clusterapi.Alert

func (f firing) Firing(context.Context) ([]clusterapi.Alert, error) { return f, nil }

func TestRisksOfAlerts(t *testing.T) {
	alert := func(labels, annotations string, minutes int) clusterapi.Alert {
		a := clusterapi.Alert{Labels: map[string]string{}, Annotations: map[string]string{}, State: "firing", ActiveAt: graphtest.Start.Add(time.Duration(minutes) * time.Minute)}
		for m, text := range map[*map[string]string]string{&a.Labels: labels, &a.Annotations: annotations} {
			for _, pair := range strings.Split(text, ";") {
				if k, v, ok := strings.Cut(pair, "="); ok {
					(*m)[k] = v
				}
			}
		}
		return a
	}
	pending := alert("alertname=Pending;severity=critical", "", 0)
	pending.State = "pending"
	const missing = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"
	for name, test := range map[string]struct {
		alerts                  []clusterapi.Alert
		message, url, condition string
		minutes                 int
	}{
		"pending":        {alerts: []clusterapi.Alert{pending}},
		"no name":        {alerts: []clusterapi.Alert{alert("severity=critical", "", 0)}},
		"not about this": {alerts: []clusterapi.Alert{alert("alertname=Other;severity=warning", "", 0)}},
		"critical": {alerts: []clusterapi.Alert{alert("alertname=Down;severity=critical", "summary=It is down;description=Really;runbook_url=https://r", 0)},
			message: "It is down.", url: "https://r",
			condition: "critical alert Down firing, suggesting significant cluster issues worth investigating. It is down. The alert description is: Really https://r"},
		"no texts": {alerts: []clusterapi.Alert{alert("alertname=KubeNodeNotReady;severity=warning", "", 0)}, message: "KubeNodeNotReady.", url: missing,
			condition: "warning alert KubeNodeNotReady firing, which may slow workload redistribution during rolling node updates. KubeNodeNotReady. The alert has no description. <alert does not have a runbook_url annotation>"},
		"drains": {alerts: []clusterapi.Alert{alert("alertname=PodDisruptionBudgetAtLimit;severity=warning;namespace=n;poddisruptionbudget=p", "summary=Limit.;message=M", 0)}, message: "Limit.", url: missing,
			condition: "warning alert PodDisruptionBudgetAtLimit firing, which might slow node drains. Namespace=n, PodDisruptionBudget=p. Limit. The alert description is: M <alert does not have a runbook_url annotation>"},
		"critical budget": {alerts: []clusterapi.Alert{alert("alertname=PodDisruptionBudgetLimit;severity=critical;namespace=n;poddisruptionbudget=p", "summary=Limit.", 0)}, message: "Limit.", url: missing,
			condition: "critical alert PodDisruptionBudgetLimit firing, suggesting significant cluster issues worth investigating. Namespace=n, PodDisruptionBudget=p. Limit. The alert has no description. <alert does not have a runbook_url annotation>"},
		"precheck": {alerts: []clusterapi.Alert{alert("alertname=Mine;severity=info;openShiftUpdatePrecheck=true", "summary=S;description=D;message=M", 0)}, message: "S.", url: missing,
			condition: "info alert Mine firing, suggesting issues worth investigating before updating the cluster. S. The alert description is: D | M <alert does not have a runbook_url annotation>"},
		"two of a name": {alerts: []clusterapi.Alert{alert("alertname=Down;severity=critical", "summary=First;runbook_url=https://1", 5), alert("alertname=Down;severity=critical", "summary=Second;runbook_url=https://2", 3)},
			message: "First.", url: "https://1", minutes: 3,
			condition: "critical alert Down firing, suggesting significant cluster issues worth investigating. First. The alert has no description. https://1; " +
				"critical alert Down firing, suggesting significant cluster issues worth investigating. Second. The alert has no description. https://2"},
		"critical before the budget's own class": {alerts: []clusterapi.Alert{alert("alertname=PodDisruptionBudgetAtLimit;severity=critical;namespace=n;poddisruptionbudget=p", "summary=Limit.", 0)}, message: "Limit.", url: missing,
			condition: "critical alert PodDisruptionBudgetAtLimit firing, suggesting significant cluster issues worth investigating. Limit. The alert has no description. <alert does not have a runbook_url annotation>"},
		"not critical, not at the limit": {alerts: []clusterapi.Alert{alert("alertname=PodDisruptionBudgetLimit;severity=warning", "", 0)}},
		"precheck by another value":      {alerts: []clusterapi.Alert{alert("alertname=Mine;severity=info;openShiftUpdatePrecheck=True", "", 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			risks := risk.OfAlerts(test.alerts)
			if test.message == "" {
				checktest.Equal(t, 0, len(risks), "%+v", risks)
				return
			}
			checktest.FatalIf(t, len(risks) != 1, "%+v", risks)
			r, c := risks[0], risks[0].Conditions[0]
			if r.Message != test.message || r.URL != test.url || c.Message != test.condition || c.Reason != "Alert:firing" || !c.LastTransitionTime.Time.Equal(graphtest.Start.Add(time.Duration(test.minutes)*time.Minute)) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// Alerts that slow down the redistribution of workloads; risks come by name.
func TestRisksOfAlertsByName(t *testing.T) {
	names := []string{"VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted", "KubeNodeUnreachable", "KubeNodeReadinessFlapping", "KubeNodeNotReady", "KubeletHealthState", "KubeContainerWaiting"}
	var alerts []clusterapi.Alert
	for _, name := range append(names, "KubePodNotReady", "kubeNodeNotReady") {
		alerts = append(alerts, clusterapi.Alert{Labels: map[string]string{"alertname": name, "severity": "warning"}, State: "firing"})
	}
	slices.Sort(names)
	var got []string
	for _, r := range risk.OfAlerts(alerts) {
		got = append(got, r.Name)
		if !strings.Contains(r.Conditions[0].Message, ", which may slow workload redistribution during rolling node updates. ") {
			t.Error(r.Conditions[0].Message)
		}
	}
	checktest.Same(t, names, got)
}

func TestAlertRisksStale(t *testing.T) {
	source := &failing{firing: firing{{Labels: map[string]string{"alertname": "Down", "severity": "critical"}, State: "firing"}}}
	a := &risk.AlertRisks{Alerts: source}
	for _, err := range []error{nil, errors.New("down")} {
		source.err = err
		risks, got := a.Risks(context.Background(), nil)
		if len(risks) != 1 || got != nil || a.Stale() != err {
			t.Errorf("%v: %v %v %v", err, risks, got, a.Stale())
		}
	}
}

type failing struct {
	firing
	err error
}

func (f *failing) Firing(ctx context.Context) ([]clusterapi.Alert, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.firing, nil
}

func TestAcceptedNote(t *testing.T) {
	const first = "The target release i is exposed to the risks [A,B] which were all explicitly accepted by the cluster administrator."
	if got := risk.AcceptedNote("", "i", []string{"A", "B"}); got != first {
		t.Error(got)
	}
	if got := risk.AcceptedNote("Note", "i", []string{"A"}); got != "Note; It is exposed to the risks [A] which were all explicitly accepted by the cluster administrator." {
		t.Error(got)
	}
	checktest.Equal(t, "Note", risk.AcceptedNote("Note", "i", nil), "value")
}
