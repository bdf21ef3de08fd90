// Package install brings a generation of operators into a cluster.
//
// [NewChanges] turns a generation into the steps of an InstallPlan, [DecidePlan]
// says whether there is to be one, and the functions around them give
// Subscriptions their status. [Decide] puts them together: given all that is
// known of a namespace, it lists what is to be done, each with its reason.
// [Controller] does that in a cluster: as a process of package reconcile
// ([Controller.Process], [Controller.Run]), or in a loop of the caller's
// ([Controller.Sync]).
//
// A plan is carried out with great rights, and what it holds comes from a
// catalog. So all of it is judged before anything is written ([Refusal]): the
// kinds are those that OLM supports in a bundle, objects are in the plan's
// namespace or of a kind that has none, CSVs and Subscriptions are those of the
// plan's operators, and a CustomResourceDefinition keeps every version in which
// objects are stored, and all existing objects valid. A plan is carried out
// only while the present resolution asks for it. An OperatorGroup's service
// account bounds the rights, see Options.Identity.
//
// # Limits
//
//	limit                              default  field                         past it
//	message of a condition or plan     32 KiB   -                             says how many bytes are left out
//
// Source: operator-framework/operator-lifecycle-manager, pkg/controller/operators/catalog.
package install
