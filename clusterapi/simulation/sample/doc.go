// Package sample embeds two small releases, self-written and laid out as in a
// release image, and an update graph that leads from one to the other: to try an update
// on a simulated cluster where no real release is at hand.
//
// A release has 10 ClusterOperators and ten runlevels. Levels 03, 20, 25, 50,
// 70 and 90 hold several components, which an update may handle in parallel;
// machine-config is alone at level 80. Besides what every release has
// (Namespaces, CRDs, RBAC, Deployments, ClusterOperators), each holds manifests
// of every sort that is treated in a special way:
//
//   - templates in manifests/ that name the release image and a component image;
//   - a Job alone at level 40, a barrier between the levels around it;
//   - two DaemonSets, a Service, a manifest in JSON form, files of several documents;
//   - custom resources of CRDs that the release brings, one of them create-only;
//     in [To] the CRD of etcd has a field more, and the resource uses it;
//   - a manifest of capability openshift-samples, one of feature set
//     TechPreviewNoUpgrade, and one for the profile ibm-cloud-managed that has
//     the identity of another;
//   - the ConfigMaps of admin gates and acknowledgments: no gate of [From]
//     applies to its version, the one of [To] applies and is open;
//   - the ConfigMap that configures signature verification; the private part
//     of its key was thrown away;
//   - in [To] a manifest that deletes a ConfigMap of [From].
//
// All functions are safe for concurrent use. [Payload] fails for what is not one
// of the two releases.
package sample
