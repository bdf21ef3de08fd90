package upgradeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

// The random numbers that make a jittered wait as short, as it is, and as long
// as can be.
func shortest(int64) int64    { return 0 }
func unchanged(n int64) int64 { return n / 2 }
func longest(n int64) int64   { return n - 1 }

// source is a provider that notes when it is asked, and is out of order at
// times.
type source struct {
	start time.Time
	asked []time.Duration // since start
	down  func(since time.Duration) bool
	specs []upgradeconfig.Spec
}

var errOutage = errors.New("503 Service Unavailable")

func newSource(specs ...upgradeconfig.Spec) *source { return &source{start: time.Now(), specs: specs} }

func (s *source) Policies(ctx context.Context) ([]upgradeconfig.Policy, error) {
	since := time.Since(s.start)
	s.asked = append(s.asked, since)
	if s.down != nil && s.down(since) {
		return nil, errOutage
	}
	return policies(s.specs...)(ctx)
}

func (s *source) String() string { return "test" }

// waits are the times between the tries, from the start.
func (s *source) waits() (out []time.Duration) {
	last := time.Duration(0)
	for _, at := range s.asked {
		out = append(out, at-last)
		last = at
	}
	return out
}

// run runs a manager for so long, and reports if Run does not end at once then.
func run(t *testing.T, m *upgradeconfig.Manager, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	start := time.Now()
	if err := m.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != d {
		t.Errorf("Run ended after %v: %v", time.Since(start), err)
	}
}

const week = 7 * 24 * time.Hour

func TestWeek(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rand  func(int64) int64
		set   func(*upgradeconfig.ManagerOptions)
		first time.Duration
		wait  time.Duration
		syncs int
	}{
		{"no luck either way", unchanged, nil, time.Minute, time.Hour, 168},
		{"shortest waits", shortest, nil, 54 * time.Second, 54 * time.Minute, 187},
		{"longest waits", longest, nil, 66*time.Second - 1, 66*time.Minute - 1, 153},
		{"a day", unchanged, func(o *upgradeconfig.ManagerOptions) { o.Interval = 24 * time.Hour }, time.Minute, 24 * time.Hour, 7},
		{"a minute", unchanged, func(o *upgradeconfig.ManagerOptions) { o.Interval = time.Minute }, time.Minute, time.Minute, 10080 - 1},
		{"no jitter", nil, func(o *upgradeconfig.ManagerOptions) { o.NoJitter = true }, time.Minute, time.Hour, 168},
		{"more jitter", shortest, func(o *upgradeconfig.ManagerOptions) { o.Jitter = 0.5 }, 30 * time.Second, 30 * time.Minute, 336},
		{"at once", unchanged, func(o *upgradeconfig.ManagerOptions) { o.AtOnce = true }, 0, time.Hour, 168},
		{"late", unchanged, func(o *upgradeconfig.ManagerOptions) { o.FirstSync = 2 * time.Hour }, 2 * time.Hour, time.Hour, 166},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			b := newBench(t, false)
			s := newSource(specA)
			m := b.manager(s, func(o *upgradeconfig.ManagerOptions) {
				o.Rand = tt.rand
				if tt.set != nil {
					tt.set(o)
				}
			})
			run(t, m, week-time.Nanosecond)
			want := []time.Duration{tt.first}
			for range tt.syncs - 1 {
				want = append(want, tt.wait)
			}
			checktest.SameIn(t, fmt.Sprintf("%d syncs, want %d; waits", len(s.asked), tt.syncs), want, s.waits())
			verbs := []string{getIt, createIt}
			for range tt.syncs - 1 {
				verbs = append(verbs, getIt)
			}
			b.calls.want(t, verbs...)
			if len(b.events) != tt.syncs+1 || b.events[1].Type != upgradeconfig.EventSynced || data(b.events[1]).Policy != "p-4.20.3" {
				t.Errorf("%d events", len(b.events))
			}
		})
	}
}

// A week with outages, by random jitter: each wait is one of the plan, give or
// take a tenth, and there are as many requests as the plan says.
func TestWeekWithOutages(t *testing.T) {
	down := func(since time.Duration) bool {
		h := since % (24 * time.Hour)
		return since < 3*time.Hour || h > 20*time.Hour && h < 20*time.Hour+40*time.Minute
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		s.down = down
		random := rand.New(rand.NewPCG(1, 2))
		run(t, b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Rand = random.Int64N }), week)
		fails, planned := 0, time.Minute
		for i, got := range s.waits() {
			if got < planned*9/10 || got >= planned*11/10 {
				t.Fatalf("try %d at %v: waited %v, planned %v", i, s.asked[i], got, planned)
			}
			if planned = time.Hour; down(s.asked[i]) {
				planned = min(time.Minute<<fails, time.Hour)
				fails++
				continue
			}
			fails = 0
		}
		failed := 0
		for _, e := range b.events {
			switch {
			case e.Type == upgradeconfig.EventFailed:
				failed++
				if !errors.Is(e.Err, errOutage) || data(e).Retry <= 0 || data(e).Retry > 66*time.Minute {
					t.Errorf("%+v", e)
				}
			case e.Type == upgradeconfig.EventSynced && data(e).Action != "" && data(e).Action != upgradeconfig.EventCreated:
				t.Errorf("%+v", e)
			}
		}
		if len(s.asked) < 168 || len(s.asked) > 250 || failed < 15 {
			t.Errorf("%d requests in a week, %d failed", len(s.asked), failed)
		}
	})
}

func TestBackoffOfTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		s.down = func(since time.Duration) bool {
			return since < 5*time.Minute || since > 2*time.Hour && since < 5*time.Hour
		}
		run(t, b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Rand = unchanged }), 8*time.Hour)
		const m = time.Minute
		want := []time.Duration{
			m, m, 2 * m, // fail at 1, 2 and 4 minutes
			4 * m,          // succeeds at 8
			60 * m, 60 * m, // and at 68; fails at 128
			m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 60 * m, // the last one at 251
			60 * m, // succeeds at 311
			60 * m, 60 * m,
		}
		checktest.Same(t, want, s.waits())
	})
}

// Failures to write count as those of the provider do, and having no policy is
// a success.
func TestWhatCountsAsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		b.calls.around = func(ctx context.Context, _ int, call memory.Call, do func(context.Context) error) error {
			if call.Verb == "Create" && time.Since(s.start) < 3*time.Minute {
				return errors.New("broken")
			}
			return do(ctx)
		}
		run(t, b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Rand = unchanged }), 2*time.Hour)
		checktest.Same(t, []time.Duration{time.Minute, time.Minute, 2 * time.Minute, time.Hour}, s.waits())
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource()
		run(t, b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Rand = unchanged }), 2*time.Hour)
		checktest.Same(t, []time.Duration{time.Minute, time.Hour}, s.waits())
		b.wantEvents(t, upgradeconfig.EventSynced, upgradeconfig.EventSynced)
	})
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		s.down = func(since time.Duration) bool { return since < 30*time.Minute }
		wake := make(chan struct{})
		go func() {
			for _, after := range []time.Duration{
				10 * time.Second, // instead of the first sync
				5 * time.Minute,  // after the third failure, of which the wait is 4 minutes
				35 * time.Minute,
			} {
				time.Sleep(after - time.Since(s.start))
				wake <- struct{}{}
			}
			close(wake) // does not wake it again and again
		}()
		run(t, b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Wake, o.Rand = wake, unchanged }), 3*time.Hour)
		const second, minute = time.Second, time.Minute
		want := []time.Duration{
			10 * second,              // fails
			minute + 10*second,       // fails
			3*minute + 10*second,     // fails
			5 * minute,               // by Wake, fails: the back-off continues
			13 * minute, 29 * minute, // fail
			35 * minute, // by Wake, succeeds, and that resets the back-off
			95 * minute, 155 * minute,
		}
		checktest.Same(t, want, s.asked)
	})
}

// A value that waits in the channel replaces the wait before the first sync.
func TestWakeBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(specA)
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		m := newBench(t, false).manager(s, func(o *upgradeconfig.ManagerOptions) { o.Wake, o.Rand = wake, unchanged })
		run(t, m, 90*time.Minute)
		checktest.Same(t, []time.Duration{0, time.Hour}, s.asked)
	})
}

// Syncs out of turn leave the timer and the back-off of the loop alone.
func TestSyncOutOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		s.down = func(since time.Duration) bool { return since < 10*time.Minute && since != 90*time.Second }
		m := b.manager(s, func(o *upgradeconfig.ManagerOptions) { o.Rand = unchanged })
		go func() {
			time.Sleep(90 * time.Second)
			checktest.Good(t, checktest.Err(m.Sync(t.Context())))
			time.Sleep(60 * time.Second)
			checktest.ErrorIs(t, errOutage, checktest.Err(m.Sync(t.Context())))
		}()
		run(t, m, 17*time.Minute)
		const second, minute = time.Second, time.Minute
		want := []time.Duration{minute, 90 * second, 2 * minute, 150 * second, 4 * minute, 8 * minute, 16 * minute}
		checktest.Same(t, want, s.asked)
		b.wantEvents(t, upgradeconfig.EventFailed, upgradeconfig.EventCreated, upgradeconfig.EventSynced, upgradeconfig.EventFailed, upgradeconfig.EventFailed,
			upgradeconfig.EventFailed, upgradeconfig.EventSynced)
	})
}

func TestConfigurationIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		write := func(text string) {
			b.calls.aside(func() {
				m := configMap(upgradeconfig.DefaultNamespace, text)
				key := clusterapi.Key(m.Namespace, m.Name)
				_, err := clusterapi.Create(t.Context(), b.Cluster, m, clusterapi.CreateOptions{})
				if err != nil {
					_, err = clusterapi.Modify(t.Context(), b.Cluster, key, clusterapi.ModifyOptions{}, func(c *corev1.ConfigMap) error {
						c.Data = m.Data
						return nil
					})
				}
				checktest.Good(t, err)
			})
		}
		m := b.manager(nil, func(o *upgradeconfig.ManagerOptions) {
			o.Rand = shortest
			o.FromConfig = func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return s, nil }
		})
		go func() {
			time.Sleep(90 * time.Second)
			write("configManager: {source: OCM, ocmBaseUrl: 'https://h'}") // no interval
			time.Sleep(60 * time.Second)
			write("configManager: {watchInterval: 10}") // source comes later
			time.Sleep(70 * time.Second)                // first sync was at 180 s + 54 s, with an error
			write("configManager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: 10}")
			time.Sleep(20 * time.Minute)
			write("configManager: {source: OCM, ocmBaseUrl: 'https://h', watchInterval: 1}") // read at the start only
		}()
		run(t, m, 40*time.Minute)
		const second, minute = time.Second, time.Minute
		want := []time.Duration{234 * second, 234*second + 9*minute, 234*second + 18*minute, 234*second + 27*minute, 234*second + 36*minute}
		checktest.Same(t, want, s.asked)
		if first := b.events[0]; first.Type != upgradeconfig.EventFailed || data(first).Retry != time.Minute {
			t.Errorf("%+v", first)
		}
		if second := b.events[2]; !errors.As(second.Err, new(*upgradeconfig.ConfigError)) || second.Time.Sub(s.start) != 2*time.Minute {
			t.Errorf("%+v", second)
		}
	})
	// With a provider of the options the ConfigMap is not waited for.
	synctest.Test(t, func(t *testing.T) {
		s := newSource(specA)
		run(t, newBench(t, false).manager(s, func(o *upgradeconfig.ManagerOptions) {
			o.Rand = unchanged
			o.FromConfig = func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return nil, errOutage }
		}), 90*time.Minute)
		checktest.Same(t, []time.Duration{time.Minute, time.Hour}, s.waits())
	})
	// An interval of the options wins.
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, false)
		s := newSource(specA)
		must(clusterapi.Create(t.Context(), b, configMap(upgradeconfig.DefaultNamespace, fullConfig), clusterapi.CreateOptions{}))
		run(t, b.manager(nil, func(o *upgradeconfig.ManagerOptions) {
			o.Rand, o.Interval = unchanged, 10*time.Minute
			o.FromConfig = func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return s, nil }
		}), 30*time.Minute)
		checktest.Same(t, []time.Duration{time.Minute, 10 * time.Minute, 10 * time.Minute}, s.waits())
	})
}

// Run ends with its context, whatever it waits for, and leaves no goroutine: a
// bubble does not end while it has one.
func TestCancel(t *testing.T) {
	none := func(*upgradeconfig.ManagerOptions) {}
	ok := fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return nil, nil })
	failing := fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return nil, errOutage })
	fromConfig := func(o *upgradeconfig.ManagerOptions) {
		o.FromConfig = func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) { return ok, nil }
	}
	slow := fixture.ProviderFunc(func(ctx context.Context) ([]upgradeconfig.Policy, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for _, tt := range []struct {
		name     string
		provider upgradeconfig.Provider
		set      func(*upgradeconfig.ManagerOptions)
		after    time.Duration
		current  *upgradeconfig.UpgradeConfig
	}{
		{name: "before it begins", provider: ok, set: none},
		{name: "before it begins, at once", provider: ok, set: func(o *upgradeconfig.ManagerOptions) { o.AtOnce = true }},
		{name: "first wait", provider: ok, set: none, after: 30 * time.Second},
		{name: "interval", provider: ok, set: none, after: 30 * time.Minute},
		{name: "back-off", provider: failing, set: none, after: 20 * time.Minute},
		{name: "provider", provider: slow, set: none, after: 20 * time.Minute},
		{name: "before the configuration is read", set: fromConfig},
		{name: "configuration", set: fromConfig, after: 90 * time.Second},
		{name: "deletion", provider: policies(specB), set: none, after: 100 * time.Second, current: object(specA, upgradeconfig.Status{})},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			b := newBench(t, false)
			if tt.current != nil {
				c := *tt.current
				c.Finalizers = []string{"example.com/wait"}
				b.store(t, &c)
			}
			m := b.manager(tt.provider, tt.set)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			if tt.after == 0 {
				cancel()
			}
			go func() { done <- m.Run(ctx) }()
			time.Sleep(tt.after)
			if tt.after > 0 {
				if err := m.Run(ctx); err == nil || ctx.Err() != nil {
					t.Errorf("a second Run: %v", err)
				}
			}
			now := time.Now()
			cancel()
			if err := <-done; err != context.Canceled {
				t.Errorf("%v", err)
			}
			checktest.Equal(t, 0, time.Since(now), "it took")
			checktest.Equal(t, context.Canceled, m.Run(ctx), "run once more")
			for _, e := range b.events {
				if errors.Is(e.Err, context.Canceled) {
					t.Errorf("being stopped is not a failure: %+v", e)
				}
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	const m = time.Minute
	for _, tt := range []struct {
		name string
		b    upgradeconfig.Backoff
		want []time.Duration // from attempt 0
	}{
		{"default", upgradeconfig.Backoff{}, []time.Duration{m, m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 60 * m, 60 * m}},
		{"own", upgradeconfig.Backoff{Initial: 2 * time.Second, Factor: 3, Max: 50 * time.Second}, []time.Duration{2 * time.Second, 2 * time.Second, 6 * time.Second, 18 * time.Second, 50 * time.Second, 50 * time.Second}},
		{"factor 1.5", upgradeconfig.Backoff{Factor: 1.5}, []time.Duration{m, m, 90 * time.Second, 135 * time.Second}},
		{"constant", upgradeconfig.Backoff{Factor: 1}, []time.Duration{m, m, m, m}},
		{"never shorter", upgradeconfig.Backoff{Factor: -3}, []time.Duration{m, m, m}},
		{"no number", upgradeconfig.Backoff{Factor: math.NaN()}, []time.Duration{m, m, 2 * m}},
		{"initial above max", upgradeconfig.Backoff{Initial: time.Hour, Max: m}, []time.Duration{m, m, m}},
	} {
		for attempt, want := range tt.want {
			checktest.Equal(t, want, tt.b.Next(attempt), "%s: attempt %d", tt.name, attempt)
		}
	}
	for _, attempt := range []int{1000, math.MaxInt} {
		checktest.Equal(t, time.Hour, (upgradeconfig.Backoff{}).Next(attempt), "attempt %d", attempt)
	}
	checktest.Equal(t, m, (upgradeconfig.Backoff{}).Next(math.MinInt), "attempt of the least integer")
}
