package risk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// An update whose risks the API server would refuse is dropped with the reason,
// and not offered without condition either.
func TestRefusedRisksAreDropped(t *testing.T) {
	risk := func(name, url, message string) string {
		return fmt.Sprintf(`{"name":%q,"url":%q,"message":%q,%s}`, name, url, message, graphtest.Always)
	}
	fine := risk("A", "https://x.io", "m")
	for want, risks := range map[string][]string{
		"no risks":                                  nil,
		"risks[0]: the name is empty":               {risk("", "https://x.io", "m")},
		"risks[1]: the message is empty":            {fine, risk("B", "https://x.io", "")},
		"risks[0]: the url is empty":                {risk("A", "", "m")},
		`risks[0]: the url "x.io" is not a URI`:     {risk("A", "x.io", "m")},
		`risks[0]: the url " /a" is not a URI`:      {risk("A", " /a", "m")},
		`risks[1]: the name "A" comes twice`:        {fine, risk("A", "https://x.io/b", "m")},
		"risks[0]: the name has 257 characters, of": {risk(strings.Repeat("é", 257), "https://x.io", "m")},
	} {
		g := graphtest.Build(t, "4.2.0 4.2.1 4.2.2", "[0,1],[0,2]", graphtest.Conditional("4.2.0>4.2.1", risks...))
		u := checktest.Must(g.Updates(graph.UpdatesQuery{Version: "4.2.0"}))
		if diff := cmp.Diff("4.2.0: 4.2.2 -4.2.1(Superseded) -4.2.1(InvalidRisks)", graphtest.Outline(u)); diff != "" {
			t.Errorf("%s: %s", want, diff)
			continue
		}
		if err := u.Dropped[1].Err; err == nil || !strings.HasPrefix(err.Error(), want) || len(u.Dropped[1].Risks) != len(risks) {
			t.Errorf("%v, want %s", err, want)
		}
		peer, err := g.Updates(graph.UpdatesQuery{Version: "4.2.0", Compat: true})
		checktest.OK(t, err)
		checktest.Equal(t, 1, len(peer.Conditional), "%s: Compat gives %+v", want, peer)
	}

	// What fits stays as it is.
	for _, fits := range []string{risk(strings.Repeat("é", 256), "/a", "\n"), risk("a b", "urn:x:y", strings.Repeat("m", 40_000)), risk("-", "HTTPS://x.io/%41?b#c", "m")} {
		u, err := graphtest.Build(t, "4.2.0 4.2.1", "", graphtest.Conditional("4.2.0>4.2.1", fits)).Updates(graph.UpdatesQuery{Version: "4.2.0"})
		checktest.OK(t, err)
		checktest.Equal(t, 1, len(u.Conditional), "%.60s: %+v", fits, u)
	}
}

// A refused entry counts as an entry all the same: the other one for the target
// does not stand alone, and is not united with it.
func TestRefusedRisksAreDuplicates(t *testing.T) {
	g := graphtest.Build(t, "4.2.0 4.2.1", "", graphtest.Conditional("4.2.0>4.2.1")+","+graphtest.Conditional("4.2.0>4.2.1", graphtest.RiskText("A", graphtest.Always)))
	for _, union := range []bool{false, true} {
		u := checktest.Must(g.Updates(graph.UpdatesQuery{Version: "4.2.0", UnionDuplicates: union}))
		checktest.SameIn(t, fmt.Sprintf("union %v", union), "4.2.0: -4.2.1(DuplicateTarget) -4.2.1(DuplicateTarget)", graphtest.Outline(u))
	}
}

// A name that makes a reason of more than 1,024 characters does not.
func TestLongReason(t *testing.T) {
	for length, want := range map[int]string{1024: strings.Repeat("A", 1024), 1025: "ExposedToRisks"} {
		c := graphtest.Update("4.2.1", graphtest.Risk(strings.Repeat("A", length), "T"))
		e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(context.Background(), nil, []configv1.ConditionalUpdate{c}, nil, graphtest.Start)
		checktest.Equal(t, want, e.Conditional[0].Conditions[0].Reason, "%d characters: …", length)
	}
}

// More risks than an update can hold, which those of the cluster may amount to,
// leave it neither conditional nor available.
func TestTooManyRisksOfTheCluster(t *testing.T) {
	risks := risk.Set{Versions: map[string][]string{}}
	for i := range 201 {
		r := graphtest.Risk(fmt.Sprint("R", i), "F")
		risks.Risks = append(risks.Risks, r)
		risks.Versions[r.Name] = []string{"4.2.1"}
	}
	available, conditional, err := risk.Merge([]configv1.Release{graphtest.Release("4.2.1"), graphtest.Release("4.2.2")}, nil, risks)
	checktest.OK(t, err)
	e := risk.Evaluator{Matcher: graphtest.Facts, RiskConditions: true}.Evaluate(context.Background(), available, conditional, nil, graphtest.Start)
	if len(e.Conditional) != 0 || len(e.Available) != 1 || len(e.Dropped) != 1 || e.Dropped[0].Cause != graph.InvalidRisks {
		t.Errorf("%+v", e)
	}
}

// Alerts are worded by the authors of their rules: what the API refuses of them
// is replaced, and the message says the rest.
func TestOddAlerts(t *testing.T) {
	alert := clusterapi.Alert{Labels: map[string]string{"alertname": "Odd", "severity": "critical"}, Annotations: map[string]string{"runbook_url": "see the wiki"}, State: "on fire"}
	risks := risk.OfAlerts([]clusterapi.Alert{alert})
	if risks[0].URL != "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound" || !strings.HasSuffix(risks[0].Conditions[0].Message, " see the wiki") {
		t.Errorf("%+v", risks[0])
	}
	e := risk.Evaluator{RiskConditions: true}.Evaluate(context.Background(), nil, []configv1.ConditionalUpdate{graphtest.Update("4.2.1", risks...)}, nil, graphtest.Start)
	applies := e.Conditional[0].Risks[0].Conditions[0]
	if applies.Reason != "InvalidReason" || !applies.LastTransitionTime.Time.Equal(graphtest.Start) || applies.Status != "True" {
		t.Errorf("%+v", applies)
	}
}

// Many alerts of one name are one risk whose message says how many it left out.
func TestManyAlertsOfOneName(t *testing.T) {
	var alerts []clusterapi.Alert
	for i := range 5_000 {
		alerts = append(alerts, clusterapi.Alert{
			Labels: map[string]string{"alertname": "A", "severity": "critical"}, State: "firing", ActiveAt: graphtest.Start.Add(-time.Duration(i) * time.Second),
			Annotations: map[string]string{"description": strings.Repeat("d", 1_000)},
		})
	}
	var risks []configv1.ConditionalUpdateRisk
	if spent := graphtest.Allocated(func() { risks = risk.OfAlerts(alerts) }); spent > 64<<20 {
		t.Errorf("%d MiB", spent>>20)
	}
	c := risks[0].Conditions[0]
	if len(risks) != 1 || len(c.Message) > 32_768 || !strings.HasSuffix(c.Message, " more") || !c.LastTransitionTime.Equal(&metav1.Time{Time: graphtest.Start.Add(-4_999 * time.Second)}) {
		t.Errorf("%d bytes, ends %q, since %s", len(c.Message), c.Message[len(c.Message)-20:], c.LastTransitionTime)
	}
}

// A risk of the cluster without message or address still counts, completed.
func TestMergeCompletesRisks(t *testing.T) {
	bare := configv1.ConditionalUpdateRisk{Name: "Bare", MatchingRules: []configv1.ClusterCondition{graphtest.AlwaysRule}}
	long := graphtest.Risk("A"+strings.Repeat("a", 256), "F")
	_, conditional, err := risk.Merge([]configv1.Release{graphtest.Release("4.2.1")}, nil, risk.Set{
		Risks: []configv1.ConditionalUpdateRisk{bare, long, bare}, Versions: map[string][]string{"Bare": {"4.2.1"}, long.Name: {"4.2.1"}},
	})
	if err == nil || !strings.Contains(err.Error(), "more than 256 characters") || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("%v", err)
	}
	if len(conditional) != 1 || len(conditional[0].Risks) != 1 || conditional[0].Risks[0].Message == "" || !strings.HasPrefix(conditional[0].Risks[0].URL, "https://") {
		t.Errorf("%+v", conditional)
	}
}
