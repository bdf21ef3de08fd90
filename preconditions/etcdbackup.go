package preconditions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// EtcdBackup warns if etcd was not backed up recently. Input.Backups decides if it is
// given, else the condition RecentBackup of ClusterOperator etcd. If neither reports
// anything the result is Unknown. It is safe for concurrent use.
type EtcdBackup struct {
	// MaxAge is how old the newest backup may be. 0: 24 hours.
	MaxAge time.Duration
}

func etcdBackupCheck() Check { return EtcdBackup{} }

// Name returns EtcdBackup.
func (EtcdBackup) Name() string { return "EtcdBackup" }

// Applies is true for every step.
func (EtcdBackup) Applies(Transition) bool { return true }

// Rule describes the check.
func (c EtcdBackup) Rule() Rule {
	return Rule{
		Name: c.Name(), Severities: []Severity{Warning},
		Source: "Preparing to update a cluster, Creating an etcd backup", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterOperator]()}, Needs: []string{"Backups", "Now"},
	}
}

const conditionRecentBackup = "RecentBackup"

// Run judges. The error is that of reading the ClusterOperator or of the source of
// backups, or a [*NoSourceError].
func (c EtcdBackup) Run(ctx context.Context, in *Input) ([]Finding, error) {
	co, err := clusterapi.Read[configv1.ClusterOperator](ctx, in.Reader, clusterapi.Key("", "etcd"))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, &NotApplicableError{Why: "the cluster has no ClusterOperator etcd: its control plane is hosted elsewhere"}
	}
	if in.Backups != nil {
		latest, err := in.Backups.Latest(ctx)
		if err != nil {
			return nil, err
		}
		return c.judge(in, latest, "")
	}
	if err != nil {
		if errors.Is(err, clusterapi.ErrNotCollected) {
			return nil, err
		}
		return []Finding{c.finding("UnableToGetEtcdOperator", fmt.Sprintf("Unable to get etcd operator, err=%v", err), "")}, err
	}
	r := condition(co.Status.Conditions, conditionRecentBackup)
	switch {
	case r != nil && r.Status == configv1.ConditionTrue:
		// It is never taken back: it tells of the day when it became True.
		return c.judge(in, r.LastTransitionTime.Time, string(r.Status))
	case r != nil && r.Status == configv1.ConditionFalse:
		return []Finding{c.finding(cmp.Or(r.Reason, "EtcdRecentBackupNotSet"), r.Message, string(r.Status))}, nil
	}
	return nil, fmt.Errorf("%w, and the etcd operator does not tell either. %s", &NoSourceError{Source: "Backups"}, etcdBackupRemedy)
}

const etcdBackupRemedy = "Back up etcd: run cluster-backup.sh on a control plane node, and keep the copy elsewhere"

// judge judges the time of the newest backup. value is the status of the condition that
// tells it; empty: a source does.
func (c EtcdBackup) judge(in *Input, latest time.Time, value string) ([]Finding, error) {
	if latest.IsZero() && value == "" {
		return []Finding{c.finding("EtcdRecentBackupNotSet", "there is no backup of etcd", value)}, nil
	}
	if latest.IsZero() {
		return nil, errors.New("the condition RecentBackup of the etcd operator does not tell since when it holds")
	}
	if in.Now.IsZero() {
		return nil, &NoSourceError{Source: "Now"}
	}
	age := in.Now.Sub(latest)
	if age < cmp.Or(c.MaxAge, 24*time.Hour) {
		return nil, nil
	}
	return []Finding{c.finding("EtcdRecentBackupNotSet",
		fmt.Sprintf("the newest backup of etcd, of %s, is %s old", latest.UTC().Format(time.RFC3339), age.Truncate(time.Minute)), value)}, nil
}

func (c EtcdBackup) finding(reason, text, value string) Finding {
	f := newFinding(Warning, reason, conditionRecentBackup+": "+text, nil, etcdBackupRemedy)
	f.Objects = []Object{{GVK: gvkOf[configv1.ClusterOperator](), Name: "etcd", FieldPath: "status.conditions", Value: value}}
	f.Source = c.Rule().Source
	return f
}
