package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// applying is an Options.Wrap that puts another Applier in the place of the cluster's.
func applying(a runlevel.Applier) func(runlevel.Applier) runlevel.Applier {
	return func(runlevel.Applier) runlevel.Applier { return a }
}

// payloadTasks are a ConfigMap of each name, one after another, and last a
// ClusterOperator.
func payloadTasks(t testing.TB, names ...string) []*manifest.Task {
	t.Helper()
	var all []*manifest.Manifest
	for i, name := range append(names, "operator") {
		kind := "apiVersion: v1, kind: ConfigMap"
		if name == "operator" {
			kind = "apiVersion: config.openshift.io/v1, kind: ClusterOperator"
		}
		text := fmt.Sprintf("{%s, metadata: {name: %s, namespace: n, annotations: {a: b}}}", kind, name)
		ms := checktest.Get(manifest.Parse(fmt.Sprintf("0000_%02d_x_y.yaml", i), []byte(text), manifest.Limits{}))(t)
		all = append(all, ms...)
	}
	return manifest.NewTasks(all)
}

var payloadMetrics = []string{clusterversion.MetricPayload, clusterversion.MetricPayloadErrors}

func samplesOf(in clusterversion.MetricsInput, names ...string) []string {
	var out []string
	for _, s := range clusterversion.Metrics(in) {
		if slices.Contains(names, s.Name) {
			out = append(out, s.String())
		}
	}
	return out
}

func payloadSamples(p *clusterversion.PayloadProgress) string {
	return strings.Join(samplesOf(clusterversion.MetricsInput{Payloads: p}, payloadMetrics...), "\n")
}

// payloadText is what the metrics of one version look like.
func payloadText(version string, errors, applied, pending int) string {
	out := fmt.Sprintf("cluster_version_payload{type=\"applied\",version=%q} %d\ncluster_version_payload{type=\"pending\",version=%q} %d", version, applied, version, pending)
	if errors > 0 {
		out = fmt.Sprintf("cluster_operator_payload_errors{version=%q} %d\n", version, errors) + out
	}
	return out
}

// TestPayloadProgress has passes over a, b, c and an operator: what the metrics are
// before each task, and at the end.
func TestPayloadProgress(t *testing.T) {
	broken := errors.New("broken")
	final := func(e runlevel.Effect) error { return &runlevel.TaskError{Effect: e, Message: "final"} }
	unmanaged := manifest.Filter{Overrides: []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "n", Name: "b", Unmanaged: true}}}
	type moment struct {
		task                     string
		errors, applied, pending int
	}
	for _, tt := range []struct {
		name   string
		filter manifest.Filter
		fails  map[string][]error // by task, attempt by attempt
		before []moment
		end    [3]int // errors, applied, pending
	}{
		{"all is well", manifest.Filter{}, nil, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 0, 2, 2}, {"operator", 0, 3, 1}}, [3]int{0, 4, 0}},
		{"two attempts fail", manifest.Filter{}, map[string][]error{"b": {broken, broken}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 2, 2, 2}, {"operator", 2, 3, 1}}, [3]int{2, 4, 0}},
		{"all attempts fail", manifest.Filter{}, map[string][]error{"b": {broken, broken, broken}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}}, [3]int{3, 1, 3}},
		{"one that is final", manifest.Filter{}, map[string][]error{"b": {broken, final(runlevel.EffectFail)}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}}, [3]int{2, 1, 3}},
		{"an operator is awaited", manifest.Filter{}, map[string][]error{"operator": {final(runlevel.EffectNone)}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 0, 2, 2}, {"operator", 0, 3, 1}}, [3]int{1, 3, 1}},
		{"one that is only told is done", manifest.Filter{}, map[string][]error{"b": {final(runlevel.EffectReport)}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 1, 2, 2}, {"operator", 1, 3, 1}}, [3]int{1, 4, 0}},
		{"one that is skipped is never done", unmanaged, map[string][]error{"b": {broken}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 0, 1, 3}, {"operator", 0, 2, 2}}, [3]int{0, 3, 1}},
		{"creating the operator ahead fails", manifest.Filter{}, map[string][]error{"Precreating operator": {broken}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}, {"c", 0, 2, 2}, {"operator", 0, 3, 1}}, [3]int{0, 4, 0}},
		{"a panic", manifest.Filter{}, map[string][]error{"b": {nil}}, []moment{{"a", 0, 0, 4}, {"b", 0, 1, 3}}, [3]int{1, 1, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p clusterversion.PayloadProgress
			left := map[string][]error{}
			pass := func(ctx context.Context, version string) {
				for name, errs := range tt.fails {
					left[name] = errs
				}
				_, _ = runlevel.Run(ctx, payloadTasks(t, "a", "b", "c"), runlevel.Options{
					Filter: tt.filter, Workers: 1, Backoff: &runlevel.Backoff{Base: 1, Steps: 3},
					Wrap: applying(func(_ context.Context, task *manifest.Task, s runlevel.State) error {
						name := task.Manifest.Identity().Name
						if s == runlevel.Precreating {
							name = "Precreating " + name
						}
						if len(left[name]) == 0 {
							return nil
						}
						err := left[name][0]
						if left[name] = left[name][1:]; err == nil {
							panic("at the disco")
						}
						return err
					}),
					Observe: func(e clusterapi.Event) {
						p.Observe(clusterapi.Event{Type: clusterupdate.EventTask, Data: &clusterupdate.EventData{Release: configv1.Release{Version: version}, Pass: &e}})
						if e.Type != runlevel.EventTaskStarted && e.Type != runlevel.EventTaskSkipped || version != "1" {
							return
						}
						if len(tt.before) == 0 {
							t.Fatalf("%s begins", progressOf(&e).Task)
						}
						m := tt.before[0]
						if tt.before = tt.before[1:]; m.task != progressOf(&e).Task.Manifest.Identity().Name {
							t.Errorf("%s begins before %s", progressOf(&e).Task, m.task)
						}
						if diff := cmp.Diff(payloadText("1", m.errors, m.applied, m.pending), payloadSamples(&p)); diff != "" {
							t.Errorf("before %s: %s", m.task, diff)
						}
					},
				})
			}
			pass(t.Context(), "1")
			if len(tt.before) > 0 {
				t.Errorf("%s does not begin", tt.before[0].task)
			}
			one := payloadText("1", tt.end[0], tt.end[1], tt.end[2])
			if diff := cmp.Diff(one, payloadSamples(&p)); diff != "" {
				t.Error("at the end:", diff)
			}

			// another version has counts of its own; errors are of all passes of it,
			// the rest of the last; one that is interrupted at once has only a total
			pass(t.Context(), "0")
			pass(t.Context(), "0")
			two := payloadText("0", 2*tt.end[0], tt.end[1], tt.end[2])
			if diff := cmp.Diff(mixed(two, one), payloadSamples(&p)); diff != "" {
				t.Error("two versions:", diff)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			pass(over, "0")
			if diff := cmp.Diff(mixed(payloadText("0", 2*tt.end[0], 0, 4), one), payloadSamples(&p)); diff != "" {
				t.Error("interrupted:", diff)
			}
		})
	}
}

// mixed puts texts of several versions together: the errors are first.
func mixed(texts ...string) string {
	var first, then []string
	for _, line := range strings.Split(strings.Join(texts, "\n"), "\n") {
		if strings.HasPrefix(line, clusterversion.MetricPayloadErrors) {
			first = append(first, line)
		} else {
			then = append(then, line)
		}
	}
	return strings.Join(append(first, then...), "\n")
}

// An attempt that the end of the context interrupts has not failed.
func TestPayloadProgressInterrupted(t *testing.T) {
	var p clusterversion.PayloadProgress
	ctx, cancel := context.WithCancel(t.Context())
	_, err := runlevel.Run(ctx, payloadTasks(t, "a"), runlevel.Options{
		Wrap: applying(func(ctx context.Context, _ *manifest.Task, _ runlevel.State) error {
			cancel()
			return fmt.Errorf("asking: %w", ctx.Err())
		}),
		Observe: func(e clusterapi.Event) {
			p.Observe(clusterapi.Event{Type: clusterupdate.EventTask, Data: &clusterupdate.EventData{Release: configv1.Release{Version: "1"}, Pass: &e}})
		},
	})
	if diff := cmp.Diff(payloadText("1", 0, 0, 2), payloadSamples(&p)); diff != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v: %s", err, diff)
	}
}

// Nothing is counted of what is no task, and of versions only the last 16.
func TestPayloadProgressLimits(t *testing.T) {
	var p clusterversion.PayloadProgress
	step := &clusterapi.Event{Data: &runlevel.Progress{Done: 1, Total: 2, FailedAttempts: 1}}
	p.Observe(clusterapi.Event{Type: clusterupdate.EventTask, Data: &clusterupdate.EventData{}})
	p.Observe(clusterapi.Event{Type: clusterupdate.EventCompleted, Data: &clusterupdate.EventData{Pass: &clusterapi.Event{}}})
	p.Observe(clusterapi.Event{Type: clusterupdate.EventCompleted})
	if got := payloadSamples(&p); got != "" {
		t.Errorf("nothing was counted: %s", got)
	}
	if got := samplesOf(clusterversion.MetricsInput{}, payloadMetrics...); got != nil {
		t.Errorf("nobody counts: %s", got)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			p.Observe(clusterapi.Event{Type: clusterupdate.EventTask, Data: &clusterupdate.EventData{Release: configv1.Release{Version: fmt.Sprint(i)}, Pass: step}})
			clusterversion.Metrics(clusterversion.MetricsInput{Payloads: &p})
		})
	}
	wg.Wait()
	for i := 10; i < 27; i++ {
		for _, version := range []int{5, i} {
			p.Observe(clusterapi.Event{Type: clusterupdate.EventTask, Data: &clusterupdate.EventData{Release: configv1.Release{Version: fmt.Sprint(version)}, Pass: step}})
		}
	}
	if got := samplesOf(clusterversion.MetricsInput{Payloads: &p}, clusterversion.MetricPayloadErrors); len(got) != 16 || !slices.Contains(got, `cluster_operator_payload_errors{version="5"} 1`) || slices.Contains(got, `cluster_operator_payload_errors{version="11"} 1`) {
		t.Errorf("%d versions: %q", len(got), got)
	}
}

// TestUpdaterPayloadProgress has an Updater come to a release in spite of errors,
// also those that no event of their own tells of, and keep it.
func TestUpdaterPayloadProgress(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
	})
	failed, left := 0, map[string]int{"dns-operator": 9, "etcd-operator": 4}
	c.fault = func(call memory.Call) error {
		if call.Verb != "Apply" || call.GVK.Kind != "Deployment" || left[call.Key.Name] == 0 {
			return nil
		}
		left[call.Key.Name]--
		failed++
		return errors.New("away")
	}
	var p clusterversion.PayloadProgress
	o := sampleOptions(t)
	o.Observe = p.Observe
	v := virtually(t, c, o, reconcile.VirtualOptions{Seed: 1})
	checktest.OK(t, v.RunWhile(6*time.Hour, func() bool { return historyOf(c.version(t)) != completedHistory }))
	if failed != 13 {
		t.Fatalf("%d attempts failed", failed)
	}
	metrics := samplesOf(clusterversion.MetricsInput{Payloads: &p}, payloadMetrics...)
	checktest.Same(t, payloadText(sample.ToVersion, 13, len(to.Manifests), 0), strings.Join(metrics, "\n"))
	// what it reads from the cluster comes along
	all, err := clusterversion.ReadMetrics(t.Context(), c.Cluster, clusterversion.MetricsInput{Payloads: &p})
	if err != nil || !slices.ContainsFunc(all, func(s clusterapi.Sample) bool { return s.Name == clusterversion.MetricPayload }) {
		t.Errorf("%v, %v", all, err)
	}
}
