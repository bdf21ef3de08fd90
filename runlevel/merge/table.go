package merge

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	securityv1 "github.com/openshift/api/security/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// rules are the kinds with rules of their own, each in exactly this version. It
// is never written to.
var rules = map[schema.GroupVersionKind]rule{
	corev1.SchemeGroupVersion.WithKind("Namespace"):                           typed[corev1.Namespace](nil, nil),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):                           typed(nil, configMap),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"):                      typed(nil, serviceAccount),
	corev1.SchemeGroupVersion.WithKind("Service"):                             typed(serviceDefaults, service),
	rbacv1.SchemeGroupVersion.WithKind("Role"):                                typed(nil, role),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                         typed(nil, clusterRole),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):                         typed(roleBindingDefaults, roleBinding),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):                  typed(clusterRoleBindingDefaults, clusterRoleBinding),
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                          typed(deploymentDefaults, deployment),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                           typed(daemonSetDefaults, daemonSet),
	batchv1.SchemeGroupVersion.WithKind("CronJob"):                            typed(cronJobDefaults, cronJob),
	batchv1.SchemeGroupVersion.WithKind("Job"):                                typed(jobDefaults, job),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): typed(webhookDefaults, webhooks),
	configv1.GroupVersion.WithKind("ClusterOperator"):                         typed[configv1.ClusterOperator](nil, nil),
	securityv1.GroupVersion.WithKind("SecurityContextConstraints"):            typed(constraintsDefaults, constraints),
	imagev1.GroupVersion.WithKind("ImageStream"):                              typed(imageStreamDefaults, imageStream),
	crdKind:           definition,
	operatorGroupKind: operatorGroup,
}

// object is a pointer to a typed object.
type object[T any] interface {
	*T
	runtime.Object
	metav1.ObjectMetaAccessor
}

// typed makes a rule of functions on a Go type: one that writes the defaults of
// absent fields out, in both objects, since absent and default mean the same, and
// one that makes what required says true in existing. Metadata are merged for all.
// Either function may be nil.
func typed[T any, P object[T]](defaults func(P), merge func(existing, required P) error) rule {
	return func(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
		before, wanted, err := decode[T](existing, required)
		if err != nil {
			return nil, false, err
		}
		if defaults != nil {
			defaults(before)
			defaults(wanted)
		}
		after := P(before).DeepCopyObject().(P)
		if merge != nil {
			if err := merge(after, wanted); err != nil {
				return nil, false, err
			}
		}
		mergeMeta(metaOf(after), metaOf(P(wanted)))
		if equality.Semantic.DeepEqual(P(before), after) {
			return existing, false, nil
		}
		merged, err := clusterapi.ToUnstructured(after)
		if err != nil {
			return nil, false, err
		}
		keepServerFields(merged, existing)
		return merged, true, nil
	}
}

func metaOf(o metav1.ObjectMetaAccessor) *metav1.ObjectMeta {
	return o.GetObjectMeta().(*metav1.ObjectMeta)
}
