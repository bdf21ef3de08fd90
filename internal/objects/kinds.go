package objects

import (
	"fmt"
	"reflect"
	"sync"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	machinev1 "github.com/openshift/api/machine/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	securityv1 "github.com/openshift/api/security/v1"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinder is clusterapi.Kinder.
type kinder interface {
	APIKind() schema.GroupVersionKind
}

// KindOf returns the kind of a pointer to a typed object: a struct of k8s.io/api or
// github.com/openshift/api, or one with a method APIKind. Any other type is an error.
func KindOf(obj any) (schema.GroupVersionKind, error) {
	if k, ok := obj.(kinder); ok {
		return k.APIKind(), nil
	}
	t := reflect.TypeOf(obj).Elem()
	gvk, ok := kinds()[t]
	if !ok {
		return gvk, fmt.Errorf("clusterapi: the kind of %s is not known", t)
	}
	return gvk, nil
}

// TypeOf returns the struct type of a kind of k8s.io/api or
// github.com/openshift/api: the inverse of [KindOf] for these.
func TypeOf(gvk schema.GroupVersionKind) (reflect.Type, bool) {
	t, ok := kindTypes()[gvk]
	return t, ok
}

var kindTypes = sync.OnceValue(func() map[schema.GroupVersionKind]reflect.Type {
	m := make(map[schema.GroupVersionKind]reflect.Type)
	for t, gvk := range kinds() {
		m[gvk] = t
	}
	return m
})

// kinds maps struct types to their kinds. Where a type stands for several, the
// first by name wins; only option types do.
var kinds = sync.OnceValue(func() map[reflect.Type]schema.GroupVersionKind {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, admissionregistrationv1.AddToScheme, coordinationv1.AddToScheme,
		networkingv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
		admissionregistrationv1beta1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		certificatesv1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme,
		flowcontrolv1beta3.AddToScheme, nodev1.AddToScheme, resourcev1.AddToScheme,
		configv1.Install, mcfgv1.Install, operatorv1.Install, operatorv1alpha1.Install, imagev1.Install,
		machinev1.Install, machinev1beta1.Install, apiserverv1.Install, securityv1.Install,
	} {
		if err := install(scheme); err != nil {
			panic(err) // a fault of the linked API packages, not of any input
		}
	}
	m := make(map[reflect.Type]schema.GroupVersionKind)
	for gvk, t := range scheme.AllKnownTypes() {
		if old, ok := m[t]; !ok || gvk.String() < old.String() {
			m[t] = gvk
		}
	}
	return m
})
