package install_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// The operators of the simulation, as they come to be published. b comes as
// what a needs; from a.v5 on another API of it, which b.v3 gives in the place
// of the first: b must not lose it before.
var published = [][]string{
	{"a.v1 A @stable @beta", "b.v1 B", "d.v1 D -A"},
	{"a.v1 A @stable @beta", "a.v2 A -B >a.v1", "b.v1 B", "b.v2 B B2 >b.v1", "d.v1 D -A"},
	{"a.v1 A @stable @beta", "a.v2 A -B >a.v1", "a.v4 A -B2 >a.v1 @beta", "b.v1 B", "b.v2 B B2 >b.v1", "d.v1 D -A", "d.v2 D -A >d.v1"},
	{"a.v1 A @stable @beta", "a.v2 A -B >a.v1", "a.v4 A -B2 >a.v1 @beta", "a.v5 A -B2 >a.v2 ~a.v4 ~a.v1", "b.v1 B", "b.v2 B B2 >b.v1", "b.v3 B2 >b.v2", "d.v1 D -A", "d.v2 D -A >d.v1"},
}

// simulated is a run of the simulation.
type simulated struct {
	*reconcile.Virtual
	cluster *memory.Cluster
	clock   *reconcile.Clock
	cursor  clusterapi.Cursor
	rand    *rand.Rand // the administrator's
	shelf   *changing
	levels  []*olm.Contents
	level   int
	phase   map[string]olmapi.InstallPlanPhase // of plans
	names   map[string][]string                // of their operators
	writes  int
	log     []string
}

// simulatedWorld is what a simulation begins with, and what happens in it.
type simulatedWorld struct {
	levels  [][]string          // what is published, one after the other
	further map[string][]string // objects of bundles but CSVs, by operator
	subs    []olmapi.Subscription
	admin   func(*simulated) // called after a minute
}

// adminFor is how long the administrator changes things; then everything is as
// it is to stay, and what waits is approved.
const adminFor = 20 * time.Minute

// configs are bundles with a ConfigMap for each operator.
func configs(lines []string) map[string][]string {
	further := map[string][]string{}
	for _, line := range lines {
		name := strings.Fields(line)[0]
		further[name] = []string{fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-config"}}`, name)}
	}
	return further
}

// publishing is a world in which all that is published replaces what was before.
func publishing() simulatedWorld {
	return simulatedWorld{
		levels: published, further: configs(published[len(published)-1]), subs: []olmapi.Subscription{sub("a", ""), sub("d", "")},
		admin: (*simulated).administrate,
	}
}

func simulate(t testing.TB, seed uint64, f reconcile.Faults, world simulatedWorld) *simulated {
	s := &simulated{
		clock: reconcile.NewClock(statusNow.Time), rand: rand.New(rand.NewPCG(seed, 7)), shelf: &changing{},
		phase: map[string]olmapi.InstallPlanPhase{}, names: map[string][]string{},
	}
	for _, lines := range world.levels {
		s.levels = append(s.levels, contents(lines...))
	}
	s.shelf.put(s.levels[0])
	s.cluster = memory.NewOpenShift(memory.Options{Clock: s.clock, CheckShared: seed%10 == 1, Intercept: s.count})
	objects := surroundings()
	for i := range world.subs {
		objects = append(objects, &world.subs[i])
	}
	put(s.cluster, objects...)
	c, err := install.New(install.Options{
		API:             s.cluster,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{catalogKey: s.shelf}, GlobalNamespace: "olm"},
		Unpacker:        bundles(t, slices.Concat(world.levels...), world.further), Execute: true, Retry: 24 * time.Hour, Interval: 5 * time.Minute,
		Observe: func(e clusterapi.Event) {
			data, err := e.MarshalJSON()
			s.log = append(s.log, fmt.Sprint(string(data), err))
		},
	})
	must(err)
	s.cursor = s.cluster.Follow()
	o := reconcile.VirtualOptions{Cluster: s.cluster, Clock: s.clock, Seed: seed, Faults: f, Latency: reconcile.Latency{Watch: 500 * time.Millisecond, Job: time.Second}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	s.Virtual = reconcile.NewVirtual(o, c.Process(), installtest.OLM{Install: 3 * time.Second}.Process())
	s.clock.AfterFunc(time.Minute, func() { world.admin(s) })
	return s
}

// count counts writes.
func (s *simulated) count(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	switch call.Verb {
	case "Get", "List", "Watch":
	default:
		s.writes++
	}
	return do(ctx)
}

// administrate is what the administrator does from time to time.
func (s *simulated) administrate() {
	ctx := context.Background()
	last := s.clock.Now().Sub(statusNow.Time) > adminFor
	subscription := func(set func(*olmapi.Subscription)) { must(change(s.cluster, "a", set)) }
	plans := list[olmapi.InstallPlan](s.cluster)
	if last {
		s.level = len(s.levels) - 1
		s.shelf.put(s.levels[s.level])
		subscription(func(a *olmapi.Subscription) { a.Spec.Channel = "stable" })
		approveAll(s)
	} else {
		switch s.rand.IntN(6) {
		case 0, 1:
			if len(plans) > 0 { // any, old ones too
				must(change(s.cluster, plans[s.rand.IntN(len(plans))].Name, approve))
			}
		case 2:
			approvals := []olmapi.Approval{olmapi.ApprovalManual, olmapi.ApprovalAutomatic}
			subscription(func(a *olmapi.Subscription) { a.Spec.InstallPlanApproval = approvals[s.rand.IntN(2)] })
		case 3:
			subscription(func(a *olmapi.Subscription) { a.Spec.Channel = []string{"stable", "beta"}[s.rand.IntN(2)] })
		case 4:
			for _, p := range plans {
				if p.Status.Phase == olmapi.PlanPhaseRequiresApproval && !p.Spec.Approved {
					must(s.cluster.Delete(ctx, p.APIKind(), clusterapi.Key(ns, p.Name), clusterapi.DeleteOptions{}))
					break
				}
			}
		case 5:
			s.level = min(s.level+1, len(s.levels)-1)
			s.shelf.put(s.levels[s.level])
		}
	}
	s.clock.AfterFunc(time.Duration(30+s.rand.IntN(60))*time.Second, s.administrate)
}

// look checks what must hold after each step.
func (s *simulated) look() error {
	for c, ok := s.cursor.Next(); ok; c, ok = s.cursor.Next() {
		o := c.Object()
		if o.Key().Namespace != ns && o.Key().Namespace != "olm" {
			return fmt.Errorf("%s %s was written", o.Kind().Kind, o.Key())
		}
		switch o.Kind().Kind {
		case "InstallPlan":
			p, err := clusterapi.As[olmapi.InstallPlan](o)
			if err != nil {
				return err
			}
			if before := s.phase[p.Name]; before == olmapi.PlanPhaseFailed && c.New != nil && p.Status.Phase != before {
				return fmt.Errorf("plan %s was %s and is %s", p.Name, before, p.Status.Phase)
			}
			s.phase[p.Name], s.names[p.Name] = p.Status.Phase, p.Spec.ClusterServiceVersionNames
			if c.New == nil {
				delete(s.phase, p.Name)
			}
		case "ClusterServiceVersion":
			if c.Old != nil {
				continue
			}
			serving := false
			for name, phase := range s.phase {
				serving = serving || phase == olmapi.PlanPhaseInstalling && slices.Contains(s.names[name], o.Name())
			}
			if !serving {
				return fmt.Errorf("%s was created, and no plan that is being installed holds it", o.Name())
			}
			present := map[string]bool{}
			replaces := ""
			for _, csv := range list[olmapi.ClusterServiceVersion](s.cluster) {
				present[csv.Name] = true
				if csv.Name == o.Name() {
					replaces = csv.Spec.Replaces
				}
			}
			pkg, _, _ := strings.Cut(o.Name(), ".")
			for name := range present {
				if strings.HasPrefix(name, pkg+".") && name != o.Name() && !present[replaces] {
					return fmt.Errorf("%s was created beside %s, and replaces %q", o.Name(), name, replaces)
				}
			}
		}
	}
	return nil
}

func (s *simulated) run(until time.Duration) error {
	for end := statusNow.Add(until); ; {
		at, ok := s.Next()
		if !ok || at.After(end) {
			return nil
		}
		if _, err := s.Step(); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return fmt.Errorf("after %s: %w", s.clock.Now().Sub(statusNow.Time), err)
		}
	}
}

// state is all that is there: objects with what matters of them.
func (s *simulated) state() (lines []string) {
	maps, err := s.cluster.List(context.Background(), configMapKind, clusterapi.ListOptions{})
	must(err)
	for _, c := range list[olmapi.ClusterServiceVersion](s.cluster) {
		lines = append(lines, c.Namespace+"/"+c.Name+" "+c.Status.Phase)
	}
	for _, x := range list[olmapi.Subscription](s.cluster) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s/%s %s", x.Name, x.Status.State, x.Status.InstalledCSV, x.Status.CurrentCSV, conditionsText(&x.Status))))
	}
	for _, m := range maps.Items {
		lines = append(lines, m.GetNamespace()+"/"+m.GetName())
	}
	return lines
}

func (s *simulated) active() (out []string) {
	for name, phase := range s.phase {
		if phase != olmapi.PlanPhaseComplete && phase != olmapi.PlanPhaseFailed {
			out = append(out, fmt.Sprintf("%s %s %v", name, phase, s.names[name]))
		}
	}
	slices.Sort(out)
	return out
}

// Whatever goes wrong, and whatever the administrator does meanwhile, the end
// is what the Subscriptions ask for.
func TestSimulation(t *testing.T) {
	want := []string{
		"ops/a.v5 Succeeded", "ops/b.v3 Succeeded", "ops/d.v2 Succeeded",
		"a AtLatestKnown a.v5/a.v5", "b-stable-c-olm AtLatestKnown b.v3/b.v3", "d AtLatestKnown d.v2/d.v2",
		"ops/a.v5-config", "ops/b.v3-config", "ops/d.v2-config",
	}
	simtest.Test(t, 0.5, func(seed uint64, only map[string]bool) ([]string, error) {
		s := simulate(t, seed, reconcile.Faults{
			Before: 0.03, After: 0.03, Conflict: 0.03, Slow: 0.01, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05,
			Crash: 0.02, Outage: 0.2, ClockBack: 0.1, Until: adminFor + 10*time.Minute, Only: only,
		}, publishing())
		defer s.Close()
		if err := s.run(50 * time.Minute); err != nil {
			return s.Faults(), err
		}
		if diff := cmp.Diff(want, s.state()); diff != "" {
			return s.Faults(), fmt.Errorf("the end (-want +got):\n%s\n%s", diff, strings.Join(s.log, "\n"))
		}
		if err := s.cluster.CheckShared(); err != nil {
			return s.Faults(), err
		}
		if active := s.active(); len(active) > 0 {
			return s.Faults(), fmt.Errorf("plans are left: %s", active)
		}
		return s.Faults(), nil
	})
}

// The same seed makes the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	run := func(seed uint64) []string {
		s := simulate(t, seed, reconcile.Faults{Before: 0.05, After: 0.05, Stale: 0.1, Late: 0.1, Crash: 0.02, Until: time.Hour}, publishing())
		defer s.Close()
		checktest.OK(t, s.run(time.Hour))
		return slices.Concat(s.log, s.Faults(), s.state())
	}
	for _, seed := range []uint64{1, 2} {
		checktest.SameIn(t, fmt.Sprintf("seed %d", seed), run(seed), run(seed))
	}
}
