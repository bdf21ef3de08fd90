// Package policies plays what people and providers do about upgrades, and prints what
// comes of it.
package policies

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Log prints lines by the cluster's time. It prints once what a subject says twice in a
// row. It is safe for concurrent use.
type Log struct {
	Out   io.Writer
	Clock clock.PassiveClock // the cluster's

	mu    sync.Mutex
	start time.Time
	last  map[string]string
}

// Say prints a line, unless the text is empty.
func (l *Log) Say(subject, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.start, l.last = l.Clock.Now(), map[string]string{}
	}
	if text != "" && l.last[subject] != text {
		l.last[subject] = text
		fmt.Fprintf(l.Out, "%s  %-10s %s\n", time.Time{}.Add(l.Clock.Since(l.start)).Format(time.TimeOnly), subject, text)
	}
}

// Config takes events about an UpgradeConfig.
func (l *Log) Config(e clusterapi.Event) {
	d, ok := e.Data.(*upgradeconfig.EventData)
	if !ok {
		return
	}
	subject, text := "upgrade", ""
	switch e.Type {
	case upgradeconfig.EventSynced:
		subject = "sync"
		if d.Action == "" { // others have events of their own
			text = e.Message
		}
	case upgradeconfig.EventFailed:
		subject, text = "sync", fmt.Sprintf("failed, again in %s: %v", d.Retry.Round(time.Second), e.Err)
	case upgradeconfig.EventPhase:
		text = fmt.Sprintf("%s: %s", d.Version, d.Phase)
	case upgradeconfig.EventStep:
		if !strings.HasSuffix(e.Message, " has started") {
			text = "  " + e.Message
		}
	case upgradeconfig.EventValidated:
		if e.Err != nil {
			text = fmt.Sprintf("not valid: %v", e.Err)
		}
	case upgradeconfig.EventNotified:
		subject, text = "told", fmt.Sprintf("%s: %s", d.Notification.State, e.Message)
		if e.Err != nil {
			text = e.Err.Error()
		}
	default:
		subject, text = "config", fmt.Sprintf("%s: %s", e.Type, e.Message)
		for _, c := range d.Changes {
			if e.Type != upgradeconfig.EventCreated {
				text += "; " + c.String()
			}
		}
	}
	l.Say(subject, text)
}

// Updater takes events of the version operator.
func (l *Log) Updater(e clusterapi.Event) {
	if e.Type == clusterupdate.EventCompleted || e.Type == clusterupdate.EventPreconditionBlock {
		l.Say("version", e.Message)
	}
}

// Node takes events of the machine-config controller.
func (l *Log) Node(e clusterapi.Event) {
	if e.Type == rollout.EventPoolDone {
		l.Say("nodes", "all nodes of pool "+e.Data.(*rollout.EventData).Pool+" are updated")
	}
}

// Step is what somebody does about upgrades, and what is to come of it.
type Step struct {
	Who, Text string
	In        time.Duration         // from then on, as the time of an upgrade; 0: none
	Do        func(at string) error // at is that time; nil: nothing
	// Until says when the next step is due. The UpgradeConfig is nil if absent.
	Until func(c *upgradeconfig.UpgradeConfig, at string) bool
}

// Perform plays steps one after the other on a cluster, and prints them. It fails when
// an upgrade does.
func (l *Log) Perform(ctx context.Context, r *rehearsal.Rehearsal, steps []Step, more ...reconcile.Process) error {
	act := func(ctx context.Context, wait func(time.Duration) error) error { return l.perform(ctx, r, steps, wait) }
	return r.Play(ctx, act, more...)
}

func (l *Log) perform(ctx context.Context, r *rehearsal.Rehearsal, steps []Step, wait func(time.Duration) error) error {
	for _, step := range steps {
		due := r.Clock.Now().Add(step.In).UTC().Truncate(time.Second)
		at, text := due.Format(time.RFC3339), step.Text
		if step.In > 0 {
			text += " at " + due.Format("15:04")
		}
		l.Say(step.Who, text)
		if step.Do != nil {
			if err := step.Do(at); err != nil {
				return err
			}
		}
		for {
			c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, r.Cluster, clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name))
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if step.Until(c, at) {
				break
			}
			if c != nil {
				if e, _ := c.Status.Entry(c.Spec.Desired.Version); e.Phase == upgradeconfig.PhaseFailed {
					return program.No(fmt.Errorf("the upgrade to %s failed", c.Spec.Desired.Version))
				}
			}
			if err := wait(30 * time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// Planned: the UpgradeConfig is for that time.
func Planned(c *upgradeconfig.UpgradeConfig, at string) bool {
	return c != nil && c.Spec.UpgradeAt == at
}

// Upgraded: the upgrade has ended, and the provider knows.
func Upgraded(c *upgradeconfig.UpgradeConfig, _ string) bool {
	if c == nil {
		return false
	}
	e, _ := c.Status.Entry(c.Spec.Desired.Version)
	return e.Phase == upgradeconfig.PhaseUpgraded && e.IsTrue(upgradeconfig.CompletedNotificationSent)
}

// Gone: there is no UpgradeConfig.
func Gone(c *upgradeconfig.UpgradeConfig, _ string) bool { return c == nil }
