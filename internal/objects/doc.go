// Package objects compares, merges and converts objects by what is known about
// their kinds: the Go types of k8s.io/api and github.com/openshift/api, the markers
// in the comments of these, and the schemas of CustomResourceDefinitions.
package objects
