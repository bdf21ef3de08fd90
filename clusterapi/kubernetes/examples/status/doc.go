// Command status shows how the update of a cluster does, as oc adm upgrade status
// does, and what the update waits on.
//
//	go run . -kubeconfig FILE
//	go run . -kubeconfig FILE -watch
//
// With -watch it shows the status again whenever it changes: in place on a
// terminal, elsewhere as lines. With -o json it prints the status as JSON, one
// document a change. It writes nothing to the cluster.
//
// The exit code is 0 when all is well, 1 when the update is stuck, an insight is an error,
// or the program was interrupted before it had read the status, 2 when the command line
// is wrong, 3 when the cluster cannot be read.
package main
