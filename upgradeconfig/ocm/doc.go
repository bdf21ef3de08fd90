// Package ocm has the upgrade policies that OpenShift Cluster Manager (OCM) has
// for a cluster, and tells OCM how their upgrades go. [Provider] is an
// [upgradeconfig.Provider] and an [upgradeconfig.Notifier].
//
// # From a policy to an UpgradeConfig
//
// OCM is asked for the cluster by the UUID that the cluster gives itself
// (external_id), then for the cluster's upgrade policies, then for the state of
// each, in the order of their next_run. One that is pending, completed or
// cancelled does not count. One without a version is an error, unless it is an
// automatic policy that is pending: the cluster is up to date. Policies of add-ons and node pools
// are not about the cluster's version.
//
//	desired.version        version
//	desired.channel        the cluster's channel group (stable if it has none
//	                       and its type is ARO) and
//	                       the version's minor: fast-4.17; see [upgradeconfig.InferChannel]
//	upgradeAt              next_run, whole seconds, in the zone as it came
//	PDBForceDrainTimeout   the cluster's node_drain_grace_period, in minutes
//	type                   Options.Type
//	capacityReservation    capacity_reservation, true if it is not said
//
// A policy whose next_run is missing or not a time is an error once it is the
// next one: a zero time would be long past, and the upgrade would start at once.
//
// Policies of a hosted control plane are at another path, and include their
// state: see [Kind].
//
// # No answer is not "no policy"
//
// Where no policy counts, the UpgradeConfig is deleted. So only status 200 with a
// document that reports how many policies there are, and has as many, is a list.
// Anything else is an error, whatever its status: an empty document, one that is
// not UTF-8 or of another kind, a document with other keys or the same one twice,
// an empty page, a list that keeps changing from one page to the next, a redirect
// to another server.
//
// Reads are tried again when OCM reports that it is busy (429, 503) or the
// connection breaks, at growing intervals or when the answer's Retry-After says.
// Changes are never sent twice: when a [Provider.Notify] that failed is called
// again, it reads the state again and finds out whether the change arrived.
//
// # Secrets
//
// The cluster's pull secret authenticates requests: header "Authorization:
// AccessToken UUID:TOKEN", with the token of cloud.openshift.com unchanged. It goes
// to the configured server alone, and is cut out of servers' answers before they
// get into an error, an event or the log. An embedder with another way to
// authenticate passes a transport that does it: [Options.Transport].
//
// # The agent
//
// A cluster can have an OCM agent that speaks for it. It answers for one cluster
// only, so the look-up is a plain GET /; it is in the cluster, so no proxy is
// used. Its address selects its dialect.
//
// # Notifications
//
// [Provider.Notify] finds the policy with the version and the instant of the
// UpgradeConfig, reads its state, and changes that if
// [upgradeconfig.State.Allows] lets it. Service logs, for the cluster's owner to read, are
// another service of OCM, and off by default.
//
// docs/limits.md lists the limits of this package.
//
// Options and errors are plain data, safe for concurrent use as long as nobody
// changes them. Package ocm/ocmtest is a fake OCM for tests.
//
// Sources: the managed-upgrade operator
// (https://github.com/openshift/managed-upgrade-operator) for what is asked and
// what follows from it, and the model of the API
// (https://github.com/openshift-online/ocm-api-model) for the wire format.
package ocm
