// Package runtimeclient is a [clusterapi.ClusterAPI] over the client of
// sigs.k8s.io/controller-runtime: for programs that have one already, such as
// operators. It is a separate module, so that others need not have
// controller-runtime.
//
//	c, err := client.NewWithWatch(config, client.Options{})
//	...
//	api, err := runtimeclient.New(c, runtimeclient.Options{})
//	...
//	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version"))
//
// # Which client
//
// The client must read from the API server. One that reads from a cache, as a
// manager's does if it is set to cache unstructured objects, does not see at once
// what it has written: updates would be decided from old objects. Use client.New or
// client.NewWithWatch, or the manager's GetClient with
// client.CacheOptions.Unstructured false, which is the default.
//
// With a client.WithWatch the result is a [clusterapi.Watcher], too, and waits
// are driven by events.
//
// # How verbs become calls
//
// As in package kubernetes, whose documentation says more:
// Apply is a forced server-side apply, UpdateStatus a patch of the status
// alone that is conditional on the resourceVersion, Evict a creation of the
// subresource "eviction", and an answer that is not what was asked for is an
// error in whose chain ErrAnswer of package clusterapi/kubernetes is.
//
// Some things are the client's, and differ. Sizes of answers are bounded only
// by what the client bounds. Kinds are found by the client's RESTMapper: after
// a definition has been replaced by one of another plural or scope, a new
// client is needed. The mapper knows no contexts; a call whose context ends
// returns, and the mapper's request ends by its own timeout. Where a server
// refuses an eviction and names a time to wait, as it does for a budget whose
// status is behind, the client waits and tries again by itself, up to ten
// times, within the call's context, unless its transport is wrapped by
// [RefuseAtOnce].
//
// docs/limits.md lists the limits of this package.
package runtimeclient
