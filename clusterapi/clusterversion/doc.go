// Package clusterversion writes requests into the one ClusterVersion of a
// cluster (https://docs.redhat.com/en/documentation/openshift_container_platform/4.19/html/config_apis/clusterversion-config-openshift-io-v1).
//
// A request is spec.desiredUpdate: the release that the cluster is to update to,
// and what the update may waive. It is one value. [Request] and [Modify] replace it
// as a whole, so that neither force, an architecture, a mode, accepted risks nor a
// field that this library does not know is left of an earlier request. Nothing else
// in this module writes spec.desiredUpdate.
//
// Functions without a cluster are pure, and all are safe for concurrent use.
package clusterversion
