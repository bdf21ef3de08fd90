// Package policyengine serves update graphs over HTTP, as the OpenShift Update
// Service does: clusters, oc and mirror tools can use a program with a [Handler] as
// their upstream.
//
// [New] makes a handler. [Handler.Set] gives it a graph, such as a snapshot of package
// graphdata or any other [Grapher], for all requests from then on. With the prefix
// /api/upgrades_info, a handler serves
//
//	/api/upgrades_info/v1/graph      the graph of ?channel= and ?arch=; also /graph
//	/api/upgrades_info/v1/openapi    what is served, in OpenAPI 3.0.3; also /openapi
//	/api/upgrades_info/graph-data    the archive that graphs were made of (Options.GraphData)
//	/api/upgrades_info/signatures/sha256=DIGEST/signature-1
//	                                 signatures of releases (Options.Signatures)
//
// to GET and HEAD, and to scripts of any origin. An unknown channel or architecture
// has an empty graph. Errors are JSON with a kind and a text; docs/paths.md lists
// them. [Handler.Status] serves health, readiness and metrics, for another address.
//
// The first request for a channel and an architecture encodes its graph. The handler
// keeps the bytes and their gzip until it gets another graph or needs the room. An
// ETag of the content and the time when that content first appeared make conditional
// requests cheap. X-Graph-Age is how long ago the graph was last set.
//
// A [Refresher] loads graphs at intervals. After a failure it keeps the last good
// graph, emits [EventFailed], and tries again with growing delays. It is a process of
// package reconcile.
//
// A handler neither reads nor logs the ID of a cluster, which clusters send in
// their query. TLS, rate limits and time-outs are the server's: an [http.Server] should
// have ReadHeaderTimeout (5 seconds), WriteTimeout (30 seconds), IdleTimeout (60
// seconds) and MaxHeaderBytes (16 KiB) set.
//
// Unlike the service of https://github.com/openshift/cincinnati, this package answers
// HEAD, reads lists and weights in Accept, checks the request before the graph, has
// ETag, Last-Modified, Cache-Control and gzip, and serves the last good graph while
// there is no new one. Options.Compat restores how the service reads Accept and the
// address of a signature, and its order of checks.
//
// A [Handler] and a [Refresher] are safe for concurrent use. Other types are plain
// data. docs/limits.md lists the limits.
package policyengine
