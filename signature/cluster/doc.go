// Package cluster connects the verification of release images with a cluster:
// what the running payload trusts, signatures that the cluster keeps, and how the
// cluster reaches the outside.
//
// # Trust
//
// A release payload has a ConfigMap with the annotation [ConfigAnnotation]: its
// keyrings and the addresses of signature stores. [FromManifests] finds it among
// the manifests of the payload that runs and makes the verifier that the
// cluster-version operator would use; never among those of the payload that is
// to be verified, whose keys would vouch for themselves.
//
// # Stores in a cluster
//
// [ConfigMapStore] reads signatures from ConfigMaps, which mirror tools and
// administrators of disconnected clusters put there; [ConfigMap] makes such an
// object. [ClusterVersionStore] asks the stores that spec.signatureStores of the
// ClusterVersion names. A cluster needs its stores only once: a [Persister] keeps
// the signatures that verified in a ConfigMap, where ConfigMapStore finds them
// again. They are verified again each time.
//
// A cluster's proxy and trusted authorities come from [clusterapi.ReadEgress].
//
// A [Persister] and the stores are safe for concurrent use. All other types are plain
// data, safe for concurrent use as long as nobody changes them. docs/limits.md lists the
// limits.
//
// Sources: the verification of https://github.com/openshift/library-go
// (pkg/verify), and the cluster-version operator's use of it.
package cluster
