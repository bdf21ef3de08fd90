// Package plan has planned rollouts as data: canary pools, maintenance windows,
// updates of the control plane alone, nodes that are taken out of service.
//
// A [Plan] is a list of [Step] values, pure JSON, that is printed ([WriteText]), kept in
// a file ([Encode], [Decode]), edited by hand and then run. Builders make plans of the
// documented procedures for a cluster as it is, and return all that speaks against it:
// [PlanCanary], [PlanWindows], [PlanControlPlaneOnly]. [PlanNodes] completes steps that a
// program has written for nodes. A [Runner] brings the cluster from step to step, with a
// cluster's own machine-config controller or with package rollout: it pauses, labels and
// waits, and never targets a node.
//
// Steps run strictly one after another; a [StepKind] lists what each does, and [Args] what
// it takes. That a step is done is seen in the cluster, never assumed. A step whose end is
// there before it starts is skipped: the plan did not cause it, and neither undoes it later
// nor puts it back. So a pool that was paused before the plan stays paused, and a node that
// was cordoned stays cordoned. What is not Kubernetes, or another package's, is an [Action]
// that the program supplies under the name that the step gives. The module mcp/hosts has
// plans and actions for RHEL hosts, virtual hardware and boot loaders.
//
// The ConfigMap rollout-<id> has the plan, which may not be changed any more, and its
// [Progress]. Before anything is changed, what it was is recorded; the same write that
// changes an object marks it with the annotations clusterupdate.github.io/plan and
// clusterupdate.github.io/before. Each write is on condition that the object is still the
// one that was read. So a runner may crash anywhere, and another continues. One runner at a
// time has the plan. It renews its claim every 30 s; another takes over when it has seen
// no renewal for two minutes of its own clock, at once after a clean end, or on request.
//
// [Options].Mode stops a plan, also one that has no runner any more: [Hold] leaves all as
// it is, [Freeze] pauses again what the plan unpaused too early, [Restore] puts back what
// was before, if nobody else has changed it since. Nodes that were updated stay updated.
// A step that failed undoes nothing. A plan that was stopped, or failed, continues with the
// mode [Resume]. When a plan has ended its marks are removed, and its record stays.
// [Uninstall] removes all of both.
//
// [Runner.Run] runs a plan live. [Runner.Process] gives its reconciler to any driver of
// package reconcile: together with a rollout, or in virtual time. It never waits inside a
// call. How long a step has been under way, and when something moved in a pool last, is in
// the record; how often an action was called starts again.
//
// Values without methods of their own are plain data: safe for concurrent reads.
// docs/limits.md lists the limits.
//
// Sources: the OpenShift documentation on performing canary rollouts and on
// control-plane-only updates, https://docs.openshift.com/; and the machine-config operator,
// https://github.com/openshift/machine-config-operator.
package plan
