// Package simulation provides a cluster whose controllers behave, for
// rehearsals, examples and tests of updates: a memory cluster, and alongside it
// the operators, nodes and workloads that a real one has.
//
// # Who plays what
//
// An update of an OpenShift cluster is the work of many programs that only
// meet in the API. This module is two of them: the cluster-version operator
// (package clusterupdate) and the machine-config controller (package mcp,
// whose Rollout in mode Drive targets and drains nodes and writes the status
// of pools). This package plays the others:
//
//   - The operators behind the ClusterOperators. When an operator's workloads
//     have been stored in the form that a release gives them, it reports
//     Progressing, and after a while the release's versions.
//   - The rest of the machine-config operator. It renders a machine config for
//     each pool whenever the release or the MachineConfigs change, and reports
//     the release's version once the pools that an update waits for have
//     finished.
//   - The machine-config daemon, kubelet and host of each node. Told by the
//     annotation desiredConfig, the daemon reports Working, asks for a drain,
//     applies the config, and reboots; the node is NotReady for a while, and
//     returns with a new kubelet; the daemon asks for the uncordon and
//     reports Done.
//   - The controllers of Deployments, ReplicaSets, DaemonSets, StatefulSets and
//     Jobs, the scheduler, and the disruption controller, so that evictions
//     succeed or are refused as on a real cluster.
//
// Package olm/install/installtest plays the half of OLM that a cluster is left with.
//
// Each behaviour is a [reconcile.Reconciler]: objects wake it, some with a delay,
// and it has no goroutine or clock. None knows another: they read and write
// objects. So any of them can be disturbed or replaced by a program under test, and
// a cluster that was stopped continues from its objects when it is run again. What
// continues without them starts again then: the rollout of a workload without pods,
// a pod's start and end, a daemon's staging of a config, its wait for a drain. How
// long a [Fault] has lasted is counted by the Cluster.
//
// Workloads of operators have no pods; their status alone is played, since an
// update looks at nothing else. Deployments and DaemonSets with the annotation
// clusterupdate.github.io/simulated-pods, as those of [Options.Workloads], have pods that drains
// have to move.
//
// # Faults
//
// An operator, node or pod can be given a [Fault], when the cluster is made or
// while it runs, with an end or without. Calls of the API fail by
// [reconcile.Faults] in virtual time, and by the Intercept of Options.Memory.
//
// # Time
//
// A cluster's behaviours run in one of two ways. In virtual time, [Cluster.Process]
// goes to [reconcile.NewVirtual], with what else is to run: an update of hours
// takes as long as its computing, and the same seed gives the same objects, byte
// for byte. Live, [Cluster.Run] plays them on the clock of [Options]; with
// [ScaledClock] an update of an hour can be watched in seconds.
//
// # Sources
//
// What each part does is described in the OpenShift documentation
// (https://docs.redhat.com/en/documentation/openshift_container_platform,
// "Updating clusters" and "Machine configuration") and in the Kubernetes one
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/).
package simulation
