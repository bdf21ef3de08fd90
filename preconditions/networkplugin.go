package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func networkPluginCheck() Check {
	return documented{Rule{
		Name: "NetworkPlugin", Scope: Scope{Crossing: "4.17"}, Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.Network]()},
	}, networkPlugin}
}

func networkPlugin(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
