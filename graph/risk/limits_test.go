package risk_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	configv1 "github.com/openshift/api/config/v1"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLimits(t *testing.T) {
	const mib = 1 << 20
	ctx := context.Background()
	answers := func(body string) *risk.Prometheus {
		return &risk.Prometheus{URL: "http://p", NoToken: true, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
		})}
	}
	wantError := func(t *testing.T, err error, text string) {
		t.Helper()
		checktest.ErrorHas(t, text, err)
	}
	vector := `{"status":"success","data":{"resultType":"vector","result":[` + graphtest.List(10_001, `{"value":[1,"1"]}`) + `]}}`
	alerts := `{"status":"success","data":{"alerts":[` + graphtest.List(5_001, `{}`) + `]}}`
	labels := `{"status":"success","data":{"alerts":[{"labels":{` + graphtest.List(101, `"l%d":""`) + `}}]}}`
	long := `{"status":"success","data":"` + strings.Repeat("x", 16<<20) + `"}`
	exposed := graphtest.Fan(t, 300, graphtest.ManyRisks(1, strings.Repeat("m", 2_000)))
	loud := graphtest.Fan(t, 1, graphtest.ManyRisks(1, strings.Repeat("世", 33_000)))
	var named []configv1.ConditionalUpdate
	for i := range 501 {
		named = append(named, graphtest.Update(fmt.Sprint("4.1.", i), graphtest.Risk(fmt.Sprint("R", i), "F")))
	}
	remembered := func(t *testing.T, n int, query func(i int) string) int64 {
		evaluated := int64(0)
		cache := &risk.Cache{MinBetween: 1, Matcher: graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) {
			evaluated++
			return true, nil
		})}
		for i := range n {
			time.Sleep(2 * time.Nanosecond)
			checktest.Good(t, checktest.Err(cache.Match(ctx, graphtest.PromQL(query(i)))))
		}
		time.Sleep(2 * time.Nanosecond)
		cache.Match(ctx, graphtest.PromQL(query(n-1))) // still there
		time.Sleep(2 * time.Nanosecond)
		cache.Match(ctx, graphtest.PromQL(query(0))) // forgotten
		return evaluated
	}

	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of evaluated lists", Default: 1 << 20, Bytes: 40 * mib, Run: func(t *testing.T) int64 {
			u := graphtest.Updates(t, exposed)
			e := risk.Evaluator{Matcher: graphtest.Facts, RiskConditions: true}.Evaluate(ctx, nil, u.Conditional, nil, graphtest.Start)
			if len(e.Conditional) != 300 || len(e.Conditional[0].Conditions[0].Message) > 1024 {
				t.Errorf("%d updates, messages of %d bytes", len(e.Conditional), len(e.Conditional[0].Conditions[0].Message))
			}
			e = risk.Evaluator{Matcher: graphtest.Facts, MaxBytes: 100_000}.Evaluate(ctx, []configv1.Release{u.Conditional[0].Release}, u.Conditional, nil, graphtest.Start)
			if len(e.Conditional) == 0 || len(e.Conditional)+len(e.Dropped) != 300 || e.Conditional[0].Release.Version != "4.1.300" || e.Dropped[0].Cause != graph.ExceedsLimit || e.Available != nil {
				t.Errorf("%d updates, %d dropped, available %v", len(e.Conditional), len(e.Dropped), e.Available)
			}
			graphtest.WantLimit(t, e.Dropped[0].Err, "bytes of updates in a ClusterVersion", 100_000)
			return 0
		}},
		{Limit: "characters of a condition's message", Default: 32_768, Bytes: 4 * mib, Run: func(t *testing.T) int64 {
			e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(ctx, nil, graphtest.Updates(t, loud).Conditional, nil, graphtest.Start)
			message := e.Conditional[0].Conditions[0].Message
			if n := utf8.RuneCountInString(message); n > 32_768 || !strings.HasSuffix(message, "more bytes)") {
				t.Errorf("%d characters", n)
			}
			return 0
		}},
		{Limit: "risks in ClusterVersion's list", Default: 500, Bytes: 2 * mib, Run: func(t *testing.T) int64 {
			if risks := risk.ConditionalUpdateRisks(named); len(risks) != 500 || risks[0].Name != "R0" {
				t.Errorf("%d risks", len(risks))
			}
			return 0
		}},

		{Limit: "bytes of an answer of Prometheus", Default: 16 << 20, Bytes: 40 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(long).Query(ctx, "up")
			wantError(t, err, "more than 16777216 bytes")
			return 0
		}},
		{Limit: "samples of an answer", Default: 10_000, Bytes: 16 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(vector).Query(ctx, "up")
			wantError(t, err, "more than 10000 samples (limit MaxSamples)")
			return 0
		}},
		{Limit: "alerts", Default: 5_000, Bytes: 8 * mib, Run: func(t *testing.T) int64 {
			_, err := answers(alerts).Firing(ctx)
			wantError(t, err, "more than 5000 alerts (limit MaxAlerts)")
			return 0
		}},
		{Limit: "labels of an alert", Default: 100, Bytes: 256 << 10, Run: func(t *testing.T) int64 {
			_, err := answers(labels).Firing(ctx)
			wantError(t, err, "more than 100 labels")
			return 0
		}},
		{Limit: "remembered rules", Default: 2_000, Bytes: 16 * mib, Steps: 2_002, Run: func(t *testing.T) (evaluated int64) {
			synctest.Test(t, func(t *testing.T) { evaluated = remembered(t, 2_001, func(i int) string { return fmt.Sprint("q", i) }) })
			checktest.Equal(t, 2_002, evaluated, "evaluations")
			return evaluated
		}},
		{Limit: "bytes of remembered rules", Default: 8 << 20, Bytes: 200 * mib, Steps: 35, Run: func(t *testing.T) (evaluated int64) {
			text := strings.Repeat("q", 256<<10)
			synctest.Test(t, func(t *testing.T) { evaluated = remembered(t, 34, func(i int) string { return text + fmt.Sprint(i) }) })
			checktest.Equal(t, 35, evaluated, "evaluations")
			return evaluated
		}},
	})
}
