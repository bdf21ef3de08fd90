// Package promqlsnapshot evaluates PromQL against recorded metrics.
package promqlsnapshot

import (
	_ "github.com/clusterupdate/clusterupdate/graph"
	_ "github.com/prometheus/prometheus/model/textparse"
	_ "github.com/prometheus/prometheus/promql"
)
