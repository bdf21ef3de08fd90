package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// moody is a check that blocks for a while, and notes what it is asked about.
type moody struct {
	blocks func(run int) bool
	asked  *[]string
}

func (moody) Name() string                          { return "Moody" }
func (moody) Applies(preconditions.Transition) bool { return true }

func (m moody) Run(_ context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	if in.TargetPayload == nil || in.CurrentPayload == nil {
		return nil, errors.New("a payload is missing")
	}
	*m.asked = append(*m.asked, fmt.Sprintf("%s %s to %s", in.Kind, in.Current, in.Target))
	if m.blocks(len(*m.asked)) {
		return []preconditions.Finding{{Severity: preconditions.Blocking, Reason: "Mood", Message: "not now"}}, nil
	}
	return nil, nil
}

// TestChecksRunAgain: where a hook holds up the first manifest for more than 10
// minutes, the checks run once more, and nothing is applied while they block.
func TestChecksRunAgain(t *testing.T) {
	releases := toyReleases(t)
	for _, tt := range []struct {
		name   string
		holds  time.Duration
		blocks func(run int) bool
		force  bool
		asked  int
		said   []string
	}{
		{name: "at once", asked: 1},
		{name: "for 9 minutes", holds: 9 * time.Minute, asked: 1},
		{name: "for 11 minutes", holds: 11 * time.Minute, asked: 2},
		{name: "and they block for a while", holds: 11 * time.Minute, blocks: func(run int) bool { return run > 1 && run < 5 }, asked: 5, said: []string{
			`True : Working towards 1.0.1, the checks block what is to be applied: Precondition "Moody" failed because of "Mood": not now`}},
		{name: "and it is forced", holds: 11 * time.Minute, force: true, blocks: func(int) bool { return true }, asked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1", Image: releases[1].payload.Release.Image, Force: tt.force})
			var began time.Time
			h := &marking{before: func(now time.Time) (clusterversion.HookWait, error) {
				if began.IsZero() {
					began = now
				}
				if now.Sub(began) < tt.holds {
					return clusterversion.HookWait{Reason: "holding"}, nil
				}
				return clusterversion.HookWait{}, nil
			}}
			if tt.blocks == nil {
				tt.blocks = func(int) bool { return false }
			}
			var asked, blocked []string
			o := toyOptions(t, releases)
			o.Hooks, o.Checks = []clusterversion.Hook{h}, []preconditions.Check{moody{tt.blocks, &asked}}
			o.Observe = func(e clusterapi.Event) {
				if e.Type == clusterupdate.EventPreconditionBlock {
					blocked = append(blocked, e.Message)
				}
			}
			v := virtually(t, c.testCluster, o, reconcile.VirtualOptions{Seed: 1}).Virtual
			var said []string
			c.follow(t, v, func() bool {
				if text := condition(c.version(t), configv1.OperatorProgressing); strings.Contains(text, "checks block") && !slices.Contains(said, text) {
					said = append(said, text)
				}
				return historyOf(c.version(t)) == "1.0.1 Completed, 1.0.0 Completed"
			})
			checktest.SameIn(t, "conditions", tt.said, said)
			if len(blocked) != len(said) {
				t.Errorf("events %q", blocked)
			}
			if len(asked) != tt.asked {
				t.Errorf("asked %d times: %q", len(asked), asked)
			}
			for _, a := range asked {
				if a != "Patch 1.0.0 to 1.0.1" {
					t.Errorf("asked about %s", a)
				}
			}
			for _, fault := range c.faults {
				t.Error(fault)
			}
		})
	}
}
