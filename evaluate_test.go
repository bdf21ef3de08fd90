package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// riskGraph is the sample's graph with other rules for its conditional update.
func riskGraph(t testing.TB, rules ...string) *countingSource {
	t.Helper()
	var risks []string
	for i, query := range rules {
		risks = append(risks, fmt.Sprintf(`{"url": "https://docs.example/%d", "name": "Risk%d", "message": "Bad luck %d.",
			"matchingRules": [{"type": "PromQL", "promql": {"promql": %q}}]}`, i, i, i, query))
	}
	text := string(sample.Graph())
	at := strings.Index(text, `"risks": [`)
	if at < 0 {
		t.Fatal("the sample's graph has no risks")
	}
	text = text[:at] + `"risks": [` + strings.Join(risks, ",") + `]}]}`
	g := checktest.Get(graph.Decode(strings.NewReader(text), graph.DecodeOptions{}))(t)
	return &countingSource{Source: fixedSource{g}}
}

type fixedSource struct{ g *graph.Graph }

func (s fixedSource) Fetch(context.Context, graph.Query) (*graph.Graph, error) { return s.g, nil }

// matcher answers queries, and counts them.
type matcher struct {
	answers map[string]any // bool or error
	asked   []string
}

func (m *matcher) Match(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
	m.asked = append(m.asked, rule.PromQL.PromQL)
	if err, ok := m.answers[rule.PromQL.PromQL].(error); ok {
		return false, err
	}
	return m.answers[rule.PromQL.PromQL].(bool), nil
}

// verdicts are the conditional updates with their verdicts and risks.
func verdicts(cv *configv1.ClusterVersion) (out []string) {
	for _, c := range cv.Status.ConditionalUpdates {
		text := c.Release.Version + " none"
		if r := meta.FindStatusCondition(c.Conditions, "Recommended"); r != nil {
			text = fmt.Sprintf("%s %s %s", c.Release.Version, r.Status, r.Reason)
		}
		for _, risk := range c.Risks {
			text += " " + risk.Name
		}
		out = append(out, text)
	}
	return out
}

func (s *sampleTest) wantUpdates(available, conditional []string) {
	s.Helper()
	cv := s.version(s)
	checktest.SameIn(s, "available updates", available, versions(cv.Status.AvailableUpdates))
	checktest.SameIn(s, "conditional updates", conditional, verdicts(cv))
}

// TestUndecidedRisk: what cannot be judged is looked at again, without another
// retrieval, and a query that fails is not repeated all the time.
func TestUndecidedRisk(t *testing.T) {
	var source *countingSource
	m := &matcher{answers: map[string]any{"a": errors.New("no route"), "b": false}}
	prepare := func(o *clusterupdate.Options) {
		source = riskGraph(t, "a", "b")
		o.Graph, o.Risks, o.Interval = source, m, time.Hour
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		fixed := []string{"4.21.1", "4.20.4"}
		r := s.sync()
		s.wantUpdates(fixed, []string{"4.21.0 Unknown EvaluationFailed Risk0 Risk1"})
		message := meta.FindStatusCondition(s.version(t).Status.ConditionalUpdates[0].Conditions, "Recommended").Message
		if !strings.Contains(message, "no route") || !strings.Contains(message, "throttled until") {
			t.Errorf("message: %s", message)
		}
		if r.After > risk.RecheckAfter {
			t.Errorf("a query waits for its turn: look again after %v", r.After)
		}
		time.Sleep(1500 * time.Millisecond)
		s.sync()
		checktest.SameIn(t, "queries", []string{"a", "b"}, m.asked)
		for range 20 {
			time.Sleep(time.Second)
			s.sync()
		}
		if len(m.asked) != 2 {
			t.Errorf("a failed query is repeated within its back-off: %v", m.asked)
		}
		m.answers["a"] = false
		time.Sleep(time.Minute)
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.21.0", "4.20.4"}, []string{"4.21.0 True NotExposedToRisks Risk0 Risk1"})
		if len(source.queries) != 1 {
			t.Errorf("retrieved %d times", len(source.queries))
		}
	})
}

// TestUndecidedWithoutMatcher: where nobody can judge, nobody is asked again.
func TestUndecidedWithoutMatcher(t *testing.T) {
	prepare := func(o *clusterupdate.Options) { o.Graph, o.Interval = riskGraph(t, "a"), time.Hour }
	withSample(t, prepare, func(s *sampleTest) {
		if r := s.syncs(3); r.After < time.Minute {
			s.Errorf("look again after %v", r.After)
		}
		s.wantUpdates([]string{"4.21.1", "4.20.4"}, []string{"4.21.0 Unknown EvaluationFailed Risk0"})
	})
}

// TestVerdictTimes: a verdict keeps its time over a new process and new
// retrievals, for as long as it stays what it is.
func TestVerdictTimes(t *testing.T) {
	m := &matcher{answers: map[string]any{"a": true}}
	prepare := func(o *clusterupdate.Options) { o.Graph, o.Risks = riskGraph(t, "a"), m }
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		since := func() time.Time {
			t.Helper()
			return meta.FindStatusCondition(s.version(t).Status.ConditionalUpdates[0].Conditions, "Recommended").LastTransitionTime.Time
		}
		s.sync()
		first := since()
		time.Sleep(time.Hour)
		s.sync()
		s.restart(prepare)
		s.sync()
		if !since().Equal(first) {
			t.Errorf("the verdict is as of %v, and was of %v", since(), first)
		}
		m.answers["a"] = false
		time.Sleep(2 * time.Hour)
		s.sync()
		if since().Sub(first) < time.Hour {
			t.Errorf("another verdict is as of %v", since())
		}
	})
}

// TestAcceptedRisks: accepting a risk makes its update available at once, and
// the history tells.
func TestAcceptedRisks(t *testing.T) {
	var source *countingSource
	prepare := func(o *clusterupdate.Options) {
		source = &countingSource{Source: o.Graph}
		o.Graph, o.Interval = source, time.Hour
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		s.featureGate("", "ClusterUpdateAcceptRisks")
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.20.4"}, []string{"4.21.0 False RouterReload RouterReload"})
		cv := s.version(t)
		c := cv.Status.ConditionalUpdates[0]
		checktest.SameIn(t, "risk names", []string{"RouterReload"}, c.RiskNames)
		if a := meta.FindStatusCondition(c.Risks[0].Conditions, "Applies"); a == nil || a.Reason != "Match" {
			t.Errorf("the risk does not say that it applies: %+v", c.Risks[0])
		}
		if got := cv.Status.ConditionalUpdateRisks; len(got) != 1 || got[0].Name != "RouterReload" {
			t.Errorf("risks of all updates: %+v", got)
		}

		s.request(t, configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "RouterReload"}}})
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.21.0", "4.20.4"}, []string{"4.21.0 True AllExposedRisksAccepted RouterReload"})
		if len(source.queries) != 1 {
			t.Errorf("retrieved %d times", len(source.queries))
		}
		s.request(t, configv1.Update{})
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.20.4"}, []string{"4.21.0 False RouterReload RouterReload"})
	})
}

// TestAcceptedRiskInRequest: a version is requested together with the
// acceptance of what stands against it.
func TestAcceptedRiskInRequest(t *testing.T) {
	m := &matcher{answers: map[string]any{"a": true}}
	prepare := func(o *clusterupdate.Options) {
		g, _ := riskGraph(t, "a").Fetch(context.Background(), graph.Query{})
		// The one conditional update is that to the release that there is.
		text := strings.ReplaceAll(string(g.AppendJSON(nil)), `"to":"4.21.0"`, `"to":"4.21.1"`)
		g = checktest.Get(graph.Decode(strings.NewReader(text), graph.DecodeOptions{}))(t)
		o.Graph, o.Risks, o.Interval = &countingSource{Source: fixedSource{g}}, m, time.Hour
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		s.featureGate("", "ClusterUpdateAcceptRisks")
		s.sync()
		s.wantUpdates([]string{"4.20.4"}, []string{"4.21.1 False Risk0 Risk0"})
		s.request(t, configv1.Update{Version: sample.ToVersion, AcceptRisks: []configv1.AcceptRisk{{Name: "Risk0"}}})
		s.complete(10)
		for _, e := range s.events {
			if e.Type == clusterupdate.EventCompleted && dataOf(e).Release.Version == sample.ToVersion {
				break // it does not have the gate
			}
			if e.Type == clusterupdate.EventRequestIgnored {
				t.Errorf("ignored for a while: %s", e.Message)
			}
		}
		s.wantHistory(completedHistory)
		want := "The target release " + sample.ToImage + " is exposed to the risks [Risk0] which were all explicitly accepted by the cluster administrator."
		if got := s.version(t).Status.History[0].AcceptedRisks; got != want {
			t.Errorf("accepted risks: %q\nwant %q", got, want)
		}
	})
}

// alerts are those that fire.
type alerts struct {
	firing []clusterapi.Alert
	err    error
}

func (a *alerts) Firing(context.Context) ([]clusterapi.Alert, error) { return a.firing, a.err }

// TestClusterRisks: what stands against updates in the cluster itself becomes a
// risk of the updates that it bears on, and goes with its cause.
func TestClusterRisks(t *testing.T) {
	var source *countingSource
	fire := &alerts{}
	prepare := func(o *clusterupdate.Options) {
		source = &countingSource{Source: o.Graph}
		o.Graph, o.Alerts, o.Interval = source, fire, time.Hour
	}
	withSample(t, prepare, func(s *sampleTest) {
		t := s.T
		s.featureGate("", "ClusterUpdateAcceptRisks")
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.20.4"}, []string{"4.21.0 False RouterReload RouterReload"})

		s.block()
		s.sync()
		s.wantUpdates([]string{"4.20.4"}, []string{
			"4.21.1 False ExposedToRisks ClusterOperatorUpgradeable-etcd",
			"4.21.0 False MultipleReasons ClusterOperatorUpgradeable-etcd RouterReload",
		})
		if got := len(s.version(t).Status.ConditionalUpdateRisks); got != 2 {
			t.Errorf("%d risks of all updates", got)
		}
		if len(source.queries) != 1 {
			t.Errorf("retrieved %d times", len(source.queries))
		}

		// Alerts bear on every update, and are read with the next judgement.
		fire.firing = []clusterapi.Alert{{State: "firing", Labels: map[string]string{"alertname": "NodeDown", "severity": "critical"}}}
		time.Sleep(61 * time.Minute)
		s.sync()
		s.wantUpdates(nil, []string{
			"4.21.1 False MultipleReasons ClusterOperatorUpgradeable-etcd NodeDown",
			"4.21.0 False MultipleReasons ClusterOperatorUpgradeable-etcd NodeDown RouterReload",
			"4.20.4 False NodeDown NodeDown",
		})

		// Alerts that cannot be read are what they were; those that are gone
		// stand against nothing.
		fire.err = errors.New("no route")
		time.Sleep(61 * time.Minute)
		s.sync()
		if got := s.version(t).Status.AvailableUpdates; got != nil {
			t.Errorf("available while nothing is known of the alerts: %v", versions(got))
		}
		fire.firing, fire.err = nil, nil
		time.Sleep(61 * time.Minute)
		s.sync()
		checktest.SameIn(t, "available updates", []string{"4.20.4"}, versions(s.version(t).Status.AvailableUpdates))
	})
}

// TestClusterRisksWithoutTheGate: the API has no place for them.
func TestClusterRisksWithoutTheGate(t *testing.T) {
	fire := &alerts{firing: []clusterapi.Alert{{State: "firing", Labels: map[string]string{"alertname": "NodeDown", "severity": "critical"}}}}
	withSample(t, func(o *clusterupdate.Options) { o.Alerts = fire }, func(s *sampleTest) {
		s.block()
		s.sync()
		s.wantUpdates([]string{"4.21.1", "4.20.4"}, []string{"4.21.0 False RouterReload RouterReload"})
		cv := s.version(s)
		if c := cv.Status.ConditionalUpdates[0]; c.RiskNames != nil || c.Risks[0].Conditions != nil || cv.Status.ConditionalUpdateRisks != nil {
			s.Errorf("fields of a gate that is off: %+v", cv.Status)
		}
	})
}
