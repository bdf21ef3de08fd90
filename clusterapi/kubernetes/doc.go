// Package kubernetes is a [clusterapi.ClusterAPI] over client-go: the way to a real
// cluster. It is a separate module, so that programs that do without client-go need
// not have it.
//
//	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
//	...
//	api, err := kubernetes.New(config, kubernetes.Options{})
//	...
//	defer api.Close()
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
// servers would accept them. UpdateStatus is a JSON patch of the subresource
// that replaces the status and names the resourceVersion: an update of it would
// write labels, annotations and finalizers of many kinds, too. Evict uses the eviction subresource of policy/v1
// (https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/).
//
// List gets pages, all of the same state of the cluster. Watch starts where such a
// list ends. It continues where it was when the server ends it, as servers do every
// few minutes; after the server has forgotten that place (410 Gone) it lists again
// and yields what has changed.
//
// A fault of the network or of the server interrupts a watch that has been Synced,
// but does not end it. It does end every other verb, and the caller decides, except
// that a request that the server refuses together with a time to wait (Retry-After)
// is sent again after it, up to ten times. Evictions are the exception: a refusal
// is the answer there. No call has a deadline but its context's, and every call
// ends with its context.
//
// An answer must be what was asked for: the object of that kind, name and
// namespace, a list of items of that kind, namespace and labels, an event of
// such an object. Any other is an error in whose chain [ErrAnswer] is. A
// redirect is followed on the same host only.
//
// # Asking without writing
//
// A Cluster with Options.DryRun sends dryRun=All with every write
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run). The
// server then does all that it does with a write, admission plugins and webhooks
// included, answers with the object that would have been stored or with its
// refusal, and stores nothing. So it is each write that is tried, not their
// sequence: an object in a namespace, or of a kind, that an earlier write would
// have made is refused. The resourceVersion of an answer is the present object's,
// and empty for a new one, whose UID is made up. A webhook that has side effects
// and does not say that it leaves them out makes the server refuse the write. The
// permissions needed are those of the write.
//
// # Kinds
//
// Objects are named by kind, and requests by resource. The server is asked for
// the resources of a group and version when a kind of it is first needed, and
// again for each kind that it did not have then, and when a request shows that
// it has changed. Callers that need the same answer share one request, and each
// leaves it when its own context ends. So the resources of a CustomResourceDefinition can be applied
// as soon as they are served, and one API service that is down hides no others.
//
// # Connections
//
// A [Cluster] has its own connections until [Cluster.Close]. Certificates and keys
// that a configuration has in files are read again when the files have changed,
// within a minute: new requests then use new connections.
//
// # Load
//
// There is no rate limit on the client's side. API servers share out their
// capacity by priority and fairness
// (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/),
// and tell clients to wait where they must.
//
// # Limits
//
// What a server sends is bounded, in bytes after decompression. The limit of a
// list also holds for the objects that a watch keeps in order to tell what has
// changed.
//
// docs/limits.md lists the limits of this package.
package kubernetes
