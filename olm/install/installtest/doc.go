// Package installtest plays the half of OLM that package install leaves to a
// cluster: a ClusterServiceVersion goes through its phases to Succeeded, the one
// that it replaces is deleted, and a CatalogSource becomes READY. It is for tests
// and rehearsals, on any cluster whose OLM does not run.
//
// [OLM.Process] is for a driver of package reconcile, such as
// [reconcile.NewVirtual], alongside the Process of an install.Controller.
// [OLM.Advance] is for tests without time. The operators' objects are not made:
// neither Deployments nor roles.
//
// The phases are those of https://github.com/operator-framework/operator-lifecycle-manager
// (pkg/controller/operators/olm/operator.go).
package installtest
