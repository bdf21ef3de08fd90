// Package bootloader updates the boot loaders of RHCOS hosts, which the updates
// of OpenShift leave alone.
//
// [New] returns an action of plans that asks bootupctl for the state of a host's boot loader.
// What was installed with OpenShift 4.4 or earlier has to be
// adopted: bootupctl adopt-and-update. What can be updated is: bootupctl update.
// A host where neither is the case is skipped. The update is in effect when the
// host is restarted, whenever that is, so a plan need neither cordon nor drain its node; with
// [Options.Reboot] the action restarts it at once, and then the plan has to.
//
// An update that is interrupted can leave a host unable to start. So hosts go one
// by one, bootupctl runs detached from the connection, and it is looked at
// afterwards whether the update was done.
//
// Values without methods of their own are plain data: safe for concurrent reads.
//
// Sources: "Updating the bootloader on RHCOS nodes using bootupd",
// https://docs.openshift.com/, and https://github.com/coreos/bootupd.
package bootloader
