package preconditions

import (
	"context"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func deprecatedAPIsCheck() Check {
	return documented{Rule{
		Name: "DeprecatedAPIs", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster, Kubernetes API removals", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[apiserverv1.APIRequestCount]()},
		Needs: []string{"TargetPayload"},
	}, deprecatedAPIs}
}

func deprecatedAPIs(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
