// Package clusterapi has the interfaces of a cluster that this module needs, and typed
// access on top of them.
//
// # The interfaces
//
// A cluster is whatever implements [ClusterAPI]: a real API server through
// client-go, the cluster in memory of clusterapi/memory, or a recording.
// It is composed of [Reader], [Writer] and [Evictor], and each function asks
// for the smallest of them that it uses. [Watcher] is optional. The author of a
// backend proves it right with clusterapi/clusterapitest.
//
// The verbs are those of the Kubernetes API
// (https://kubernetes.io/docs/reference/using-api/api-concepts/), narrowed to
// what updating a cluster needs: an update without a resourceVersion is an
// error, Apply is always a forced server-side apply
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/) in the
// name of a field manager, and there is no patch: [Modify] takes its place.
//
// # Typed objects
//
// Types are those of k8s.io/api and github.com/openshift/api; for kinds that
// neither has, a type says its kind by [Kinder]. [Get], [List] and [Create]
// convert, and are strict about types: a string where a number belongs is an
// error that names object and field.
//
// The stored object stays the truth. Clusters are newer or older than the
// types that a program was built with, so a field that the types do not have
// must survive every read and write. That is what [Modify] is for: it lets a
// function change a typed copy, and lays only the difference onto the object.
//
// # Not there, or not known
//
// Decisions hang on the reason for which an object is missing. An object that
// does not exist is an error that apierrors.IsNotFound recognises; a kind that
// the cluster does not serve is one that meta.IsNoMatchError recognises; and a
// kind that a recording does not contain is [ErrNotCollected].
//
// A [ClusterAPI] is safe for concurrent use. Options, events and errors are
// plain data: safe to read from many goroutines at a time, not to change while
// others read.
//
// # The way out
//
// [NewTransport] sends the requests of an HTTP client as programs of the cluster
// do: by the proxy of its Proxy object, trusting the authorities of its trusted
// bundle. It fits the Transport field of the clients for update graphs,
// signatures, metrics and upgrade policies. [ReadEgress] returns the same as
// values.
package clusterapi
