// Package simulation provides a cluster whose controllers behave, for rehearsals, examples
// and tests of updates: a memory cluster, and alongside it the operators, nodes and
// workloads that a real one has.
//
// This module is two of the programs that update an OpenShift cluster: the
// cluster-version operator (package clusterupdate) and the machine-config controller
// (package rollout, in mode Drive). A [Cluster] plays those that they meet in the API:
//
//   - The operators behind the ClusterOperators. When an operator's workloads have the
//     form that a [Release] gives them, it reports Progressing, and after a while the
//     release's versions.
//   - The rest of the machine-config operator, which renders configs and waits for pools.
//   - The machine-config daemon, kubelet and host of each node: they ask for a drain,
//     apply the config, reboot, and ask for the uncordon.
//   - The controllers of Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs, the
//     scheduler, and the disruption controller, which allows and refuses evictions.
//
// Package olm/install/installtest plays the half of OLM that a cluster is left with.
//
// Each is a [reconcile.Reconciler] that knows the others by their objects alone, so that a
// program under test can disturb or replace it. A cluster that was stopped continues from
// its objects. What they do not record starts again then: the rollout of a workload without
// pods, a pod's start and end, a daemon's staging of a config, its wait for a drain.
//
// Workloads of operators have no pods, only a status: an update looks at nothing else.
// Deployments and DaemonSets with the annotation clusterupdate.github.io/simulated-pods, as
// those of [Options].Workloads, have pods that drains have to move.
//
// A [Fault] breaks an operator, a node or a pod. In virtual time calls of the API fail by
// [reconcile.Faults].
//
// In virtual time, [Cluster.Process] goes to [reconcile.NewVirtual], with what else is to
// run: an update of hours takes as long as its computing, and the same seed gives the same
// objects, byte for byte. Live, [Cluster.Run] plays the cluster on the clock of [Options]; a
// [ScaledClock] shows an update of an hour in seconds.
//
// A Cluster is safe for concurrent use. Options and what they hold are plain data.
//
// The parts behave as the documentation of OpenShift describes them
// (https://docs.redhat.com/en/documentation/openshift_container_platform, "Updating
// clusters" and "Machine configuration"), and that of Kubernetes
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/).
package simulation
