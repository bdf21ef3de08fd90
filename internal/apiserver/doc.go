// Package apiserver does to objects what an API server does: it reads the schemas of
// CustomResourceDefinitions, prunes and cuts values to them, and fills in what a server
// fills in by itself: the defaults of the built-in kinds that release payloads hold, or
// may hold, and those of a custom resource's schema. Two states of an object are
// compared after both have been filled in: a field that one sets to its default and the
// other leaves out is not a difference.
//
// Not among them are the defaults of volumes of single vendors, and what depends
// on a feature gate that not all servers have. What a server allocates (addresses
// of a Service, the UID) or works out from other objects is not either; see
// [Allocated]. The defaults are those of Kubernetes 1.30 and later
// (k8s.io/kubernetes, pkg/apis/*/*/defaults.go and zz_generated.defaults.go), and of
// ImageStreams (github.com/openshift/openshift-apiserver, pkg/image/apis/image/v1).
package apiserver
