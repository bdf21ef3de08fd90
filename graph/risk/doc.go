// Package risk judges the risks of conditional updates.
//
// An update under risks is recommended to a cluster unless one of the risks
// applies to it. What [graph.Graph.Updates] lists is judged in three steps:
//
//  1. Where the cluster itself is a risk to updates, because of an alert that
//     fires ([AlertRisks]) or what stands behind its condition Upgradeable, the
//     risks of each [RiskSource] are collected by [Aggregate] and put onto the lists
//     by [Merge].
//  2. [Evaluate], or an [Evaluator] with options, asks a [graph.RiskMatcher] about
//     each different risk once, those of the highest versions first. It gives
//     each conditional update its condition Recommended, with the reasons and
//     messages that users know, and moves those that are recommended to the
//     available ones.
//  3. What a ClusterVersion cannot hold is left out, with its cause.
//
// [Prometheus] judges by the metrics of a live cluster; a [Cache] limits its
// load, as the cluster-version operator's does: one query at a time, and none
// repeated too soon. Both evaluate an [InstantQuery].
//
// # A loop
//
// A program that keeps a cluster informed has a [Retrieval]: its Plan says when
// to fetch, when to judge the risks again and whether a failure clears what is
// known. [Retrieval.Alerts] are the operator's alerts; its metrics are those of package
// clusterversion, made from the ClusterVersion that the program writes.
//
// A [Cache], [Prometheus] and [AlertRisks] are safe for concurrent use. Types
// without hidden fields are plain data: safe to read from many goroutines at a
// time, not to change while others read.
//
// docs/limits.md lists the limits of this package.
//
// Metrics and alerts come from outside, as graphs do.
//
// [Prometheus] documents its time-outs.
//
// # Source
//
// The rules are those of the cluster-version operator
// (github.com/openshift/cluster-version-operator, pkg/cvo and pkg/clusterconditions).
package risk
