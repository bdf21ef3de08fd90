// Package upgrade takes the upgrade that an UpgradeConfig asks for from its time
// to its end.
//
// [Controller] carries an UpgradeConfig out. At its time the object is
// validated, the provider is asked once more whether the upgrade is still
// wanted, and then the steps are taken: tell the provider, check the cluster's
// health, reserve capacity, write spec.desiredUpdate of the ClusterVersion, wait
// for the control plane and the worker nodes, and clean up. What a step needs
// from outside the cluster is a hook ([Capacity], a check, [Maintenance],
// a drain). The update itself is the work of the cluster's version operator and
// machine-config controller. A manager of package upgradeconfig asks the provider
// ([upgradeconfig.Manager.Refresh]) and tells it how the upgrade goes
// ([upgradeconfig.Manager.Notify]).
//
// # Phases
//
// The history entry of the desired version has a phase:
//
//	none       it gets an entry: New, or Upgrading if the cluster was told to
//	           update to that release already
//	New        becomes Pending, after a health check if there is time for one
//	Pending    becomes Upgrading once it is valid, due, and the provider still
//	           wants it
//	Upgrading  runs its steps, or fails if it does not commence in time
//	Upgraded   nothing more
//	Failed     nothing more
//
// Each step is a condition of the entry, in the order of the
// [upgradeconfig.ConditionType] constants. Every pass runs the steps up to the
// first that is not done. Until the upgrade has commenced, the checks before it
// run again in each pass: the cluster may have become unhealthy meanwhile.
//
// An upgrade that has commenced fails if the cluster is not asked for its release
// any more and is not on its way to it either. Whatever ends an upgrade, also that
// its UpgradeConfig is deleted or replaced, extra capacity and maintenance windows
// are closed: an annotation of the ClusterVersion remembers them.
//
// # Notifications
//
// A notification is stored before the provider hears it, and stored as sent
// after: as the condition of a step, or in an annotation of the UpgradeConfig. So
// the provider hears it at least once, and a second time only if the process ended
// or a write failed in between, its answer was lost, or two Controllers run. No
// upgrade waits for a service log: one that cannot be posted is posted later, also
// after the end. [Uninstall] removes the annotation.
//
// # Events and metrics
//
// An observer gets an event of package upgradeconfig for all that happens.
// [Metrics] makes the metrics of the managed-upgrade operator of them, such as
// upgradeoperator_upgrade_result.
//
// Plain data of this package is safe for concurrent use as long as nobody changes
// it. Package upgradetest has hooks for tests.
package upgrade
