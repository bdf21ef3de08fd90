// Package vmhardware upgrades the virtual hardware of nodes that are virtual
// machines on vSphere, to version 15 or later, as OpenShift needs it.
//
// [New] returns an action of plans that does it to one node: the guest is asked to shut
// down, the hardware is upgraded, the machine is started, and the node has to become Ready
// in another boot. It is never powered off. A plan ([hosts.PlanVSphereHardware]) cordons
// each node before, drains it too if it is a compute node, and takes one by one.
//
// What drives the machines is [Machines]. Package vsphere has one for vCenter. Without any,
// a person does it: the plan's step waits for that with a text that reports what to do, and
// continues when the person has confirmed it by [hosts.Confirm] and the node has been
// started again.
//
// What is in the way, a guest without running tools or a host that is too old, is
// found before anything is done to the machine.
//
// Values without methods of their own are plain data: safe for concurrent reads.
//
// Source: "Updating hardware on nodes running on vSphere",
// https://docs.openshift.com/.
package vmhardware
