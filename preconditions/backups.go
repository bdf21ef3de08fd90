package preconditions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// EtcdBackup returns the check EtcdBackup for backups of at most an age; 0: 24 hours.
// It warns if etcd was not backed up recently. Input.Backups decides if it is given,
// else the condition RecentBackup of ClusterOperator etcd. If neither reports anything
// the result is Unknown.
func EtcdBackup(maxAge time.Duration) Check { return documentedBy("EtcdBackup", etcdBackup(maxAge)) }

// VolumeSnapshots returns the check VolumeSnapshots for snapshots of at most an age; 0:
// 24 hours. It tells of volume claims without a snapshot that is ready and young. It
// does not concern clusters without the snapshot API.
func VolumeSnapshots(maxAge time.Duration) Check {
	return documentedBy("VolumeSnapshots", volumeSnapshots(maxAge))
}

// since returns the time of the oldest thing that is not older than an age; 0: 24 hours.
// Without Input.Now the error is a [NoSourceError].
func (in *Input) since(maxAge time.Duration) (time.Time, error) {
	if in.Now.IsZero() {
		return time.Time{}, &NoSourceError{Source: "Now"}
	}
	return in.Now.Add(-cmp.Or(maxAge, 24*time.Hour)), nil
}

const (
	conditionRecentBackup = "RecentBackup"
	backupNotSet          = "EtcdRecentBackupNotSet"
	etcdBackupRemedy      = "Back up etcd: run cluster-backup.sh on a control plane node, and keep the copy elsewhere"
)

func etcdBackup(maxAge time.Duration) judgeFunc {
	return func(ctx context.Context, in *Input) ([]Finding, error) {
		co, err := readOrNil[configv1.ClusterOperator](ctx, in.Reader, "", "etcd")
		if co == nil && err == nil {
			return nil, &NotApplicableError{Why: "the cluster has no ClusterOperator etcd: its control plane is hosted elsewhere"}
		}
		if in.Backups != nil {
			latest, err := in.Backups.Latest(ctx)
			if err != nil {
				return nil, err
			}
			if latest.IsZero() {
				return backupFinding(backupNotSet, "there is no backup of etcd", ""), nil
			}
			return judgeBackup(in, latest, maxAge, "")
		}
		if errors.Is(err, clusterapi.ErrNotCollected) {
			return nil, err
		}
		if err != nil {
			return backupFinding("UnableToGetEtcdOperator", fmt.Sprintf("Unable to get etcd operator, err=%v", err), ""), err
		}
		r := condition(co.Status.Conditions, conditionRecentBackup)
		switch {
		case isFalse(r):
			return backupFinding(cmp.Or(r.Reason, backupNotSet), r.Message, string(r.Status)), nil
		case !isTrue(r):
			return nil, fmt.Errorf("%w, and the etcd operator does not tell either. %s", &NoSourceError{Source: "Backups"}, etcdBackupRemedy)
		case r.LastTransitionTime.IsZero():
			return nil, errors.New("the condition RecentBackup of the etcd operator does not tell since when it holds")
		}
		// It is never taken back: it tells of the day when it became True.
		return judgeBackup(in, r.LastTransitionTime.Time, maxAge, string(r.Status))
	}
}

// judgeBackup judges the time of the newest backup. value is the status of the condition
// that tells it; empty: a source does.
func judgeBackup(in *Input, latest time.Time, maxAge time.Duration, value string) ([]Finding, error) {
	since, err := in.since(maxAge)
	if err != nil || latest.After(since) {
		return nil, err
	}
	age := in.Now.Sub(latest).Truncate(time.Minute)
	return backupFinding(backupNotSet, fmt.Sprintf("the newest backup of etcd, of %s, is %s old", latest.UTC().Format(time.RFC3339), age), value), nil
}

func backupFinding(reason, text, value string) []Finding {
	return []Finding{findingAt(Warning, reason, conditionRecentBackup+": "+text, etcdBackupRemedy,
		object[configv1.ClusterOperator]("", "etcd", "status.conditions", value, ""))}
}

// volumeSnapshot is what the check reads of a VolumeSnapshot.
type volumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   volumeSnapshotSpec `json:"spec"`
	Status struct {
		Ready    bool        `json:"readyToUse,omitempty"`
		Creation metav1.Time `json:"creationTime"`
	} `json:"status"`
}

type volumeSnapshotSpec struct {
	Source struct {
		Claim string `json:"persistentVolumeClaimName,omitempty"`
	} `json:"source"`
}

// APIKind implements [clusterapi.Kinder].
func (*volumeSnapshot) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}
}

func volumeSnapshots(maxAge time.Duration) judgeFunc {
	return func(ctx context.Context, in *Input) ([]Finding, error) {
		snapshots, err := list[volumeSnapshot](ctx, in, clusterapi.ListOptions{})
		if err != nil {
			return nil, optionalAPI(err, "volume snapshots")
		}
		since, err := in.since(maxAge)
		if err != nil {
			return nil, err
		}
		covered := map[types.NamespacedName]bool{}
		for _, s := range snapshots {
			if s.Status.Ready && s.Status.Creation.After(since) {
				covered[clusterapi.Key(s.Namespace, s.Spec.Source.Claim)] = true
			}
		}
		claims, err := list[corev1.PersistentVolumeClaim](ctx, in, clusterapi.ListOptions{})
		var bare []Object
		for _, claim := range claims {
			if !covered[clusterapi.Key(claim.Namespace, claim.Name)] {
				bare = append(bare, object[corev1.PersistentVolumeClaim](claim.Namespace, claim.Name, "", "", ""))
			}
		}
		if err != nil {
			return nil, err
		}
		var found findings
		found.add(Info, "VolumesNotSnapshotted", "Volume claims have no recent snapshot that is ready", bare, "Snapshot the volumes whose data is not saved otherwise")
		return found, nil
	}
}
