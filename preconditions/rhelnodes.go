package preconditions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func rhelNodesCheck() Check {
	return documented{Rule{
		Name: "RHELNodes", Severities: []Severity{Warning, Blocking},
		Source: "Updating a cluster that includes RHEL compute machines", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node]()},
	}, rhelNodes}
}

func rhelNodes(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
