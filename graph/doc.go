// Package graph reads the update graph of OpenShift releases and answers what a
// cluster can update to.
//
// An update service (Cincinnati, in OpenShift the Update Service) answers a request
// for a channel and an architecture with a directed graph in JSON:
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
// Nodes are releases, to which edges refer by their index. An edge is a supported
// update. A conditional edge is one unless a risk of it applies to the cluster; the
// first rule of a risk that can be evaluated decides that. A channel is named
// <type>-<major>.<minor> for the minor to go to: stable-4.16 has the releases of 4.16
// and those that can update to it.
//
// Three steps lead to the lists in the status of a ClusterVersion:
//
//  1. A [Source] fetches the graph: [Client] over HTTP, [File] from disk, [Static]
//     from memory. It fails with an [*Error], of which [RetrievedUpdates] makes the
//     condition. [Decode] reads a [Graph] strictly.
//  2. [Graph.Updates] lists the targets of the current release: available ones,
//     conditional ones, and those that were dropped, each with its cause.
//  3. Package graph/risk evaluates the risks. It gives each conditional update its
//     condition Recommended and makes the recommended ones available.
//
// [Rules] is the registry of the rule types that a cluster knows, each with its
// [RiskMatcher]. [NextUpdate] chooses an automatic update; [OfferedChannels] lists
// the channels to choose from. Package graph/path finds ways over several updates.
//
// The rules are those of https://github.com/openshift/cluster-version-operator and
// https://github.com/openshift/cincinnati. Options named Compat restore what the
// operator does if this package is stricter; compat.go lists the differences.
//
// A [Graph], [Client] and [Rules] are safe for concurrent use. Other types are plain
// data. docs/limits.md lists the limits.
package graph
