// Package graph reads the update graph of OpenShift releases and answers what a
// cluster can update to.
//
// # The graph
//
// An update service (Cincinnati, in OpenShift the Update Service) answers a
// request for a channel and an architecture with a directed graph in JSON,
// schema version 1:
//
//	{
//	  "version": 1,
//	  "nodes": [
//	    {"version": "4.2.0", "payload": "quay.io/…@sha256:…", "metadata": {"url": "https://…"}},
//	    {"version": "4.2.1", "payload": "quay.io/…@sha256:…"}
//	  ],
//	  "edges": [[0, 1]],
//	  "conditionalEdges": [
//	    {"edges": [{"from": "4.2.0", "to": "4.2.2"}],
//	     "risks": [{"name": "DiskFull", "url": "https://…", "message": "…",
//	                "matchingRules": [{"type": "PromQL", "promql": {"promql": "…"}}]}]}
//	  ]
//	}
//
// Nodes are releases; their place in the list means nothing but what edges
// refer to. An edge says that updating is supported. A conditional edge says
// that it is, unless one of its risks applies to the cluster, which the first of
// the risk's rules that can be evaluated decides. The answer is the whole
// channel, so one graph serves every cluster in it.
//
// [Decode] reads a graph strictly: versions are SemVer, keys case-sensitive and
// not repeated, indices within range, everywhere in the graph and not just near
// the cluster's own release. A [Graph] is immutable, indexed once and safe to
// share. [Graph.Validate] reports what is legal and still wrong.
//
// # From a graph to updates
//
// Three steps lead from a service to the lists in ClusterVersion's status:
//
//  1. A [Source] fetches the graph: [Client] over HTTP, [File] from disk,
//     [Static] from memory. Failures are [*Error] with the reason and message of
//     the condition RetrievedUpdates, which [RetrievedUpdates] makes of them.
//  2. [Graph.Updates] lists the targets of the current release: those that are
//     available without condition, those under risks, and those that were
//     dropped, each with its cause. A target under a risk is never available as
//     well; one whose risks the cluster cannot evaluate is not offered at all.
//  3. [Evaluate] asks a [RiskMatcher] which risks apply, gives each conditional
//     update its condition Recommended, and moves those that turn out to be
//     recommended to the available ones.
//
// [NextUpdate] picks from the result for automatic updates.
//
// # Channels
//
// A channel is named <type>-<major>.<minor>, where the minor is the one to go
// to: stable-4.16 holds the releases of 4.16 and those that can update to it. A
// release's metadata name the channels that it is in, and these are the channels
// that a cluster can choose: [OfferedChannels].
//
// # Compatibility
//
// The rules are those of the cluster-version operator
// (github.com/openshift/cluster-version-operator, pkg/cincinnati and pkg/cvo)
// and of the update service (github.com/openshift/cincinnati). Where this
// package is stricter on purpose, an option named Compat restores what the
// operator does, for comparisons.
package graph
