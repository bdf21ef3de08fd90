package dump_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestScopesOfBuiltinKinds compares what this package knows of the stored kinds of
// k8s.io/api with what the cluster in memory knows, which is generated from it.
func TestScopesOfBuiltinKinds(t *testing.T) {
	c := memory.New(memory.Options{})
	r := mustOpen(t, files("-- a.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}"), dump.Options{})
	for _, text := range strings.Split(strings.TrimSpace(storedKinds), "\n") {
		kind := gvk(text)
		u := object(t, "{apiVersion: "+kind.GroupVersion().String()+", kind: "+kind.Kind+", metadata: {name: x, namespace: a}}")
		if err := c.Load(u); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		stored, err := c.Get(t.Context(), kind, clusterapi.Key("a", "x"))
		checktest.FatalIf(t, err != nil, "%s: %v", text, err)
		checktest.Equal(t, stored.GetNamespace() != "", r.Coverage(kind).Namespaces != nil, "%s: namespaced", text)
	}
}

const storedKinds = `
v1 ConfigMap
v1 Endpoints
v1 LimitRange
v1 PersistentVolumeClaim
v1 Pod
v1 PodTemplate
v1 ReplicationController
v1 ResourceQuota
v1 Secret
v1 Service
v1 ServiceAccount
v1 Namespace
v1 Node
v1 PersistentVolume
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration
apps/v1 ControllerRevision
apps/v1 DaemonSet
apps/v1 Deployment
apps/v1 ReplicaSet
apps/v1 StatefulSet
autoscaling/v2 HorizontalPodAutoscaler
batch/v1 CronJob
batch/v1 Job
certificates.k8s.io/v1 CertificateSigningRequest
coordination.k8s.io/v1 Lease
discovery.k8s.io/v1 EndpointSlice
flowcontrol.apiserver.k8s.io/v1 FlowSchema
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration
networking.k8s.io/v1 IPAddress
networking.k8s.io/v1 Ingress
networking.k8s.io/v1 IngressClass
networking.k8s.io/v1 NetworkPolicy
networking.k8s.io/v1 ServiceCIDR
node.k8s.io/v1 RuntimeClass
policy/v1 PodDisruptionBudget
rbac.authorization.k8s.io/v1 ClusterRole
rbac.authorization.k8s.io/v1 ClusterRoleBinding
rbac.authorization.k8s.io/v1 Role
rbac.authorization.k8s.io/v1 RoleBinding
resource.k8s.io/v1 DeviceClass
resource.k8s.io/v1 ResourceClaim
resource.k8s.io/v1 ResourceClaimTemplate
resource.k8s.io/v1 ResourceSlice
scheduling.k8s.io/v1 PriorityClass
storage.k8s.io/v1 CSIDriver
storage.k8s.io/v1 CSINode
storage.k8s.io/v1 CSIStorageCapacity
storage.k8s.io/v1 StorageClass
storage.k8s.io/v1 VolumeAttachment
storage.k8s.io/v1 VolumeAttributesClass
`

// An empty v1 List of each of these has the kind of its path.
func TestResourcesOfBuiltinKinds(t *testing.T) {
	want := map[string]string{
		"core/endpoints": "v1 Endpoints", "core/events": "", "networking.k8s.io/ingresses": "networking.k8s.io/v1 Ingress",
		"networking.k8s.io/networkpolicies": "networking.k8s.io/v1 NetworkPolicy", "policy/poddisruptionbudgets": "policy/v1 PodDisruptionBudget",
		"monitoring.coreos.com/servicemonitors": "monitoring.coreos.com/v1 ServiceMonitor", "discovery.k8s.io/endpointslices": "discovery.k8s.io/v1 EndpointSlice",
		"batch/cronjobs": "batch/v1 CronJob", "core/persistentvolumeclaims": "v1 PersistentVolumeClaim", "route.openshift.io/routes": "route.openshift.io/v1 Route",
	}
	tree := "-- namespaces/a/a.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"
	for _, name := range slices.Sorted(maps.Keys(want)) {
		tree += "-- namespaces/a/" + name + ".yaml --\n{apiVersion: v1, kind: List, items: []}\n"
	}
	r := mustOpen(t, files(tree), dump.Options{})
	checkProblems(t, r, "")
	for name, kind := range want {
		checktest.FailIf(t, kind != "" && r.Coverage(gvk(kind)).In("a") != "whole", "%s is not %s", name, kind)
	}
}

func TestMustGatherNamesResourcesOnce(t *testing.T) {
	seen := map[schema.GroupResource]bool{}
	for _, r := range dump.MustGather() {
		checktest.FailIf(t, seen[r], "%s is there twice", r)
		seen[r] = true
	}
	for _, name := range []string{"clusteroperators.config.openshift.io", "nodes", "machineconfigs.machineconfiguration.openshift.io", "machineconfigpools.machineconfiguration.openshift.io",
		"customresourcedefinitions.apiextensions.k8s.io", "certificatesigningrequests.certificates.k8s.io", "persistentvolumes", "storageclasses.storage.k8s.io"} {
		checktest.FailIf(t, !seen[schema.ParseGroupResource(name)], "%s is missing", name)
	}
	dump.MustGather()[0].Resource = "changed"
	checktest.FailIf(t, dump.MustGather()[0].Resource == "changed", "a change of the result changes the next one")
}
