// Package upgrade carries out the upgrade that an UpgradeConfig asks for.
//
// At the time of the UpgradeConfig, a [Controller] validates it, asks the provider
// once more whether the upgrade is still wanted, and takes the steps: notify the
// provider, check the cluster's health, reserve capacity, write spec.desiredUpdate of
// the ClusterVersion, wait for the control plane and the worker nodes, and clean up. A
// step uses hooks for what is outside the cluster ([Capacity], a check,
// [Maintenance], a drain). The cluster-version operator and the machine-config
// controller do the update itself. A manager of package upgradeconfig speaks with the
// provider ([upgradeconfig.Manager.Refresh], [upgradeconfig.Manager.Notify]).
//
// The history entry of the desired version has a phase:
//
//	none       becomes New, or Upgrading if the cluster already updates to that
//	           release
//	New        becomes Pending, after a health check if there is time for one
//	Pending    becomes Upgrading once it is valid, due, and the provider still
//	           wants it
//	Upgrading  runs its steps, or fails if it does not commence in time
//	Upgraded   is final
//	Failed     is final
//
// Each step is a condition of the entry, in the order of the
// [upgradeconfig.ConditionType] constants. Every pass runs the steps up to the first
// that is not done. Until the upgrade has commenced, each pass repeats the checks
// before it: the cluster may have become unhealthy since.
//
// An upgrade that has commenced fails if the cluster neither wants its release any
// more nor updates to it. Whatever ends an upgrade, even the deletion of its
// UpgradeConfig, the controller closes extra capacity and maintenance windows: an
// annotation of the ClusterVersion remembers them.
//
// A notification is stored before the provider gets it, and stored as sent after: as
// the condition of a step, or in an annotation of the UpgradeConfig, which
// [Uninstall] removes. So the provider gets it at least once. No upgrade waits for a
// service log: one that cannot be posted is posted later, even after the end.
//
// An observer gets an event of package upgradeconfig for each step; [Metrics] makes the
// metrics of the managed-upgrade operator of them. Package upgradetest has hooks for
// tests. The rules are those of
// https://github.com/openshift/managed-upgrade-operator/tree/master/docs.
//
// Plain data of this package is safe for concurrent use as long as nobody changes it.
package upgrade
