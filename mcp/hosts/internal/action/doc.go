// Package action makes actions of plans from what is done to one node step by step.
//
// An [Action] keeps nothing in memory. [New] makes it an action of a plan, and records on
// the node how far it is.
//
// [RunDetached] and [Reboot] are for actions that run commands on hosts.
//
// docs/limits.md lists the limits of this package.
package action
