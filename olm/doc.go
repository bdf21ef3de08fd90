// Package olm decides which operators a namespace gets: what is installed,
// what is updated, what is kept and why, from the objects and catalogs of the
// Operator Lifecycle Manager (OLM).
//
// # Operators and catalogs
//
// An operator is installed as a ClusterServiceVersion (CSV). It provides APIs,
// of which each has one provider in a namespace, and may require APIs, packages
// or labels of others. A bundle is one version of an operator in a catalog. A
// package groups the bundles of one operator; a channel is a graph of updates
// between them, in which an entry names what it replaces, what it skips, and a
// range of versions that it may follow. The graph alone orders versions, not
// their numbers. A catalog is read by package
// github.com/clusterupdate/clusterupdate/olm/catalog, and a generation is brought
// into a cluster by github.com/clusterupdate/clusterupdate/olm/install. OLM's
// objects on the wire are in github.com/clusterupdate/clusterupdate/olm/api.
//
// A Subscription asks for a package and its updates. [Snapshot] holds all that a
// namespace's decision depends on: Subscriptions, installed CSVs, the
// OperatorGroup, and catalogs with their priorities.
//
// # Generations
//
// A generation is the set of operators of a namespace after one step.
// [Resolve] finds the next one. It keeps these promises:
//
//   - No operator is installed that lacks what it requires.
//   - No operator is updated so that one which stays loses what it had.
//   - An API has one provider, a package and a CSV's name one operator. (What
//     clashed before is tolerated, nothing is added to it.)
//   - As much as can be is served and updated: no Subscription is held back that
//     could have more with the others as they are.
//
// All Subscriptions move at once, one edge each: two operators that depend on
// each other's versions are updated in one step, or neither. What is required
// and not there is added, and gets a Subscription of its own. Preference is by
// order: Subscriptions by name, an update rather than none, entries from the
// head of the channel down, and for requirements what is installed, then the
// requirer's own catalog, then catalogs by priority, the namespace's own before
// global ones. New Subscriptions are served before others are updated.
//
// What cannot be is held back and the rest continues ([HeldBack]); what was broken
// before is tolerated and reported. With [Options.AllOrNothing] any such thing
// fails the namespace, as in OLM today: a [*NotSatisfiable] lists facts of which
// none can be left out, in OLM's words, for each conflict apart.
//
// [Generation.Explain] explains why an operator is as it is: what brought it, what
// stands against each option before it, and which changes would help. [Sequence]
// repeats until nothing changes any more.
//
// # How it is found
//
// Choosing operators is satisfiability: a chosen operator needs one of several
// others, and of some groups at most one may be chosen. Plain backtracking in the
// order of preference is exponential, since a dependency that fails undoes all
// choices after the one to blame. Instead, each choice is made for good: the first
// option with which a SAT solver finds any generation. The solver is a small one of
// our own (internal/sat), for three reasons that a general one does not offer:
// options are tried in the order of preference, so that the first model mostly is
// the answer; "at most one" is a constraint of its own instead of a clause for each
// pair; and operators are added to the problem only when a model chooses them, so
// that most of a catalog is never looked at. Resolving Subscriptions to all 332
// packages of a public catalog takes a few milliseconds, and hard catalogs of
// thousands of entries well below a second. Only a problem made to be hard for this
// kind of proof (such as many Subscriptions that must share one place too few)
// reaches [Options.MaxConflicts]: the search then gives up on that Subscription,
// says so in its [HeldBack], and continues with the others.
//
// # Updates of the cluster
//
// An operator may say up to which OpenShift version it works, by the property
// olm.maxOpenShiftVersion; it then holds back updates of the cluster beyond that.
// The package reports which operators do, and by which generations they get out of
// the way.
//
// # Later
//
// A [Generation] has JSON, which holds what it was resolved from. [ReadGeneration]
// makes it again, so that it can be explained without the cluster and its
// catalogs.
//
// # Concurrent use
//
// All types are safe for concurrent use while nobody changes them, but for
// [BundleReader]. What [Resolve] and NewContents return never changes. A [Catalog]
// and a [CELEvaluator] must be safe for concurrent use.
//
// docs/limits.md lists the limits of this package.
//
// Sources: the OLM repository (operator-framework/operator-lifecycle-manager,
// above all doc/design/dependency-resolution.md and pkg/controller/registry/resolver)
// and operator-framework/operator-registry, alpha/declcfg.
package olm
