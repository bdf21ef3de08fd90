package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// What is decided from a state, and why.
func TestDecide(t *testing.T) {
	c := contents("a.v1 X", "a.v2 X >a.v1", "b.v1 Y")
	planned := func(name string, generation int64, phase olmapi.InstallPlanPhase, csvs ...string) olmapi.InstallPlan {
		p := plan(name, generation, phase, csvs...)
		p.Status.Plan = nil
		for _, csv := range csvs {
			s := step(csv, olmapi.StepUnknown)
			p.Status.Plan = append(p.Status.Plan, s)
			pkg, v, _ := strings.Cut(csv, ".v")
			p.Status.BundleLookups = append(p.Status.BundleLookups, olmapi.BundleLookup{Path: "registry.example/" + pkg + ":" + v + ".0.0", Identifier: csv})
		}
		return p
	}
	approved := planned("p", 1, olmapi.PlanPhaseRequiresApproval, "a.v1")
	stale := planned("p", 1, olmapi.PlanPhaseInstalling, "a.v9")
	waiting := stale
	waiting.Spec.Approved, waiting.Status.Phase = false, olmapi.PlanPhaseRequiresApproval
	for _, tc := range []struct {
		name  string
		state install.State
		want  []string
	}{
		{"without Subscriptions", install.State{Snapshot: ptr(snapshot(c, nil))}, nil},
		{"what has to be unpacked comes first", install.State{Snapshot: ptr(snapshot(c, nil, sub("a", ""))), Unpack: true},
			[]string{"Unpack a.v2: the generation asks for a.v2"}},
		{"being unpacked", install.State{Snapshot: ptr(snapshot(c, nil, sub("a", ""))), Unpack: true, Unpacked: map[string]install.UnpackResult{"a.v2": {Err: install.ErrUnpacking}}},
			[]string{"WriteSubscription a: its status differs from what is there"}},
		{"a plan is made, and one superseded", install.State{Snapshot: ptr(snapshot(c, nil, sub("a", ""))), Plans: []olmapi.InstallPlan{waiting}},
			[]string{"CreatePlan install-2 Installing: the generation asks for a.v2", "WritePlan p Failed: the generation no longer asks for it"}},
		{"the plan could not be made", install.State{Snapshot: ptr(snapshot(c, nil, sub("a", ""))), PlanErr: errors.New("no")},
			[]string{"WriteSubscription a: its status differs from what is there"}},
		{"approved", install.State{Snapshot: ptr(snapshot(contents("a.v1 X"), nil, sub("a", ""))), Plans: []olmapi.InstallPlan{approved}},
			[]string{"WritePlan p Installing: it was approved"}},
		{"statuses before execution", install.State{Execute: true, Snapshot: ptr(snapshot(contents("a.v1 X"), nil, sub("a", ""))), Plans: []olmapi.InstallPlan{planned("p", 1, olmapi.PlanPhaseInstalling, "a.v1")}},
			[]string{"WriteSubscription a: its status differs from what is there"}},
		{"not known what is asked for", install.State{Execute: true, Snapshot: ptr(snapshot(nil, nil, sub("a", ""))), Plans: []olmapi.InstallPlan{stale, waiting}},
			[]string{"WriteSubscription a: its status differs from what is there"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.Now = statusNow.Time
			if len(tc.state.Snapshot.Subscriptions) > 0 && tc.name == "not known what is asked for" {
				tc.state.Snapshot.Catalogs[0].Err = errors.New("away")
			}
			before := checktest.Get(json.Marshal(tc.state))(t)
			decide := func() (out []string) {
				actions, result, _ := install.Decide(context.Background(), &tc.state)
				if result.Namespace != ns {
					t.Errorf("result %+v", result)
				}
				for _, a := range actions {
					out = append(out, a.String())
				}
				return out
			}
			got := decide()
			checktest.Same(t, tc.want, got)
			if again := decide(); !slices.Equal(got, again) {
				t.Errorf("again: %v", again)
			}
			if after, _ := json.Marshal(tc.state); string(after) != string(before) {
				t.Errorf("the state was changed:\n%s\n%s", before, after)
			}
		})
	}
	// Executions come once nothing is left to be written, oldest plan first.
	for _, tc := range []struct {
		name  string
		state install.State
		want  []string
	}{
		{"two plans", install.State{
			Snapshot: ptr(snapshot(contents("a.v1 X", "b.v1 Y"), installed("a.v1 X"), sub("a", "a.v1"), sub("b", ""))),
			Plans: []olmapi.InstallPlan{
				planned("new", 2, olmapi.PlanPhaseInstalling, "b.v1"), planned("old", 1, olmapi.PlanPhaseInstalling, "a.v1"),
			},
		}, []string{
			"ExecutePlan old [a.v1]: these operators are there, and what belongs to them follows",
			"ExecutePlan new [b.v1]: the generation asks for it",
		}},
		{"a list of operators that is older than the Subscription", install.State{
			Snapshot: ptr(snapshot(c, installed("a.v1 X"), sub("a", "a.v2"))),
			Plans:    []olmapi.InstallPlan{planned("p", 1, olmapi.PlanPhaseInstalling, "a.v2")},
		}, []string{"ExecutePlan p [a.v2]: these operators are there, and what belongs to them follows"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.Now, tc.state.Execute = statusNow.Time, true
			var got []string
			for range 5 {
				actions, _, err := install.Decide(context.Background(), &tc.state)
				checktest.OK(t, err)
				got = nil
				for _, a := range actions {
					if a.Subscription == nil {
						got = append(got, fmt.Sprintf("%s %s %v: %s", a.Type, a.Plan.Name, a.Operators, a.Reason))
						continue
					}
					subs := tc.state.Snapshot.Subscriptions
					i := slices.IndexFunc(subs, func(s olmapi.Subscription) bool { return s.Name == a.Subscription.Name })
					subs[i] = *a.Subscription
				}
			}
			checktest.Same(t, tc.want, got)
		})
	}
}
