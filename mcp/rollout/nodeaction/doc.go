// Package nodeaction does something to the nodes of a cluster, one after the
// other: what a machine-config daemon does not do, such as updating the packages
// of a RHEL host, the virtual hardware of a machine, or a boot loader.
//
// An [Action] says what. The packages rhel, vmhardware and bootloader have one
// each. There are three ways to have it done:
//
//   - A [Run] does the whole of it, beside the cluster's own machine-config
//     controller: it takes nodes out of service, drains them, does the action and
//     puts them back.
//   - [PlanAction] makes it an action of a plan, whose other steps cordon and
//     drain. [Func] makes it a plain function of a node for who does that himself;
//     [StepNode] is one round of it.
//   - [Updater] makes it an [mcp.NodeUpdater], for a rollout in mode Drive.
//
// # The way of a node
//
//	phase         what happens                                     then
//	Checking      does the node need it? (if the action can tell)  not: Done
//	PreCordon     the hook runs                                    the node is cordoned
//	Draining      pods leave by evictions; budgets are honoured
//	PreUpgrade    the hook runs
//	Acting        the action, step by step
//	PreUncordon   the hook runs                                    the node is uncordoned
//	PostUpgrade   the hook runs
//	Done
//
// The hooks are those of package rollout. What is cordoned and drained is the
// action's to say ([Disruption]). A node that was cordoned before stays so.
//
// # Which node next
//
// The nodes of the control plane come first and one by one: one is begun only
// while all others are Ready, schedulable and not being updated, whoever acts on
// them. Compute nodes follow, as many at a time as [Options.Parallel] says; ones
// that are not Ready count, but may be begun themselves. A node that another run
// has begun and not finished is left alone.
//
// # Stopping, failing and going on
//
// All that a run needs is in the cluster: in an annotation of each node
// ([Annotation], [Record]), and in the ConfigMap clusterupdate-node-actions, which is changed
// on condition of what was read and decides which nodes are taken. So it can be
// stopped or crash anywhere, and another Run of the same ID goes on: a finished
// node is never touched again, and what was under way is done again or gone on
// with. For how long an action has been failing begins anew then.
//
// A hook that fails, an error of the action that is [Permanent] or lasts too
// long, and an action that does not move any more halt the run: the node stays
// as it is, cordoned, and no other is begun. Once the cause is mended, another Run
// tries the same thing again. Drains never give up and never force.
//
// [Uninstall] removes what stays on nodes.
//
// # Hosts
//
// [Hosts] runs commands on the operating systems of nodes. What takes long runs
// detached ([RunDetached]): a lost connection, or a crash of this program, does
// not end it half way, and it is found again.
//
// Values without methods of their own are plain data: safe to read from many
// goroutines at a time, not to change while others read.
//
// # Limits
//
//	limit                          default  field  past it
//	text of an event               32 KiB   -      says how many bytes are left out
//	progress of an action          4 KiB    -      halts the run
//
// Sources: the OpenShift documentation on updating a cluster that includes RHEL
// compute machines, on updating hardware on nodes running on vSphere, and on
// updating the boot loader, https://docs.openshift.com/.
package nodeaction
