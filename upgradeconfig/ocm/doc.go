// Package ocm reads the upgrade policies of a cluster from OpenShift Cluster Manager
// (OCM) and notifies OCM of their upgrades. [Provider] is an [upgradeconfig.Provider]
// and an [upgradeconfig.Notifier].
//
// A provider asks for the cluster by the UUID that the cluster gives itself
// (external_id), then for its upgrade policies, then for the state of each, in the
// order of their next_run. Policies of add-ons and node pools do not concern the
// cluster's version; those of a hosted control plane have another path ([Kind]). An
// UpgradeConfig gets from a policy:
//
//	desired.version        version
//	desired.channel        the cluster's channel group (stable if it has none and its
//	                       type is ARO) and the version's minor: fast-4.17
//	upgradeAt              next_run, whole seconds, in the zone as it came
//	PDBForceDrainTimeout   the cluster's node_drain_grace_period, in minutes
//	type                   Options.Type
//	capacityReservation    capacity_reservation, true by default
//
// The next policy must have a time and a version; only an automatic policy that is
// pending may lack the version, since the cluster is up to date.
//
// Without a policy that counts, the UpgradeConfig is deleted. So only status 200 with
// a document that reports how many policies there are, and has as many, is a list.
// Anything else is an error: an empty document, unknown or repeated keys, an empty
// page, a list that keeps changing between pages, a redirect to another server.
//
// Reads are tried again when OCM is busy (429, 503) or the connection breaks, at
// growing intervals or as Retry-After says. Changes are never sent twice: a repeated
// [Provider.Notify] reads the state first. It changes the state of the policy with
// the version and instant of the UpgradeConfig if [upgradeconfig.State.Allows] lets
// it. Service logs, for the owner of the cluster, are another service of OCM, and off
// by default.
//
// The cluster's pull secret authenticates requests, with the token of
// cloud.openshift.com; [Options.Transport] replaces that. The token goes to the
// configured server alone and is cut out of answers before they reach an error, an
// event or the log. The OCM agent of a cluster answers for that cluster only, without
// a proxy; its address selects its dialect.
//
// Sources: https://github.com/openshift/managed-upgrade-operator for the rules, and
// https://github.com/openshift-online/ocm-api-model for the wire format.
//
// Options and errors are plain data, safe for concurrent use as long as nobody
// changes them. docs/limits.md lists the limits. Package ocmtest is a fake OCM.
package ocm
