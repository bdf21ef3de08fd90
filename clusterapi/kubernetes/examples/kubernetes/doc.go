// Command kubernetes shows which updates a cluster has, and whether it may
// start them.
//
//	go run . -kubeconfig FILE
//
// It reads the ClusterVersion for the updates that the cluster has been
// offered, and checks the preconditions of each. It writes nothing.
//
//	go run . -kubeconfig FILE -to VERSION
//
// With -to it checks that version alone, asks for confirmation, and then
// requests it from the cluster, whose own version operator does the work. A
// release that is blocked, or that was not offered, is not requested.
//
// The exit code is 0 when the cluster may be updated, 1 when something blocks that or the
// program was interrupted, 2 when the command line is wrong, 3 when the cluster cannot be
// read.
package main
