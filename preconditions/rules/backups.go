package rules

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
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// since returns the time of the oldest thing that is not older than an age; 0: 24 hours.
// Without Input.Now the error is a [preconditions.NoSourceError].
func since(in *preconditions.Input, maxAge time.Duration) (time.Time, error) {
	if in.Now.IsZero() {
		return time.Time{}, &preconditions.NoSourceError{Source: "Now"}
	}
	return in.Now.Add(-cmp.Or(maxAge, 24*time.Hour)), nil
}

const (
	conditionRecentBackup = "RecentBackup"
	backupNotSet          = "EtcdRecentBackupNotSet"
	etcdBackupRemedy      = "Back up etcd: run cluster-backup.sh on a control plane node, and keep the copy elsewhere"
)

// etcdBackup warns if etcd was not backed up recently. Input.Backups decides if it is
// given, else the condition RecentBackup of ClusterOperator etcd. If neither reports
// anything the result is Unknown.
func etcdBackup(maxAge time.Duration) judgeFunc {
	return func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
		co, err := facts.ReadOrNil[configv1.ClusterOperator](ctx, in.Reader, "", "etcd")
		if co == nil && err == nil {
			return nil, &preconditions.NotApplicableError{Why: "the cluster has no ClusterOperator etcd: its control plane is hosted elsewhere"}
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
		r := openshift.FindCondition(co.Status.Conditions, conditionRecentBackup)
		switch {
		case facts.IsFalse(r):
			return backupFinding(cmp.Or(r.Reason, backupNotSet), r.Message, string(r.Status)), nil
		case !facts.IsTrue(r):
			return nil, fmt.Errorf("%w, and the etcd operator does not tell either. %s", &preconditions.NoSourceError{Source: "Backups"}, etcdBackupRemedy)
		case r.LastTransitionTime.IsZero():
			return nil, errors.New("the condition RecentBackup of the etcd operator does not tell since when it holds")
		}
		// It never becomes False again: its transition time is when it became True.
		return judgeBackup(in, r.LastTransitionTime.Time, maxAge, string(r.Status))
	}
}

// judgeBackup judges the time of the newest backup. value is the status of the condition
// that reports it; empty: a source does.
func judgeBackup(in *preconditions.Input, latest time.Time, maxAge time.Duration, value string) ([]preconditions.Finding, error) {
	since, err := since(in, maxAge)
	if err != nil || latest.After(since) {
		return nil, err
	}
	age := in.Now.Sub(latest).Truncate(time.Minute)
	return backupFinding(backupNotSet, fmt.Sprintf("the newest backup of etcd, of %s, is %s old", latest.UTC().Format(time.RFC3339), age), value), nil
}

func backupFinding(reason, text, value string) []preconditions.Finding {
	return []preconditions.Finding{findingAt(preconditions.Warning, reason, conditionRecentBackup+": "+text, etcdBackupRemedy,
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

// volumeSnapshots reports volume claims without a snapshot that is ready and young. It
// does not concern clusters without the snapshot API.
func volumeSnapshots(maxAge time.Duration) judgeFunc {
	return func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
		snapshots, err := facts.List[volumeSnapshot](ctx, in.Reader, clusterapi.ListOptions{})
		if err != nil {
			return nil, optionalAPI(err, "volume snapshots")
		}
		since, err := since(in, maxAge)
		if err != nil {
			return nil, err
		}
		covered := map[types.NamespacedName]bool{}
		for _, s := range snapshots {
			if s.Status.Ready && s.Status.Creation.After(since) {
				covered[clusterapi.Key(s.Namespace, s.Spec.Source.Claim)] = true
			}
		}
		claims, err := facts.List[corev1.PersistentVolumeClaim](ctx, in.Reader, clusterapi.ListOptions{})
		var bare []preconditions.Object
		for _, claim := range claims {
			if !covered[clusterapi.Key(claim.Namespace, claim.Name)] {
				bare = append(bare, object[corev1.PersistentVolumeClaim](claim.Namespace, claim.Name, "", "", ""))
			}
		}
		if err != nil {
			return nil, err
		}
		var found findings
		found.add(preconditions.Info, "VolumesNotSnapshotted", "Volume claims have no recent snapshot that is ready", bare, "Snapshot the volumes whose data is not saved otherwise")
		return found, nil
	}
}
