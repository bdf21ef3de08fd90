// Package upgrade takes the upgrade that an UpgradeConfig asks for from its time
// to its end.
//
// [Controller] carries an UpgradeConfig out. At its time the object is
// validated, the provider is asked once more whether the upgrade is still
// wanted, and then the steps are taken: tell the provider, check the cluster's
// health, reserve capacity, write spec.desiredUpdate of the ClusterVersion, wait
// for the control plane and the worker nodes, and clean up. What a step needs of
// the world outside is a hook ([Capacity], [Check], [Maintenance], [Drain]). The
// update itself is the work of the cluster's version operator and
// machine-config controller. A Manager beside it asks the provider
// ([upgradeconfig.Manager.Refresh]) and tells it how the upgrade goes ([upgradeconfig.Manager.Notify]).
//
// What is to be told is stored before anybody hears it, and that it was told
// after: as the condition of a step, or in [AnnotationTold]. So it is told at
// least once, and a second time only where the process ended or a write failed
// in between, its answer was lost, or another Controller is at work. [Uninstall]
// removes the annotation.
//
// What happens is told as [upgradeconfig.Event] values; [Metrics] makes metrics
// of them.
package upgrade
