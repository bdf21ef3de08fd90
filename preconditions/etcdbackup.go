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

// EtcdBackup warns where etcd was not backed up of late. It asks the condition
// RecentBackup of ClusterOperator etcd, which older releases have, and
// Input.Backups. Where neither says anything the result is Unknown. It is safe for
// concurrent use.
type EtcdBackup struct {
	// MaxAge is how old the newest backup of Input.Backups may be. 0: 24 hours.
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
	const remedy = "Back up etcd: run cluster-backup.sh on a control plane node, and keep the copy elsewhere"
	object := Object{GVK: gvkOf[configv1.ClusterOperator](), Name: "etcd", FieldPath: "status.conditions"}
	var findings []Finding
	add := func(reason, text string) {
		f := newFinding(Warning, reason, conditionRecentBackup+": "+text, nil, remedy)
		f.Objects, f.Source = []Object{object}, c.Rule().Source
		findings = append(findings, f)
	}
	known := false
	switch {
	case errors.Is(err, clusterapi.ErrNotCollected): // nobody has tried
	case err != nil:
		add("UnableToGetEtcdOperator", fmt.Sprintf("Unable to get etcd operator, err=%v", err))
	default:
		if r := condition(co.Status.Conditions, conditionRecentBackup); r != nil {
			known = true
			if r.Status != configv1.ConditionTrue {
				object.Value = string(r.Status)
				add(cmp.Or(r.Reason, "EtcdRecentBackupNotSet"), r.Message)
			}
		}
	}
	if in.Backups == nil {
		if !known && err == nil {
			err = fmt.Errorf("%w, and the etcd operator does not tell either. %s", &NoSourceError{Source: "Backups"}, remedy)
		}
		return findings, err
	}
	latest, sourceErr := in.Backups.Latest(ctx)
	switch age := in.Now.Sub(latest); {
	case sourceErr != nil:
		return findings, errors.Join(err, sourceErr)
	case in.Now.IsZero():
		return findings, errors.Join(err, &NoSourceError{Source: "Now"})
	case latest.IsZero():
		add("EtcdRecentBackupNotSet", "there is no backup of etcd")
	case age >= cmp.Or(c.MaxAge, 24*time.Hour):
		add("EtcdRecentBackupNotSet", fmt.Sprintf("the newest backup of etcd, of %s, is %s old", latest.UTC().Format(time.RFC3339), age.Truncate(time.Minute)))
	}
	return findings, err
}
