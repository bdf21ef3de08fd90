package upgradeconfig_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// calls records the verbs that a cluster is asked for, and lets a test step in.
type calls struct {
	mu    sync.Mutex
	verbs []string
	off   bool
	// around, when not nil, stands around call number n, from 1.
	around func(ctx context.Context, n int, call memory.Call, do func(context.Context) error) error
}

func (c *calls) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	c.mu.Lock()
	off := c.off
	if !off {
		c.verbs = append(c.verbs, call.Verb+" "+call.GVK.Kind)
	}
	n := len(c.verbs)
	c.mu.Unlock()
	if off || c.around == nil {
		return do(ctx)
	}
	return c.around(ctx, n, call, do)
}

// aside runs f without recording its calls.
func (c *calls) aside(f func()) {
	set := func(off bool) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := c.off
		c.off = off
		return was
	}
	was := set(true)
	defer set(was)
	f()
}

func (c *calls) want(t *testing.T, verbs ...string) {
	t.Helper()
	checktest.SameIn(t, "calls", verbs, c.verbs)
	c.verbs = nil
}

// bench is a cluster, what it was asked for, and the events of its manager.
type bench struct {
	*memory.Cluster
	calls  calls
	events []clusterapi.Event
}

func newBench(t *testing.T, progressing bool) *bench {
	b := &bench{}
	b.Cluster = newCluster(t, memory.Options{Intercept: b.calls.intercept}, progressing)
	return b
}

func (b *bench) manager(p upgradeconfig.Provider, set func(*upgradeconfig.ManagerOptions)) *upgradeconfig.Manager {
	o := upgradeconfig.ManagerOptions{API: b, Provider: p, Observe: func(e clusterapi.Event) { b.events = append(b.events, e) }}
	if set != nil {
		set(&o)
	}
	return must(upgradeconfig.NewManager(o))
}

func (b *bench) store(t *testing.T, c *upgradeconfig.UpgradeConfig) (out *upgradeconfig.UpgradeConfig) {
	t.Helper()
	b.calls.aside(func() { out = store(t, b, c) })
	return out
}

func (b *bench) stored(t *testing.T) (out *upgradeconfig.UpgradeConfig) {
	t.Helper()
	b.calls.aside(func() { out = stored(t, b) })
	return out
}

func (b *bench) wantEvents(t *testing.T, types ...clusterapi.EventType) {
	t.Helper()
	var got []clusterapi.EventType
	for _, e := range b.events {
		got = append(got, e.Type)
		if e.Subject != "upgradeconfig/"+upgradeconfig.Name || e.Time.IsZero() || e.Message == "" {
			t.Errorf("event %+v lacks its subject, time or message", e)
		}
	}
	checktest.SameIn(t, "events", types, got)
	b.events = nil
}

func mustSync(t *testing.T, m *upgradeconfig.Manager, want clusterapi.EventType, changed bool) upgradeconfig.Result {
	t.Helper()
	r := checktest.Get(m.Sync(t.Context()))(t)
	checktest.Equal(t, want, r.Action.Kind, "r.Action.Kind of %v, %v", r.Changed, changed)
	checktest.Equal(t, changed, r.Changed, "r.Changed of %v, %v", r.Action.Kind, want)
	return r
}

const getIt, deleteIt, createIt, updateIt, getVersion = "Get UpgradeConfig", "Delete UpgradeConfig", "Create UpgradeConfig", "Update UpgradeConfig", "Get ClusterVersion"

func TestSyncCreates(t *testing.T) {
	b := newBench(t, false)
	m := b.manager(policies(specA, specB), nil)
	mustSync(t, m, upgradeconfig.EventCreated, true)
	b.calls.want(t, getIt, createIt)
	b.wantEvents(t, upgradeconfig.EventIgnored, upgradeconfig.EventCreated, upgradeconfig.EventSynced)
	got := b.stored(t)
	if got.Spec != specA || len(got.Status.History) > 0 {
		t.Errorf("%+v", got)
	}

	// In step: nothing is written, nor is anything more read.
	for range 3 {
		r := mustSync(t, m, "", false)
		if r.Differs() {
			t.Error("differs")
		}
	}
	b.calls.want(t, getIt, getIt, getIt)
	b.wantEvents(t, upgradeconfig.EventIgnored, upgradeconfig.EventSynced, upgradeconfig.EventIgnored, upgradeconfig.EventSynced, upgradeconfig.EventIgnored, upgradeconfig.EventSynced)
	checktest.Equal(t, got.ResourceVersion, b.stored(t).ResourceVersion, "the object was written")
}

func TestSyncReplaces(t *testing.T) {
	b := newBench(t, true)
	old := object(specA, underWay("4.20.3"))
	old.Labels, old.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	old = b.store(t, old)
	later := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	r := mustSync(t, b.manager(policies(later), nil), upgradeconfig.EventReplaced, true)
	b.calls.want(t, getIt, deleteIt, getIt, createIt)
	if e := data(b.events[0]); e.Action != upgradeconfig.EventReplaced || e.Policy != "p-4.20.3" || e.Version != "4.20.3" || len(e.Changes) != 1 {
		t.Errorf("%+v", e)
	}
	b.wantEvents(t, upgradeconfig.EventReplaced, upgradeconfig.EventSynced)
	got := b.stored(t)
	if got.Spec != later || got.UID == old.UID || len(got.Status.History)+len(got.Labels)+len(got.Annotations) > 0 {
		t.Errorf("%+v", got)
	}
	if !r.Differs() || len(r.Action.Changes) != 1 || r.Action.Changes[0].String() != "upgradeAt: 2031-02-04T03:00:00Z → 2031-02-04T04:00:00Z" {
		t.Errorf("%+v", r)
	}
}

func TestSyncUpdatesInPlace(t *testing.T) {
	b := newBench(t, false)
	old := object(specA, underWay("4.20.3"))
	old.Labels = map[string]string{"a": "b"}
	old = b.store(t, old)
	want := with(specA, func(s *upgradeconfig.Spec) {
		s.UpgradeAt, s.PDBForceDrainTimeout, s.CapacityReservation = "2031-02-04T04:00:00Z", 0, false
	})
	m := b.manager(policies(want), func(o *upgradeconfig.ManagerOptions) { o.Update = true })
	mustSync(t, m, upgradeconfig.EventUpdated, true)
	b.calls.want(t, getIt, getIt, updateIt)
	b.wantEvents(t, upgradeconfig.EventUpdated, upgradeconfig.EventSynced)
	got := b.stored(t)
	if got.UID != old.UID || got.Spec != want || got.Labels["a"] != "b" {
		t.Errorf("%+v", got)
	}
	checktest.SameIn(t, "status", old.Status, got.Status)
	mustSync(t, m, "", false)

	mustSync(t, b.manager(policies(specB), func(o *upgradeconfig.ManagerOptions) { o.Update = true }), upgradeconfig.EventReplaced, true)
	if b.stored(t).UID == old.UID {
		t.Error("another release is another object")
	}
}

func TestSyncDeletes(t *testing.T) {
	b := newBench(t, true)
	b.store(t, object(specA, underWay("4.20.3")))
	other := object(specA, upgradeconfig.Status{})
	other.Name = "another"
	b.calls.aside(func() {
		must(clusterapi.Create(t.Context(), b, other, clusterapi.CreateOptions{}))
	})
	m := b.manager(policies(), nil)
	mustSync(t, m, upgradeconfig.EventDeleted, true)
	mustSync(t, m, "", false)
	b.calls.want(t, getIt, deleteIt, getIt)
	b.wantEvents(t, upgradeconfig.EventDeleted, upgradeconfig.EventSynced, upgradeconfig.EventSynced)
	if b.stored(t) != nil {
		t.Error("it is still there")
	}
	checktest.Good(t, checktest.Err(
		clusterapi.Get[upgradeconfig.UpgradeConfig](t.Context(), b, clusterapi.Key(other.Namespace, other.Name))))
}

func TestSyncHolds(t *testing.T) {
	keep := func(o *upgradeconfig.ManagerOptions) { o.KeepWhileUpgrading = true }
	for name, tt := range map[string]struct {
		status      upgradeconfig.Status
		progressing bool
		calls       []string
	}{
		"step done":   {underWay("4.20.3"), false, []string{getIt}},
		"progressing": {upgradeconfig.Status{}, true, []string{getIt, getVersion}},
	} {
		for _, p := range []upgradeconfig.Provider{policies(), policies(specB)} {
			b := newBench(t, tt.progressing)
			old := b.store(t, object(specA, tt.status))
			r := mustSync(t, b.manager(p, keep), upgradeconfig.EventHeld, false)
			if !r.Differs() {
				t.Error("a held change stops an upgrade that is about to start")
			}
			checktest.Has(t, r.Action.Reason, "its upgrade is in progress")
			b.calls.want(t, tt.calls...)
			b.wantEvents(t, upgradeconfig.EventHeld, upgradeconfig.EventSynced)
			checktest.Equal(t, old.ResourceVersion, b.stored(t).ResourceVersion, "%s: the object was written", name)
		}
	}

	// Not in progress, or nothing to protect.
	b := newBench(t, false)
	b.store(t, object(specA, underWay("4.20.4")))
	mustSync(t, b.manager(policies(specB), keep), upgradeconfig.EventReplaced, true)
	b.calls.want(t, getIt, getVersion, deleteIt, getIt, createIt)
	mustSync(t, b.manager(policies(specB), keep), "", false)
	b.calls.want(t, getIt)
	mustSync(t, b.manager(policies(), keep), upgradeconfig.EventDeleted, true)
	mustSync(t, b.manager(policies(specA), keep), upgradeconfig.EventCreated, true)

	// Not known whether it is in progress.
	old := b.stored(t)
	b.calls.around = failAt(func(call memory.Call) bool { return call.GVK.Kind == "ClusterVersion" }, errors.New("broken"))
	_, err := b.manager(policies(), keep).Sync(t.Context())
	checktest.ErrorIs(t, upgradeconfig.ErrClusterVersion, err)
	checktest.ErrorHas(t, "broken", err)
	checktest.Equal(t, old.ResourceVersion, b.stored(t).ResourceVersion, "the object was written")
}

type around = func(ctx context.Context, n int, call memory.Call, do func(context.Context) error) error

// failAt fails the calls that match, without effect.
func failAt(match func(memory.Call) bool, err error) around {
	return func(ctx context.Context, _ int, call memory.Call, do func(context.Context) error) error {
		if match(call) {
			return err
		}
		return do(ctx)
	}
}

func TestSyncFailures(t *testing.T) {
	broken := errors.New("broken")
	cause := errors.New("cause")
	resource := schema.GroupResource{Group: "upgrade.managed.openshift.io", Resource: "upgradeconfigs"}
	verb := func(v string) func(memory.Call) bool { return func(c memory.Call) bool { return c.Verb == v } }
	nth := func(want int, err error) around {
		return func(ctx context.Context, n int, _ memory.Call, do func(context.Context) error) error {
			if n == want {
				return err
			}
			return do(ctx)
		}
	}
	failing := fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return nil, cause })
	for _, tt := range []struct {
		name     string
		current  bool
		provider upgradeconfig.Provider
		o        func(*upgradeconfig.ManagerOptions)
		around   around
		want     error
		cause    error
		text     string
		calls    []string
		there    bool // an object is there afterwards
		after    clusterapi.EventType
	}{
		{name: "read", current: true, provider: policies(specB), around: nth(1, broken), want: upgradeconfig.ErrRetrieveConfig, cause: broken,
			text: "unable to retrieve upgradeconfigs", calls: []string{getIt}, there: true, after: upgradeconfig.EventReplaced},
		{name: "no provider", current: true, want: upgradeconfig.ErrNotConfigured, text: "no upgrade config manager configured", calls: []string{getIt}, there: true},
		{name: "provider", current: true, provider: failing, want: upgradeconfig.ErrRetrievePolicies, cause: cause, text: "unable to retrieve upgrade spec: cause", calls: []string{getIt}, there: true},
		{name: "delete", current: true, provider: policies(), around: failAt(verb("Delete"), broken), want: upgradeconfig.ErrRemove, cause: broken,
			text: "unable to remove existing UpgradeConfig", calls: []string{getIt, deleteIt}, there: true, after: upgradeconfig.EventDeleted},
		{name: "delete to replace", current: true, provider: policies(specB), around: failAt(verb("Delete"), broken), want: upgradeconfig.ErrRemove, cause: broken,
			text: "unable to remove existing UpgradeConfig", calls: []string{getIt, deleteIt}, there: true, after: upgradeconfig.EventReplaced},
		{name: "confirm", current: true, provider: policies(specB), around: nth(3, broken), want: upgradeconfig.ErrConfirmDeletion, cause: broken,
			text: "unable to confirm deletion of current UpgradeConfig: ", calls: []string{getIt, deleteIt, getIt}, after: upgradeconfig.EventCreated},
		{name: "create", provider: policies(specB), around: failAt(verb("Create"), broken), want: upgradeconfig.ErrApply, cause: broken,
			text: "unable to apply UpgradeConfig changes: ", calls: []string{getIt, createIt}, after: upgradeconfig.EventCreated},
		{name: "create to replace", current: true, provider: policies(specB), around: failAt(verb("Create"), broken), want: upgradeconfig.ErrApply, cause: broken,
			text: "unable to apply UpgradeConfig changes: ", calls: []string{getIt, deleteIt, getIt, createIt}, after: upgradeconfig.EventCreated},
		{name: "update", current: true, provider: policies(with(specA, func(s *upgradeconfig.Spec) { s.PDBForceDrainTimeout = 1 })),
			o: func(o *upgradeconfig.ManagerOptions) { o.Update = true }, around: failAt(verb("Update"), broken), want: upgradeconfig.ErrApply, cause: broken,
			text: "unable to apply UpgradeConfig changes: ", calls: []string{getIt, getIt, updateIt}, there: true, after: upgradeconfig.EventUpdated},
		{name: "delete finds nothing", current: true, provider: policies(), around: failAt(verb("Delete"), apierrors.NewNotFound(resource, upgradeconfig.Name)),
			calls: []string{getIt, deleteIt}, there: true},
		{name: "moved forever", current: true, provider: policies(), around: failAt(verb("Delete"), apierrors.NewConflict(resource, upgradeconfig.Name, cause)), want: upgradeconfig.ErrRemove,
			text: "the UpgradeConfig was changed meanwhile", calls: []string{getIt, deleteIt, getIt, deleteIt, getIt, deleteIt, getIt, deleteIt}, there: true, after: upgradeconfig.EventDeleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, false)
			if tt.current {
				b.store(t, object(specA, underWay("4.20.3")))
			}
			b.calls.around = tt.around
			m := b.manager(tt.provider, tt.o)
			r, err := m.Sync(t.Context())
			if !errors.Is(err, tt.want) || tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("%v", err)
			}
			if err != nil {
				checktest.ErrorHas(t, tt.text, err)
				if r.Changed {
					t.Error("a failed sync says changed")
				}
				b.wantEvents(t)
			}
			b.calls.want(t, tt.calls...)
			checktest.Equal(t, tt.there, b.stored(t) != nil, "there")
			if b.calls.around = nil; tt.after != "" {
				mustSync(t, m, tt.after, true)
				mustSync(t, m, "", false)
			}
		})
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	api := newCluster(t, memory.Options{}, false)
	for want, o := range map[string]upgradeconfig.ManagerOptions{
		"API is required":             {},
		"Interval is negative":        {API: api, Interval: -time.Second},
		"FirstSync is negative":       {API: api, FirstSync: -1},
		"Jitter is negative":          {API: api, Jitter: -0.1},
		"Backoff.Initial is negative": {API: api, Backoff: upgradeconfig.Backoff{Initial: -1}},
	} {
		checktest.ErrorHas(t, want, checktest.Err(upgradeconfig.NewManager(o)))
	}
}

func TestFinalizerHoldsReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		old := object(specA, upgradeconfig.Status{})
		old.Finalizers = []string{"example.com/wait"}
		b.store(t, old)
		m := b.manager(policies(specB), nil)
		start := time.Now()
		_, err := m.Sync(t.Context())
		if !errors.Is(err, upgradeconfig.ErrConfirmDeletion) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		checktest.ErrorHas(t, "example.com/wait", err)
		want := []string{getIt, deleteIt}
		for range 13 { // at once, then every 5 s up to 60 s
			want = append(want, getIt)
		}
		b.calls.want(t, want...)

		// It goes during the next sync, which does not delete it once more.
		go func() {
			time.Sleep(12 * time.Second)
			b.calls.aside(func() {
				_, err := clusterapi.Modify(t.Context(), b.Cluster, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
					c.Finalizers = nil
					return nil
				})
				checktest.Good(t, err)
			})
		}()
		start = time.Now()
		mustSync(t, m, upgradeconfig.EventReplaced, true)
		checktest.Equal(t, 15*time.Second, time.Since(start), "it took")
		if got := b.stored(t); got == nil || got.Spec != specB {
			t.Errorf("%+v", got)
		}

		// With a finalizer, and no policy any more: told to go once.
		b.calls.aside(func() {
			must(clusterapi.Modify(t.Context(), b.Cluster, objectKey, clusterapi.ModifyOptions{}, func(c *upgradeconfig.UpgradeConfig) error {
				c.Finalizers = []string{"example.com/wait"}
				return nil
			}))
		})
		b.calls.verbs = nil
		m = b.manager(policies(), nil)
		mustSync(t, m, upgradeconfig.EventDeleted, true)
		mustSync(t, m, upgradeconfig.EventDeleted, true)
		b.calls.want(t, getIt, deleteIt, getIt)
	})
}

// Somebody else's new object ends the wait for the old one to go.
func TestAnotherUIDEndsTheWait(t *testing.T) {
	b := newBench(t, false)
	b.store(t, object(specA, upgradeconfig.Status{}))
	b.calls.around = func(ctx context.Context, n int, call memory.Call, do func(context.Context) error) error {
		err := do(ctx)
		if call.Verb == "Delete" {
			b.store(t, object(specB, upgradeconfig.Status{}))
		}
		return err
	}
	m := b.manager(policies(specB), nil)
	checktest.ErrorIs(t, upgradeconfig.ErrConfirmDeletion, checktest.Err(m.Sync(t.Context())))
	b.calls.want(t, getIt, deleteIt, getIt)
	b.calls.around = nil
	mustSync(t, m, "", false)
}

// An object that somebody else deletes just before it is updated is created.
func TestUpdateFindsNone(t *testing.T) {
	b := newBench(t, false)
	b.store(t, object(specA, upgradeconfig.Status{}))
	b.calls.around = func(ctx context.Context, n int, _ memory.Call, do func(context.Context) error) error {
		if n == 2 {
			b.calls.aside(func() {
				checktest.OK(t,
					b.Delete(ctx, (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey, clusterapi.DeleteOptions{}))
			})
		}
		return do(ctx)
	}
	later := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	mustSync(t, b.manager(policies(later), func(o *upgradeconfig.ManagerOptions) { o.Update = true }), upgradeconfig.EventCreated, true)
	b.calls.want(t, getIt, getIt, getIt, createIt)
}

// What somebody else creates just before is taken as it is, if it is right.
func TestCreateFindsOne(t *testing.T) {
	for _, tt := range []struct {
		theirs upgradeconfig.Spec
		want   clusterapi.EventType
	}{{specB, ""}, {specA, upgradeconfig.EventReplaced}} {
		b := newBench(t, false)
		b.calls.around = func(ctx context.Context, n int, _ memory.Call, do func(context.Context) error) error {
			if n == 2 {
				b.store(t, object(tt.theirs, upgradeconfig.Status{}))
			}
			return do(ctx)
		}
		mustSync(t, b.manager(policies(specB), nil), tt.want, tt.want != "")
		if got := b.stored(t); got.Spec != specB {
			t.Errorf("%+v", got.Spec)
		}
	}
}

func TestCancelDuringDeletionPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		old := object(specA, upgradeconfig.Status{})
		old.Finalizers = []string{"example.com/wait"}
		b.store(t, old)
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		_, err := b.manager(policies(specB), nil).Sync(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, upgradeconfig.ErrConfirmDeletion) || time.Since(start) != 7*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// A sync that waits for its turn gives up when its context ends.
func TestSyncsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		var asked atomic.Int32
		m := b.manager(fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) {
			asked.Add(1)
			time.Sleep(time.Minute)
			return []upgradeconfig.Policy{{ID: "p", Spec: specA}}, nil
		}), nil)
		results := make(chan clusterapi.EventType, 2)
		for range 2 {
			go func() {
				r, err := m.Sync(t.Context())
				checktest.Good(t, err)
				results <- r.Action.Kind
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != 1 {
			t.Errorf("%v, asked %d times", err, asked.Load())
		}
		if first, second := <-results, <-results; first != upgradeconfig.EventCreated || second != "" || asked.Load() != 2 {
			t.Errorf("%s, %s; asked %d times", first, second, asked.Load())
		}
	})
}

func TestFromConfig(t *testing.T) {
	b := newBench(t, false)
	var urls []string
	var provider upgradeconfig.Provider = policies(specA)
	m := b.manager(nil, func(o *upgradeconfig.ManagerOptions) {
		o.FromConfig = func(_ context.Context, c *upgradeconfig.Config) (upgradeconfig.Provider, error) {
			urls = append(urls, c.ConfigManager.OCMBaseURL)
			return provider, nil
		}
	})
	write := func(text string) {
		t.Helper()
		b.calls.aside(func() {
			key := clusterapi.Key(upgradeconfig.DefaultNamespace, "managed-upgrade-operator-config")
			gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			if err := b.Delete(t.Context(), gvk, key, clusterapi.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			must(clusterapi.Create(t.Context(), b, configMap(key.Namespace, text), clusterapi.CreateOptions{}))
		})
	}
	fails := func(want error) {
		t.Helper()
		checktest.ErrorIs(t, want, checktest.Err(m.Sync(t.Context())))
	}
	if _, err := m.Sync(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("no ConfigMap: %v", err)
	}
	write("")
	fails(upgradeconfig.ErrNotConfigured)
	write("configManager: {source: elsewhere}")
	if _, err := m.Sync(t.Context()); !errors.As(err, new(*upgradeconfig.ConfigError)) || !strings.Contains(err.Error(), "invalid configManager spec provider type defined") {
		t.Errorf("%v", err)
	}
	write("configManager: [")
	if _, err := m.Sync(t.Context()); !errors.As(err, new(*upgradeconfig.ConfigError)) {
		t.Errorf("%v", err)
	}
	// The interval and the windows are not a sync's business.
	write("configManager: {source: OCM, ocmBaseUrl: 'https://one'}\nupgradeWindow: {timeOut: -1}")
	mustSync(t, m, upgradeconfig.EventCreated, true)
	write("configManager: {source: OCM, ocmBaseUrl: 'https://two'}")
	mustSync(t, m, "", false)
	checktest.Same(t, []string{"https://one", "https://two"}, urls)
	provider = nil
	fails(upgradeconfig.ErrNotConfigured)
	write("configManager: {source: local, localConfigName: managed-upgrade-config}")
	mustSync(t, m, "", false)
	if b.stored(t) == nil || len(urls) != 3 {
		t.Errorf("urls %v", urls)
	}
}

// notified is a provider that is told how the upgrade goes.
type notified struct {
	fixture.ProviderFunc
	told []upgradeconfig.State
}

func (p *notified) Notify(_ context.Context, n upgradeconfig.Notification) error {
	p.told = append(p.told, n.State)
	return nil
}

// TestNotify: the provider is told, if it wants to know, and else the log.
func TestNotify(t *testing.T) {
	told := &notified{ProviderFunc: policies()}
	deaf := policies()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name     string
		provider upgradeconfig.Provider
		config   func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error)
		source   string
		err      error
		told     bool
	}{
		{name: "provider", provider: told, told: true},
		{name: "one that is not told", provider: deaf},
		{name: "none"},
		{name: "of the configuration", config: func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return told, nil }, told: true},
		{name: "local", config: func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return told, nil }, source: "source: LOCAL, localConfigName: managed-upgrade-config"},
		{name: "no source", config: func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return told, nil }, source: "watchInterval: 1"},
		{name: "not connected", config: func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return nil, broken }, err: broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told.told = nil
			cluster := serving(memory.NewOpenShift(memory.Options{}))
			if tt.source == "" {
				tt.source = "source: OCM, ocmBaseUrl: 'https://h'"
			}
			must(clusterapi.Create(t.Context(), cluster, configMap(upgradeconfig.DefaultNamespace, "configManager: {"+tt.source+"}"), clusterapi.CreateOptions{}))
			var log bytes.Buffer
			m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: tt.provider, FromConfig: tt.config, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			err := m.Notify(t.Context(), upgrade.NewNotification(upgradeconfig.StateStarted, object(specA, upgradeconfig.Status{}), nil))
			logged := strings.Contains(log.String(), "Upgrade-State: StateStarted Description: Cluster is currently being upgraded to version 4.20.3")
			if !errors.Is(err, tt.err) || (len(told.told) == 1) != tt.told || logged != (!tt.told && tt.err == nil) {
				t.Errorf("%v, told %v, log %q", err, told.told, log.String())
			}
		})
	}
}

// An UpgradeConfig of another name, in another namespace, and its configuration
// there.
func TestOtherNames(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	key := clusterapi.Key("ours", "mine")
	o := upgradeconfig.ManagerOptions{API: cluster, Namespace: key.Namespace, Name: key.Name, Provider: policies(specA)}
	mustSync(t, must(upgradeconfig.NewManager(o)), upgradeconfig.EventCreated, true)
	must(clusterapi.Get[upgradeconfig.UpgradeConfig](t.Context(), cluster, key))
	other := object(specB, upgradeconfig.Status{})
	other.Namespace, other.Name = "elsewhere", key.Name
	must(clusterapi.Create(t.Context(), cluster, other, clusterapi.CreateOptions{}))
	o.Provider = nil
	o.FromConfig = func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return policies(), nil }
	config := configMap(key.Namespace, "configManager: {source: LOCAL, localConfigName: managed-upgrade-config}")
	must(clusterapi.Create(t.Context(), cluster, config, clusterapi.CreateOptions{}))
	mustSync(t, must(upgradeconfig.NewManager(o)), "", false)
	mustSync(t, must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: policies()})), "", false)
	o.Provider = policies()
	mustSync(t, must(upgradeconfig.NewManager(o)), upgradeconfig.EventDeleted, true)
}

func TestLocal(t *testing.T) {
	state := func(phase upgradeconfig.Phase, version string) upgradeconfig.Status {
		if phase == "" {
			return upgradeconfig.Status{}
		}
		return upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{Version: version, Phase: phase}}}
	}
	for _, tt := range []struct {
		name   string
		status upgradeconfig.Status
	}{
		{"fresh", state("", "")},
		{"new", state(upgradeconfig.PhaseNew, "4.20.3")},
		{"active", state(upgradeconfig.PhaseUpgrading, "4.20.3")},
		{"failed", state(upgradeconfig.PhaseFailed, "4.20.3")},
		{"finished", state(upgradeconfig.PhaseUpgraded, "4.20.3")},
		{"history of another version", state(upgradeconfig.PhaseUpgrading, "4.20.4")},
		{"first entry counts", upgradeconfig.Status{History: append(state(upgradeconfig.PhaseUpgraded, "4.20.3").History, state(upgradeconfig.PhaseNew, "4.20.3").History...)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, false)
			old := b.store(t, object(specA, tt.status))
			// One that is not ours does no harm, even if it is broken.
			other := must(clusterapi.ToUnstructured(object(specB, upgradeconfig.Status{})))
			other.SetName("another")
			other.Object["spec"] = "broken"
			checktest.OK(t, b.Load(other))
			local := upgradeconfig.Local{API: b}
			m := b.manager(local, nil)
			for range 3 {
				mustSync(t, m, "", false)
			}
			checktest.Equal(t, old.ResourceVersion, b.stored(t).ResourceVersion, "the object was written")
			got, err := local.Policies(t.Context())
			want := []upgradeconfig.Policy{{ID: upgradeconfig.Name, Spec: specA, NextRun: at(specA.UpgradeAt)}}
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("%v, (-want +got):\n%s", err, d)
			}
		})
	}
	b := newBench(t, false)
	local := upgradeconfig.Local{API: b}
	mustSync(t, b.manager(local, nil), "", false)
	broken := errors.New("broken")
	b.calls.around = failAt(func(c memory.Call) bool { return c.Verb == "List" }, broken)
	if _, err := b.manager(local, nil).Sync(t.Context()); !errors.Is(err, broken) || !errors.Is(err, upgradeconfig.ErrRetrievePolicies) {
		t.Errorf("%v", err)
	}
	b.calls.around = nil

	// One that its administrator has deleted is not brought back.
	gone := object(specA, upgradeconfig.Status{})
	gone.Finalizers = []string{"example.com/wait"}
	b.store(t, gone)
	checktest.OK(t,
		b.Delete(t.Context(), (*upgradeconfig.UpgradeConfig)(nil).APIKind(), objectKey, clusterapi.DeleteOptions{}))
	b.calls.verbs = nil
	mustSync(t, b.manager(local, nil), upgradeconfig.EventDeleted, true)
	b.calls.want(t, getIt, "List UpgradeConfig")
}

// TestProviderPanics: a sync whose provider panics fails, and writes nothing.
func TestProviderPanics(t *testing.T) {
	b := newBench(t, false)
	b.store(t, object(specA, upgradeconfig.Status{}))
	m := b.manager(panickingProvider{}, nil)
	before := b.stored(t)
	if _, err := m.Sync(t.Context()); !errors.As(err, new(*clusterapi.PanicError)) {
		t.Fatalf("%v", err)
	}
	if after := b.stored(t); after == nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the UpgradeConfig changed: %+v", after)
	}
}

type panickingProvider struct{}

func (panickingProvider) Policies(context.Context) ([]upgradeconfig.Policy, error) {
	panic("no answer")
}

func (panickingProvider) String() string { return "panicking" }

// TestAnyProviderIsSelected: which policies count does not depend on the provider,
// and one that is damaged is not a reason to delete the object.
func TestAnyProviderIsSelected(t *testing.T) {
	policy := func(id, state string, spec upgradeconfig.Spec) upgradeconfig.Policy {
		return upgradeconfig.Policy{ID: id, State: state, Spec: spec, NextRun: at(spec.UpgradeAt)}
	}
	empty := specA
	empty.Desired.Version = ""
	for _, tt := range []struct {
		name     string
		policies []upgradeconfig.Policy
		want     clusterapi.EventType
		err      bool
		fault    bool
	}{
		{name: "cancelled", policies: []upgradeconfig.Policy{policy("a", "Cancelled", specA)}, want: upgradeconfig.EventDeleted},
		{name: "pending", policies: []upgradeconfig.Policy{policy("a", "pending", specA)}, want: upgradeconfig.EventDeleted},
		{name: "completed", policies: []upgradeconfig.Policy{policy("a", "completed", specA)}, want: upgradeconfig.EventDeleted},
		{name: "cancelled before another", policies: []upgradeconfig.Policy{policy("b", "cancelled", specB), policy("a", "started", specA)}, want: ""},
		{name: "damaged", policies: []upgradeconfig.Policy{policy("a", "started", empty)}, err: true},
		{name: "damaged behind another", policies: []upgradeconfig.Policy{policy("a", "started", specA), policy("b", "started", empty)}, want: "", fault: true},
	} {
		cluster := newCluster(t, memory.Options{}, false)
		store(t, cluster, object(specA, upgradeconfig.Status{}))
		fault := false
		m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
			API: cluster, Provider: fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return tt.policies, nil }),
			Observe: func(e clusterapi.Event) { fault = fault || e.Type == upgradeconfig.EventPolicyFault },
		}))
		r, err := m.Sync(t.Context())
		if errors.Is(err, upgradeconfig.ErrNoVersion) != tt.err || (err != nil) != tt.err || r.Action.Kind != tt.want || fault != tt.fault {
			t.Errorf("%s: %v, %v, fault %v", tt.name, r.Action.Kind, err, fault)
		}
		checktest.Equal(t, tt.want == upgradeconfig.EventDeleted, stored(t, cluster) == nil, "%s: gone", tt.name)
	}
}
