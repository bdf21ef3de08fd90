// Package merge is how the cluster-version operator brings an object of a cluster
// in line with a manifest: a pure function of both, without a cluster.
//
//	merged, changed, err := merge.Merge(existing, required)
//	if err == nil && changed {
//		_, err = api.Update(ctx, merged, clusterapi.UpdateOptions{})
//	}
//
// Package runlevel does so with its option ApplyMerge. By default it uses
// server-side apply, which needs none of this.
//
// Kinds have rules of their own in exactly one version: Namespace, ClusterOperator,
// ConfigMap, ServiceAccount, Service, Role, ClusterRole and their bindings, Deployment,
// DaemonSet, CronJob, Job, CustomResourceDefinition, ValidatingWebhookConfiguration,
// SecurityContextConstraints, ImageStream and OperatorGroup. They add or overwrite labels,
// annotations and owners and never remove any. Of all other kinds the top-level keys are
// compared; if one differs, all those of the manifest are written, and its labels,
// annotations and owners replace what is there. docs/passes.md has the table.
//
// Absent is the same as an empty list or map, and as the default that the server
// writes; quantities count by value. So an object is not written again for what the
// server has made of it. A field that the Go type of a kind does not know is dropped from
// the result.
//
// Functions are safe for concurrent use. The rules are those of
// https://github.com/openshift/cluster-version-operator, lib/resourcemerge and
// lib/resourceapply.
package merge
