package preconditions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func volumeSnapshotsCheck() Check {
	return documented{Rule{
		Name: "VolumeSnapshots", Severities: []Severity{Info},
		Source: "Performing a cluster update", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.PersistentVolumeClaim]()},
	}, volumeSnapshots}
}

func volumeSnapshots(ctx context.Context, in *Input) ([]Finding, error) { return nil, errUndone }
