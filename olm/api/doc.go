// Package api has the objects of the Operator Lifecycle Manager as they are on the
// wire, as far as decisions need them: Subscriptions, ClusterServiceVersions,
// CatalogSources, OperatorGroups and InstallPlans, with their constants.
//
// Fields that the types do not have survive where objects are changed by
// clusterapi.Modify. All types are plain data: safe for concurrent use while they
// are not changed.
//
// Source: operator-framework/api, pkg/operators.
package api
