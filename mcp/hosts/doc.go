// Package hosts does to the hosts of nodes what a machine-config daemon does not do, in the
// steps of plans (package plan): it updates the packages of RHEL hosts, upgrades the
// virtual hardware of machines on vSphere, and updates boot loaders.
//
// [PlanRHEL] and [PlanVSphereHardware] build plans of the documented procedures. The
// packages rhel, vmhardware and bootloader have an action each, for the Actions of the
// plan's runner. [Runner] runs commands on hosts; package sshhost has one for SSH, and
// package vsphere drives virtual machines through vCenter.
//
// # Stopping, failing and continuing
//
// How far an action is stands in an annotation of the node. So the plan's runner can
// be stopped or crash anywhere, and the next one continues there: an action that a
// step has done is never done again for it. What takes long runs detached: neither a lost
// connection nor a crash of this program ends it half way.
//
// An error that is [Permanent] or lasts for 30 minutes, and an action in which nothing has
// moved for an hour, fail the step: the plan stops, and the node stays as it is,
// cordoned. Once the cause is mended, the plan is resumed and tries the same thing
// again. If an action waits for a person, that person reports by [Confirm] that it is
// done.
//
// [Uninstall] removes what stays on nodes.
//
// It is a module of its own, so that the library depends neither on SSH nor on govmomi.
//
// Values without methods of their own are plain data: safe for concurrent reads.
//
// Sources: the OpenShift documentation on updating a cluster that includes RHEL
// compute machines, on updating hardware on nodes running on vSphere, and on
// updating the boot loader, https://docs.openshift.com/.
package hosts
