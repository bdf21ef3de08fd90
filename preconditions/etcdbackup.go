package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func etcdBackupCheck() Check {
	return documented{Rule{
		Name: "EtcdBackup", Severities: []Severity{Warning},
		Source: "Preparing to update a cluster, etcd backups", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterOperator]()},
		Needs: []string{"Backups"},
	}, etcdBackup}
}

func etcdBackup(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
