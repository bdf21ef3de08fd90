package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// TestKeepsWhatBegins: a policy is withdrawn at the time of its upgrade. A
// manager that keeps upgrades while they run deletes the UpgradeConfig, or the
// upgrade begins, but not both, wherever in the one's pass the other one makes
// its own.
func TestKeepsWhatBegins(t *testing.T) {
	outcomes := map[string]int{}
	for _, first := range []string{"manager", "controller"} {
		for _, refused := range []bool{false, true} { // in a pass before
			for n, reached := 1, true; reached; n++ {
				synctest.Test(t, func(t *testing.T) {
					w := newSite(t, nil)
					policies := w.provider.policies
					manager := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
						API: w, KeepWhileUpgrading: true,
						Provider: fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return policies, nil }),
					}))

					refuse := refused
					controller := must(upgrade.New(upgrade.Options{API: w, Preconditions: func(context.Context, *configv1.ClusterVersion, configv1.Release) error {
						if refuse {
							return errors.New("refused")
						}
						return nil
					}}))

					// Who loses a race may fail, and tries again.
					sync := func() { _, _ = manager.Sync(t.Context()) }
					pass := func() { _, _ = controller.Sync(t.Context()) }
					sync()
					pass()
					time.Sleep(time.Hour + time.Second)
					if refused {
						pass()
					}
					refuse, policies = false, nil

					a, b := sync, pass
					if first == "controller" {
						a, b = pass, sync
					}
					calls := 0
					w.fault = func(_ string, do func() error) error {
						if calls++; calls == n {
							b()
						}
						return do()
					}
					a()
					reached = calls >= n
					w.fault = nil
					for range 2 {
						sync()
						pass()
					}
					outcome := fmt.Sprintf("there %v, begun %v", stored(t, w) != nil, w.requested > 0)
					outcomes[outcome]++
					if outcome != "there true, begun true" && outcome != "there false, begun false" {
						t.Errorf("request %d of the %s comes after a pass of the other: %s", n, first, outcome)
					}
				})
			}
		}
	}
	checktest.Equal(t, 2, len(outcomes), "only %v", outcomes)
}

// TestEditedWhileStarting: somebody changes the UpgradeConfig during the pass
// that starts its upgrade. It does not begin then, but for changes between the
// last look at the UpgradeConfig and the request, which nothing can see. A new
// time alone comes too late once the phase is Upgrading.
func TestEditedWhileStarting(t *testing.T) {
	remove := func(w *site, _ upgradeconfig.Spec) {
		checktest.OK(w.t,
			w.Delete(w.t.Context(), (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey,
				clusterapi.DeleteOptions{}))
	}
	replace := func(w *site, spec upgradeconfig.Spec) {
		remove(w, spec)
		must(clusterapi.Create(w.t.Context(), w, object(spec, upgradeconfig.Status{}), clusterapi.CreateOptions{}))
	}
	modify := func(w *site, f func(*upgradeconfig.UpgradeConfig)) {
		must(clusterapi.Modify(w.t.Context(), w, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
			f(c)
			return nil
		}))
	}
	later := func(s upgradeconfig.Spec) upgradeconfig.Spec {
		s.UpgradeAt = time.Now().Add(24 * time.Hour).Format(time.RFC3339)
		return s
	}
	// start makes the pass, with an edit before request n, and returns whether
	// the upgrade began, at which request, and how far it was before the edit.
	start := func(t *testing.T, n int, edit func(*site, upgradeconfig.Spec)) (began int, phase upgradeconfig.Phase) {
		synctest.Test(t, func(t *testing.T) {
			w := newSite(t, nil)
			spec := w.provider.policies[0].Spec
			c := must(upgrade.New(upgrade.Options{API: w}))
			must(clusterapi.Create(t.Context(), w, object(spec, upgradeconfig.Status{}), clusterapi.CreateOptions{}))
			must(c.Sync(t.Context()))
			time.Sleep(time.Hour + time.Second)
			calls := 0
			w.fault = func(_ string, do func() error) error {
				if calls++; calls == n {
					phase = w.entry().Phase
					w.playing = true
					edit(w, spec)
					w.playing = false
				}
				err := do()
				if w.requested > 0 && began == 0 {
					began = calls
				}
				return err
			}
			if _, err := c.Sync(t.Context()); err != nil {
				t.Errorf("edit at request %d: %v", n, err)
			}
		})
		return began, phase
	}
	undisturbed, _ := start(t, 0, nil)
	for name, edit := range map[string]func(*site, upgradeconfig.Spec){
		"replaced":             func(w *site, s upgradeconfig.Spec) { replace(w, later(s)) },
		"replaced by the same": replace,
		"moved": func(w *site, s upgradeconfig.Spec) {
			modify(w, func(c *upgradeconfig.UpgradeConfig) { c.Spec = later(s) })
		},
		"another version": func(w *site, s upgradeconfig.Spec) {
			modify(w, func(c *upgradeconfig.UpgradeConfig) { c.Spec.Desired.Version = "4.20.9" })
		},
		"gone": remove,
		"deleted, with a finalizer": func(w *site, s upgradeconfig.Spec) {
			modify(w, func(c *upgradeconfig.UpgradeConfig) { c.Finalizers = []string{"example.com/wait"} })
			remove(w, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := 1
			if israce.Enabled {
				step = 7
			}
			for n := 1; n <= undisturbed; n += step {
				began, phase := start(t, n, edit)
				tooLate := n >= undisturbed-1 || name == "moved" && phase == upgradeconfig.PhaseUpgrading
				checktest.Equal(t, tooLate, began > 0, "edit at request %d of %d: began at %d", n, undisturbed, began)
			}
		})
	}
}
