// Package risk evaluates the risks of conditional updates.
//
// An update under risks is recommended to a cluster unless one of the risks applies
// to it. Three steps lead from the lists of [graph.Graph.Updates] to that:
//
//  1. [Aggregate] collects the risks that the cluster itself is to updates, because
//     of an alert that fires ([AlertRisks]) or of its condition Upgradeable, from
//     each [RiskSource]. [Merge] puts them onto the lists.
//  2. [Evaluate], or an [Evaluator] with options, asks a [graph.RiskMatcher] about
//     each different risk once, those of the highest versions first. It gives
//     each conditional update its condition Recommended, with the reasons and
//     messages that users know, and moves those that are recommended to the
//     available ones.
//  3. Updates that a ClusterVersion cannot hold are left out, each with its cause.
//
// [Prometheus] judges by the metrics of a live cluster; a [Cache] limits its
// load, as the cluster-version operator's does: one query at a time, and none
// repeated too soon. Both evaluate an [InstantQuery].
//
// A [Retrieval] is for a program that does so again and again: its Plan decides when to
// fetch, when to evaluate the risks again and whether a failure clears the last lists.
// [Retrieval.Alerts] are the operator's alerts; its metrics are those of package
// clusterversion, made from the ClusterVersion that the program writes.
//
// A [Cache], [Prometheus] and [AlertRisks] are safe for concurrent use. Types without
// hidden fields are plain data, safe for concurrent use as long as nobody changes them.
// docs/limits.md lists the limits.
//
// The rules are those of the cluster-version operator
// (github.com/openshift/cluster-version-operator, pkg/cvo and pkg/clusterconditions).
package risk
