// Package remedy does what makes findings of package preconditions go away. A check
// never writes; each action here is asked for by name.
//
//   - [Credentials] brings the CredentialsRequests of a release, their namespaces and
//     Secrets to a cluster that maintains cloud credentials by
//     hand, and says in the end that it is prepared.
//   - [Preflight] has out-of-tree kernel modules verified for a release.
//   - [HealthChecks] pauses MachineHealthChecks around an update and resumes them.
//   - [MultiArch] asks for the migration to the release for several architectures.
//   - [ControlPlaneArm64] plans a control plane on arm64 machines on AWS, and carries
//     out the steps that the cluster's API can.
//
// An action decides from what it reads, writes on condition that nobody else has
// written meanwhile, and can be repeated: after an error, a conflict or a crash the
// same call continues where the last one ended. What [HealthChecks] and [Preflight]
// must remember is in the cluster, in annotations that start with
// clusterupdate.github.io/.
//
// The types of this package are plain data: safe for concurrent use as long as nobody
// changes them.
//
// The procedures are those of the OpenShift documentation, "Updating clusters":
// https://docs.redhat.com/en/documentation/openshift_container_platform/4.18/html/updating_clusters/
package remedy
