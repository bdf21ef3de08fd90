package upgradeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

var errInjected = errors.New("injected fault")

// world is a cluster with a provider, in which something can happen before and
// after each call that a sync makes, of either. It judges what the sync does.
type world struct {
	t fataler
	*memory.Cluster
	specs []upgradeconfig.Spec // what the provider wants
	keep  bool

	steps  int // calls of the sync so far
	before func(n int) error
	after  func(n int) error
	aside  bool // calls are not the sync's

	created map[types.UID]upgradeconfig.Spec // by the sync
	harm    []string
}

type fataler interface {
	Fatalf(string, ...any)
	Helper()
}

func newWorld(t fataler, cluster func(memory.Options) *memory.Cluster, keep bool, specs ...upgradeconfig.Spec) *world {
	w := &world{t: t, specs: specs, keep: keep, created: map[types.UID]upgradeconfig.Spec{}}
	w.Cluster = cluster(memory.Options{Intercept: w.intercept})
	return w
}

func (w *world) Policies(ctx context.Context) (out []upgradeconfig.Policy, err error) {
	err = w.step(ctx, func(context.Context) error {
		for _, s := range w.specs {
			out = append(out, upgradeconfig.Policy{ID: "p", Spec: s})
		}
		return nil
	})
	return out, err // with an error there are policies too: they must not be used
}

func (w *world) String() string { return "test" }

func (w *world) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	if w.aside {
		return do(ctx)
	}
	return w.step(ctx, func(ctx context.Context) error {
		old := w.get()
		err := do(ctx)
		if err == nil {
			w.judge(call.Verb, old)
		}
		return err
	})
}

func (w *world) step(ctx context.Context, do func(context.Context) error) error {
	w.steps++
	n := w.steps
	if w.before != nil {
		if err := w.before(n); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do(ctx)
	if w.after != nil {
		if err := w.after(n); err != nil {
			return err
		}
	}
	return err
}

// judge looks at a write that the sync made of what was old.
func (w *world) judge(verb string, old *upgradeconfig.UpgradeConfig) {
	switch verb {
	case "Create":
		c := w.get()
		w.created[c.UID] = c.Spec
		if len(c.Status.History) > 0 {
			w.harm = append(w.harm, "created with a status")
		}
	case "Delete", "Update":
		if len(w.specs) > 0 && old.Spec == w.specs[0] && old.DeletionTimestamp == nil {
			w.harm = append(w.harm, verb+" of an object that was as it should be")
		}
		if w.keep && upgradeconfig.InProgress(old) {
			w.harm = append(w.harm, verb+" of an object whose upgrade is in progress")
		}
	}
}

// moment is before or after a call of a sync takes effect.
type moment struct {
	call  int // from 1
	after bool
}

func (m moment) String() string { return fmt.Sprintf("call %d/after %v", m.call, m.after) }

// moments are those of a number of calls.
func moments(calls int) (all []moment) {
	for call := 1; call <= calls; call++ {
		all = append(all, moment{call, false}, moment{call, true})
	}
	return all
}

// at makes f happen at a moment.
func (w *world) at(m moment, f func() error) {
	step := func(call int) error {
		if call != m.call {
			return nil
		}
		return f()
	}
	if m.after {
		w.after = step
	} else {
		w.before = step
	}
}

// quietly makes calls that are not the sync's.
func (w *world) quietly(f func()) {
	was := w.aside
	w.aside = true
	defer func() { w.aside = was }()
	f()
}

func (w *world) get() (c *upgradeconfig.UpgradeConfig) {
	w.quietly(func() {
		got, err := clusterapi.Get[upgradeconfig.UpgradeConfig](context.Background(), w.Cluster, objectKey)
		if err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatalf("%v", err)
		}
		c = got
	})
	return c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
}

// edit is what somebody else does to the object.
type edit struct {
	name string
	do   func(w *world)
}

func (w *world) put(spec upgradeconfig.Spec) {
	_, err := clusterapi.Create(context.Background(), w.Cluster, object(spec, upgradeconfig.Status{}), clusterapi.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		w.must(err)
	}
}

func (w *world) drop() {
	err := w.Delete(context.Background(), (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey, clusterapi.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
}

func (w *world) modify(status bool, f func(*upgradeconfig.UpgradeConfig)) {
	_, err := clusterapi.Modify(context.Background(), w.Cluster, objectKey, clusterapi.ModifyOptions{Status: status}, func(c *upgradeconfig.UpgradeConfig) error {
		f(c)
		return nil
	})
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}
}

var edits = []edit{
	{"labels it", func(w *world) {
		w.modify(false, func(c *upgradeconfig.UpgradeConfig) { c.Labels = map[string]string{"a": "b"} })
	}},
	{"takes the upgrade up", func(w *world) {
		w.modify(true, func(c *upgradeconfig.UpgradeConfig) {
			c.Status.SetEntry(upgradeconfig.HistoryEntry{Version: c.Spec.Desired.Version, Phase: upgradeconfig.PhaseNew})
		})
	}},
	{"starts the upgrade", func(w *world) {
		w.modify(true, func(c *upgradeconfig.UpgradeConfig) { c.Status = underWay(c.Spec.Desired.Version) })
	}},
	{"changes its spec", func(w *world) {
		w.modify(false, func(c *upgradeconfig.UpgradeConfig) { c.Spec.PDBForceDrainTimeout++ })
	}},
	{"makes it what the policy says", func(w *world) {
		w.modify(false, func(c *upgradeconfig.UpgradeConfig) {
			if len(w.specs) > 0 {
				c.Spec = w.specs[0]
			}
		})
	}},
	{"deletes it", (*world).drop},
	{"creates it", func(w *world) { w.put(specA) }},
	{"replaces it by the same", func(w *world) {
		if c := w.get(); c != nil {
			w.drop()
			w.put(c.Spec)
		}
	}},
	{"replaces it by what the policy says", func(w *world) {
		w.drop()
		if len(w.specs) > 0 {
			w.put(w.specs[0])
		}
	}},
	{"replaces it by one that upgrades", func(w *world) {
		w.drop()
		w.put(specA)
		w.modify(true, func(c *upgradeconfig.UpgradeConfig) { c.Status = underWay(c.Spec.Desired.Version) })
	}},
}

type situation struct {
	name    string
	current *upgradeconfig.UpgradeConfig
	specs   []upgradeconfig.Spec
	update  bool
	keep    bool
}

// situations are all actions, with and without the protection of upgrades.
func situations() (out []situation) {
	inPlace := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	for _, s := range []situation{
		{name: "create", specs: []upgradeconfig.Spec{specA}},
		{name: "replace", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{specB}},
		{name: "replace one that upgrades", current: object(specA, underWay("4.20.3")), specs: []upgradeconfig.Spec{specB}},
		{name: "update", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{inPlace}, update: true},
		{name: "delete", current: object(specA, upgradeconfig.Status{})},
		{name: "delete one that upgrades", current: object(specA, underWay("4.20.3"))},
		{name: "none", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{specA}},
		{name: "nothing at all"},
	} {
		out = append(out, s)
		s.name, s.keep = s.name+", kept while upgrading", true
		out = append(out, s)
	}
	return out
}

func (s situation) world(t *testing.T) *world {
	w := newWorld(t, func(o memory.Options) *memory.Cluster { return newCluster(t, o, false) }, s.keep, s.specs...)
	if s.current != nil {
		w.quietly(func() { store(t, w.Cluster, s.current) })
	}
	return w
}

// moments are those of a sync that nothing disturbs.
func (s situation) moments(t *testing.T) []moment {
	w := s.world(t)
	if _, err := w.manager(s.update).Sync(t.Context()); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return moments(w.steps)
}

// manager returns one that has just been started: it knows nothing.
func (w *world) manager(update bool) *upgradeconfig.Manager {
	return must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: w, Provider: w, Update: update, KeepWhileUpgrading: w.keep}))
}

// settle syncs undisturbed, and fails unless one sync is enough for the object
// to be as the provider wants it, or to be held as its upgrade is in progress,
// and a second one finds nothing to do.
func (w *world) settle(update bool) {
	w.t.Helper()
	w.before, w.after = nil, nil
	old := w.get()
	m := w.manager(update)
	r, err := m.Sync(context.Background())
	if err != nil {
		w.t.Fatalf("undisturbed: %v", err)
	}
	again, err := m.Sync(context.Background())
	if err != nil || again.Changed {
		w.t.Fatalf("the second sync: %s (%s), %v", again.Action.Kind, again.Action.Reason, err)
	}
	now := w.get()
	switch {
	case r.Action.Kind == upgradeconfig.EventHeld:
		if !w.keep || !upgradeconfig.InProgress(old) || now == nil || now.ResourceVersion != old.ResourceVersion {
			w.t.Fatalf("held, was %+v, is %+v", old, now)
		}
	case len(w.specs) == 0:
		if now != nil {
			w.t.Fatalf("there is no policy, but an object: %+v", now.Spec)
		}
	case now == nil || now.Spec != w.specs[0]:
		w.t.Fatalf("is %+v, want %+v", now, w.specs[0])
	}
	if len(w.harm) > 0 {
		w.t.Fatalf("%q", w.harm)
	}
}

// Each call of a sync fails once, before or after it took effect, as an error
// or as the end of the process.
func TestCrashAtEveryCall(t *testing.T) {
	runs := 0
	for _, s := range situations() {
		for _, m := range s.moments(t) {
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/crash %v", s.name, m, crash), func(t *testing.T) {
					runs++
					w := s.world(t)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w.at(m, func() error {
						if !crash {
							return errInjected
						}
						cancel()
						return context.Canceled
					})
					if r, err := w.manager(s.update).Sync(ctx); err == nil || r.Changed {
						t.Fatalf("%+v, no error", r.Action)
					} else if crash != errors.Is(err, context.Canceled) || !crash && !errors.Is(err, errInjected) {
						t.Errorf("%v", err)
					}
					w.settle(s.update)
					if len(w.created) > 1 {
						t.Errorf("the policy was applied %d times", len(w.created))
					}
				})
			}
		}
	}
	if runs < 100 {
		t.Errorf("only %d runs", runs)
	}
}

// Before or after each call of a sync somebody else does each of the edits.
func TestEditorAtEveryCall(t *testing.T) {
	runs := 0
	for _, s := range situations() {
		for _, m := range s.moments(t) {
			for _, e := range edits {
				t.Run(fmt.Sprintf("%s/%s/%s", s.name, m, e.name), func(t *testing.T) {
					runs++
					w := s.world(t)
					w.at(m, func() error {
						w.quietly(func() { e.do(w) })
						return nil
					})
					// It may fail, but not do harm: settle judges that.
					_, err := w.manager(s.update).Sync(t.Context())
					if errors.Is(err, errInjected) {
						t.Errorf("%v", err)
					}
					w.settle(s.update)
				})
			}
		}
	}
	if runs < 500 {
		t.Errorf("only %d runs", runs)
	}
}

// Faults, crashes, edits and changes of policy in any order, over many syncs.
func TestChaos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keep, update := rapid.Bool().Draw(rt, "keep"), rapid.Bool().Draw(rt, "update")
		w := newWorld(rt, func(o memory.Options) *memory.Cluster { return newCluster(t, o, false) }, keep)
		happen := func(int) error {
			switch rapid.IntRange(0, 7).Draw(rt, "happens") {
			case 0:
				return errInjected
			case 1:
				w.quietly(func() { rapid.SampledFrom(edits).Draw(rt, "edit").do(w) })
			}
			return nil
		}
		m := w.manager(update)
		for range rapid.IntRange(1, 8).Draw(rt, "syncs") {
			w.specs = rapid.SampledFrom([][]upgradeconfig.Spec{{specA}, {specB}, {specB, specA}, {}, {with(specA, func(s *upgradeconfig.Spec) { s.PDBForceDrainTimeout = 1 })}}).Draw(rt, "policies")
			w.before, w.after = happen, happen
			if rapid.Bool().Draw(rt, "restarted") {
				m = w.manager(update)
			}
			_, _ = m.Sync(context.Background()) // whatever becomes of it
		}
		w.settle(update)
	})
}

// Beside an administrator who edits all the time, source LOCAL never writes.
func TestLocalNeverWrites(t *testing.T) {
	for _, at := range moments(2) {
		for _, e := range edits {
			t.Run(fmt.Sprintf("%s/%s", at, e.name), func(t *testing.T) {
				w := situation{current: object(specA, upgradeconfig.Status{})}.world(t)
				var left *upgradeconfig.UpgradeConfig // by the administrator
				w.at(at, func() error {
					w.quietly(func() { e.do(w) })
					left = w.get()
					return nil
				})
				m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: w, Provider: upgradeconfig.Local{API: w}}))
				checktest.Good(t, checktest.Err(m.Sync(t.Context())))
				w.before, w.after = nil, nil
				if r, err := m.Sync(t.Context()); err != nil || r.Changed {
					t.Errorf("%s, %v", r.Action.Kind, err)
				}
				checktest.SameIn(t, "not as it was left", left, w.get())
			})
		}
	}
}
