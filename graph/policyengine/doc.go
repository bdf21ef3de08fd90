// Package policyengine serves update graphs over HTTP, as the OpenShift Update
// Service does: clusters, oc and mirror tools can use a program with a [Handler] as
// their upstream.
//
// # Serving
//
// [New] makes a handler, [Handler.Set] gives it a graph: a snapshot of package
// graphdata, or any other [Grapher]. Set takes effect at once and for all requests
// that come after it. With the prefix /api/upgrades_info, a handler serves
//
//	/api/upgrades_info/v1/graph      the graph of ?channel= and ?arch=; also /graph
//	/api/upgrades_info/v1/openapi    what is served, in OpenAPI 3.0.3; also /openapi
//	/api/upgrades_info/graph-data    the archive that graphs were made of (Options.GraphData)
//	/api/upgrades_info/signatures/sha256=DIGEST/signature-1
//	                                 signatures of releases (Options.Signatures)
//
// to GET and HEAD, and to scripts of any origin. A channel that there is not, or an
// architecture, is an empty graph. Errors are JSON with a kind and a text:
//
//	status  kind                     when
//	414     invalid_params           the request is longer than its limits
//	406     invalid_content_type     Accept names neither of the two types that there are
//	400     missing_params           a parameter of Options.Mandatory, or channel, is not there
//	400     invalid_params           channel or arch are not what they can be
//	503     failed_upstream_fetch    there is no graph yet, or none younger than Options.MaxStale
//	500     failed_plugin_execution  a Grapher panicked
//	500     file_open_err            an archive or a signature cannot be read
//	404     does_not_exist           there is no such signature
//
// With Options.Compat 503 is 500. The first that holds is the answer, so a client
// learns what is wrong with its request also while there is no graph.
// [Handler.Status] is for those who run the service: health, readiness and metrics,
// to be served on another address.
//
// # Answers
//
// The first request for a channel and an architecture encodes its graph, others
// wait for it; then the bytes, and their gzip, are kept until another graph is set,
// or while there is room for them. Only what the graph lists is kept, whatever
// clients ask for.
//
// An answer has an ETag made of its content, which stays the same as long as the
// content does, and its Last-Modified is when this content first appeared; both make
// conditional requests cheap. X-Graph-Age is how long ago the graph was last set.
//
// # Reloading
//
// A [Refresher] loads graphs at intervals. When that fails, the last good graph is
// served on, the load is tried again with growing delays, and an event reports it. It is a process of package reconcile, so a program may drive it together with
// others.
//
// # What it does not do
//
// The ID of a cluster that is part of a query is neither looked at nor logged, and
// no metric has it. TLS, limits of rates and time-outs are the server's: an
// [http.Server] should have ReadHeaderTimeout (5 seconds), WriteTimeout (30 seconds),
// IdleTimeout (60 seconds) and MaxHeaderBytes (16 KiB) set.
//
// # The existing service
//
// Other than the service of github.com/openshift/cincinnati, this package answers
// HEAD; reads lists and weights in Accept; looks at the request before the graph;
// has ETag, Last-Modified, Cache-Control and gzip; and serves the last good graph
// while no new one is available. Options.Compat brings back the reading of Accept,
// the order of checks, and what is wrong with an address of a signature. A query can
// always be read: anything that is not an escape stands for itself, as there.
//
// docs/limits.md lists the limits of this package.
//
// A [Handler] and a [Refresher] are safe for concurrent use. The other types are
// plain data.
package policyengine
