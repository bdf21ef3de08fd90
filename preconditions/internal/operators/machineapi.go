package operators

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// MachineAPINamespace is where the objects of the Machine API are.
	MachineAPINamespace = "openshift-machine-api"
	// AnnotationMachineAPIPaused pauses a MachineHealthCheck by its presence, whatever its value.
	AnnotationMachineAPIPaused = "cluster.x-k8s.io/paused"
)

// ActsOnReady reports whether a MachineHealthCheck is not paused and replaces nodes
// for the condition Ready, which every node loses while it reboots.
func ActsOnReady(c *machinev1beta1.MachineHealthCheck) bool {
	_, paused := c.Annotations[AnnotationMachineAPIPaused]
	return !paused && LooksAtReady(c)
}

// LooksAtReady is ActsOnReady for a MachineHealthCheck that is paused, too.
func LooksAtReady(c *machinev1beta1.MachineHealthCheck) bool {
	return slices.ContainsFunc(c.Spec.UnhealthyConditions, func(u machinev1beta1.UnhealthyCondition) bool {
		return u.Type == corev1.NodeReady
	})
}
