// Package clusterversion decides about the one ClusterVersion of a cluster
// (https://docs.redhat.com/en/documentation/openshift_container_platform/4.19/html/config_apis/clusterversion-config-openshift-io-v1)
// as the cluster-version operator and oc adm upgrade do.
//
// A [Request] is what an administrator asks: an update, a rollback, a channel, an upstream,
// accepted risks, a preflight. [Submit] carries one out, Edit decides it without a cluster.
// [Validate] and [Clear] find faults, [Resolve] finds the release that a request means,
// [MergeHistory] keeps the history, [WriteStatus] writes what a cluster accepts of a
// status. [ShowPreflights] and [Preflights] write and read there what the check of a
// release found. A [Hook] does something else around an update. [Metrics] are those of the
// cluster-version operator.
//
// A request for a release is spec.desiredUpdate. It is one value: [SetDesired] and
// [Modify] replace it as a whole, so that neither force, an architecture, a mode,
// accepted risks nor a field that this library does not know is left of an earlier
// request. Nothing else in this module writes spec.desiredUpdate.
//
// docs/limits.md lists the limits of this package.
//
// Functions without a cluster are pure, and all are safe for concurrent use.
package clusterversion
