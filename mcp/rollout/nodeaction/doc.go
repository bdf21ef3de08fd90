// Package nodeaction does something to nodes of a cluster in the steps of a plan:
// what a machine-config daemon does not do, such as updating the packages of a RHEL
// host, the virtual hardware of a machine, or a boot loader.
//
// An [Action] is what is done to one node, step by step. The packages rhel,
// vmhardware and bootloader have one each. [PlanAction] makes it an action of a plan
// (package plan), whose other steps cordon the node, drain it, run hooks and put the
// node back.
//
// # Stopping, failing and continuing
//
// How far an action is stands in an annotation of the node. So the plan's runner can
// be stopped or crash anywhere, and the next one continues there: an action that a
// step has done is never done again for it.
//
// An error of the action that is [Permanent] or lasts too long, and an action that
// does not move any more, fail the step: the plan stops, and the node stays as it is,
// cordoned. Once the cause is mended, the plan is resumed and tries the same thing
// again. If an action waits for a person, that person says by [Confirm] that it is
// done.
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
//	progress of an action          4 KiB    -      fails the step
//
// Sources: the OpenShift documentation on updating a cluster that includes RHEL
// compute machines, on updating hardware on nodes running on vSphere, and on
// updating the boot loader, https://docs.openshift.com/.
package nodeaction
