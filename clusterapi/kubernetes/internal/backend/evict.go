package backend

import (
	"cmp"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Eviction returns the object that asks for the eviction of a pod, or an error
// for an incomplete name.
func Eviction(pod types.NamespacedName, opts clusterapi.EvictOptions) (*policyv1.Eviction, error) {
	if pod.Name == "" || pod.Namespace == "" {
		return nil, BadRequest("an eviction needs a pod's name and namespace, not %q", pod)
	}
	out := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: opts.GracePeriodSeconds},
	}
	if opts.UID != "" {
		out.DeleteOptions.Preconditions = &metav1.Preconditions{UID: &opts.UID}
	}
	return out, CheckName("Pod", pod.Name)
}

// Deletion returns the options of a deletion as a server takes them.
func Deletion(opts clusterapi.DeleteOptions) *metav1.DeleteOptions {
	propagation := cmp.Or(opts.Propagation, metav1.DeletePropagationBackground)
	out := &metav1.DeleteOptions{PropagationPolicy: &propagation, GracePeriodSeconds: opts.GracePeriodSeconds}
	if opts.UID != "" || opts.ResourceVersion != "" {
		out.Preconditions = &metav1.Preconditions{}
	}
	if opts.UID != "" {
		out.Preconditions.UID = &opts.UID
	}
	if opts.ResourceVersion != "" {
		out.Preconditions.ResourceVersion = &opts.ResourceVersion
	}
	return out
}
