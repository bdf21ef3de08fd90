// Package openshift has facts of OpenShift: its versions, with the versions of
// Kubernetes in them, the ID of a cluster, what alerts of its monitoring mean for an
// update, and what a release image says of itself in release-manifests/release-metadata.
//
// That file is a JSON object of kind cincinnati-metadata-v0 with the release's version,
// the versions that may update to it (previous), those that it may update to (next), and
// a free-form map of metadata.
//
// # Limits
//
// What is above a limit is not read; a real file of metadata has some 10 KB.
//
// docs/limits.md lists the limits of this package.
package openshift
