package clusterupdate_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// sampleSource serves the two built-in releases.
// seeds is a number of seeds, or a smaller one with the race detector, which has
// little to find where all runs in one goroutine.
func seeds(ordinarily, withRaceDetector uint64) uint64 {
	if israce.Enabled {
		return withRaceDetector
	}
	return ordinarily
}

func sampleSource() manifest.PayloadSource {
	return manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
		switch r.Image {
		case sample.FromImage:
			return sample.From(), ctx.Err()
		case sample.ToImage:
			return sample.To(), ctx.Err()
		}
		return nil, fmt.Errorf("no release %s", r.Image)
	})
}

func sampleGraph(t testing.TB) graph.Source {
	t.Helper()
	g := checktest.Get(graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{}))(t)
	return graph.Static(g)
}

func loadSample(t testing.TB, fsys fs.FS, image string) *manifest.Payload {
	t.Helper()
	p := checktest.Get(manifest.Load(context.Background(), fsys, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()}))(t)
	return p
}

// testCluster is a cluster whose operators do at once what they are to do: as
// soon as the last workload of one is applied it is at its version.
type testCluster struct {
	*memory.Cluster
	next []manifest.Operator

	mu      sync.Mutex
	applied map[manifest.Identity]bool
	hold    map[string]bool // operators that stay behind

	called func(memory.Call)       // calls but those of the operators and of tests; nil: nobody listens
	fault  func(memory.Call) error // of the same calls, before they take effect; nil: there is none
}

type reactionKey struct{}

// newTestCluster returns a cluster that runs from and can be updated to to.
func newTestCluster(t testing.TB, from, to *manifest.Payload, change func(*configv1.ClusterVersion)) *testCluster {
	t.Helper()
	c := &testCluster{next: to.Operators(), applied: map[manifest.Identity]bool{}, hold: map[string]bool{}}
	c.Cluster = memory.NewOpenShift(memory.Options{
		Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if ctx.Value(reactionKey{}) != nil {
				return do(ctx)
			}
			c.mu.Lock()
			called, fault := c.called, c.fault
			c.mu.Unlock()
			if called != nil {
				called(call)
			}
			if fault != nil {
				if err := fault(call); err != nil {
					return err
				}
			}
			err := do(ctx)
			if err == nil && (call.Verb == "Apply" || call.Verb == "Create" || call.Verb == "Update") {
				c.react(context.WithValue(context.WithoutCancel(ctx), reactionKey{}, true), call)
			}
			return err
		},
	})
	ctx := context.WithValue(context.Background(), reactionKey{}, true)
	now := metav1.Now()
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Spec.Channel = sample.Channel
	cv.Status.Desired = configv1.Release{Version: from.Release.Version, Image: from.Release.Image}
	cv.Status.History = []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, Version: from.Release.Version, Image: from.Release.Image, StartedTime: now, CompletionTime: &now,
	}}
	if change != nil {
		change(cv)
	}
	u := checktest.Get(clusterapi.ToUnstructured(cv))(t)
	checktest.OK(t, c.Load(u))
	for _, op := range from.Operators() {
		checktest.OK(t, c.report(ctx, op))
	}
	for _, name := range []string{"admin-acks", "admin-gates"} {
		ns := map[string]string{"admin-acks": "openshift-config", "admin-gates": "openshift-config-managed"}[name]
		cm := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": ns},
		}}
		checktest.Get(c.Create(ctx, cm, clusterapi.CreateOptions{}))(t)
	}
	return c
}

// react lets the operators whose workloads have all been applied go on.
func (c *testCluster) react(ctx context.Context, call memory.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := manifest.Identity{Group: call.GVK.Group, Kind: call.GVK.Kind, Namespace: call.Key.Namespace, Name: call.Key.Name}
	for _, op := range c.next {
		for _, w := range op.Workloads {
			if w.Identity() == id {
				c.applied[id] = lacks(w.Object().Object, call.Object.Object, "") == ""
			}
		}
	}
	for _, op := range c.next {
		ours, all := false, true
		for _, w := range op.Workloads {
			ours = ours || w.Identity() == id
			all = all && c.applied[w.Identity()]
		}
		if ours && all && !c.hold[op.Name] {
			if err := c.report(ctx, op); err != nil {
				panic(err)
			}
		}
	}
}

// ctx is that of calls of tests, which do not count.
func (c *testCluster) ctx() context.Context {
	return context.WithValue(context.Background(), reactionKey{}, true)
}

// onCall has f follow the calls from now on.
func (c *testCluster) onCall(f func(memory.Call)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called = f
}

// report makes an operator available at its versions.
func (c *testCluster) report(ctx context.Context, op manifest.Operator) error {
	key := clusterapi.Key("", op.Name)
	set := func(co *configv1.ClusterOperator) error {
		co.Status.Versions = op.Versions
		co.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: metav1.Unix(0, 0)},
			{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: metav1.Unix(0, 0)},
		}
		return nil
	}
	if _, err := clusterapi.Get[configv1.ClusterOperator](ctx, c.Cluster, key); err != nil {
		if _, err := clusterapi.Create(ctx, c.Cluster, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: op.Name}}, clusterapi.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := clusterapi.Modify(ctx, c.Cluster, key, clusterapi.ModifyOptions{Status: true}, set)
	return err
}

// request asks for the update.
func (c *testCluster) request(t testing.TB, u configv1.Update) {
	t.Helper()
	modify(t, c.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = &u })
}

func (c *testCluster) version(t checktest.T) *configv1.ClusterVersion {
	t.Helper()
	return checktest.Get(clusterapi.Get[configv1.ClusterVersion](c.ctx(), c.Cluster, clusterapi.Key("", "version")))(t)
}

func condition(cv *configv1.ClusterVersion, t configv1.ClusterStatusConditionType) string {
	for _, c := range cv.Status.Conditions {
		if c.Type == t {
			return strings.TrimSpace(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))
		}
	}
	return ""
}

func historyOf(cv *configv1.ClusterVersion) string {
	var out []string
	for _, h := range cv.Status.History {
		out = append(out, h.Version+" "+string(h.State))
	}
	return strings.Join(out, ", ")
}

const completedHistory = "4.21.1 Completed, 4.20.3 Completed"

func TestSync(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, from, to, nil)
		order := newOrderCheck(to, sample.To())
		u := checktest.Get(clusterupdate.New(clusterupdate.Options{
			API: c.Cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(), Observe: order.observe,
		}))(t)
		// Nothing is asked for: the lists are filled, the release is kept.
		r, err := u.Sync(t.Context())
		if err != nil || !r.Done || r.Failure != nil {
			t.Fatalf("first: %+v, %v", r, err)
		}
		cv := c.version(t)
		for typ, want := range map[configv1.ClusterStatusConditionType]string{
			configv1.RetrievedUpdates:                             "True :",
			clusterversion.ConditionReleaseAccepted:               fmt.Sprintf("True PayloadLoaded: Payload loaded version=%q image=%q architecture=%q", sample.FromVersion, sample.FromImage, "amd64"),
			configv1.OperatorAvailable:                            "True : Done applying 4.20.3",
			clusterversion.ConditionFailing:                       "False :",
			configv1.OperatorProgressing:                          "False : Cluster version is 4.20.3",
			configv1.OperatorUpgradeable:                          "",
			clusterversion.ConditionInvalid:                       "",
			clusterversion.ConditionImplicitlyEnabledCapabilities: "False AsExpected: Capabilities match configured spec",
		} {
			if got := condition(cv, typ); got != want {
				t.Errorf("%s is %q, want %q", typ, got, want)
			}
		}
		if cv.Status.VersionHash != from.Hash || cv.Status.ObservedGeneration != cv.Generation {
			t.Errorf("hash %s, observed generation %d", cv.Status.VersionHash, cv.Status.ObservedGeneration)
		}
		var available []string
		for _, r := range cv.Status.AvailableUpdates {
			available = append(available, r.Version)
		}
		if got := strings.Join(available, " "); got != "4.21.1 4.20.4" {
			t.Errorf("available updates: %s", got)
		}

		c.request(t, configv1.Update{Version: sample.ToVersion})
		for range 20 {
			if r, err = u.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r.Done {
				break
			}
			time.Sleep(r.After)
		}
		cv = c.version(t)
		if got := historyOf(cv); got != completedHistory || !r.Done {
			t.Fatalf("history %s, result %+v", got, r)
		}
		if got, want := condition(cv, configv1.OperatorProgressing), "False : Cluster version is 4.21.1"; got != want {
			t.Errorf("Progressing is %q, want %q", got, want)
		}
		if !cv.Status.History[0].Verified {
			t.Error("the update is not verified")
		}
		order.check(t)
		checkApplied(t, c, to)
	})
}

// orderCheck follows the events of an update: a manifest may only be started
// when those of all lower levels of its directory are in place.
type orderCheck struct {
	image string
	tasks map[taskKey]taskPlace

	mu        sync.Mutex
	done      map[taskKey]bool // in the pass at hand
	seen      int
	completed bool
	faults    []string
}

type taskKey struct {
	file     string
	document int
}

type taskPlace struct{ dir, level string }

func newOrderCheck(p *manifest.Payload, fsys fs.FS) *orderCheck {
	o := &orderCheck{image: p.Release.Image, tasks: map[taskKey]taskPlace{}, done: map[taskKey]bool{}}
	for _, m := range p.Manifests {
		level, _, ok := manifest.ParseName(m.Filename)
		if !ok {
			continue
		}
		dir := "release-manifests"
		if _, err := fs.Stat(fsys, "manifests/"+m.Filename); err == nil {
			dir = "manifests"
		}
		o.tasks[taskKey{m.Filename, m.Document}] = taskPlace{dir, level}
	}
	return o
}

func (o *orderCheck) observe(e clusterapi.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := dataOf(e).Pass
	if dataOf(e).Release.Image != o.image || p == nil {
		o.completed = o.completed || e.Type == clusterupdate.EventCompleted && dataOf(e).Release.Image == o.image
		return
	}
	if p.Type == runlevel.EventPassStarted {
		clear(o.done)
	}
	if o.completed || progressOf(p).Task == nil {
		return
	}
	key := taskKey{progressOf(p).Task.Manifest.Filename, progressOf(p).Task.Manifest.Document}
	switch p.Type {
	case runlevel.EventTaskStarted:
		o.seen++
		at := o.tasks[key]
		for other, place := range o.tasks {
			if place.dir == at.dir && place.level < at.level && !o.done[other] {
				o.faults = append(o.faults, fmt.Sprintf("%s of level %s began before %s of level %s was done", progressOf(p).Task, at.level, other.file, place.level))
				return
			}
		}
	case runlevel.EventTaskDone, runlevel.EventTaskSkipped:
		o.done[key] = true
	}
}

func (o *orderCheck) check(t testing.TB) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == 0 {
		t.Error("no task was seen")
	}
	for _, f := range o.faults {
		t.Error(f)
	}
}

// checkApplied proves that the cluster has what a payload wants.
func checkApplied(t testing.TB, c *testCluster, p *manifest.Payload) {
	t.Helper()
	for _, m := range p.Manifests {
		id := m.Identity()
		got, err := c.Get(c.ctx(), m.GVK(), types.NamespacedName{Namespace: id.Namespace, Name: id.Name})
		switch {
		case m.Annotations()["release.openshift.io/delete"] == "true":
			if err == nil {
				t.Errorf("%s is still there", m)
			}
		case err != nil:
			t.Errorf("%s: %v", m, err)
		case m.Annotations()["release.openshift.io/create-only"] == "true", m.GVK().Kind == "ClusterOperator":
		default:
			if missing := lacks(m.Object().Object, got.Object, ""); missing != "" {
				t.Errorf("%s: %s is not as in the manifest", m, missing)
			}
		}
	}
}

// lacks returns the path of the first field of want that got does not have.
// Elements of lists may stand anywhere: others add theirs.
func lacks(want, got any, path string) string {
	switch w := want.(type) {
	case nil:
		return ""
	case map[string]any:
		g, _ := got.(map[string]any)
		if name, _ := w["name"].(string); strings.HasPrefix(name, "KUBERNETES_SERVICE_") && g["name"] == name {
			return "" // the version operator's way to the API server is set by the cluster
		}
		for k, v := range w {
			switch path + "." + k {
			case ".status": // the operators' own
				continue
			case ".metadata.namespace": // meaningless for some kinds
				continue
			case ".userNames": // a field that ClusterRoleBindings do not have
				continue
			}
			if missing := lacks(v, g[k], path+"."+k); missing != "" {
				return missing
			}
		}
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			at := fmt.Sprintf("%s[%d]", path, i)
			if !slices.ContainsFunc(g, func(have any) bool { return lacks(v, have, at) == "" }) {
				return at
			}
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return path
		}
	}
	return ""
}

// progressOf is the progress of an event of a pass.
func progressOf(e *clusterapi.Event) *runlevel.Progress { return e.Data.(*runlevel.Progress) }
