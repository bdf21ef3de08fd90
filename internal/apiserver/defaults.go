package apiserver

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fill returns a copy of an object of a built-in kind with its defaults. Objects of
// other kinds, and those without defaults, are returned as they are. It does not
// change obj. A value that is not of its type is left alone.
func Fill(obj *unstructured.Unstructured) *unstructured.Unstructured {
	gk := obj.GroupVersionKind().GroupKind()
	fill, ok := kinds[gk]
	if !ok {
		return obj
	}
	out := obj.DeepCopy()
	fill(out.Object)
	return out
}

var kinds = map[schema.GroupKind]func(object){
	{Kind: "Namespace"}:             namespace,
	{Kind: "Pod"}:                   func(o object) { o.in("spec", pod) },
	{Kind: "Service"}:               func(o object) { o.in("spec", service) },
	{Kind: "Secret"}:                func(o object) { o.set("type", "Opaque") },
	{Kind: "PersistentVolume"}:      func(o object) { o.in("spec", volumeOfCluster) },
	{Kind: "PersistentVolumeClaim"}: func(o object) { o.in("spec", claim) },

	{Group: "apps", Kind: "Deployment"}:  func(o object) { o.make("spec", deployment) },
	{Group: "apps", Kind: "ReplicaSet"}:  func(o object) { o.make("spec", replicaSet) },
	{Group: "apps", Kind: "DaemonSet"}:   func(o object) { o.make("spec", daemonSet) },
	{Group: "apps", Kind: "StatefulSet"}: func(o object) { o.make("spec", statefulSet) },
	{Group: "batch", Kind: "Job"}:        func(o object) { o.make("spec", job) },
	{Group: "batch", Kind: "CronJob"}:    func(o object) { o.make("spec", cronJob) },

	{Group: rbacGroup, Kind: "RoleBinding"}:        binding,
	{Group: rbacGroup, Kind: "ClusterRoleBinding"}: binding,

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: func(o object) { o.set("preemptionPolicy", "PreemptLowerPriority") },
	{Group: "storage.k8s.io", Kind: "StorageClass"}:     storageClass,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:        func(o object) { o.in("spec", csiDriver) },
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: func(o object) { o.make("spec", networkPolicy) },
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  func(o object) { o.in("spec", ingressClass) },

	{Group: "apiregistration.k8s.io", Kind: "APIService"}:   func(o object) { o.in("spec", clientConfig) },
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: func(o object) { o.in("spec", autoscaler) },

	{Group: admission, Kind: "ValidatingAdmissionPolicy"}:        policy,
	{Group: admission, Kind: "MutatingAdmissionPolicy"}:          policy,
	{Group: admission, Kind: "ValidatingAdmissionPolicyBinding"}: policyBinding,
	{Group: admission, Kind: "MutatingAdmissionPolicyBinding"}:   policyBinding,
	{Group: admission, Kind: "ValidatingWebhookConfiguration"}:   func(o object) { o.each("webhooks", webhook) },
	{Group: admission, Kind: "MutatingWebhookConfiguration"}:     func(o object) { o.each("webhooks", mutatingWebhook) },

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: func(o object) { o.in("spec", definition) },

	{Group: flowControl, Kind: "FlowSchema"}:                 func(o object) { o.in("spec", flowSchema) },
	{Group: flowControl, Kind: "PriorityLevelConfiguration"}: func(o object) { o.in("spec", priorityLevel) },

	{Group: "image.openshift.io", Kind: "ImageStream"}: func(o object) { o.make("spec", imageStream) },
}

const (
	rbacGroup   = "rbac.authorization.k8s.io"
	admission   = "admissionregistration.k8s.io"
	flowControl = "flowcontrol.apiserver.k8s.io"
)

// object is a map of a JSON tree that is being filled in.
type object map[string]any

// set gives a field its default if it is absent or null, and if it is the empty
// text and the default another. Maps and lists are copied.
func (o object) set(name string, value any) {
	if have := o[name]; have == nil || have == "" && isText(value) {
		o[name] = runtime.DeepCopyJSONValue(value)
	}
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// number gives a field its default if it is absent or 0.
func (o object) number(name string, value int64) {
	switch o[name] {
	case nil, int64(0), float64(0):
		o[name] = value
	}
}

// list gives a field its default if it is absent or an empty list.
func (o object) list(name string, items ...any) {
	have, isList := o[name].([]any)
	if o[name] == nil || isList && len(have) == 0 {
		o[name] = items
	}
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// in fills a field in, if it is there.
func (o object) in(name string, fill func(object)) {
	if m, ok := o[name].(map[string]any); ok {
		fill(m)
	}
}

// make fills a field in, which is there afterwards.
func (o object) make(name string, fill func(object)) {
	o.set(name, map[string]any{})
	o.in(name, fill)
}

// each fills in the elements of a list.
func (o object) each(name string, fill func(object)) {
	list, _ := o[name].([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			fill(m)
		}
	}
}
