package promqlsnapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// metricName is the label that holds a metric's name.
const metricName = "__name__"

// Snapshot holds recorded metrics. The zero value has none. Fill it and set its
// fields before the first query; after that it is safe for concurrent use. It
// must not be copied. ReadText, ReadJSON and queries fail where a duration or a
// size among its fields is negative.
type Snapshot struct {
	// Time is when queries are evaluated; zero means the time of the latest
	// sample.
	Time time.Time
	// Lookback is how old a sample may be to count as present; zero means 5
	// minutes, as in Prometheus.
	Lookback time.Duration
	// Timeout bounds a query; zero means a minute.
	Timeout time.Duration
	// MaxSamples is how many samples a query may touch, and how many steps its
	// subqueries may have; zero means 1 million.
	MaxSamples int
	// AllowMissing evaluates a query although the snapshot has no sample of a
	// metric that it needs, which then is as absent as one that the cluster does
	// not have. By default such a query fails with [ErrNotRecorded]: what was
	// not recorded is not known.
	AllowMissing bool
	// MaxBytes is the largest input of ReadText and ReadJSON; zero means 256 MiB.
	MaxBytes int64
	// MaxSeries and MaxRecorded are how many series and samples they record;
	// zero means 500,000 and 2 million.
	MaxSeries, MaxRecorded int
	// ClusterID, of a hosted control plane, is put into queries, see
	// risk.HostedQuery.
	ClusterID string

	series   []*series
	byHash   map[uint64][]*series
	latest   int64
	recorded int // samples

	mu       sync.Mutex
	unsorted []*series
}

var _ graph.RiskMatcher = (*Snapshot)(nil)

const (
	defaultMaxSamples = 1_000_000
	subqueryStep      = time.Minute // where a subquery does not say
)

// ErrLimit reports that an input or a query passes a limit of a [Snapshot].
var ErrLimit = errors.New("a limit of the snapshot is exceeded")

// ErrNotRecorded reports that a snapshot lacks a metric that a query needs.
var ErrNotRecorded = errors.New("the snapshot does not have the metric")

// Add records a sample. The labels include __name__. A second sample of a
// series at the same time replaces the first. No limit holds.
func (s *Snapshot) Add(set map[string]string, t time.Time, value float64) {
	s.add(labels.FromMap(set), t.UnixMilli(), value)
}

// Match evaluates the rule's query.
func (s *Snapshot) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	return risk.InstantQuery(s.Query).Match(ctx, rule)
}

// Query evaluates an instant query at the snapshot's time.
func (s *Snapshot) Query(ctx context.Context, query string) (risk.InstantResult, error) {
	r, err := s.query(ctx, query)
	if err != nil {
		return risk.InstantResult{}, fmt.Errorf("executing PromQL query: %w", err)
	}
	return r, nil
}

func (s *Snapshot) query(ctx context.Context, query string) (r risk.InstantResult, err error) {
	if err := options.NonNegative(s); err != nil {
		return r, err
	}
	if s.ClusterID != "" {
		query = risk.HostedQuery(query, s.ClusterID)
	}
	if err := s.check(query); err != nil {
		return r, err
	}
	s.sort()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: cmp.Or(s.MaxSamples, defaultMaxSamples), Timeout: cmp.Or(s.Timeout, time.Minute),
		LookbackDelta: cmp.Or(s.Lookback, 5*time.Minute), EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
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

// check looks for what a query must not take, and for what the snapshot lacks.
func (s *Snapshot) check(query string) error {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		return err
	}
	if steps, most := steps(expr), cmp.Or(s.MaxSamples, defaultMaxSamples); steps > float64(most) {
		return fmt.Errorf("%w: the subqueries have %.0f steps, at most %d are allowed", ErrLimit, steps, most)
	}
	if s.AllowMissing {
		return nil
	}
	var missing []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok && !s.knows(v) {
			missing = append(missing, nameOf(v))
		}
		return nil
	})
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("%w: %s", ErrNotRecorded, strings.Join(slices.Compact(missing), ", "))
}

// knows reports whether a selector's metric was recorded: one of its name or
// pattern, or, for a selector without either, a series that it selects.
func (s *Snapshot) knows(v *parser.VectorSelector) bool {
	var named []*labels.Matcher
	for _, m := range v.LabelMatchers {
		if m.Name == metricName {
			named = append(named, m)
		}
	}
	if named == nil {
		named = v.LabelMatchers
	}
	return slices.ContainsFunc(s.series, func(one *series) bool { return one.matches(named) })
}

// nameOf is the name of a selector's metric, else the selector itself.
func nameOf(v *parser.VectorSelector) string {
	for _, m := range v.LabelMatchers {
		if m.Name == metricName && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return v.String()
}

// steps is the largest number of evaluations that the subqueries of a query ask
// for: those of nested ones multiply.
func steps(expr parser.Expr) float64 {
	most := 1.0
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		n := 1.0
		for _, around := range append(path[:len(path):len(path)], node) {
			if q, ok := around.(*parser.SubqueryExpr); ok {
				n *= float64(q.Range)/float64(cmp.Or(q.Step, subqueryStep)) + 1
			}
		}
		most = max(most, n)
		return nil
	})
	return most
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
