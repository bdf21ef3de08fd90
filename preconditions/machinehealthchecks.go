package preconditions

import (
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func machineHealthChecksCheck() Check {
	return documented{Rule{
		Name: "MachineHealthChecks", Severities: []Severity{Warning},
		Source: "Performing a cluster update, Pausing a MachineHealthCheck resource", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[machinev1beta1.MachineHealthCheck](), gvkOf[corev1.Node]()},
	}, machineHealthChecks}
}

// Where MachineHealthChecks are, and what pauses one: its presence, whatever its
// value.
const (
	MachineAPINamespace        = "openshift-machine-api"
	AnnotationMachineAPIPaused = "cluster.x-k8s.io/paused"
)

// machineHealthChecks: a node that reboots looks unhealthy for a time. A check that
// is not paused may have it replaced.
func machineHealthChecks(ctx context.Context, in *Input) ([]Finding, error) {
	checks, err := list[machinev1beta1.MachineHealthCheck](ctx, in, clusterapi.ListOptions{Namespace: MachineAPINamespace})
	var active []Object
	for _, c := range checks {
		if ActsOnReady(c) {
			active = append(active, Object{GVK: gvkOf[machinev1beta1.MachineHealthCheck](), Namespace: c.Namespace, Name: c.Name, FieldPath: "metadata.annotations[" + AnnotationMachineAPIPaused + "]"})
		}
	}
	if len(active) == 0 {
		return nil, optionalAPI(err, "MachineHealthChecks")
	}
	if onlyNode(ctx, in) != "" {
		return nil, &NotApplicableError{Why: "the cluster has a single node"}
	}
	sortObjects(active)
	return []Finding{newFinding(Warning, "MachineHealthCheckActive", "Machine health checks may replace nodes that are being updated", active,
		"Pause each for the time of the update: oc -n "+MachineAPINamespace+" annotate mhc NAME "+AnnotationMachineAPIPaused+"=\"\"")}, err
}

// ActsOnReady reports whether a MachineHealthCheck is not paused and replaces nodes
// for the condition Ready, which every node loses while it reboots.
func ActsOnReady(c *machinev1beta1.MachineHealthCheck) bool {
	_, paused := c.Annotations[AnnotationMachineAPIPaused]
	return !paused && slices.ContainsFunc(c.Spec.UnhealthyConditions, func(u machinev1beta1.UnhealthyCondition) bool {
		return u.Type == corev1.NodeReady
	})
}
