// Package memory is a cluster in memory: a [clusterapi.ClusterAPI] and
// [clusterapi.Watcher] that behave as a Kubernetes API server does, for tests,
// for rehearsals of an update, and for programs that have no cluster at hand.
//
// A [Cluster] has what [Cluster.Load] brings in, or starts as a copy of another
// cluster or of a recording: see [Options].Base. [NewOpenShift] makes one that serves
// the kinds of OpenShift.
//
// # What it does
//
// Server-side apply is the API server's own
// (k8s.io/apimachinery/pkg/util/managedfields). It works by a schema: for kinds of
// k8s.io/api one generated from their Go types, and for the kinds of a stored
// CustomResourceDefinition its openAPIV3Schema. A CustomResourceDefinition, an
// APIService, and with [Options].Lenient any kind that has no definition take every
// field, and each of their lists is one value. Other kinds are not served.
//
// Create and Update drop the fields that the schema lacks. A write that changes
// nothing leaves the resourceVersion as it is. Generation counts changes outside of
// metadata and status. UIDs and resourceVersions come from counters, and all times
// from [Options].Clock, so that equal runs give equal objects.
//
// Status is a subresource for the kinds of k8s.io/api and the versions of definitions
// that have it, for those other kinds of github.com/openshift/api whose type has a
// status, and for every kind without a definition.
//
// Finalizers hold an object that is being deleted. The work of the garbage collector
// is done when [Cluster.Delete] returns. Evict reads the status of budgets, which no
// controller keeps here
// (https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/).
//
// # What it refuses
//
// kube-apiserver 1.36 is the model, for the kinds that a release payload has. Objects
// of built-in kinds fit their Go types and are stored as these write them. Custom
// resources get the defaults of their definition, on reading too, and are validated by
// its schema. Fields that a write leaves as they were are not validated again.
//
// # What it does not do
//
// It has no controllers (clusterapi/simulation plays some), no defaults of built-in
// kinds, no admission and no authorisation. It does not evaluate rules in CEL
// (x-kubernetes-validations): see [Options].Validate. An owner reference to an object
// that never existed has no effect.
//
// A [Cluster] is safe for concurrent use. Options and calls are plain data, safe for
// concurrent reads.
package memory
