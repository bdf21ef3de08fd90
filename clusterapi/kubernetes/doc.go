// Package kubernetes is a [clusterapi.ClusterAPI] over client-go: the way to a
// real cluster. It is a module of its own, so that programs that do without
// client-go need not have it.
//
//	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
//	...
//	api, err := kubernetes.New(config, kubernetes.Options{})
//	...
//	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version"))
//
// # How verbs become requests
//
// Apply is a server-side apply with force
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/), by the
// field manager that the caller names; those in use are the Manager constants
// of package clusterapi. Create and Update own fields as
// [clusterapi.ManagerDefault] unless told otherwise. Update and UpdateStatus
// without a resourceVersion are refused before they are sent, since many kinds'
// servers would accept them. Evict uses the eviction subresource of policy/v1
// (https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/).
//
// List gets pages, all of the same state of the cluster. Watch begins where
// such a list ends. It goes on where it was when the server ends it, as servers
// do every few minutes; after the server has forgotten that place (410 Gone) it
// lists again and yields what has changed.
//
// A fault of the network or of the server interrupts a watch that has been
// Synced, but does not end it. It does end every other verb, and the caller
// decides, except that a request that the server refuses together with a time
// to wait (Retry-After) is sent again after it, up to ten times. Evictions are
// the exception: a refusal is the answer there.
//
// # Kinds
//
// Objects are named by kind, and requests by resource. The server is asked for
// the resources of a group and version when a kind of it is first needed, and
// again for each kind that it did not have then, and when a request shows that
// it has changed: so the resources of a CustomResourceDefinition can be applied
// as soon as they are served, and one API service that is down hides no others.
//
// # Load
//
// There is no rate limit on the client's side. API servers share out their
// capacity by priority and fairness
// (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/),
// and tell clients to wait where they must.
package kubernetes
