package main

import (
	"context"
	"errors"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// newController makes what carries out the UpgradeConfig. Through the manager it
// asks the provider right before an upgrade starts whether that is still
// wanted, and tells it how the upgrade goes.
func newController(api clusterapi.ClusterAPI, c clock.WithTicker, updates graph.Source, manager *upgradeconfig.Manager, observe func(upgradeconfig.Event)) (*upgrade.Controller, error) {
	return upgrade.New(upgrade.Options{
		API:      api,
		Refresh:  manager.Refresh,
		Notifier: manager,
		Validate: upgradeconfig.ValidateOptions{Cincinnati: true, Graph: updates, Architecture: "amd64"},
		Preconditions: func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error {
			return check(ctx, api, cv, target)
		},
		Health:      upgrade.OperatorHealth{API: api},
		Capacity:    &upgradetest.Capacity{Clock: c, Ready: 4 * time.Minute},
		Maintenance: &upgradetest.Maintenance{},
		Drain:       &upgrade.ForcedDrain{API: api, Clock: c},
		Clock:       c,
		Observe:     observe,
	})
}

// check runs the checks that the version operator is going to make.
func check(ctx context.Context, api clusterapi.Reader, cv *configv1.ClusterVersion, target configv1.Release) error {
	in := &preconditions.Input{Reader: api, Transition: preconditions.NewTransition(cv, target, false, preconditions.Full)}
	report, err := preconditions.Run(ctx, preconditions.Operator(), in, preconditions.Options{})
	if err != nil {
		return err
	}
	if decision := report.Decide(preconditions.Policy{}); decision.Blocked {
		return errors.New(decision.Summary)
	}
	return nil
}
