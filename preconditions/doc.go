// Package preconditions answers one question: may this cluster start this
// update?
//
// # Checks
//
// Every rule is a [Check] with a stable name. It reads the cluster, writes
// nothing, and has findings: Info (worth knowing), Warning (recorded), Blocking
// (stops the update). What it cannot find out it reports as Unknown, never as
// passed: a read that failed or is forbidden, a time-out, a panic, a kind that a
// must-gather does not contain.
//
// [Run] runs a set of checks on one [Input], eight at a time, and returns a
// [Report] in the order of the set. Reads are shared: the checks together send each
// Get and List once, so all judge the same state, and the report carries the
// resourceVersions of the objects that they read. The same input gives the same
// report, byte for byte.
//
// [Report.Decide] turns a report into a [Decision] by a [Policy]: what blocks,
// the summary for the condition ReleaseAccepted, and the text for the history's
// acceptedRisks. Two ways lead past a blocking finding. Force, the flag of
// spec.desiredUpdate, sets all of them aside. A [Bypass] sets one check aside,
// for one target image, and is recorded with who and why.
//
// # The operator's four
//
// [Operator] returns the checks that the cluster-version operator runs when it
// has loaded the payload of a new target, with its texts:
//
//   - ClusterVersionRollback: an older version must be the previous one, of the
//     same minor version.
//   - ClusterVersionGiantHop: at most one minor version at a time; no other
//     major, except from 4 to 5.0.
//   - ClusterVersionUpgradeable: while the condition Upgradeable is False, no
//     other minor or major version. Patches pass.
//   - ClusterVersionRecommendedUpdate: warns if the update service does not
//     recommend the target.
//
// [AtLoad] adds ReleasePrevious and ReleaseNewer, which look at the release
// itself, warns of minor versions that are skipped, and refuses a way back from several architectures to one.
//
// Package preconditions/rules has these and the checks that the documentation asks an
// administrator to make: of pools and their nodes, kubelets, disruption budgets, cloud
// credentials, alerts, removed APIs, operators, backups, mirrors and more.
//
// # Rules
//
// A check may be [Described]: its [Rule] names, as data, which steps it concerns, which
// kinds it reads and what else it needs, how severe its findings can be, and where to
// read about it. [NewCheck] makes one of a rule and a function. A finding names every
// object at fault, and what to do. What a check found for certain counts also if it
// could not look at everything: of a list that is known in part, two budgets that block
// are two budgets that block.
//
// A [Report] is JSON; package clusterapi/forecast writes findings for people.
// Package preconditions/remedy does what makes findings go away.
//
// # Upgradeable
//
// The condition Upgradeable of the ClusterVersion is computed by [Upgradeable]
// from the risks of five [Sources]: an update in progress, overrides, deletions
// in progress, administrator acknowledgements ([Gates]), and ClusterOperators
// with Upgradeable=False. The condition is False or absent, and Unknown
// if nothing is known; it is never True. How its reason reads is a
// [ReasonStyle].
//
// Plain data of this package (inputs, findings, reports, policies, options) is
// safe for concurrent use as long as nobody changes it.
//
// The rules are those of the cluster-version operator and of the OpenShift
// documentation, "Updating clusters":
// https://docs.redhat.com/en/documentation/openshift_container_platform/4.18/html/updating_clusters/
package preconditions
