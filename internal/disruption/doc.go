// Package disruption has the rules by which pods leave their nodes: which
// PodDisruptionBudget selects a pod and what it allows, what an API server
// answers to an eviction, what the disruption controller writes into a budget's
// status, and which pods a drain leaves where they are. It decides on what it is
// given, and calls nothing. Its functions are safe for concurrent use and change
// their arguments only where they say so.
//
// See https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/ and
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
package disruption
