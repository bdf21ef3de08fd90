package dump

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinKinds are the stored kinds of k8s.io/api, and of OpenShift those that
// are namespaced. Manifests often leave the namespace out, so their scope must be
// known otherwise.
var builtinKinds = []struct{ group, namespaced, cluster string }{
	{"", "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount", "ComponentStatus Namespace Node PersistentVolume"},
	{"admissionregistration.k8s.io", "", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	{"apiextensions.k8s.io", "", "CustomResourceDefinition"},
	{"apiregistration.k8s.io", "", "APIService"},
	{"apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
	{"autoscaling", "HorizontalPodAutoscaler", ""},
	{"batch", "CronJob Job", ""},
	{"certificates.k8s.io", "PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"},
	{"coordination.k8s.io", "Lease LeaseCandidate", ""},
	{"discovery.k8s.io", "EndpointSlice", ""},
	{"events.k8s.io", "Event", ""},
	{"extensions", "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet", ""},
	{"flowcontrol.apiserver.k8s.io", "", "FlowSchema PriorityLevelConfiguration"},
	{"internal.apiserver.k8s.io", "", "StorageVersion"},
	{"networking.k8s.io", "Ingress NetworkPolicy", "IPAddress IngressClass ServiceCIDR"},
	{"node.k8s.io", "", "RuntimeClass"},
	{"policy", "PodDisruptionBudget", ""},
	{"rbac.authorization.k8s.io", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice"},
	{"scheduling.k8s.io", "", "PriorityClass"},
	{"storage.k8s.io", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
	{"storagemigration.k8s.io", "", "StorageVersionMigration"},

	{"apiserver.openshift.io", "", "APIRequestCount"},
	{"apps.openshift.io", "DeploymentConfig", ""},
	{"authorization.openshift.io", "RoleBindingRestriction", ""},
	{"build.openshift.io", "Build BuildConfig", ""},
	{"cloudcredential.openshift.io", "CredentialsRequest", ""},
	{"config.openshift.io", "ImagePolicy", ""},
	{"controlplane.operator.openshift.io", "PodNetworkConnectivityCheck", ""},
	{"image.openshift.io", "ImageStream", "Image"},
	{"ingress.operator.openshift.io", "DNSRecord", ""},
	{"machine.openshift.io", "ControlPlaneMachineSet Machine MachineHealthCheck MachineSet", ""},
	{"monitoring.coreos.com", "AlertmanagerConfig Alertmanager PodMonitor Probe Prometheus PrometheusRule ServiceMonitor ThanosRuler", ""},
	{"operator.openshift.io", "IngressController", ""},
	{"operators.coreos.com", "CatalogSource ClusterServiceVersion InstallPlan OperatorCondition OperatorGroup Subscription", "OLMConfig Operator"},
	{"route.openshift.io", "Route", ""},
	{"template.openshift.io", "Template TemplateInstance", ""},
	{"tuned.openshift.io", "Profile Tuned", ""},
}

// builtin are the built-in kinds by kind and by resource.
type builtin struct {
	namespaced map[schema.GroupKind]bool // false: cluster-scoped
	kinds      map[schema.GroupResource]schema.GroupKind
}

var builtins = sync.OnceValue(func() builtin {
	b := builtin{make(map[schema.GroupKind]bool), make(map[schema.GroupResource]schema.GroupKind)}
	add := func(group, names string, namespaced bool) {
		for name := range strings.FieldsSeq(names) {
			kind := schema.GroupKind{Group: group, Kind: name}
			b.namespaced[kind] = namespaced
			b.kinds[guess(kind)] = kind
		}
	}
	for _, k := range builtinKinds {
		add(k.group, k.namespaced, true)
		add(k.group, k.cluster, false)
	}
	return b
})

// guess returns the resource that a kind most likely has.
func guess(kind schema.GroupKind) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.GroupResource()
}
