package preconditions

import (
	"context"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func maxUnavailableCheck() Check {
	return documented{Rule{
		Name: "MaxUnavailable", Severities: []Severity{Warning, Blocking},
		Source: "Understanding OpenShift updates, Factors affecting update duration", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool]()},
	}, maxUnavailable}
}

func maxUnavailable(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
