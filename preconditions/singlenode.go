package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func singleNodeCheck() Check {
	return documented{Rule{
		Name: "SingleNode", Severities: []Severity{Info},
		Source: "Performing a cluster update, Updating a single-node cluster", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node]()},
	}, singleNode}
}

func singleNode(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
