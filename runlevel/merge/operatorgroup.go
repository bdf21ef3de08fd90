package merge

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var operatorGroupKind = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"}

// group is an OperatorGroup, whose type is not in a package of ours.
type group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              groupSpec `json:"spec"`
}

type groupSpec struct {
	Selector           *metav1.LabelSelector `json:"selector,omitempty"`
	TargetNamespaces   []string              `json:"targetNamespaces,omitempty"`
	ServiceAccountName string                `json:"serviceAccountName,omitempty"`
	StaticProvidedAPIs bool                  `json:"staticProvidedAPIs,omitempty"`
	UpgradeStrategy    string                `json:"upgradeStrategy,omitempty"`
}

func operatorGroup(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	before, wanted, err := decode[group](existing, required)
	if err != nil {
		return nil, false, err
	}
	setDefault(&before.Spec.UpgradeStrategy, "Default")
	setDefault(&wanted.Spec.UpgradeStrategy, "Default")
	after := *before
	mergeMeta(&after.ObjectMeta, &wanted.ObjectMeta)
	account := before.Spec.ServiceAccountName
	after.Spec = wanted.Spec
	setDefault(&after.Spec.ServiceAccountName, account)
	if equality.Semantic.DeepEqual(before, &after) {
		return existing, false, nil
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after.Spec)
	if err != nil {
		return nil, false, err
	}
	merged := existing.DeepCopy()
	setMeta(merged, &after.ObjectMeta)
	merged.Object["spec"] = spec
	return merged, true, nil
}
