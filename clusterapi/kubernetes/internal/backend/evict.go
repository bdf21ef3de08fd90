package backend

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Eviction returns the object that asks for the eviction of a pod.
func Eviction(pod types.NamespacedName, opts clusterapi.EvictOptions) *policyv1.Eviction {
	out := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: opts.GracePeriodSeconds},
	}
	if opts.UID != "" {
		out.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &opts.UID}
	}
	return out
}
