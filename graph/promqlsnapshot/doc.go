// Package promqlsnapshot evaluates PromQL against metrics that were recorded,
// by Prometheus's own engine, so that the risks of updates can be judged from a
// dump without a cluster.
//
// A [Snapshot] is filled from the text format that a /metrics or /federate
// endpoint serves, or from the JSON answers of the HTTP API to instant and range
// queries. It is a graph.RiskMatcher:
//
//	var s promqlsnapshot.Snapshot
//	err := s.ReadText(file, recorded)
//	updates := graph.Evaluator{Matcher: &s}.Evaluate(…)
//
// A metric that was not recorded is as absent as one that the cluster does not
// have. [Metrics] names those that a query needs, and RequireMetrics refuses to
// answer without them.
//
// It is a module of its own, since the engine brings many dependencies.
package promqlsnapshot
