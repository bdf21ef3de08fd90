package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func bootLoaderCheck() Check {
	return documented{Rule{
		Name: "BootLoader", Severities: []Severity{Info},
		Source: "Updating the boot loader on RHCOS nodes using bootupd", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, bootLoader}
}

func bootLoader(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
