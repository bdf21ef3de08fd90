package simulation

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Applied reports whether a stored object has the form that want, as a release has
// it, gives it: every field of want's spec is there with an equal value. Fields
// that others added do not matter, and of a list of objects each element must be
// found in the stored list, at any place, so that an added container or environment
// variable does not matter either. Lists of plain values must be equal. Workloads
// of Kubernetes are compared after defaults of form, such as the notation of
// quantities, are levelled out, and without fields that their types do not have.
func Applied(stored, want *unstructured.Unstructured) bool {
	return newExpectation(want).metBy(stored)
}

// expectation is the wanted form of one object.
type expectation struct {
	gvk  schema.GroupVersionKind
	key  types.NamespacedName
	spec any
}

func newExpectation(want *unstructured.Unstructured) *expectation {
	return &expectation{
		gvk:  want.GroupVersionKind(),
		key:  clusterapi.KeyOf(want),
		spec: comparableSpec(want),
	}
}

func (e *expectation) metBy(stored *unstructured.Unstructured) bool {
	return contains(comparableSpec(stored), e.spec)
}

// comparableSpec returns the spec in the form that its Go type writes, if there is
// one.
func comparableSpec(u *unstructured.Unstructured) any {
	var typed any
	switch u.GroupVersionKind() {
	case kindDeployment:
		typed = &appsv1.Deployment{}
	case kindDaemonSet:
		typed = &appsv1.DaemonSet{}
	case kindStatefulSet:
		typed = &appsv1.StatefulSet{}
	case kindJob:
		typed = &batchv1.Job{}
	case kindCronJob:
		typed = &batchv1.CronJob{}
	default:
		return u.Object["spec"]
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return u.Object["spec"]
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return u.Object["spec"]
	}
	return content["spec"]
}

// contains reports whether every field of want is in have.
func contains(have, want any) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for k, v := range w {
			if !contains(h[k], v) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		return listContains(h, w)
	default:
		return equality.Semantic.DeepEqual(have, want) || sameNumber(have, want)
	}
}

func listContains(have, want []any) bool {
	for _, w := range want {
		if _, isObject := w.(map[string]any); !isObject {
			return reflect.DeepEqual(have, want)
		}
		found := false
		for _, h := range have {
			if contains(h, w) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// sameNumber compares numbers that JSON and Go hold in different types.
func sameNumber(a, b any) bool {
	x, ok := number(a)
	if !ok {
		return false
	}
	y, ok := number(b)
	return ok && x == y
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}
