package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// Annotations that the simulation writes for itself: what a real host or
// daemon keeps where the API does not show it.
const (
	// annotationPods on a Deployment or DaemonSet makes the simulation run
	// pods for it. Without it only its status is played: an operator's own
	// workloads need no pods.
	annotationPods = clusterapi.AnnotationPrefix + "simulated-pods"
	// annotationDisk on a node names the rendered config on its disk while
	// that is not yet its current config.
	annotationDisk = clusterapi.AnnotationPrefix + "simulated-disk"
	// annotationBoot on a node that is to reboot is the boot id to leave.
	annotationBoot = clusterapi.AnnotationPrefix + "simulated-boot"
	// annotationRecorded on a pool of a fork is the name of its recorded config, and that
	// by which the simulation would have called it.
	annotationRecorded = clusterapi.AnnotationPrefix + "simulated-recorded"
)

// fieldManager owns the fields that the simulation writes.
const fieldManager = "simulation"

var (
	kindNode              = corev1.SchemeGroupVersion.WithKind("Node")
	kindNamespace         = corev1.SchemeGroupVersion.WithKind("Namespace")
	kindConfigMap         = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	kindPod               = corev1.SchemeGroupVersion.WithKind("Pod")
	kindDeployment        = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	kindReplicaSet        = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	kindDaemonSet         = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	kindStatefulSet       = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	kindJob               = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	kindCronJob           = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
	kindBudget            = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	kindClusterVersion    = configv1.GroupVersion.WithKind("ClusterVersion")
	kindClusterOperator   = configv1.GroupVersion.WithKind("ClusterOperator")
	kindMachineConfig     = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfig"}
	kindMachineConfigPool = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}
	kindControllerConfig  = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "ControllerConfig"}
)

// path names an object among those of its kind: "namespace/name", or "name".
func path(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// imageOf makes up a pull spec.
func imageOf(name, version string) string {
	return fmt.Sprintf("registry.example/simulated/%s@sha256:%s", name, digest(name+" "+version))
}

// kubeVersion returns the version of a release's kubelets: what its API server reports, else the
// first of its minor version.
func (r *Release) kubeVersion() (string, error) {
	for _, o := range r.Operators {
		if version := kubeVersionOf(o.Name, o.Versions); version != "" {
			return version, nil
		}
	}
	v, err := openshift.ParseVersion(r.Version)
	if err != nil {
		return "", fmt.Errorf("release %s: set KubeVersion, or a version of OpenShift: %w", r.Version, err)
	}
	minor, known := openshift.MinorOf(v).Kubernetes()
	if !known {
		return "", fmt.Errorf("release %s: set KubeVersion: the Kubernetes of OpenShift %s is not known",
			r.Version, openshift.MinorOf(v))
	}
	return fmt.Sprintf("v1.%d.0", minor), nil
}

// kubeVersionOf returns the version of kubelets that go with an operator's versions; "" if
// they do not name the API server's.
func kubeVersionOf(operator string, operands []configv1.OperandVersion) string {
	const apiServer = "kube-apiserver"
	for _, v := range operands {
		if operator == apiServer && v.Name == apiServer && strings.HasPrefix(v.Version, "1.") {
			return "v" + v.Version
		}
	}
	return ""
}

// condition finds a condition of a ClusterOperator, nil if absent.
func condition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	return find(conditions, func(c *configv1.ClusterOperatorStatusCondition) bool { return c.Type == t })
}

// setCondition sets a condition of a ClusterOperator; its time moves only when
// the status does.
func setCondition(conditions *[]configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string, now metav1.Time) {
	c := condition(*conditions, t)
	if c == nil {
		*conditions = append(*conditions, configv1.ClusterOperatorStatusCondition{Type: t})
		c = &(*conditions)[len(*conditions)-1]
	}
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, now
	}
	c.Reason, c.Message = reason, message
}
