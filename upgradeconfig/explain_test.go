package upgradeconfig_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestExplain(t *testing.T) {
	policy := func(id, state string, spec upgradeconfig.Spec) upgradeconfig.Policy {
		return upgradeconfig.Policy{ID: id, State: state, Spec: spec, NextRun: at(spec.UpgradeAt)}
	}
	later := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	never := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "soon" })
	now := at("2031-02-04T01:00:00Z")
	started := metav1.NewTime(at("2031-02-04T00:30:00Z"))
	running := object(specA, underWay("4.20.3"))
	running.Status.History[0].StartTime = &started
	running.Status.History[0].Conditions[0].Message = "StartedNotificationSent is completed"
	finished := func(phase upgradeconfig.Phase, complete *metav1.Time) *upgradeconfig.UpgradeConfig {
		return object(specA, upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{Version: "4.20.3", Phase: phase, CompleteTime: complete}}})
	}
	const counts = "policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T03:00:00Z"
	const inStep = "nothing to do: the UpgradeConfig has the policy's spec"
	for _, tt := range []struct {
		name     string
		policies []upgradeconfig.Policy
		current  *upgradeconfig.UpgradeConfig
		now      time.Time
		o        upgradeconfig.ExplainOptions
		want     []string
	}{
		{name: "nothing", want: []string{"no policy counts", "nothing to do: there is no policy and no UpgradeConfig"}},
		{name: "ignored", policies: []upgradeconfig.Policy{policy("p-7", "Pending", specA)}, current: running,
			want: []string{"policy p-7 ignored: pending", "no policy counts", "will delete: there is no policy"}},
		{name: "create", policies: []upgradeconfig.Policy{policy("p-9", "scheduled", specB), policy("p-7", "scheduled", specA)},
			want: []string{counts, "policy p-9 has to wait for policy p-7", "will create: there is a policy but no UpgradeConfig", "starts in 2h0m, window ends 2031-02-04T05:00:00Z"}},
		{name: "replace", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{Faults: []error{errors.New("4.20.3 is not in fast-4.20")}},
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will replace: the UpgradeConfig differs from the policy (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z", "not valid: 4.20.3 is not in fast-4.20"}},
		{name: "replace while it upgrades", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: running,
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will replace: the UpgradeConfig differs from the policy (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z"}},
		{name: "update", policies: []upgradeconfig.Policy{policy("p-7", "", later)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{DiffOptions: upgradeconfig.DiffOptions{Update: true}},
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at 2031-02-04T04:00:00Z", "will update in place: the UpgradeConfig differs from the policy, but not in its release (upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z)",
				"starts in 3h0m, window ends 2031-02-04T06:00:00Z"}},
		{name: "hold", current: running, o: upgradeconfig.ExplainOptions{DiffOptions: upgradeconfig.DiffOptions{KeepWhileUpgrading: true, InProgress: true}},
			want: []string{"no policy counts", "will leave it as it is: there is no policy, but its upgrade is in progress", "upgrading for 30m, StartedNotificationSent: StartedNotificationSent is completed"}},
		{name: "due", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), now: at("2031-02-04T03:00:10Z"),
			want: []string{counts, inStep, "due for 10s, window ends 2031-02-04T05:00:00Z"}},
		{name: "late", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), now: at("2031-02-04T05:00:00Z"),
			want: []string{counts, inStep, "due for 2h0m, window ended 2031-02-04T05:00:00Z"}},
		{name: "own window", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{TimeOut: time.Hour},
			want: []string{counts, inStep, "starts in 2h0m, window ends 2031-02-04T04:00:00Z"}},
		{name: "no window", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: object(specA, upgradeconfig.Status{}), o: upgradeconfig.ExplainOptions{TimeOut: reconcile.Never},
			want: []string{counts, inStep, "starts in 2h0m"}},
		{name: "no time", policies: []upgradeconfig.Policy{{ID: "p-7", Spec: never}}, current: object(never, upgradeconfig.Status{}),
			want: []string{"policy p-7 counts: 4.20.3 from stable-4.20 at soon", inStep, `never starts: upgradeAt "soon" is not a time`}},
		{name: "upgraded", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: finished(upgradeconfig.PhaseUpgraded, &started),
			want: []string{counts, inStep, "upgraded at 2031-02-04T00:30:00Z"}},
		{name: "failed", policies: []upgradeconfig.Policy{policy("p-7", "", specA)}, current: finished(upgradeconfig.PhaseFailed, nil),
			want: []string{counts, inStep, "the upgrade failed, and is not tried again for this UpgradeConfig"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.now.IsZero() {
				tt.now = now
			}
			if d := cmp.Diff(tt.want, upgradeconfig.Explain(tt.policies, tt.current, tt.now, tt.o)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
