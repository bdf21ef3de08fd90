// Package rollout updates the nodes of a cluster, pool by pool, or watches the
// cluster's own machine-config controller do it.
//
// [Rollout] follows a cluster through [clusterapi.ClusterAPI] and acts on what
// package mcp decides. In mode [ReadOnly], for a cluster with a machine-config
// controller of its own, it writes nothing and reports what happens and what nodes wait
// for. In mode [Drive] it takes that controller's place:
//
//   - it gives nodes the configuration to reach, as many at a time as their
//     pool's maxUnavailable allows;
//   - it keeps the taint UpdateInProgress and the pools' status;
//   - it fulfils the daemons' requests to be drained, by cordoning and by
//     evictions, which honour PodDisruptionBudgets; it never forces;
//   - if Options has a [mcp.NodeUpdater], it updates the nodes through that
//     instead of leaving it to a daemon on each node.
//
// In mode Drive, [Options].Hooks run around the update of each node, whoever
// updates it: before it is cordoned, before it is updated, before it is uncordoned,
// and when it is done. A node keeps its unit of maxUnavailable until the last one
// has run. One that fails halts the rollout: no further node is targeted, and the
// node stays as it is until another rollout runs the hook again.
//
// Everything that a rollout needs is in the cluster, so it can be stopped anywhere, and
// another continues: since when a drain has been failing is in the annotation
// clusterupdate.github.io/drain-since, and which hooks have run in
// clusterupdate.github.io/hooks. The limit of an attempt to drain, waits between retries
// and the time until a pool counts as stalled start again. [Uninstall] removes what it
// leaves on nodes.
//
// [Rollout.Run] drives it live. [Rollout.Process] gives its reconcilers to any
// driver of package reconcile: together with other processes, or in virtual
// time. Pools, drains and node updates are a reconciler each. None waits
// inside: a drain that is blocked holds up neither pools nor other drains.
//
// [Drain] is one attempt to empty a node, for rollouts and for the steps of a plan.
//
// Values without methods of their own are plain data: safe for concurrent reads.
// docs/limits.md lists the limits.
//
// Sources: the OpenShift documentation on machine configuration and on
// performing canary rollouts, https://docs.openshift.com/; and the
// machine-config operator, https://github.com/openshift/machine-config-operator.
package rollout
