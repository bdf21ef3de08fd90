package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// story is a provider of policies, and what people do with it.
type story struct {
	provider upgradeconfig.Provider
	// play does what people do, and returns at the end of the story. wake makes
	// the cluster ask the provider at once.
	play func(ctx context.Context, wake func()) error
	// end releases what the story has; may be nil.
	end func() error
}

// stage is where a story plays.
type stage struct {
	cluster clusterapi.ClusterAPI
	clock   clock.WithTicker
	view    *view
	wait    func(ctx context.Context, d time.Duration) error // while time passes in the cluster
}

// local: an administrator writes the UpgradeConfig by hand.
func (s *stage) local() *story {
	play := func(ctx context.Context, wake func()) error {
		if err := s.wait(ctx, 3*time.Minute); err != nil {
			return err
		}
		c := &upgradeconfig.UpgradeConfig{Spec: upgradeconfig.Spec{
			Desired:              upgradeconfig.Update{Version: sample.ToVersion, Channel: sample.Channel},
			UpgradeAt:            s.in(10 * time.Minute),
			PDBForceDrainTimeout: 60,
			Type:                 upgradeconfig.OSD,
		}}
		c.Namespace, c.Name = upgradeconfig.DefaultNamespace, upgradeconfig.Name
		s.view.say("admin", "creates an UpgradeConfig: %s at %s", c.Spec.Desired.Version, s.minute(c.Spec.UpgradeAt))
		if _, err := clusterapi.Create(ctx, s.cluster, c, clusterapi.CreateOptions{}); err != nil {
			return err
		}
		wake()
		if err := s.upgraded(ctx); err != nil {
			return err
		}
		wake()
		return s.wait(ctx, 5*time.Minute) // and it stays
	}
	return &story{provider: upgradeconfig.Local{API: s.cluster}, play: play}
}

// git: a team plans upgrades in a Git repository, of which dir is a clone.
func (s *stage) git(dir string) *story {
	const file = "upgrade.yaml"
	commit := func(message string, in time.Duration, state string) (at string, err error) {
		s.view.say("git", "commit: %s", message)
		at = s.in(in)
		text := fmt.Sprintf("# %s\nid: p-1\nversion: %s\nupgradeAt: %s\ndrainMinutes: 60\ncapacityReservation: true\nstate: %s\n", message, sample.ToVersion, at, state)
		temporary := filepath.Join(dir, file+".new")
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			return "", err
		}
		return at, os.Rename(temporary, filepath.Join(dir, file))
	}
	play := func(ctx context.Context, wake func()) error {
		at, err := commit("upgrade in two hours", 2*time.Hour, "scheduled")
		if err != nil {
			return err
		}
		if err := s.planned(ctx, at); err != nil {
			return err
		}
		if _, err := commit("upgrade in fifteen minutes already", 15*time.Minute, "scheduled"); err != nil {
			return err
		}
		wake() // a hook of the repository
		if err := s.upgraded(ctx); err != nil {
			return err
		}
		if _, err := commit("done", 0, "completed"); err != nil {
			return err
		}
		wake()
		return s.gone(ctx)
	}
	return &story{provider: GitDir{Tree: os.DirFS(dir)}, play: play}
}

// planned waits until the UpgradeConfig has a time.
func (s *stage) planned(ctx context.Context, at string) error {
	return s.until(ctx, func(c *upgradeconfig.UpgradeConfig) (bool, error) { return c != nil && c.Spec.UpgradeAt == at, nil })
}

// upgraded waits until the upgrade has ended, and the provider knows.
func (s *stage) upgraded(ctx context.Context) error {
	return s.until(ctx, func(c *upgradeconfig.UpgradeConfig) (bool, error) {
		if c == nil {
			return false, nil
		}
		e, _ := c.Status.Entry(c.Spec.Desired.Version)
		if e.Phase == upgradeconfig.PhaseFailed {
			return false, fmt.Errorf("the upgrade to %s failed", c.Spec.Desired.Version)
		}
		return e.Phase == upgradeconfig.PhaseUpgraded && e.IsTrue(upgradeconfig.CompletedNotificationSent), nil
	})
}

// gone waits until there is no UpgradeConfig.
func (s *stage) gone(ctx context.Context) error {
	return s.until(ctx, func(c *upgradeconfig.UpgradeConfig) (bool, error) { return c == nil, nil })
}

func (s *stage) until(ctx context.Context, f func(*upgradeconfig.UpgradeConfig) (bool, error)) error {
	for {
		c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, s.cluster, clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name))
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if done, err := f(c); done || err != nil {
			return err
		}
		if err := s.wait(ctx, 30*time.Second); err != nil {
			return err
		}
	}
}

// in is a time from now on as policies have it.
func (s *stage) in(d time.Duration) string {
	return s.clock.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// minute is such a time by the clock of the view.
func (s *stage) minute(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return time.Time{}.Add(t.Sub(s.view.start)).Format("15:04")
}
