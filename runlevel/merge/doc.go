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
// # Rules
//
// Kinds have rules of their own in exactly one version; in other versions they are
// merged like any kind. Enforced means: what the manifest does not say is cleared,
// or gets its default.
//
//	Namespace, ClusterOperator    metadata alone
//	ConfigMap                     keys of data and binaryData are added; those of others stay
//	ServiceAccount                automountServiceAccountToken enforced; secrets stay
//	Service                       ports by name, type and selector enforced; chosen node ports stay
//	Role, ClusterRole             rules replaced; of an aggregated role, the aggregation alone
//	RoleBinding, …                subjects and roleRef replaced
//	Deployment                    replicas, selector, paused, minReadySeconds, strategy enforced; history limit
//	                              and progress deadline if given; pods
//	DaemonSet                     selector enforced; pods
//	CronJob                       deadline, suspend, history limits, schedule, time zone, concurrency enforced; Job
//	Job                           parallelism, completions, deadline, backoffLimit, completionMode, suspend,
//	                              manualSelector, ttlSecondsAfterFinished, podFailurePolicy enforced; pods
//	CustomResourceDefinition      spec replaced; an injected CA bundle stays
//	ValidatingWebhookConfig…      webhooks replaced; an injected CA bundle stays, in all of them
//	SecurityContextConstraints    all enforced but userNamespaceLevel
//	ImageStream                   lookup policy enforced; tags added, or their from and importPolicy corrected
//	OperatorGroup                 selector, targets, static flag, upgrade strategy enforced; account if given
//	all others                    top-level keys are compared; if one differs, all those of the manifest are
//	                              written, and its labels, annotations and owners replace what is there
//
// In all but the last row labels, annotations and owners (by UID) are added or
// overwritten, never removed; in templates too. Of pods, containers, their ports and
// mounts, and volumes are those of the manifest; command, args, env, resources,
// liveness and readiness probes and security contexts are enforced; tolerations, node
// selectors, capabilities, supplemental groups and sysctls are added to; affinity,
// restart policy, service account and priority class count if given. Nothing else of
// a pod is looked at.
//
// # What is the same
//
// Absent is the same as an empty list or map, and as the default that the server
// writes; quantities count by value. So an object is not written again for what the
// server has made of it. There are exceptions, which the operator has too:
//
//   - a Job that names neither parallelism nor completions: the server sets both, and
//     they are cleared again;
//   - an object of the last row whose server adds a top-level key (the type of a
//     Secret), writes one elsewhere (its stringData) or sets a default within one.
//
// In kinds of the last row that have no Go type in k8s.io/api or
// github.com/openshift/api, and in definitions, {} below the top level is a value
// of its own.
//
// A field that the Go type of a kind does not know is dropped from the result. An
// object that is not changed keeps it.
//
// Functions are safe for concurrent use.
package merge
