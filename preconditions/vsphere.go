package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func vSphereCheck() Check {
	return documented{Rule{
		Name: "VSphere", Severities: []Severity{Warning, Blocking},
		Source: "Updating hardware on nodes running on vSphere", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.Infrastructure]()},
		Needs: []string{"VSphere"},
	}, vSphere}
}

func vSphere(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
