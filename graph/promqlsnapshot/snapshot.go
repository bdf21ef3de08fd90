package promqlsnapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/clusterupdate/clusterupdate/graph"
)

// metricName is the label that holds a metric's name.
const metricName = "__name__"

// Snapshot holds recorded metrics. The zero value has none. Fill it and set its
// fields before the first query; after that it is safe for concurrent use.
type Snapshot struct {
	// Time is when queries are evaluated; zero means the time of the latest
	// sample.
	Time time.Time
	// Lookback is how old a sample may be to count as present; zero means 5
	// minutes, as in Prometheus.
	Lookback time.Duration
	// Timeout bounds a query; zero means a minute.
	Timeout time.Duration
	// MaxSamples is how many samples a query may touch; zero means 1 million.
	MaxSamples int
	// RequireMetrics makes a query fail with [ErrNotRecorded] when it names a
	// metric of which the snapshot has no sample.
	RequireMetrics bool
	// ClusterID, of a hosted control plane, is put into queries, see
	// graph.HostedQuery.
	ClusterID string

	series []*series
	byHash map[uint64][]*series
	latest int64
}

var _ graph.RiskMatcher = (*Snapshot)(nil)

// ErrNotRecorded says that a snapshot lacks a metric that a query needs.
var ErrNotRecorded = errors.New("the snapshot does not have the metric")

// Add records a sample. The labels include __name__. A second sample of a
// series at the same time replaces the first.
func (s *Snapshot) Add(set map[string]string, t time.Time, value float64) {
	s.add(labels.FromMap(set), t.UnixMilli(), value)
}

// Match evaluates the rule's query.
func (s *Snapshot) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	return graph.InstantQuery(s.Query).Match(ctx, rule)
}

// Query evaluates an instant query at the snapshot's time.
func (s *Snapshot) Query(ctx context.Context, query string) (graph.InstantResult, error) {
	r, err := s.query(ctx, query)
	if err != nil {
		return graph.InstantResult{}, fmt.Errorf("executing PromQL query: %w", err)
	}
	return r, nil
}

func (s *Snapshot) query(ctx context.Context, query string) (r graph.InstantResult, err error) {
	if s.ClusterID != "" {
		query = graph.HostedQuery(query, s.ClusterID)
	}
	if s.RequireMetrics {
		if err := s.require(query); err != nil {
			return r, err
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: positive(s.MaxSamples, 1_000_000), Timeout: positive(s.Timeout, time.Minute),
		LookbackDelta: positive(s.Lookback, 5*time.Minute), EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	defer func() { err = errors.Join(err, engine.Close()) }()
	at := s.Time
	if at.IsZero() {
		at = time.UnixMilli(s.latest)
	}
	q, err := engine.NewInstantQuery(ctx, storage.QueryableFunc(s.querier), nil, query, at)
	if err != nil {
		return r, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return r, result.Err
	}
	r.Type = string(result.Value.Type())
	if vector, ok := result.Value.(promql.Vector); ok {
		for _, sample := range vector {
			if sample.H != nil {
				return r, errors.New("the result is a histogram")
			}
			r.Values = append(r.Values, sample.F)
		}
	}
	return r, nil
}

func (s *Snapshot) require(query string) error {
	needed, err := Metrics(query)
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range needed {
		if !slices.ContainsFunc(s.series, func(s *series) bool { return s.labels.Get(metricName) == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrNotRecorded, strings.Join(missing, ", "))
	}
	return nil
}

// Metrics names the metrics that a query needs, sorted. Selectors that do not
// say a name, or only a pattern of it, are left out.
func Metrics(query string) ([]string, error) {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			for _, m := range v.LabelMatchers {
				if m.Name == metricName && m.Type == labels.MatchEqual && m.Value != "" {
					names = append(names, m.Value)
				}
			}
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), nil
}

func positive[T int | time.Duration](v, or T) T {
	if v <= 0 {
		return or
	}
	return v
}
