package preconditions

import (
	"context"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func kubeletSkewCheck() Check {
	return documented{Rule{
		Name: "KubeletSkew", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Performing a Control Plane Only update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool]()},
		Needs: []string{"TargetPayload"},
	}, kubeletSkew}
}

func kubeletSkew(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
