package runlevel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// fatal is an error that is not retried.
func fatal(text string) error {
	return &TaskError{Reason: "R", Message: text, Effect: EffectFail}
}

// by is an Options.Wrap that puts another Applier in the place of the cluster's.
func by(a Applier) func(Applier) Applier { return func(Applier) Applier { return a } }

// recorder has an Applier that notes what it is called with.
type recorder struct {
	mu    sync.Mutex
	log   []string
	apply func(ctx context.Context, t *manifest.Task, s State) error
}

func (r *recorder) wrap(Applier) Applier { return r.Apply }

func (r *recorder) Apply(ctx context.Context, t *manifest.Task, s State) error {
	r.mu.Lock()
	text := t.Manifest.Identity().Name
	if s == Precreating {
		text = "pre " + text
	}
	r.log = append(r.log, text)
	r.mu.Unlock()
	if r.apply != nil {
		return r.apply(ctx, t, s)
	}
	return nil
}

func TestRunOrder(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_20_c_1", "0000_30_d_1", "0000_30_e_1"}
	for _, c := range []struct {
		state   State
		attempt int
		want    []string
	}{
		{Updating, 0, files},
		{"", 0, files},
		{Initializing, 0, files},
		// seed 0 of five chunks, as measured on the cluster-version operator: c d b a e
		{Reconciling, 0, []string{"0000_20_c_1", "0000_30_d_1", "0000_10_b_1", "0000_10_a_1", "0000_10_a_2", "0000_30_e_1"}},
		{Reconciling, 1, []string{"0000_30_d_1", "0000_10_b_1", "0000_10_a_1", "0000_10_a_2", "0000_30_e_1", "0000_20_c_1"}},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			r := &recorder{}
			res := checktest.Get(Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, State: c.state, Attempt: c.attempt, Workers: 1}))(t)
			if diff := cmp.Diff(c.want, r.log); diff != "" {
				t.Fatal(diff)
			}
			if res.Done != 6 || res.Total != 6 || res.Skipped != 0 {
				t.Fatalf("%+v", res)
			}
		})
	}
}

func TestRunWorkers(t *testing.T) {
	var files []string
	for i := range 30 {
		files = append(files, fmt.Sprintf("0000_10_c%02d_x", i))
	}
	for _, c := range []struct {
		state   State
		workers int
		want    int64
	}{
		{Updating, 0, 16},
		{Updating, 5, 5},
		{Reconciling, 0, 2},
		{Reconciling, 9, 2},
		{Reconciling, 1, 1},
		{Initializing, 0, 30},
		{Initializing, 16, 30},
		{Initializing, 1, 1},
	} {
		t.Run(fmt.Sprint(c.state, c.workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int64
				apply := func(context.Context, *manifest.Task, State) error {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Second)
					now.Add(-1)
					return nil
				}
				o := Options{Wrap: by(apply), State: c.state, Workers: c.workers}
				checktest.Get(Run(t.Context(), configMaps(t, files...), o))(t)
				if most.Load() != c.want {
					t.Fatalf("%d at once, want %d", most.Load(), c.want)
				}
			})
		})
	}
}

func TestRunSkipsExcludedAndDoesNotCountThem(t *testing.T) {
	tasks := configMaps(t, "0000_10_a_1", "0000_10_a_2")
	bare := newManifest(t, "0000_10_a_3", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
	bare.Object().SetAnnotations(nil)
	again := checktest.Get(manifest.New("0000_10_a_3", bare.Object()))(t)
	tasks = manifest.NewTasks([]*manifest.Manifest{tasks[0].Manifest, tasks[1].Manifest, again})
	filter := manifest.Filter{Overrides: []configv1.ComponentOverride{{Kind: "ConfigMap", Name: "0000_10_a_1", Namespace: "ns", Unmanaged: true}}}
	r := &recorder{}
	var reasons []string
	res, err := Run(t.Context(), tasks, Options{Wrap: r.wrap, Filter: filter, Observe: func(e clusterapi.Event) {
		if e.Type == EventTaskSkipped {
			reasons = append(reasons, e.Message)
		}
	}})
	if err != nil || res.Done != 1 || res.Skipped != 2 || res.Total != 3 {
		t.Fatalf("%+v %v", res, err)
	}
	if diff := cmp.Diff([]string{"0000_10_a_2"}, r.log); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"overridden", "no annotations"}, reasons); diff != "" {
		t.Fatal(diff)
	}
}

func TestRunPrecreatesClusterOperatorsWhenTheirNodeStarts(t *testing.T) {
	co := func(file, name string) *manifest.Manifest {
		return newManifest(t, file, fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: %q, annotations: {}}}", name))
	}
	cm := configMaps(t, "0000_10_a_1", "0000_20_b_1")
	tasks := manifest.NewTasks([]*manifest.Manifest{cm[0].Manifest, co("0000_10_a_2", "a"), co("0000_10_z_1", "z"), co("0000_10_z_1", "off"), cm[1].Manifest, co("0000_20_b_2", "b"), co("0000_20_y_2", "y")})
	r := &recorder{apply: func(_ context.Context, _ *manifest.Task, s State) error {
		if s == Precreating {
			return errors.New("ignored")
		}
		return nil
	}}
	filter := manifest.Filter{Overrides: []configv1.ComponentOverride{{Group: "config.openshift.io", Kind: "ClusterOperator", Name: "off", Unmanaged: true}}}
	res, err := Run(t.Context(), tasks, Options{Wrap: r.wrap, Workers: 1, Filter: filter})
	if err != nil || res.Done != 6 {
		t.Fatalf("%+v %v", res, err)
	}
	want := []string{"pre a", "0000_10_a_1", "a", "pre z", "z", "pre b", "0000_20_b_1", "b", "pre y", "y"}
	if diff := cmp.Diff(want, r.log); diff != "" {
		t.Fatal(diff)
	}
}

func TestRunRefusesBadOptions(t *testing.T) {
	apply := &recorder{}
	for name, c := range map[string]struct {
		o     Options
		tasks []*manifest.Task
		want  string
	}{
		"nothing to work on": {want: "neither an API nor a Wrap"},
		"precreating":        {o: Options{Wrap: apply.wrap, State: Precreating}, want: `no pass of state "Precreating"`},
		"no steps":           {o: Options{Wrap: apply.wrap, Backoff: &Backoff{}}, want: "SyncWorker requires at least one backoff step to apply any manifests"},
		"workers":            {o: Options{Wrap: apply.wrap, Workers: -1}, want: "Options: Workers is negative: -1"},
		"attempt":            {o: Options{Wrap: apply.wrap, Attempt: -1}, want: "Options: Attempt is negative: -1"},
		"wait":               {o: Options{Wrap: apply.wrap, Backoff: &Backoff{Base: -time.Second, Steps: 1}}, want: "Backoff: Base is negative: -1s"},
		"nil task":           {o: Options{Wrap: apply.wrap}, tasks: []*manifest.Task{nil}, want: "task 1 of 1 has no manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Run(t.Context(), c.tasks, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestRunWithoutTasks(t *testing.T) {
	res, err := Run(t.Context(), nil, Options{Wrap: (&recorder{}).wrap})
	if err != nil || res.Total != 0 {
		t.Fatalf("%+v %v", res, err)
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		name     string
		state    State
		backoff  *Backoff
		attempts []time.Duration
	}{
		{"initializing", Initializing, nil, []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second}},
		{"updating", Updating, nil, []time.Duration{0, 10 * time.Second}},
		{"reconciling", Reconciling, nil, []time.Duration{0, 10 * time.Second}},
		{"one step", Initializing, &Backoff{Base: time.Hour, Steps: 1}, []time.Duration{0}},
		{"a wait may be as long as the cap", Updating, &Backoff{Base: 10 * time.Second, Factor: 1.5, Cap: 15 * time.Second, Steps: 3}, []time.Duration{0, 10 * time.Second}},
		{"and none longer", Updating, &Backoff{Base: 10 * time.Second, Factor: 1.5, Cap: 14 * time.Second, Steps: 3}, []time.Duration{0}},
		{"constant", Updating, &Backoff{Base: time.Minute, Steps: 3}, []time.Duration{0, time.Minute, 2 * time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var at []time.Duration
				r := &recorder{apply: func(context.Context, *manifest.Task, State) error {
					at = append(at, time.Since(start))
					return errors.New("broken")
				}}
				var retries []int
				_, err := Run(t.Context(), configMaps(t, "x"), Options{Wrap: r.wrap, State: c.state, Backoff: c.backoff,
					Observe: func(e clusterapi.Event) {
						if e.Type == EventTaskRetry || e.Type == EventTaskFailed {
							retries = append(retries, progressOf(e).Attempt)
						}
					}})
				if err == nil {
					t.Fatal("no error")
				}
				if diff := cmp.Diff(c.attempts, at); diff != "" {
					t.Fatal(diff)
				}
				if d := time.Since(start); d != at[len(at)-1] {
					t.Fatalf("returned after %v, want right after the last attempt", d)
				}
				if want := indices(len(at) + 1)[1:]; !slices.Equal(retries, want) {
					t.Fatalf("events of attempts %v, want %v", retries, want)
				}
			})
		})
	}
}

func TestTaskErrorIsNotRetried(t *testing.T) {
	for name, err := range map[string]error{"bare": fatal("m"), "wrapped": fmt.Errorf("more: %w", fatal("m"))} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return err }}
			tasks := configMaps(t, "x")
			_, got := Run(t.Context(), tasks, Options{Wrap: r.wrap})
			te, ok := errors.AsType[*TaskError](got)
			if name == "wrapped" && !errors.Is(got, err) {
				t.Error("what was wrapped around the error is lost")
			}
			if !ok || te.Message != "m" || te.Task != tasks[0] || len(r.log) != 1 {
				t.Fatalf("error %v after %d attempts", got, len(r.log))
			}
			if orig, _ := errors.AsType[*TaskError](err); orig.Task != nil {
				t.Fatal("the applier's error was changed")
			}
		})
	}
}

func TestEvents(t *testing.T) {
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
		if t.Manifest.Identity().Name == "0000_20_c_1" {
			return &TaskError{Effect: EffectNone, Reason: "W", Message: "not yet", Wait: &Wait{Operator: "c", Undone: []string{"x to 1"}}}
		}
		return nil
	}}
	tasks := configMaps(t, "0000_10_a_1", "0000_10_b_1", "0000_20_c_1")
	var got []string
	_, err := Run(t.Context(), tasks, Options{Wrap: r.wrap, Workers: 1, Observe: func(e clusterapi.Event) {
		if e.Time.IsZero() {
			t.Error("no time")
		}
		line := fmt.Sprintf("%s %s/%s level %d/%d all %d/%d", e.Type, progressOf(e).Level, progressOf(e).Component, progressOf(e).LevelSettled, progressOf(e).LevelTotal, progressOf(e).Done, progressOf(e).Total)
		if progressOf(e).Wait != nil {
			line += " waits on " + progressOf(e).Wait.Operator + " for " + strings.Join(progressOf(e).Wait.Undone, ", ")
		}
		if e.Err != nil {
			line += ": " + e.Err.Error()
		}
		got = append(got, line)
	}})
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"PassStarted / level 0/0 all 0/3",
		"NodeStarted 10/a level 0/2 all 0/3",
		"TaskStarted 10/a level 0/2 all 0/3",
		"TaskDone 10/a level 1/2 all 1/3",
		"NodeDone 10/a level 1/2 all 1/3",
		"NodeStarted 10/b level 1/2 all 1/3",
		"TaskStarted 10/b level 1/2 all 1/3",
		"TaskDone 10/b level 2/2 all 2/3",
		"NodeDone 10/b level 2/2 all 2/3",
		"NodeStarted 20/c level 0/1 all 2/3",
		"TaskStarted 20/c level 0/1 all 2/3",
		"Waiting 20/c level 0/1 all 2/3 waits on c for x to 1: not yet",
		"TaskFailed 20/c level 0/1 all 2/3: not yet",
		"NodeDone 20/c level 0/1 all 2/3: not yet",
		"PassDone / level 0/0 all 2/3: not yet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// Any files, any failures, any state: what runs is what no failure blocks, each task once
// and none before its inputs, and errors come in the order of the nodes.
func TestRunProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(rt, "files")
		files := make([]string, n)
		for i := range files {
			files[i] = fmt.Sprintf("0000_%d_%c_%03d", rapid.IntRange(1, 4).Draw(rt, "level"), 'a'+rapid.IntRange(0, 3).Draw(rt, "component"), i)
		}
		slices.Sort(files)
		fails := make(map[string]bool)
		for _, f := range files {
			fails[f] = rapid.IntRange(0, 9).Draw(rt, "fails") == 0
		}
		state := rapid.SampledFrom([]State{Initializing, Updating, Reconciling}).Draw(rt, "state")
		attempt := rapid.IntRange(0, 20).Draw(rt, "attempt")

		tasks := configMaps(t, files...)
		r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
			if n := t.Manifest.Identity().Name; fails[n] {
				return fatal(n)
			}
			return nil
		}}
		res, _ := Run(t.Context(), tasks, Options{Wrap: r.wrap, State: state, Attempt: attempt})

		g := graphFor(state, tasks, attempt)
		checktest.OK(rt, g.Validate())
		nodeFails := func(i int) bool {
			return slices.ContainsFunc(g.Nodes[i].Tasks, func(t *manifest.Task) bool { return fails[t.Manifest.Identity().Name] })
		}
		var blocked func(int) bool
		blocked = func(i int) bool {
			return slices.ContainsFunc(g.Nodes[i].In, func(j int) bool { return nodeFails(j) || blocked(j) })
		}
		var want, errs []string
		for i, node := range g.Nodes {
			if blocked(i) {
				continue
			}
			for _, t := range node.Tasks {
				name := t.Manifest.Identity().Name
				want = append(want, name)
				if fails[name] {
					errs = append(errs, name)
					break
				}
			}
		}
		slices.Sort(want)
		got := slices.Sorted(slices.Values(r.log))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		began := make(map[string]int)
		for at, name := range r.log {
			began[name] = at
		}
		for i, node := range g.Nodes {
			if blocked(i) || len(node.Tasks) == 0 {
				continue
			}
			first := node.Tasks[0].Manifest.Identity().Name
			for _, j := range node.In {
				for _, t := range g.Nodes[j].Tasks {
					if before := t.Manifest.Identity().Name; began[before] > began[first] {
						rt.Fatalf("%s is applied before %s", first, before)
					}
				}
			}
		}
		var gotErrs []string
		for _, err := range res.Errors {
			gotErrs = append(gotErrs, err.Error())
		}
		if diff := cmp.Diff(errs, gotErrs); diff != "" {
			rt.Fatal(diff)
		}
		if res.Done != len(want)-len(errs) {
			rt.Fatalf("done %d, want %d", res.Done, len(want)-len(errs))
		}
	})
}

// With SkipChecks all is written, and nothing looked at or awaited afterwards.
func TestSkipChecks(t *testing.T) {
	for _, tt := range []struct{ name, text, status, write string }{
		{"deployment", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {}}", `{conditions: [{type: ReplicaFailure, status: "True"}]}`, "Apply Deployment ns/d"},
		{"job", "{apiVersion: batch/v1, kind: Job, metadata: {name: d, namespace: ns}, spec: {}}", "{failed: 1}", "Apply Job ns/d"},
		{"definition", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}, spec: {}}", "{}", "Apply CustomResourceDefinition d"},
		{"operator that is behind", coManifest, "", ""},
		{"operator without versions", strings.Replace(coManifest, "versions: [{name: operator, version: \"2\"}]", "versions: []", 1), "", ""},
	} {
		run := func(skip bool) ([]string, error) {
			api := newFake(coObject(t, "1", "True"))
			api.after = func(_ string, stored *unstructured.Unstructured) {
				stored.Object["status"] = object(t, "{apiVersion: v1, kind: X, status: "+tt.status+"}").Object["status"]
			}
			err := once(t, api, Options{SkipChecks: skip, AwaitJobs: true}, tt.text)
			return api.writes(), err
		}
		if _, err := run(false); err == nil {
			t.Errorf("%s: good with checks", tt.name)
		}
		writes, err := run(true)
		var want []string
		if tt.write != "" {
			want = []string{tt.write}
		}
		if diff := cmp.Diff(want, writes); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tt.name, err, diff)
		}
	}
}

// Wrap sees each manifest on its way to the cluster, with its state and error, and
// decides what the pass gets to hear.
func TestWrap(t *testing.T) {
	var seen []string
	refused := errors.New("refused")
	api := newFake()
	api.before = func(_ context.Context, verb, kind, _ string) error {
		if verb == "Apply" && kind == "Namespace" {
			return refused
		}
		return nil
	}
	wrap := func(inner Applier) Applier {
		return func(ctx context.Context, task *manifest.Task, state State) error {
			err := inner(ctx, task, state)
			seen = append(seen, fmt.Sprintf("%s %s %v", task.Manifest.Identity().Name, state, err))
			if errors.Is(err, refused) {
				return nil // kept
			}
			return err
		}
	}
	texts := []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: first}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: first}}",
		coManifest,
	}
	checktest.OK(t, once(t, api, Options{Wrap: wrap, SkipChecks: true, Workers: 1}, texts...))
	checktest.Same(t, []string{"co Precreating <nil>", "first Updating refused", "c Updating <nil>", "co Updating <nil>"}, seen)
	if api.get("ConfigMap", "first/c") == nil {
		t.Error("what comes after was not applied")
	}

	o := Options{API: api}
	o.Wrap = func(Applier) Applier { return nil }
	if _, err := Run(t.Context(), tasksOf(t, texts[1]), o); err == nil {
		t.Error("no Applier")
	}
}

func TestRunContextEnds(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_20_b_1", "0000_20_c_1"}
	t.Run("after a failed attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return errors.New("broken") }}
			start := time.Now()
			res, err := Run(ctx, configMaps(t, files...), Options{Wrap: r.wrap})
			if err == nil || err.Error() != `Could not update configmap "ns/0000_10_a_1" (1 of 4)` || res.Failure == nil {
				t.Fatalf("%+v %v", res, err)
			}
			if time.Since(start) != 5*time.Second {
				t.Fatalf("took %v", time.Since(start))
			}
		})
	})
	t.Run("a second attempt that the context fails keeps the first error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			r := &recorder{apply: func(ctx context.Context, _ *manifest.Task, _ State) error {
				if n++; n == 1 {
					return errors.New("first")
				}
				cancel()
				return ctx.Err()
			}}
			_, err := Run(ctx, configMaps(t, files...), Options{Wrap: r.wrap})
			te, ok := errors.AsType[*TaskError](err)
			if !ok || te.Err.Error() != "first" {
				t.Fatalf("error %v", err)
			}
		})
	})
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &recorder{}
		res, err := Run(ctx, configMaps(t, files...), Options{Wrap: r.wrap})
		if !errors.Is(err, context.Canceled) || len(r.log) > 0 || res.Failure != nil {
			t.Fatalf("%+v %v", res, err)
		}
	})
	t.Run("a time-out of the applier's own is a failure", func(t *testing.T) {
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return context.DeadlineExceeded }}
		res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, Backoff: &Backoff{Steps: 1}})
		if res.Failure == nil || res.Failure != err {
			t.Fatalf("%+v %v", res, err)
		}
	})
}

// The cause that a context was given is found in every error that says that it
// ended, and such errors are not failures.
func TestRunKeepsTheCause(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_20_b_1", "0000_20_c_1"}
	errShutdown := errors.New("the program shuts down")
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}}"
	for name, c := range map[string]struct {
		tasks []*manifest.Task
		apply func(ctx context.Context, t *manifest.Task) error
		want  []string // texts of the errors
	}{
		"between nodes": {configMaps(t, files...), func(_ context.Context, t *manifest.Task) error {
			if t.Index == 2 {
				return errShutdown // the sign to cancel, not an error: see below
			}
			return nil
		}, []string{`2 incomplete task nodes, beginning with configmap "ns/0000_20_b_1" (3 of 4)`, "context canceled: the program shuts down"}},
		"between tasks": {configMaps(t, files...), func(_ context.Context, t *manifest.Task) error { return errShutdown },
			[]string{"update context canceled: the program shuts down at 1 of 4"}},
		"while applying": {configMaps(t, files...), func(ctx context.Context, _ *manifest.Task) error {
			return fmt.Errorf("put: %w", errBlocked)
		}, []string{"update context canceled: the program shuts down at 0 of 4"}},
		"while a job is awaited": {tasksOf(t, job), nil, []string{"update context canceled: the program shuts down at 0 of 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o := Options{Wrap: by(func(ctx context.Context, t *manifest.Task, _ State) error {
				err := c.apply(ctx, t)
				switch {
				case errors.Is(err, errBlocked):
					cancel(errShutdown)
					<-ctx.Done()
					return fmt.Errorf("put: %w", context.Cause(ctx))
				case err != nil:
					cancel(err)
				}
				return nil
			})}
			if c.apply == nil {
				o = Options{API: newFake(), AwaitJobs: true, Observe: func(e clusterapi.Event) {
					if e.Type == EventWaiting {
						cancel(errShutdown)
					}
				}}
			}
			res, err := Run(ctx, c.tasks, o)
			if !errors.Is(err, errShutdown) || !errors.Is(err, context.Canceled) || res.Failure != nil {
				t.Fatalf("returned %v, failure %v", err, res.Failure)
			}
			var got []string
			for _, err := range res.Errors {
				got = append(got, err.Error())
			}
			checktest.Same(t, c.want, got)
		})
	}
}

// An applier that returns the error of the context says that it ended, also where
// the context has a cause of its own, or the applier a deadline of its own.
func TestContextErrorsOfTheApplier(t *testing.T) {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error {
			cancel(errors.New("the program shuts down"))
			return fmt.Errorf("put: %w", end)
		}}
		res, err := Run(ctx, configMaps(t, "x"), Options{Wrap: r.wrap})
		if _, ok := errors.AsType[*contextEnd](err); !ok || res.Failure != nil {
			t.Errorf("%v: error %v, failure %v", end, err, res.Failure)
		}
	}
}

var errBlocked = errors.New("blocks until the context ends")

// A deadline with a cause still is a deadline: the Job that was awaited then
// is what to tell.
func TestCauseOfADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errLate := errors.New("the maintenance window is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errLate)
		defer cancel()
		tasks := tasksOf(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}}")
		_, err := Run(ctx, tasks, Options{API: newFake(), AwaitJobs: true})
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.Reason != ReasonJobNotComplete || !errors.Is(err, errLate) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	})
}

// A driver of one's own hands schedule the cause, whatever its type.
func TestSummarizeLeavesOutTheCause(t *testing.T) {
	s := newSchedule(graphFor(Updating, configMaps(t, "0000_10_a_1"), 0))
	cause := errors.New("some cause")
	errs := s.Result(cause)
	if len(errs) != 2 || !errors.Is(errs[1], cause) || errs[1].Error() != "some cause" {
		t.Fatalf("%v", errs)
	}
	if err := summarize(errs); err != nil {
		t.Errorf("a failure: %v", err)
	}
	if err := summarize([]error{cause}); err != cause {
		t.Errorf("the same error of a task: %v", err)
	}
}
