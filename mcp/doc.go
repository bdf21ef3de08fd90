// Package mcp decides how the nodes of an OpenShift cluster are updated: machine config
// pools, which node is next, pool status, drains. Package rollout carries the decisions
// out, and package plan has planned rollouts as data.
//
// A node belongs to one MachineConfigPool, its primary pool: [Membership] reports which,
// and [Membership.Explain] why. The machine-config operator renders the MachineConfigs of
// a pool into one, the pool's spec.configuration, and every node of the pool is to reach
// it, a few at a time: at most spec.maxUnavailable of them may be unavailable, for
// whatever reason.
//
// A node's part is in its annotations: the config that it has ([AnnotationCurrentConfig])
// and the one that it must reach ([AnnotationDesiredConfig]), what its daemon does
// ([AnnotationState]), and whether it asks to be drained ([AnnotationDesiredDrain]).
// [NodeState] is the part of a node that decisions need, with the predicates that they
// are made of; [PhaseOf] returns how far it has come.
//
// [Candidates] decides which nodes to target now and [PoolStatus] what a pool's status
// should be; both are functions of a [Snapshot]. A [State] gives the same answers again
// and again while objects change, at O(log n) for the change of a node. Nodes are taken
// by zone, then by age, then by name. [State.Explain] gives a [Verdict] for each node:
// selected, waiting for whom, failing, not ready and why.
//
// The rules are those of the machine-config controller. If it has faults that users
// suffer from, these decisions do better, and do as it does with [Options].Compat: one
// invalid selector does not empty the other pools, a negative maxUnavailable is an error
// and not a pool that never updates, a failing node counts once, conditions do not flap.
//
// [DrainPlan] predicts the drain of a node: what becomes of each pod, which
// PodDisruptionBudget decides, in which [Drain].Waves the pods go, what blocks and what
// to do about it. [DrainPlans] predicts several drains at the same time. They read a
// [DrainView], made once of a cluster's objects. [Order].Budgets lets budgets choose among
// the nodes of a zone.
//
// [EstimateDocumented] is the formula of the documentation for how long an update takes;
// a rehearsal in virtual time shows how long it takes in this cluster. [State.Metrics] and
// [Alerts] are the metrics and alerts that users know, as data.
//
// All values are plain data or change only by their own methods: safe for concurrent reads.
// docs/limits.md lists the limits.
//
// Sources: the OpenShift documentation on machine configuration and on performing canary
// rollouts, https://docs.openshift.com/; and the machine-config operator,
// https://github.com/openshift/machine-config-operator.
package mcp
