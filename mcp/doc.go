// Package mcp decides how the nodes of an OpenShift cluster are updated, and
// does it: machine config pools, which node is next, pool status, drains.
//
// # Pools and configs
//
// Each node belongs to one MachineConfigPool, its primary pool. The
// machine-config operator renders the MachineConfigs of a pool into one, the
// pool's spec.configuration. A release update renders new ones, since the
// operating system image changes. Every node of the pool is then to reach the
// new config, a few at a time: at most spec.maxUnavailable of its nodes may be
// unavailable, for whatever reason.
//
// [Membership] reports which pool a node belongs to. A control plane node belongs
// to master; another to the custom pool that selects it, else to worker. Two custom
// pools that select one node are an error, and the node then belongs to none.
// [Membership.Explain] gives the reasons.
//
// # What a node says
//
// All of a node's part is in its annotations: the config that it has
// ([AnnotationCurrentConfig]) and the one that it must reach
// ([AnnotationDesiredConfig]), what its daemon is doing ([AnnotationState]), and
// whether it asks to be drained ([AnnotationDesiredDrain]). [NodeState] is the part
// of a node that decisions need, with the predicates that they are made of;
// [State.Phase] is how far it has come.
//
// # Decisions
//
// [Candidates] decides which nodes to target now and [PoolStatus] what a pool's
// status should be; both are functions of a [Snapshot]. A [State] gives the
// same answers again and again while objects change, at O(log n) for the change
// of a node. Nodes are taken by zone, then by age, then by name. [State.Explain]
// gives a [Verdict] for each node: selected, waiting for whom, failing, not
// ready and why.
//
// The rules are those of the machine-config controller. If it has faults that users
// suffer from, these decisions do better, and do as it does with [Options].Compat:
// one invalid selector does not empty the other pools, a negative maxUnavailable is
// an error and not a pool that never updates, a failing node counts once,
// conditions do not flap.
//
// # Drains
//
// Before a node reboots its pods are evicted, and one that may not go delays the
// node for as long as that lasts. [DrainPlan] predicts it: what becomes of each pod
// of a node, which PodDisruptionBudget decides, in which [Drain].Waves the pods go,
// what blocks and what to do about it. [DrainPlans] predicts several drains at the
// same time. They read a [DrainView], made once of a cluster's objects.
// [Order].Budgets lets budgets choose among the nodes of a zone.
//
// # Before an update
//
// [EstimateDocumented] is the formula of the documentation for how long an update takes.
// How long one takes in this cluster, with its drains, a rehearsal in virtual time shows.
//
// [State.Metrics] and [Alerts] are the metrics and alerts that users
// know, as data.
//
// Package rollout carries the decisions out.
//
// All values are plain data or change only by their own methods: safe to read
// from many goroutines at a time, not to change while others read.
//
// # Limits
//
// What nodes say ends up in the status of their pool, and is cut to a size that
// it can hold.
//
// Sources: the OpenShift documentation on machine configuration and on
// performing canary rollouts, https://docs.openshift.com/; and the
// machine-config operator, https://github.com/openshift/machine-config-operator.
//
// docs/limits.md lists the limits of this package.
package mcp
