// Package rules has the checks that OpenShift's documentation asks an administrator to
// make before an update, each a [preconditions.Check]: of machine config pools and
// their nodes, kubelets, disruption budgets and spare capacity, cloud credentials,
// alerts, removed APIs, operators, backups, mirrors and more.
//
// [Documented] returns them, [Default] adds those of the cluster-version operator and
// of the release itself. [Options] adjust them; checks and options are safe for
// concurrent use. Each is [preconditions.Described]: its
// Rule names where to read about it.
//
// Checks that need what the API server cannot give (alerts, backups, vSphere's
// versions, payloads) find it in [preconditions.Input]; without it they are Unknown.
//
// The rules are those of "Updating clusters":
// https://docs.redhat.com/en/documentation/openshift_container_platform/4.18/html/updating_clusters/
package rules
