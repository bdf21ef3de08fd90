// Package install brings a generation of operators into a cluster.
//
// [ReadSnapshot] reads from a cluster what a resolution looks at. [Decide] turns
// the generation that it comes to into what is to be done, each with its reason:
// bundle images are unpacked, an InstallPlan is created, approved or superseded,
// Subscriptions get their status, plans are carried out. Neither writes anything.
//
// [Controller] does what Decide says: as a process of package reconcile
// ([Controller.Process], [Controller.Run]), or in a loop of the caller's
// ([Controller.Sync]).
//
// # What a plan may write
//
// A plan is carried out with great rights, and what it holds comes from a
// catalog. So all of it is judged before anything is written ([Refusal]):
//
//   - The kinds are those that OLM supports in a bundle.
//   - Objects go to the plan's namespace, but for kinds that have none.
//   - CSVs and Subscriptions are those of the plan's operators, and no other has
//     their names. OLM's copy of an operator of another namespace is not the
//     operator: the plan waits until it is gone.
//   - A CustomResourceDefinition keeps every version in which objects are stored,
//     and existing objects stay valid.
//
// A plan is carried out only while the present resolution asks for it. An
// OperatorGroup's service account bounds the rights: see Options.Identity.
//
// # Concurrent use
//
// A [Controller] is safe for concurrent use, see there. All else is plain
// data: safe for concurrent use while it is not changed.
//
// docs/limits.md lists the limits of this package.
//
// Source: operator-framework/operator-lifecycle-manager, pkg/controller/operators/catalog.
package install
