package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func multiArchCheck() Check {
	return documented{Rule{
		Name: "MultiArch", Severities: []Severity{Warning, Blocking},
		Source: "Migrating to a cluster with multi-architecture compute machines", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion](), gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node]()},
		Needs: []string{"TargetPayload"},
	}, multiArch}
}

func multiArch(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
