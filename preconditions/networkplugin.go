package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func networkPluginCheck() Check {
	return documented{Rule{
		Name: "NetworkPlugin", Scope: Scope{Crossing: "4.17"}, Severities: []Severity{Warning, Blocking},
		Source: "Preparing to update a cluster, migrating from OpenShift SDN", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.Network]()},
	}, networkPlugin}
}

// networkPlugin: 4.17 has no OpenShiftSDN any more.
func networkPlugin(ctx context.Context, in *Input) ([]Finding, error) {
	network, err := clusterapi.Read[configv1.Network](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) {
		return nil, &NotApplicableError{Why: "the cluster has no Network"}
	}
	if err != nil {
		return nil, optionalAPI(err, "Networks")
	}
	object := func(field, value string) []Object {
		return []Object{{GVK: gvkOf[configv1.Network](), Name: "cluster", FieldPath: field, Value: value, Note: value}}
	}
	field, plugin := "status.networkType", network.Status.NetworkType
	if plugin == "" {
		field, plugin = "spec.networkType", network.Spec.NetworkType
	}
	var findings []Finding
	if plugin == "OpenShiftSDN" {
		findings = append(findings, newFinding(Blocking, "OpenShiftSDN", "The network plugin is not in releases from 4.17 on", object(field, plugin),
			"Migrate to OVN-Kubernetes first"))
	}
	if m := network.Status.Migration; m != nil {
		target := m.NetworkType
		if target == "" {
			target = "of its settings"
		}
		findings = append(findings, newFinding(Warning, "NetworkMigrationInProgress", "The network is being migrated", object("status.migration", target),
			"Finish the migration first"))
	}
	return findings, nil
}
