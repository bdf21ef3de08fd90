package promqlsnapshot_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk/promqlsnapshot"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var recorded = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const metrics = `# HELP cluster_infrastructure_provider The provider.
# TYPE cluster_infrastructure_provider gauge
cluster_infrastructure_provider{type="VSphere"} 1
cluster_operator_conditions{_id="",name="dns",condition="Degraded"} 0
cluster_operator_conditions{_id="c-1",name="dns",condition="Degraded"} 1
nodes{role="worker"} 3
old_metric 1 1000
`

const notRecorded = "executing PromQL query: the snapshot does not have the metric: "

func rule(query string) configv1.ClusterCondition {
	return configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: query}}
}

func snapshot(t testing.TB) *promqlsnapshot.Snapshot {
	t.Helper()
	s := &promqlsnapshot.Snapshot{}
	checktest.OK(t, s.ReadText(strings.NewReader(metrics), recorded))
	return s
}

func TestMatch(t *testing.T) {
	for query, want := range map[string]string{
		`cluster_infrastructure_provider{type=~"VSphere|None"}`:                                        "true",
		`cluster_infrastructure_provider{type=~"VSphere|None"} or 0 * cluster_infrastructure_provider`: "true",
		`cluster_infrastructure_provider{type="AWS"} or 0 * cluster_infrastructure_provider`:           "false",
		`group(nodes) or 0 * group(up)`:                                                                notRecorded + "up",
		`group(b) or 0 * group(a) or group(b)`:                                                         notRecorded + "a, b",
		`count({__name__=~"nod.*"})`:                                                                   "true",
		`count({__name__=~"pod.*"}) or vector(0)`:                                                      notRecorded + `{__name__=~"pod.*"}`,
		`count({role="worker"})`:                                                                       "true",
		`count({role="infra"}) or vector(0)`:                                                           notRecorded + `{role="infra"}`,
		`nodes{role="infra"} or vector(0)`:                                                             "false",
		`absent(up)`:                                                                                   notRecorded + "up",
		`max(nodes)`:                                                                                   "invalid PromQL result (must be 0 or 1): 3",
		`up`:                                                                                           notRecorded + "up",
		`old_metric`:                                                                                   "invalid PromQL result length must be one, but is 0",
		`cluster_operator_conditions`:                                                                  "invalid PromQL result length must be one, but is 2",
		`cluster_operator_conditions{_id=""}`:                                                          "false",
		`1`:                                                                                            "invalid PromQL result type is scalar, not vector",
		`nodes[5m]`:                                                                                    "invalid PromQL result type is matrix, not vector",
		`vector(1)`:                                                                                    "true",
		`sum(nodes`:                                                                                    "executing PromQL query: ",
		`nodes > bool 2`:                                                                               "true",
	} {
		matched, err := snapshot(t).Match(context.Background(), rule(query))
		got := fmt.Sprint(matched)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.HasSuffix(want, ": ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	s := snapshot(t)
	s.ClusterID = "c-1"
	if matched, err := s.Match(context.Background(), rule(`cluster_operator_conditions{_id=""}`)); !matched || err != nil {
		t.Error(matched, err)
	}
	if _, err := s.Match(context.Background(), rule(`group(up) or 0 * group(nodes)`)); !errors.Is(err, promqlsnapshot.ErrNotRecorded) || !strings.HasSuffix(err.Error(), ": up") {
		t.Error(err)
	}
	s.AllowMissing = true
	if matched, err := s.Match(context.Background(), rule(`group(up) or 0 * group(nodes)`)); matched || err != nil {
		t.Error(matched, err)
	}
	s.Time = time.UnixMilli(2000)
	if matched, err := s.Match(context.Background(), rule(`old_metric`)); !matched || err != nil {
		t.Error(matched, err)
	}
	names, err := promqlsnapshot.Metrics(`max(b{x="y"}) or rate(a[5m]) or {__name__=~"c.*"} or b`)
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Error(names, err)
	}
}

func TestNegativeOptions(t *testing.T) {
	for field, s := range map[string]*promqlsnapshot.Snapshot{
		"Lookback is negative: -1s":   {Lookback: -time.Second},
		"Timeout is negative: -1s":    {Timeout: -time.Second},
		"MaxSamples is negative: -1":  {MaxSamples: -1},
		"MaxBytes is negative: -1":    {MaxBytes: -1},
		"MaxSeries is negative: -1":   {MaxSeries: -1},
		"MaxRecorded is negative: -1": {MaxRecorded: -1},
	} {
		_, query := s.Query(t.Context(), "vector(1)")
		for _, err := range []error{query, s.ReadText(strings.NewReader("a 1\n"), recorded), s.ReadJSON(strings.NewReader(`{}`))} {
			checktest.ErrorHas(t, field, err)
		}
	}
}

func TestReadJSON(t *testing.T) {
	s := &promqlsnapshot.Snapshot{}
	for _, text := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"restarts"},"values":[[1000,"1"],[1060,"2"],[1120,"4"]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up"},"value":[1120.5,"1"]}]}}`,
	} {
		checktest.OK(t, s.ReadJSON(strings.NewReader(text)))
	}
	if matched, err := s.Match(context.Background(), rule(`(max_over_time(restarts[5m]) == bool 4) * on() up`)); !matched || err != nil {
		t.Error(matched, err)
	}
	for text, want := range map[string]string{
		`[]`:                             "cannot unmarshal",
		`{"status":"error","error":"x"}`: `the answer's status is "error": x`,
		`{"status":"success","data":{"resultType":"string","result":[]}}`:                              `data.resultType is "string", not vector or matrix`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}`: `data.result[0], sample 0: `,
	} {
		if err := s.ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := s.ReadText(strings.NewReader("nodes 1\nnodes{ 2\n"), recorded); err == nil || !strings.HasPrefix(err.Error(), "sample 2: ") {
		t.Error(err)
	}
}

// Samples may come in any order; of several for one time the last counts.
func TestOrderOfSamples(t *testing.T) {
	s := &promqlsnapshot.Snapshot{}
	var values []string
	for i := range 50_000 {
		values = append(values, fmt.Sprintf(`[%d,"%d"]`, 60_000-i, i))
	}
	values = append(values, `[60000,"7"]`)
	text := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"values":[` + strings.Join(values, ",") + `]}]}}`
	checktest.OK(t, s.ReadJSON(strings.NewReader(text)))
	for _, query := range []string{`a == bool 7`, `count_over_time(a[11h]) == bool 39600`, `max_over_time(a[11h]) == bool 39599`} {
		if matched, err := s.Match(context.Background(), rule(query)); !matched || err != nil {
			t.Error(query, matched, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	checktest.Fails(t, checktest.Err(snapshot(t).Match(ctx, rule("nodes"))), "no error")
}

func FuzzReadText(f *testing.F) {
	f.Add(metrics)
	f.Add("a{b=\"c\\\"\"} NaN 12\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := promqlsnapshot.Snapshot{AllowMissing: true}
		if err := s.ReadText(strings.NewReader(text), recorded); err != nil {
			return
		}
		checktest.Good(t, checktest.Err(s.Query(context.Background(), `count({__name__=~".+"})`)))
	})
}

// Judging the risk of an update from metrics that were recorded.
func Example() {
	var s promqlsnapshot.Snapshot
	if err := s.ReadText(strings.NewReader(`cluster_infrastructure_provider{type="VSphere"} 1`+"\n"), recorded); err != nil {
		fmt.Println(err)
		return
	}
	var matcher graph.RiskMatcher = &s
	fmt.Println(matcher.Match(context.Background(), rule(`cluster_infrastructure_provider{type="VSphere"}`)))
	// Output:
	// true <nil>
}
