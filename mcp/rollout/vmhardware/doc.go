// Package vmhardware upgrades the virtual hardware of nodes that are virtual
// machines on vSphere, to version 15 or later, as OpenShift needs it.
//
// An [Action] does it to one node: the guest is asked to shut down, the hardware
// is upgraded, the machine is started, and the node has to become Ready in another
// boot. It is never powered off. Under a [nodeaction.Run] the control plane goes
// one by one, cordoned; the others are drained too, and go side by side only where
// that run's Parallel says so.
//
// What drives the machines is [Machines]. The nested module mcp/rollout/vsphere
// has one for vCenter. Without any, a person does it: the action tells on the node
// what is to be done, in the record's Waiting, and goes on when the person has
// confirmed it by [nodeaction.Confirm] and the node has been started anew.
//
// What is in the way, a guest without running tools or a host that is too old, is
// found before a node is disturbed.
//
// Values without methods of their own are plain data: safe to read from many
// goroutines at a time, not to change while others read.
//
// Source: "Updating hardware on nodes running on vSphere",
// https://docs.openshift.com/.
package vmhardware
