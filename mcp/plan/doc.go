// Package plan has planned rollouts as data: canary pools, maintenance windows,
// updates of the control plane alone, nodes that are taken out of service.
//
// A [Plan] is a list of steps, pure JSON, that is printed ([WriteText]), kept in
// a file ([Encode], [Decode]), edited by hand and then run. Builders make plans of
// the documented procedures for a cluster as it is, and return all that speaks
// against it: [PlanCanary], [PlanWindows], [PlanControlPlaneOnly].
// [PlanNodes] completes steps that a program has written for nodes. A [Runner] brings the cluster from step to step. It works
// beside a cluster's own machine-config controller and beside package rollout alike: it
// pauses, labels and waits, and never tells a node what to reach.
//
// # Steps
//
// Steps run strictly one after another. Steps that repeat for nodes may be written once, as
// [Encode] writes them for more than 50: {"each": ["worker-{0-99}"], "steps": [...]} has
// them done to one node after the other, whose name stands for {node}. Each kind takes these arguments, the
// optional ones in brackets:
//
//	CheckAll           checks, [action, parameters]
//	SetPaused          pools, paused, [until, unfinished]
//	SetHealthChecksPaused  paused
//	SetMaxUnavailable  pools, maxUnavailable
//	CreatePool         pool, roles, [maxUnavailable]
//	DeletePool         pool
//	LabelNodes         pool, nodes, add or remove
//	SetChannel         channel
//	UpdateCluster      version, [image, action, parameters]
//	UpdateOperators    version, [action, parameters]
//	WaitPools          pools, [until]
//	WaitCluster        version
//	Gate               action, [parameters, pools, nodes]
//	Cordon             node
//	Drain              node
//	Uncordon           node
//	Hook               action, [node, parameters]
//	Manual             text, [node]
//	ApplyObject        object
//
// That a step is done is seen in the cluster, never assumed. A step whose end is
// there before it starts is skipped: the plan did not cause it, and neither undoes
// it later nor puts it back. So a pool that was paused before the plan stays
// paused, and a node that was cordoned stays cordoned.
//
// What is not Kubernetes, or another package's, is an [Action] that the program
// supplies under the name that the step gives: UpdateOperators brings OLM's operators
// along, gates and hooks are the caller's, such as the checks of package
// preconditions/preflight. The module mcp/hosts has plans and actions for RHEL hosts,
// virtual hardware and boot loaders. The actions "window", "approval",
// "health" and "UpdateCluster" are built in: the last requests the update in the
// ClusterVersion, and waits while the cluster does not offer it yet or is not ready for
// one ([Options].Update has what else it may request).
//
// # What is kept, and where
//
// The ConfigMap rollout-<id> has the plan, which may not be changed any more, and its
// progress. Before anything is changed, what it was is recorded; the same write that
// changes an object marks it with the annotations clusterupdate.github.io/plan and
// clusterupdate.github.io/before. Each write is on condition that the object is still the
// one that was read. So a runner may crash anywhere, and another continues.
//
// One runner at a time has the plan. It renews its claim every 30 s; another takes
// over when it has seen no renewal for two minutes of its own clock, at once after
// a clean end, or on request.
//
// # Stopping
//
// [Options].Mode stops a plan, also one that nobody runs any more: [Hold] leaves
// all as it is and reports what that is, [Freeze] also pauses again what the plan
// unpaused too early, [Restore] puts back what was before, if nobody else has
// changed it since. Nothing rolls nodes back: those that were updated stay updated.
// A step that failed undoes nothing either. A plan that was stopped, or failed,
// continues with the mode [Resume].
//
// When a plan has ended its marks are removed, and its record stays. [Uninstall]
// removes all of both.
//
// # Drivers
//
// [Runner.Run] runs a plan live. [Runner.Process] gives its reconciler to any driver
// of package reconcile: together with a rollout, or in virtual time. It never waits
// inside a call. How long a step has been under way, and when something moved in a
// pool last, is in the record; how often an action was called starts again.
//
// Values without methods of their own are plain data: safe to read from many
// goroutines at a time, not to change while others read.
//
// docs/limits.md lists the limits of this package.
//
// Sources: the OpenShift documentation on performing canary rollouts and on
// control-plane-only updates, https://docs.openshift.com/; and the
// machine-config operator, https://github.com/openshift/machine-config-operator.
package plan
