package preconditions

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// VolumeSnapshots tells of volume claims without a snapshot that is ready and young.
// It does not concern clusters without the snapshot API. It is safe for concurrent use.
type VolumeSnapshots struct {
	// MaxAge is how old a snapshot may be. 0: 24 hours.
	MaxAge time.Duration
}

func volumeSnapshotsCheck() Check { return VolumeSnapshots{} }

// Name returns VolumeSnapshots.
func (VolumeSnapshots) Name() string { return "VolumeSnapshots" }

// Applies is true for every step.
func (VolumeSnapshots) Applies(Transition) bool { return true }

// Rule describes the check.
func (c VolumeSnapshots) Rule() Rule {
	return Rule{
		Name: c.Name(), Severities: []Severity{Info},
		Source: "Performing a cluster update, Before updating", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.PersistentVolumeClaim](), gvkOf[volumeSnapshot]()}, Needs: []string{"Now"},
	}
}

// volumeSnapshot is what the check reads of a VolumeSnapshot.
type volumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   volumeSnapshotSpec   `json:"spec"`
	Status volumeSnapshotStatus `json:"status"`
}

type volumeSnapshotSpec struct {
	Source volumeSnapshotSource `json:"source"`
}

type volumeSnapshotSource struct {
	Claim string `json:"persistentVolumeClaimName,omitempty"`
}

type volumeSnapshotStatus struct {
	Ready    bool        `json:"readyToUse,omitempty"`
	Creation metav1.Time `json:"creationTime"`
}

// APIKind implements [clusterapi.Kinder].
func (*volumeSnapshot) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}
}

// Run judges. Errors are those of reading claims and snapshots, and a
// [*NoSourceError] where Input.Now is not set.
func (c VolumeSnapshots) Run(ctx context.Context, in *Input) ([]Finding, error) {
	snapshots, err := list[volumeSnapshot](ctx, in, clusterapi.ListOptions{})
	if err = optionalAPI(err, "volume snapshots"); err != nil {
		return nil, err
	}
	if in.Now.IsZero() {
		return nil, &NoSourceError{Source: "Now"}
	}
	covered := map[types.NamespacedName]bool{}
	for _, s := range snapshots {
		if s.Status.Ready && !s.Status.Creation.IsZero() && in.Now.Sub(s.Status.Creation.Time) < cmp.Or(c.MaxAge, 24*time.Hour) {
			covered[clusterapi.Key(s.Namespace, s.Spec.Source.Claim)] = true
		}
	}
	claims, err := list[corev1.PersistentVolumeClaim](ctx, in, clusterapi.ListOptions{})
	var bare []Object
	for _, claim := range claims {
		if !covered[clusterapi.Key(claim.Namespace, claim.Name)] {
			bare = append(bare, Object{GVK: gvkOf[corev1.PersistentVolumeClaim](), Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	if len(bare) == 0 || err != nil {
		return nil, err
	}
	f := newFinding(Info, "VolumesNotSnapshotted", "Volume claims have no recent snapshot that is ready", bare,
		"Snapshot the volumes whose data is not saved otherwise")
	f.Source = c.Rule().Source
	return []Finding{f}, nil
}
