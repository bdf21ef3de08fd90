// Package vsphere drives the virtual machines of nodes through vCenter, for
// package vmhardware.
//
// [Machines] finds a node's machine by its provider ID, vsphere:// and a UUID. It
// asks guests to shut down, and never powers a machine off. It logs in when it is
// first used, and again when a session has ended; a login that is refused is not
// tried again, since that would lock the account. vCenter's certificate is always
// verified, and no error contains a credential.
//
// [Machines.Schedule] leaves the upgrade to vCenter, at the machine's next restart.
// [Machines.UpgradeTemplate] upgrades the template that new machines are made
// from.
//
// Sources: "Updating hardware on nodes running on vSphere",
// https://docs.openshift.com/, and https://github.com/vmware/govmomi.
package vsphere
