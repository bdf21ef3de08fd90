// Package memory is a cluster in memory: a [clusterapi.ClusterAPI] and
// [clusterapi.Watcher] that behave as a Kubernetes API server does, for tests,
// for rehearsals of an update, and for programs that have no cluster at hand.
//
// # What it does
//
// Server-side apply is that of the API server itself
// (k8s.io/apimachinery/pkg/util/managedfields), so lists with keys merge
// element by element, fields have owners, and a field that the schema lacks is
// refused with an error that names it. Where the schema comes from:
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
// # What it does not do
//
// There are no controllers (clusterapi/simulation plays some), no defaulting,
// no admission and no authorisation. Values are validated by their type only,
// and by [Options].Validate, which by default enforces the rules of
// ClusterVersion ([ValidateClusterVersion]). Aggregated APIs of OpenShift
// (Routes, Builds and others) count as kinds that are not known. An owner
// reference to an object that never existed has no effect.
//
// # Faults
//
// [Options].Intercept stands around each verb and can fail, delay or drop it,
// before or after it took effect: so a test says "the third Apply of a
// Deployment times out".
package memory
