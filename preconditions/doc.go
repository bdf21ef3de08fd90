// Package preconditions answers one question: may this cluster start this
// update?
//
// Every rule is a [Check] with a stable name. It reads the cluster, writes
// nothing, and has findings: Info (worth knowing), Warning (recorded), Blocking
// (stops the update). What it cannot find out it reports as Unknown, never as
// passed: a read that failed or is forbidden, a time-out, a panic, a kind that a
// must-gather does not contain.
//
// [Run] runs a set of checks on one [Input], eight at a time, and returns a
// [Report] in the order of the set. The checks together send each Get and List once, so
// all judge the same state. The same input gives the same report, byte for byte.
//
// [Report.Decide] turns a report into a [Decision] by a [Policy]: what blocks,
// the summary for the condition ReleaseAccepted, and the text for the history's
// acceptedRisks. Force, the flag of spec.desiredUpdate, sets all blocking findings aside.
// A [Bypass] sets one check aside, for one target image, and is recorded with who and
// why.
//
// [Operator] returns the checks that the cluster-version operator runs when it has
// loaded the payload of a new target, with its texts: ClusterVersionRollback,
// ClusterVersionGiantHop, ClusterVersionUpgradeable and ClusterVersionRecommendedUpdate.
// [AtLoad] adds those on the release itself, SkipsMinors among them. Package preconditions/rules has these and
// the checks that the documentation asks an administrator to make. docs/reference.md
// lists all of them.
//
// A check may be [Described]: its [Rule] names, as data, which steps it concerns, which
// kinds it reads and what else it needs, how severe its findings can be, and where to
// read about it. [NewCheck] makes one of a rule and a function. A finding names every
// object at fault, and what to do; package preconditions/remedy does it.
//
// The condition Upgradeable of the ClusterVersion is computed by [Upgradeable]
// from the risks of five [Sources]: an update in progress, overrides, deletions
// in progress, administrator acknowledgements ([Gates]), and ClusterOperators
// with Upgradeable=False. It is False or absent, Unknown if nothing is known, and never
// True.
//
// Plain data of this package (inputs, findings, reports, policies, options) is
// safe for concurrent use as long as nobody changes it.
//
// The rules are those of the cluster-version operator and of the OpenShift
// documentation, "Updating clusters":
// https://docs.redhat.com/en/documentation/openshift_container_platform/4.18/html/updating_clusters/
package preconditions
