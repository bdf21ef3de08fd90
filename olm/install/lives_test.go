package install_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// A life is what becomes of operators from one step of an administrator to the
// next, and the end that it has whatever goes wrong.
type life struct {
	name  string
	world simulatedWorld
	steps []func(*simulated)
	want  []string
}

// stepEvery is the time from one step of a life to the next.
const stepEvery = 10 * time.Minute

// begin takes the first step, and the others later.
func (l *life) begin(s *simulated) {
	for i, step := range l.steps {
		s.clock.AfterFunc(time.Duration(i)*stepEvery, func() { step(s) })
	}
}

func publish(s *simulated) {
	s.level++
	s.shelf.put(s.levels[s.level])
}

func modifySubscription(name string, set func(*olmapi.Subscription)) func(*simulated) {
	return func(s *simulated) { must(change(s.cluster, name, set)) }
}

// approveAll approves what waits.
func approveAll(s *simulated) {
	for _, p := range list[olmapi.InstallPlan](s.cluster) {
		if p.Status.Phase == olmapi.PlanPhaseRequiresApproval {
			must(change(s.cluster, p.Name, approve))
		}
	}
}

func subscribe(x olmapi.Subscription) func(*simulated) {
	return func(s *simulated) {
		_, err := clusterapi.Create(context.Background(), s.cluster, &x, clusterapi.CreateOptions{})
		must(err)
	}
}

func unsubscribe(name string) func(*simulated) {
	return func(s *simulated) {
		err := s.cluster.Delete(context.Background(), (&olmapi.Subscription{}).APIKind(), clusterapi.Key(ns, name), clusterapi.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			must(err)
		}
	}
}

// uninstall deletes the Subscription and the operators of a package.
func uninstall(pkg, subscription string) func(*simulated) {
	return func(s *simulated) {
		ctx := context.Background()
		unsubscribe(subscription)(s)
		for _, csv := range list[olmapi.ClusterServiceVersion](s.cluster) {
			if strings.HasPrefix(csv.Name, pkg+".") {
				must(s.cluster.Delete(ctx, csv.APIKind(), clusterapi.Key(ns, csv.Name), clusterapi.DeleteOptions{}))
			}
		}
	}
}

func wait(*simulated) {}

const sharedAccount = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"shared"}}`

func lives() []life {
	first := []string{"a.v1 A"}
	second := []string{"a.v1 A", "a.v2 A >a.v1", "a.v3 A >a.v1 @beta"}
	third := append(slices.Clone(second), "a.v4 A >a.v2 ~a.v1 ~a.v3 @stable @beta")
	dependent := []string{"a.v1 A", "d.v1 D -A"}
	return []life{
		{
			name:  "install, update, switch of channel",
			world: simulatedWorld{levels: [][]string{first, second, third}, further: configs(third), subs: []olmapi.Subscription{sub("a", "")}},
			steps: []func(*simulated){publish, modifySubscription("a", func(x *olmapi.Subscription) { x.Spec.Channel = "beta" }), publish},
			want:  []string{"ops/a.v4 Succeeded", "a AtLatestKnown a.v4/a.v4", "ops/a.v4-config"},
		},
		{
			name:  "late approval",
			world: simulatedWorld{levels: [][]string{first, second, third}, further: configs(third), subs: []olmapi.Subscription{sub("a", "", manual)}},
			steps: []func(*simulated){publish, wait, approveAll, publish, wait, approveAll, approveAll},
			want:  []string{"ops/a.v4 Succeeded", "a AtLatestKnown a.v4/a.v4", "ops/a.v4-config"},
		},
		{
			name:  "approval that nobody asks for any more",
			world: simulatedWorld{levels: [][]string{first}, further: configs(first), subs: []olmapi.Subscription{sub("a", "", manual)}},
			steps: []func(*simulated){wait, modifySubscription("a", func(x *olmapi.Subscription) { x.Spec.InstallPlanApproval = olmapi.ApprovalAutomatic })},
			want:  []string{"ops/a.v1 Succeeded", "a AtLatestKnown a.v1/a.v1", "ops/a.v1-config"},
		},
		{
			name:  "uninstalled",
			world: simulatedWorld{levels: [][]string{dependent}, further: configs(dependent), subs: []olmapi.Subscription{sub("a", ""), sub("d", "")}},
			steps: []func(*simulated){wait, uninstall("d", "d"), uninstall("d", "d")},
			want:  []string{"ops/a.v1 Succeeded", "a AtLatestKnown a.v1/a.v1", "ops/a.v1-config"},
		},
		{
			name:  "installed again",
			world: simulatedWorld{levels: [][]string{first, second}, further: configs(second), subs: []olmapi.Subscription{sub("a", "")}},
			steps: []func(*simulated){wait, uninstall("a", "a"), uninstall("a", "a"), publish, subscribe(sub("a", ""))},
			want:  []string{"ops/a.v2 Succeeded", "a AtLatestKnown a.v2/a.v2", "ops/a.v2-config"},
		},
		{
			name:  "Subscription made again",
			world: simulatedWorld{levels: [][]string{first, second}, further: configs(second), subs: []olmapi.Subscription{sub("a", "")}},
			steps: []func(*simulated){wait, wait, unsubscribe("a"), publish, subscribe(sub("a", ""))},
			want:  []string{"ops/a.v2 Succeeded", "a AtLatestKnown a.v2/a.v2", "ops/a.v2-config"},
		},
		{
			name: "a bundle that is rejected",
			world: simulatedWorld{levels: [][]string{first, {"a.v1 A", "a.v2 A ~a.v1"}}, subs: []olmapi.Subscription{sub("a", "")}, further: map[string][]string{
				"a.v1": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}`}, "a.v2": configs(second)["a.v2"]}},
			steps: []func(*simulated){wait, publish},
			want:  []string{"ops/a.v2 Succeeded", "a AtLatestKnown a.v2/a.v2", "ops/a.v2-config"},
		},
		{
			name: "two operators share an account",
			world: simulatedWorld{levels: [][]string{{"a.v1 A", "b.v1 B"}, {"a.v1 A", "a.v2 A >a.v1", "b.v1 B"}}, subs: []olmapi.Subscription{sub("a", ""), sub("b", "")},
				further: map[string][]string{"a.v1": {sharedAccount}, "a.v2": {sharedAccount}, "b.v1": {sharedAccount}}},
			steps: []func(*simulated){publish},
			want:  []string{"ops/a.v2 Succeeded", "ops/b.v1 Succeeded", "a AtLatestKnown a.v2/a.v2", "b AtLatestKnown b.v1/b.v1", "shared of a.v2 b.v1"},
		},
		{
			name:  "the provider of an API goes",
			world: simulatedWorld{levels: [][]string{dependent, {"a.v1 A", "d.v1 D -A", "d.v2 D -A >d.v1"}}, further: configs(dependent), subs: []olmapi.Subscription{sub("d", "")}},
			steps: []func(*simulated){wait, wait, uninstall("a", "a-stable-c-olm"), wait, publish},
			want:  []string{"ops/a.v1 Succeeded", "ops/d.v2 Succeeded", "a-stable-c-olm AtLatestKnown a.v1/a.v1", "d AtLatestKnown d.v2/d.v2", "ops/a.v1-config"},
		},
	}
}

// state are the operators, Subscriptions, what belongs to the operators that are
// there, and those of them that own the shared account: nothing plays the garbage
// collector.
func (l *life) state(s *simulated) []string {
	var out []string
	for _, line := range s.state() {
		operator, isConfig := strings.CutSuffix(line, "-config")
		if !isConfig || slices.Contains(out, operator+" Succeeded") {
			out = append(out, line)
		}
	}
	sa, err := clusterapi.Get[corev1.ServiceAccount](context.Background(), s.cluster, clusterapi.Key(ns, "shared"))
	if err != nil {
		return out
	}
	var owners []string
	for _, ref := range sa.OwnerReferences {
		if _, err := clusterapi.Get[olmapi.ClusterServiceVersion](context.Background(), s.cluster, clusterapi.Key(ns, ref.Name)); err == nil {
			owners = append(owners, ref.Name)
		}
	}
	slices.Sort(owners)
	return append(out, "shared of "+strings.Join(owners, " "))
}

// play plays a life to its end.
func (l *life) play(t testing.TB, seed uint64, f reconcile.Faults) (*simulated, error) {
	world := l.world
	world.admin = l.begin
	end := time.Duration(len(l.steps)) * stepEvery
	f.Until = end
	s := simulate(t, seed, f, world)
	return s, s.run(end + 45*time.Minute)
}

// Whatever goes wrong in the life of an operator, its end is that of a life in
// which nothing does, and the writes that it takes are bounded.
func TestLives(t *testing.T) {
	all := lives()
	writes := make([]int, len(all))
	for i := range all {
		l := &all[i]
		s, err := l.play(t, 1, reconcile.Faults{})
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		if diff := cmp.Diff(l.want, l.state(s)); diff != "" {
			t.Fatalf("%s, without faults (-want +got):\n%s\n%s", l.name, diff, strings.Join(s.log, "\n"))
		}
		writes[i] = s.writes
		s.Close()
	}
	simtest.Test(t, 0.5, func(seed uint64, only map[string]bool) ([]string, error) {
		i := int(seed) % len(all)
		l := &all[i]
		s, err := l.play(t, seed, reconcile.Faults{
			Before: 0.03, After: 0.03, Conflict: 0.03, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
			Crash: 0.02, Outage: 0.2, ClockBack: 0.1, Only: only,
		})
		if err != nil {
			s.Close()
			return s.Faults(), fmt.Errorf("%s: %w", l.name, err)
		}
		defer s.Close()
		if diff := cmp.Diff(l.want, l.state(s)); diff != "" {
			return s.Faults(), fmt.Errorf("%s: the end (-want +got):\n%s\n%s", l.name, diff, strings.Join(s.log, "\n"))
		}
		if s.writes > 3*writes[i] {
			return s.Faults(), fmt.Errorf("%s: %d writes, and %d without faults\n%s", l.name, s.writes, writes[i], strings.Join(s.log, "\n"))
		}
		return s.Faults(), nil
	})
}
