package runlevel

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// kubernetesTypes are the types of k8s.io/api by kind: those whose schema an
// API server enforces when fields are applied.
var kubernetesTypes = sync.OnceValue(func() map[schema.GroupVersionKind]reflect.Type {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, admissionregistrationv1beta1.AddToScheme,
		appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		flowcontrolv1.AddToScheme, flowcontrolv1beta3.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme,
		schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := install(scheme); err != nil {
			panic(err) // a fault of the linked API packages, not of any input
		}
	}
	return scheme.AllKnownTypes()
})

// removeUnknown removes the fields that the type of obj's kind does not have
// and returns their paths, sorted. Kinds other than those of k8s.io/api stay
// as they are. A field of the wrong type is an error.
func removeUnknown(obj *unstructured.Unstructured) ([]string, error) {
	t, ok := kubernetesTypes()[obj.GroupVersionKind()]
	if !ok {
		return nil, nil
	}
	var removed []string
	// the decoder stops counting at a hundred faults, so look again until
	// there is none left
	for {
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		faults, err := kjson.UnmarshalStrict(raw, reflect.New(t).Interface(), kjson.DisallowUnknownFields)
		if err != nil {
			return nil, err
		}
		if len(faults) == 0 {
			slices.Sort(removed)
			return removed, nil
		}
		// elements of lists are never removed, so paths stay valid
		for _, fault := range faults {
			field, ok := fault.(kjson.FieldError)
			if !ok || !removePath(obj.Object, field.FieldPath()) {
				return nil, fmt.Errorf("cannot remove what the schema lacks: %w", fault)
			}
			removed = append(removed, field.FieldPath())
		}
		if len(removed) > maxUnknown {
			return nil, tooManyUnknown(removed)
		}
	}
}

func tooManyUnknown(removed []string) error {
	return fmt.Errorf("more than %d fields that the schema lacks, beginning with %s", maxUnknown, quote(removed[0]))
}

// removePath removes the field at a path such as
// spec.containers[0].unknown. Keys may hold dots and brackets themselves, so
// the path is matched against what is there.
func removePath(value any, path string) bool {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v[path]; ok {
			delete(v, path)
			return true
		}
		for i := range len(path) {
			if path[i] != '.' && path[i] != '[' {
				continue
			}
			child, ok := v[path[:i]]
			if ok && removePath(child, strings.TrimPrefix(path[i:], ".")) {
				return true
			}
		}
	case []any:
		digits, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(digits)
		if !ok || err != nil || i < 0 || i >= len(v) {
			return false
		}
		return removePath(v[i], strings.TrimPrefix(rest, "."))
	}
	return false
}
