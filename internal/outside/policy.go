package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// A calendar is a policy provider that plans one upgrade.
type calendar struct {
	version string
	at      time.Time
}

func (c calendar) String() string { return "calendar" }

func (c calendar) Policies(context.Context) ([]upgradeconfig.Policy, error) {
	channel, err := upgradeconfig.InferChannel("stable", c.version)
	if err != nil {
		return nil, err
	}
	return []upgradeconfig.Policy{{
		ID:      "calendar",
		NextRun: c.at,
		Spec: upgradeconfig.Spec{
			Type:      upgradeconfig.OSD,
			UpgradeAt: c.at.Format(time.RFC3339),
			Desired:   upgradeconfig.Update{Version: c.version, Channel: channel},
		},
	}}, nil
}

// policy brings the plan into a cluster, here one in memory.
func policy(ctx context.Context, out io.Writer, args []string) error {
	at, err := time.Parse(time.RFC3339, args[1])
	if err != nil {
		return err
	}
	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(upgradeconfig.Definition()); err != nil {
		return err
	}
	manager, err := upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: calendar{args[0], at}})
	if err != nil {
		return err
	}
	if _, err := manager.Sync(ctx); err != nil {
		return err
	}
	configs, err := clusterapi.List[upgradeconfig.UpgradeConfig](ctx, cluster, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for _, c := range configs {
		fmt.Fprintln(out, c.Name, c.Spec.Desired.Version, c.Spec.Desired.Channel, c.Spec.UpgradeAt)
	}
	return nil
}
