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
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
)

// rules are the kinds with rules of their own, each in exactly this version. It
// is never written to.
var rules = map[schema.GroupVersionKind]rule{
	corev1.SchemeGroupVersion.WithKind("Namespace"):                           typed[corev1.Namespace](nil, nil),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):                           typed(nil, configMap),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"):                      typed(nil, serviceAccount),
	corev1.SchemeGroupVersion.WithKind("Service"):                             typed(nil, service),
	rbacv1.SchemeGroupVersion.WithKind("Role"):                                typed(nil, role),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                         typed(nil, clusterRole),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):                         typed(nil, roleBinding),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):                  typed(nil, clusterRoleBinding),
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                          typed(func(d *appsv1.Deployment) { podDefaults(&d.Spec.Template.Spec) }, deployment),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                           typed(func(d *appsv1.DaemonSet) { podDefaults(&d.Spec.Template.Spec) }, daemonSet),
	batchv1.SchemeGroupVersion.WithKind("CronJob"):                            typed(cronJobDefaults, cronJob),
	batchv1.SchemeGroupVersion.WithKind("Job"):                                typed(func(j *batchv1.Job) { podDefaults(&j.Spec.Template.Spec) }, job),
	admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): typed(nil, webhooks),
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

// typed makes a rule of a function on a Go type that makes what required says true
// in existing. Both have their defaults written out, since absent and default mean
// the same: those of internal/apiserver, then what more does. Metadata are merged for
// all. Either function may be nil.
func typed[T any, P object[T]](more func(P), merge func(existing, required P) error) rule {
	return func(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
		before, wanted, err := decode[T](filled(existing), filled(required))
		if err != nil {
			return nil, false, err
		}
		if more != nil {
			more(before)
			more(wanted)
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

// unfilled are the fields that a merge enforces only if the manifest has them, and
// those for which the cluster-version operator has no default: a Job that names
// neither parallelism nor completions is written in every pass.
var unfilled = [][]string{
	{"spec", "revisionHistoryLimit"}, {"spec", "progressDeadlineSeconds"}, {"spec", "parallelism"}, {"spec", "completions"},
	{"spec", "template", "spec", "restartPolicy"}, {"spec", "finalizers"},
}

// parts are the maps that a kind has in its Go type, so that they have their defaults
// even where an object leaves them out.
var parts = map[string][]string{
	"Service": {"spec"}, "RoleBinding": {"roleRef"}, "ClusterRoleBinding": {"roleRef"},
	"Deployment": {"spec", "template", "spec"}, "DaemonSet": {"spec", "template", "spec"}, "Job": {"spec", "template", "spec"},
	"CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
}

// filled returns an object with its defaults, but for those of unfilled and of
// metadata.
func filled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = withoutManagedFields(u)
	complete := u
	if path, ok := parts[u.GetKind()]; ok {
		if part, _, err := unstructured.NestedFieldNoCopy(u.Object, path...); part == nil && err == nil {
			complete = u.DeepCopy()
			_ = unstructured.SetNestedMap(complete.Object, map[string]any{}, path...) // of another type, it is an error later
		}
	}
	out := apiserver.Fill(complete)
	if out == complete {
		return out
	}
	out.Object["metadata"] = u.Object["metadata"]
	for _, path := range unfilled {
		if value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); value == nil {
			unstructured.RemoveNestedField(out.Object, path...)
		}
	}
	return out
}

func metaOf(o metav1.ObjectMetaAccessor) *metav1.ObjectMeta {
	return o.GetObjectMeta().(*metav1.ObjectMeta)
}
