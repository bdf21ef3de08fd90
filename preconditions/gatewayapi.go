package preconditions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func gatewayAPICheck() Check {
	return documented{Rule{
		Name: "GatewayAPI", Scope: Scope{Crossing: "4.19"}, Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster, Gateway API", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{crdKind, gvkOf[corev1.ConfigMap]()},
	}, gatewayAPI}
}

func gatewayAPI(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
