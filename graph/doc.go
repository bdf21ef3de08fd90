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
// Nodes are releases; their place in the list means nothing but what edges refer
// to. An edge reports that updating is supported. A conditional edge reports that
// it is, unless one of its risks applies to the cluster, which the first of the
// risk's rules that can be evaluated decides. The answer is the whole channel, so
// one graph serves every cluster in it.
//
// [Decode] reads a graph strictly: versions are SemVer, keys case-sensitive and
// not repeated, indices within range, everywhere in the graph and not just near
// the cluster's own release. A [Graph] is immutable, indexed by the first
// question and safe to share. [Graph.AppendJSON] writes it in its canonical
// form. [Graph.Validate] reports what is legal and still wrong.
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
//  3. Package graph/risk judges the risks: it gives each conditional update its
//     condition Recommended, and moves those that turn out to be recommended to
//     the available ones.
//
// [NextUpdate] picks from the result for automatic updates. Package graph/path
// finds ways over several updates.
//
// A [RiskMatcher] reports whether a rule of a risk matches: [Facts] knows the
// answers beforehand, package graph/risk asks Prometheus, and the module
// graph/risk/promqlsnapshot reads recorded metrics. [Rules] is a registry of the
// types of rules that a cluster knows.
//
// # Channels
//
// A channel is named <type>-<major>.<minor>, where the minor is the one to go
// to: stable-4.16 holds the releases of 4.16 and those that can update to it. A
// release's metadata name the channels that it is in, and these are the channels
// that a cluster can choose: [OfferedChannels].
//
// # Limits
//
// A graph comes from outside. A short text could stand for much memory, so every
// list and text in it has a limit, and so has all that decoding makes of it.
//
// The error of a graph that passes a limit is a [*LimitError], which names the
// limit. [Client] documents its time-outs and how many redirects it follows.
//
// docs/limits.md lists the limits of this package.
//
// # Compatibility
//
// The rules are those of the cluster-version operator
// (github.com/openshift/cluster-version-operator, pkg/cincinnati and pkg/cvo) and
// of the update service (github.com/openshift/cincinnati). Where this package is
// stricter on purpose, an option named Compat restores what the operator does, for
// comparisons: in [DecodeOptions], in [UpdatesQuery], and in graph/risk's
// Evaluator. The file compat.go of each package lists the points.
//
// This package has more names than most: the wire format, the errors whose reasons
// users know, and the small decisions about channels that programs make around a
// graph.
//
// A [Graph], [Client] and [Rules] are safe for concurrent use. Types without
// hidden fields are plain data: safe to read from many goroutines at a time, not
// to change while others read.
package graph
