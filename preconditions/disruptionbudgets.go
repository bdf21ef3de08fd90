package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func disruptionBudgetsCheck() Check {
	return documented{Rule{
		Name: "DisruptionBudgets", Severities: []Severity{Info, Warning, Blocking},
		Source: "Preparing to update a cluster", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[corev1.Pod](), gvkOf[mcfgv1.MachineConfigPool](), gvkOf[policyv1.PodDisruptionBudget](), gvkOf[configv1.Infrastructure]()},
	}, disruptionBudgets}
}

func disruptionBudgets(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
