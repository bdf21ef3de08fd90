package risk

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// InstantResult is what a PromQL query at one point in time returns.
type InstantResult struct {
	// Type is vector, scalar, matrix or string.
	Type string
	// Values are those of a vector's samples; labels and times do not matter.
	Values []float64
}

// InstantQuery evaluates PromQL at the present. As a [graph.RiskMatcher] it judges
// rules of type PromQL: a vector of one sample that is 1 matches, 0 does not,
// anything else is an error. It is as safe for concurrent use as the function.
type InstantQuery func(ctx context.Context, query string) (InstantResult, error)

// Match evaluates the rule's query. Errors are those of f, or say that the rule
// has no query or that the result is not a vector of one sample, 0 or 1.
func (f InstantQuery) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	if err := schema.CheckPromQL(rule); err != nil {
		return false, err
	}
	r, err := f(ctx, rule.PromQL.PromQL)
	switch {
	case err != nil:
		return false, err
	case r.Type != "vector":
		return false, fmt.Errorf("invalid PromQL result type is %s, not vector", bounded.Text(r.Type, bounded.MaxQuoted))
	case len(r.Values) != 1:
		return false, fmt.Errorf("invalid PromQL result length must be one, but is %d", len(r.Values))
	case r.Values[0] == 0:
		return false, nil
	case r.Values[0] == 1:
		return true, nil
	}
	return false, fmt.Errorf("invalid PromQL result (must be 0 or 1): %v", r.Values[0])
}

// HostedQuery returns a query for a hosted control plane, whose metrics name
// their cluster: _id="" becomes the cluster's.
func HostedQuery(query, clusterID string) string {
	return strings.ReplaceAll(query, `_id=""`, fmt.Sprintf("_id=%q", clusterID))
}
