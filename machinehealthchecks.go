package clusterupdate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

// PauseMachineHealthChecks is a [Hook] that pauses MachineHealthChecks before anything
// of an update is applied, those that come while it goes on too, and resumes them after
// it. An update that is given up, for the old release or another one, and one that
// another process ends, are an end like any other. It is safe for concurrent use.
func PauseMachineHealthChecks(h remedy.HealthChecks) Hook { return healthCheckHook{h} }

type healthCheckHook struct{ remedy.HealthChecks }

func (healthCheckHook) Name() string { return "MachineHealthChecks" }

func (h healthCheckHook) BeforeApply(ctx context.Context, r HookRequest) (HookWait, error) {
	if !everCompleted(&r.ClusterVersion.Status) {
		return HookWait{}, nil // an installation
	}
	_, err := h.Pause(ctx, r.API, r.ClusterVersion.Status.History[0].Image)
	return HookWait{}, err
}

func (h healthCheckHook) AfterComplete(ctx context.Context, r HookRequest) (HookWait, error) {
	still, waitsFor, err := h.Resume(ctx, r.API, r.ClusterVersion.Status.History[0].Image)
	if err != nil || len(still) == 0 {
		return HookWait{}, err
	}
	return HookWait{After: time.Minute, Reason: fmt.Sprintf("%s stay paused until these are updated: %s", strings.Join(still, ", "), waitsFor)}, nil
}
