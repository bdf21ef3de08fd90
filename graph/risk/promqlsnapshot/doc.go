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
//	updates := risk.Evaluator{Matcher: &s}.Evaluate(…)
//
// A query that needs a metric of which nothing was recorded fails with
// [ErrNotRecorded], since what was not recorded is not known; [Metrics] names
// those that a query needs. AllowMissing takes such a metric for one that the
// cluster does not have.
//
// # Limits
//
// Passing one is an error, of an input or a query's steps [ErrLimit].
//
// It is a module of its own, since the engine brings many dependencies.
//
// docs/limits.md lists the limits of this package.
package promqlsnapshot
