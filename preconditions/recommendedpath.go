package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func recommendedCheck() Check {
	return documented{Rule{
		Name: "Recommended", Severities: []Severity{Warning},
		Source: "Understanding update channels and releases, Conditional updates", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, recommended}
}

func recommended(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
