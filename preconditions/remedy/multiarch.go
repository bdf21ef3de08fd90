package remedy

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// MultiArch migrates a cluster to the release for several architectures, with its
// version as it is. There is no way back once it has started.
type MultiArch struct {
	// Policy decides about what the check MultiArch finds.
	Policy preconditions.Policy
}

// MultiArchAdvice is what the documentation says about a migration. It is plain data.
type MultiArchAdvice struct {
	// Decision is what the check says. Of a cluster that is migrated already it is
	// empty.
	Decision preconditions.Decision
	// Migrated: the cluster runs the release for several architectures.
	Migrated bool
	// Next are the things to know and to do, in their order.
	Next []string
}

// BlockedError is the error of an action that checks block. It is plain data.
type BlockedError struct {
	Summary string
}

// Error returns the summary.
func (e *BlockedError) Error() string { return e.Summary }

// Start asks for the migration, unless it was asked for or done already. It returns the
// advice, also with an error, which is a [*BlockedError] or one of reading or writing the
// ClusterVersion.
func (m MultiArch) Start(ctx context.Context, api clusterapi.ClusterAPI) (*MultiArchAdvice, error) {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, api, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("migration to several architectures: %w", err)
	}
	advice := &MultiArchAdvice{Migrated: cv.Status.Desired.Architecture == multi}
	if advice.Migrated {
		advice.Next = afterMigration()
		return advice, nil
	}
	advice.Next = append([]string{
		"Follow the migration: oc adm upgrade. It takes as long as an update.",
		"Machines may fail to launch while the cluster settles: deploy machine health checks to notice and to recover.",
	}, afterMigration()...)
	target := configv1.Release{Version: cv.Status.Desired.Version, Architecture: multi}
	in := &preconditions.Input{Reader: api, Transition: preconditions.NewTransition(cv, target, false, preconditions.Full)}
	var checks []preconditions.Check
	for _, c := range rules.Documented(rules.Options{}) {
		if c.Name() == "MultiArch" || c.Name() == "ClusterOperators" {
			checks = append(checks, c)
		}
	}
	report, err := preconditions.Run(ctx, checks, in, preconditions.Options{})
	if err != nil {
		return advice, err
	}
	advice.Decision = report.Decide(m.Policy)
	if advice.Decision.Blocked {
		return advice, &BlockedError{Summary: advice.Decision.Summary}
	}
	_, err = clusterversion.Modify(ctx, api, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		switch {
		case cv.Spec.DesiredUpdate != nil && cv.Spec.DesiredUpdate.Architecture == multi && cv.Spec.DesiredUpdate.Mode == "":
			return false, nil
		case cv.Status.Desired.Version != target.Version:
			return false, fmt.Errorf("the cluster went from %s to %s meanwhile", target.Version, cv.Status.Desired.Version)
		}
		clusterversion.SetDesired(cv, configv1.Update{Architecture: multi, Version: target.Version, AcceptRisks: clusterversion.AcceptedRisks(cv)})
		return true, nil
	})
	return advice, wrap("migration to several architectures", err)
}

const multi = configv1.ClusterVersionArchitectureMulti

func afterMigration() []string {
	return []string{
		"Wait until the migration is complete and all cluster operators are stable before adding machine sets of another architecture.",
		"Keep workloads that are built for one architecture on its nodes: by node affinity for kubernetes.io/arch, by taints, or with the Multiarch Tuning Operator.",
		"Image streams that were imported for one architecture are to be imported again: oc import-image NAME --import-mode=PreserveOriginal.",
	}
}
