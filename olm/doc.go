// Package olm decides which operators a namespace gets: what is installed, updated and
// kept, and why, from the objects and catalogs of the Operator Lifecycle Manager (OLM).
//
// An operator is installed as a ClusterServiceVersion (CSV). It provides APIs, of which
// each has one provider in a namespace, and may require APIs, packages or
// labels. A [Bundle] is one version of an operator in a catalog. A [Package] groups the
// bundles of one operator. A [Channel] is a graph of updates between them: each [Entry]
// names what it replaces and skips, and a range of versions that it may follow. The
// graph alone orders versions. A Subscription asks for a package and its updates.
//
// [Snapshot] holds all that the decision for a namespace depends on. A [Generation] is
// the set of its operators after one step. [Resolve] finds the next one:
//
//   - No operator is installed that lacks what it requires.
//   - No operator is updated so that one which stays loses what it had.
//   - An API has one provider, a package and a CSV's name one operator. (A clash of
//     installed operators is tolerated; nothing is added to it.)
//   - As much as can be is served and updated: no Subscription is held back that
//     could have more with the others as they are.
//
// All Subscriptions move at once, one edge each: two operators that depend on each
// other's versions are updated in one step, or neither. What is required and not there
// is added, and gets a Subscription of its own. Preference is by order: Subscriptions by
// name, an update rather than none, entries from the head of the channel down, and for
// requirements what is installed, then the requirer's own catalog, then catalogs by
// priority, the namespace's own before global ones.
//
// What cannot be is held back and the rest continues ([HeldBack]). With
// [Options.AllOrNothing] it fails the namespace, as in OLM: a [*NotSatisfiable] lists
// facts of which none can be left out. [Generation.Explain] explains why an operator is
// as it is, and which changes would help. [Sequence] repeats until nothing changes.
// [Plan] reports which operators must move before the cluster is updated.
//
// Each choice is final: the first option with which a SAT solver (internal/sat) finds any
// generation. The solver is our own because it tries options in the order of preference,
// has "at most one" as a constraint, and takes in operators only when a model chooses
// them. A problem that is hard for it reaches [Options.MaxConflicts].
//
// All types are safe for concurrent use while nobody changes them, but for
// [BundleReader]. What [Resolve] and [NewContents] return never changes. docs/limits.md
// lists the limits of this package. Packages catalog, api, install and cel stand below.
//
// Sources: operator-framework/operator-lifecycle-manager (above all
// doc/design/dependency-resolution.md and pkg/controller/registry/resolver) and
// operator-framework/operator-registry, alpha/declcfg.
package olm
