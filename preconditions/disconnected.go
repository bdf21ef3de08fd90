package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func disconnectedCheck() Check {
	return documented{Rule{
		Name: "Disconnected", Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update in a disconnected environment", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion](), gvkOf[configv1.Proxy](), gvkOf[corev1.ConfigMap]()},
		Needs: []string{"Signatures"},
	}, disconnected}
}

func disconnected(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
