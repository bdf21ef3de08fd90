// Package testserver starts a real kube-apiserver with a real etcd for tests,
// on loopback, with certificates and a token of their own.
//
// Both are built from the Go module proxy, by the modules apiserver and etcd
// beside this package, and kept in the user's cache folder (see package
// programs; go run ./internal/buildservers does it ahead): that takes many
// minutes once, and no time afterwards.
//
// No controllers run, as those are not part of an API server: nobody makes
// service accounts, deletes dependents, empties namespaces, counts disruptions
// or starts pods.
package testserver
