// Package simulation provides a cluster whose controllers behave, for
// rehearsals, examples and tests of updates: a memory cluster, and beside it
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
//     comes back with a new kubelet; the daemon asks for the uncordon and
//     reports Done.
//   - The controllers of Deployments, ReplicaSets, DaemonSets, StatefulSets and
//     Jobs, the scheduler, and the disruption controller, so that evictions
//     succeed or are refused as on a real cluster.
//
// Each behaviour is a reaction to events, some of them delayed. None knows
// another: they read and write objects. So any of them can be left alone,
// disturbed or replaced by a program under test, and a cluster that was
// stopped goes on from its objects when it is run again.
//
// Workloads of operators have no pods; their status alone is played, since an
// update looks at nothing else. Deployments and DaemonSets with the annotation
// [AnnotationPods], as those of [Options.Workloads], have pods that drains
// have to move.
//
// # Faults
//
// An operator, node or pod can be given a [Fault], when the cluster is made or
// while it runs, with an end or without; the API itself can be given
// [APIFault]s. The calls that the simulation makes are spared, unless a fault
// says otherwise.
//
// # Time
//
// Everything waits on the clock of [Options]. With [ScaledClock] an update of
// an hour takes seconds. In testing/synctest, leave the clock nil: real time
// is virtual there, and a test of days takes moments and is exact to the
// nanosecond.
//
// # Sources
//
// What each part does is described in the OpenShift documentation
// (https://docs.redhat.com/en/documentation/openshift_container_platform,
// "Updating clusters" and "Machine configuration") and in the Kubernetes one
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/).
package simulation
