// Package kubernetes is a [clusterapi.ClusterAPI] over client-go: the way to a real
// cluster. It is a separate module, so that programs that do without client-go need
// not have it. [New] makes a [Cluster] of a client's configuration.
//
// # How verbs become requests
//
// Apply is a server-side apply with force
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/). Update and
// UpdateStatus without a resourceVersion are refused before they are sent, since the
// servers of many kinds would accept them. UpdateStatus is a JSON patch of the
// subresource that replaces the status and names the resourceVersion: an update of it
// would write labels, annotations and finalizers of many kinds, too. Evict uses the
// eviction subresource of policy/v1
// (https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/).
//
// List gets pages, all of the same state of the cluster. Watch starts where such a
// list ends. It continues when the server ends it, as servers do every few minutes;
// after the server has forgotten that place (410 Gone) it lists again and yields what
// has changed. A fault of the network or of the server interrupts a watch that has been
// Synced, but does not end it.
//
// Every other verb ends with such a fault. A request that the server refuses together
// with a time to wait (Retry-After) is sent again after it, up to ten times, but for
// evictions: a refusal is the answer there. No call has a deadline but its context's.
// The client does not limit its rate
// (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/).
//
// An answer must be what was asked for: the object of that kind, name and
// namespace, a list of items of that kind, namespace and labels, an event of
// such an object. Any other is an error in whose chain [ErrAnswer] is. A
// redirect is followed on the same host only.
//
// # Kinds and connections
//
// The server is asked for the resources of a group and version when a kind of it is
// first needed, again for each kind that it did not have then, and when a request
// shows that it has changed. So the resources of a CustomResourceDefinition can be
// applied as soon as they are served, and one API service that is down hides no others.
//
// A [Cluster] has its own connections until [Cluster.Close]. Certificates and keys
// that a configuration has in files are read again within a minute of a change.
//
// docs/limits.md lists the limits of this package.
package kubernetes
