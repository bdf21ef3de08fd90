// Package memory is a cluster in memory: a [clusterapi.ClusterAPI] and
// [clusterapi.Watcher] that behave as a Kubernetes API server does, for tests,
// for rehearsals of an update, and for programs that have no cluster at hand.
//
// # What it does
//
// Server-side apply is the API server's own
// (k8s.io/apimachinery/pkg/util/managedfields), so lists with keys merge element by
// element, fields have owners, and a field that the schema lacks is refused with an
// error that names it. Where the schema comes from:
//
//   - kinds of k8s.io/api: a schema generated from their Go types, embedded in
//     the package;
//   - kinds of a stored CustomResourceDefinition: its openAPIV3Schema;
//   - CustomResourceDefinition and APIService, and with [Options].Lenient kinds
//     that nobody defined: none. They take any field, and each list is one
//     value.
//
// Other kinds are not served: a cluster that is not filled from a release gets
// definitions by [Cluster.Load], [NewOpenShift] or [Definition].
//
// Create and Update drop what the schema does not know, as a server's decoder
// and its pruning of custom resources do. Both record who changed which field.
// Nulls are not stored, but for fields that a definition calls nullable.
//
// A write that changes nothing leaves the resourceVersion as it is. Generation
// counts changes outside of metadata and status. UIDs and resourceVersions
// come from counters, and all times from [Options].Clock, so that equal runs
// give equal objects.
//
// Kinds with a status subresource keep status apart: of k8s.io/api those that
// have it there; of a CustomResourceDefinition those versions that say so; of
// other kinds of github.com/openshift/api those whose type has a status
// (ClusterVersion, ClusterOperator, MachineConfigPool, but not MachineConfig);
// and every kind that is not known at all, as nearly all custom resources do.
//
// Finalizers hold an object that is being deleted. When it goes, what a
// garbage collector would do has been done when Delete returns: see
// [Cluster.Delete]. A CustomResourceDefinition is Established at once, or
// after [Options].EstablishAfter. Objects are read in any version of their
// kind that is served; only apiVersion differs.
//
// Evict decides by the rules of the policy/v1 eviction subresource, and by the
// status of budgets alone, which no controller keeps here: see
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
//
// # What it refuses
//
// Objects of built-in kinds fit their Go types, and are stored in the form that
// these write: quantities are canonical, empty fields are left out. Names,
// labels, annotations, enumerations, required and immutable fields, and
// selectors of workloads are judged as kube-apiserver 1.36 judges them, for
// the kinds that a release payload has. Custom resources get the defaults of
// their definition, on reading too, and are validated by its schema. What an
// update leaves as it was is not judged again, nor what [Cluster.Load] brings
// in. [Options].Lenient accepts all of this.
//
// docs/limits.md lists the limits of this package.
//
// # Forks
//
// A cluster with an [Options].Base starts as a copy of any reader: a live cluster,
// a recording, another cluster in memory. The first verb that touches a kind (Get,
// List, Watch, any write; Evict for pods and budgets) reads it whole from Base,
// with one List, as [Cluster.Load] would store it: UIDs stay, resourceVersions are
// new. CustomResourceDefinitions and Namespaces are read before any other kind.
// From then on Base is not asked again, and nothing is ever written to it.
//
//   - An error of that read is the verb's error, and the next verb tries again.
//     Verbs called in the meantime wait for the same read; where the context of
//     the one that reads ends, the next starts again.
//   - [clusterapi.ErrNotCollected] together with a list: these objects are
//     there, and for others Get, List, Watch, Update, Delete and Evict answer
//     that error. Create and Apply store an object as new.
//   - A kind that Base does not serve has no objects, and so has one that was
//     not collected where its definition was created in the fork.
//   - What went with a namespace, a definition or an owner that was deleted in the
//     fork goes, by the same rules, when its kind is read. An owner of a kind
//     that has not been read counts as there.
//
// [Cluster.Follow] and Watch do not report what is read from Base: it has been
// there all along.
//
// # What it does not do
//
// There are no controllers (clusterapi/simulation plays some), no defaults of
// built-in kinds, no admission and no authorisation. Rules in CEL
// (x-kubernetes-validations) are not evaluated; [Options].Validate, which by
// default enforces those of ClusterVersion, is the
// place for them. Namespaces need not exist, unless [Options].CheckNamespaces
// says so. Aggregated APIs of OpenShift
// (Routes, Builds and others) count as kinds that are not known. An owner
// reference to an object that never existed has no effect.
//
// A [Cluster] is safe for concurrent use. Options and calls are plain data: safe
// to read from many goroutines at a time, not to change while others read.
//
// # Faults
//
// [Options].Intercept stands around each verb and can fail, delay or drop it,
// before or after it took effect: so a test says "the third Apply of a
// Deployment times out".
package memory
