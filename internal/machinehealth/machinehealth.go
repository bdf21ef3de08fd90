// Package machinehealth has what pauses MachineHealthChecks while nodes are updated.
package machinehealth

import (
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// Namespace is where the objects of the Machine API are.
	Namespace = "openshift-machine-api"
	// AnnotationPaused pauses a MachineHealthCheck by its presence, whatever its value.
	AnnotationPaused = "cluster.x-k8s.io/paused"
	// AnnotationPausedFor marks one that this library has paused: for an update, with the
	// image of its release, or for a plan, with [ForPlan].
	AnnotationPausedFor = "clusterupdate.github.io/paused-for"
)

// ActsOnReady reports whether a MachineHealthCheck is not paused and replaces nodes
// for the condition Ready, which every node loses while it reboots.
func ActsOnReady(c *machinev1beta1.MachineHealthCheck) bool {
	_, paused := c.Annotations[AnnotationPaused]
	return !paused && LooksAtReady(c)
}

// LooksAtReady is ActsOnReady for a MachineHealthCheck that is paused, too.
func LooksAtReady(c *machinev1beta1.MachineHealthCheck) bool {
	return slices.ContainsFunc(c.Spec.UnhealthyConditions, func(u machinev1beta1.UnhealthyCondition) bool {
		return u.Type == corev1.NodeReady
	})
}

const planPrefix = "plan/"

// ForPlan is the value of [AnnotationPausedFor] for a plan of an ID.
func ForPlan(id string) string { return planPrefix + id }

// HeldByPlan reports whether a plan has paused a MachineHealthCheck, and resumes it.
func HeldByPlan(c *machinev1beta1.MachineHealthCheck) bool {
	return strings.HasPrefix(c.Annotations[AnnotationPausedFor], planPrefix)
}
