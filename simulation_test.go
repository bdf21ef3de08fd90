package clusterupdate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// toyRelease is a small release: three operators, each alone in its runlevel,
// and a ConfigMap before the first and after the last.
type toyRelease struct {
	configv1.Release
	files   fs.FS
	payload *manifest.Payload
}

// toyOperators are the operators of a toy release, by runlevel.
var toyOperators = map[string]int{"alpha": 20, "beta": 30, "gamma": 50}

// annotationRelease tells of which release an object was applied.
const annotationRelease = "test.example/release"

func newToyRelease(t testing.TB, version string, previous ...string) *toyRelease {
	t.Helper()
	header := func(kind, name string) string {
		return fmt.Sprintf("kind: %s\nmetadata:\n  name: %s\n  namespace: toy\n  annotations:\n    %s: %q\n    include.release.openshift.io/self-managed-high-availability: \"true\"\n",
			kind, name, annotationRelease, version)
	}
	config := func(name string) string {
		return "apiVersion: v1\n" + header("ConfigMap", name) + fmt.Sprintf("data: {version: %q}\n", version)
	}
	files := map[string]string{
		"release-manifests/release-metadata":                        fmt.Sprintf(`{"kind":"cincinnati-metadata-v0","version":%q,"previous":["%s"]}`, version, strings.Join(previous, `","`)),
		"release-manifests/image-references":                        fmt.Sprintf(`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":%q}}`, version),
		"manifests/0000_00_cluster-version-operator_00_config.yaml": config("cluster-version-operator"),
		"release-manifests/0000_10_config_00_config.yaml":           config("first"),
		"release-manifests/0000_90_config_00_config.yaml":           config("last"),
	}
	for name, level := range toyOperators {
		at := fmt.Sprintf("release-manifests/0000_%d_%s", level, name)
		files[at+"_00_deployment.yaml"] = "apiVersion: apps/v1\n" + header("Deployment", name) + fmt.Sprintf(`spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: operator, image: "registry.example/%[1]s:%[2]s"}]
`, name, version)
		files[at+"_01_clusteroperator.yaml"] = strings.Replace("apiVersion: config.openshift.io/v1\n"+header("ClusterOperator", name), "  namespace: toy\n", "", 1) +
			fmt.Sprintf("status:\n  versions: [{name: operator, version: %q}]\n", version)
	}
	out := fstest.MapFS{}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: []byte(data)}
	}
	image := fmt.Sprintf("registry.example/release@sha256:%x", sha256.Sum256([]byte(version)))
	p, err := manifest.Load(t.Context(), out, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()})
	checktest.OK(t, err)
	return &toyRelease{Release: configv1.Release{Version: version, Image: image}, files: out, payload: p}
}

// toyReleases are 1.0.0 and what it leads to. Nobody signed 1.0.3.
func toyReleases(t testing.TB) []*toyRelease {
	return []*toyRelease{
		newToyRelease(t, "1.0.0"), newToyRelease(t, "1.0.1", "1.0.0"),
		newToyRelease(t, "1.0.2", "1.0.0", "1.0.1"), newToyRelease(t, unsigned, "1.0.0", "1.0.1", "1.0.2"),
	}
}

const unsigned = "1.0.3"

// toyGraph leads from each release to all later ones.
func toyGraph(t testing.TB, all []*toyRelease) graph.Source {
	t.Helper()
	var d graph.Data
	for i, r := range all {
		d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(r.Version), Image: r.Image})
		for j := range i {
			d.Edges = append(d.Edges, [2]int{j, i})
		}
	}
	g := checktest.Get(graph.New(d, graph.DecodeOptions{}))(t)
	return graph.Static(g)
}

// toyVerifier knows a signature of each release but one.
type toyVerifier []*toyRelease

func (v toyVerifier) Verify(_ context.Context, digest string) (*signature.Verification, error) {
	for _, r := range v {
		if strings.HasSuffix(r.Image, digest) && r.Version != unsigned {
			return &signature.Verification{}, nil
		}
	}
	return nil, &signature.Error{Digest: digest}
}

// toyWorld is a simulated cluster of toy releases in virtual time.
type toyWorld struct {
	*reconcile.Virtual
	releases []*toyRelease
	cluster  *simulation.Cluster
	problems []error
}

// newToyWorld makes a cluster at the first release.
func newToyWorld(releases []*toyRelease, m memory.Options, o reconcile.VirtualOptions) (*toyWorld, error) {
	o.Clock = reconcile.NewClock(toyStart)
	cluster, err := simulation.New(simulation.Options{
		Clock: o.Clock, Release: toySimulation(releases[0]), ControlPlane: 1, Pools: []simulation.Pool{},
		ClusterVersion: simulation.ClusterVersion{Channel: "stable"}, Memory: m,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range releases[1:] {
		cluster.Expect(toySimulation(r))
	}
	o.Cluster = cluster
	o.Faults.Processes = updaters
	return &toyWorld{Virtual: reconcile.NewVirtual(o, cluster.Process()), releases: releases, cluster: cluster}, nil
}

// add adds an Updater.
func (x *toyWorld) add(name string, source graph.Source, o clusterupdate.Options) error {
	o.API, o.Payloads, o.Graph, o.Verifier = x.cluster, payloadsOf(x.releases), source, toyVerifier(x.releases)
	o.Clock, o.Interval = x.Clock(), 10*time.Minute
	u, err := clusterupdate.New(o)
	if err != nil {
		return err
	}
	p := u.Process()
	p.Name = name
	x.Add(p)
	return nil
}

func (x *toyWorld) problem(format string, args ...any) {
	x.problems = append(x.problems, fmt.Errorf("at %s: "+format, append([]any{x.Now().Sub(toyStart)}, args...)...))
}

// raw is the ClusterVersion; nil if there is none.
func (x *toyWorld) raw() *unstructured.Unstructured {
	u, err := x.cluster.Get(context.Background(), configv1.GroupVersion.WithKind("ClusterVersion"), clusterapi.Key("", "version"))
	if err != nil {
		return nil
	}
	return u
}

// version is the ClusterVersion; empty if there is none.
func (x *toyWorld) version() *configv1.ClusterVersion { return typed(x.raw()) }

func typed(u *unstructured.Unstructured) *configv1.ClusterVersion {
	if u == nil {
		return &configv1.ClusterVersion{}
	}
	cv, err := clusterapi.FromUnstructured[configv1.ClusterVersion](u)
	if err != nil {
		panic(err)
	}
	return cv
}

// operator is the version that a ClusterOperator reports.
func (x *toyWorld) operator(name string) string {
	co, err := clusterapi.Read[configv1.ClusterOperator](context.Background(), x.cluster, clusterapi.Key("", name))
	if err != nil || len(co.Status.Versions) == 0 {
		return ""
	}
	return co.Status.Versions[0].Version
}

// run steps until a time, or until done says so.
func (x *toyWorld) run(limit time.Duration, done func() bool) error {
	err := x.RunWhile(limit, func() bool { return len(x.problems) == 0 && !done() })
	return errors.Join(append(x.problems, err)...)
}

// until steps until a time.
func (x *toyWorld) until(t time.Time) error {
	if err := x.run(12*time.Hour, func() bool { at, ok := x.Next(); return !ok || at.After(t) }); err != nil {
		return err
	}
	return x.RunUntil(t)
}

// settled reports whether the cluster is at a version, all of it.
func (x *toyWorld) settled(version string) bool {
	h := x.version().Status.History
	if len(h) == 0 || h[0].Version != version || h[0].State != configv1.CompletedUpdate {
		return false
	}
	for name := range toyOperators {
		if x.operator(name) != version {
			return false
		}
	}
	return true
}

// stays runs until a cluster that is at a version has been at it for a while, and finds
// what is not that release's.
func (x *toyWorld) stays(version string, d time.Duration) error {
	if err := x.until(x.Now().Add(d)); err != nil {
		return err
	}
	if !x.settled(version) {
		return fmt.Errorf("the cluster left %s", version)
	}
	for _, name := range []string{"first", "last", "cluster-version-operator"} {
		u, err := x.cluster.Get(context.Background(), configMapKind, clusterapi.Key("toy", name))
		if err != nil || u.GetAnnotations()[annotationRelease] != version {
			return fmt.Errorf("ConfigMap %s is not that of %s: %v", name, version, err)
		}
	}
	return nil
}

// state describes the cluster for failures.
func (x *toyWorld) state() string {
	cv := x.version()
	out := fmt.Sprintf("history: %s\nrequest: %+v\n", historyOf(cv), cv.Spec.DesiredUpdate)
	for _, c := range cv.Status.Conditions {
		out += fmt.Sprintf("%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for name := range toyOperators {
		out += name + " is at " + x.operator(name) + "\n"
	}
	return out
}

// toyRun is one run of updaters on a cluster of toy releases.
type toyRun struct {
	*toyWorld
	instances int
	hooks     []clusterversion.Hook

	history   []configv1.UpdateHistory // as last seen
	requested []string                 // versions that were asked for, and the first
	completed map[string]int           // events, by entry of the history
}

var toyStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// updaters are the processes that faults strike.
var updaters = []string{"updater", "other updater"}

// newToyRun makes a cluster at 1.0.0 with one or two updaters.
func newToyRun(releases []*toyRelease, source graph.Source, instances int, hooks []clusterversion.Hook, o reconcile.VirtualOptions) (*toyRun, error) {
	x := &toyRun{instances: instances, hooks: hooks, requested: []string{releases[0].Version}, completed: map[string]int{}}
	var err error
	if x.toyWorld, err = newToyWorld(releases, memory.Options{Intercept: x.intercept}, o); err != nil {
		return nil, err
	}
	marks := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: markKey.Namespace, Name: markKey.Name}}
	if _, err := clusterapi.Create(context.Background(), x.cluster, marks, clusterapi.CreateOptions{}); err != nil {
		return nil, err
	}
	for _, name := range updaters[:instances] {
		if err := x.add(name, source, clusterupdate.Options{Hooks: hooks, Observe: x.event}); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func payloadsOf(releases []*toyRelease) manifest.PayloadSource {
	return manifest.PayloadSourceFunc(func(_ context.Context, want configv1.Release) (fs.FS, error) {
		for _, r := range releases {
			if r.Image == want.Image {
				return r.files, nil
			}
		}
		return nil, fs.ErrNotExist
	})
}

// intercept checks what is applied: with one updater only what was accepted,
// and nothing of a runlevel before those below it are done.
func (x *toyRun) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	err := do(ctx)
	if call.Verb != "Apply" || err != nil || x.toyWorld == nil || simulation.FromSimulation(ctx) {
		return err
	}
	version := call.Object.GetAnnotations()[annotationRelease]
	if version == "" || x.instances > 1 || len(x.history) == 0 {
		return err
	}
	x.look()
	newest := x.history[0]
	if newest.Version != version {
		x.problem("%s %s of %s was applied, but %s is accepted", call.GVK.Kind, call.Key.Name, version, newest.Version)
	}
	if newest.State == configv1.CompletedUpdate {
		return err
	}
	if mark := x.mark(); len(x.hooks) > 0 && mark != version {
		x.problem("%s %s of %s was applied while the mark was for %q", call.GVK.Kind, call.Key.Name, version, mark)
	}
	for name, level := range toyOperators {
		if level < levelOf(call.Object) && x.operator(name) != version {
			x.problem("%s %s was applied before %s is at %s", call.GVK.Kind, call.Key.Name, name, version)
		}
	}
	return err
}

// levelOf is the runlevel of an object of a toy release.
func levelOf(u *unstructured.Unstructured) int {
	switch name := u.GetName(); {
	case name == "last":
		return 90
	default:
		return toyOperators[name]
	}
}

// mark is the release that the hook has marked the cluster for.
func (x *toyRun) mark() string {
	u, err := x.cluster.Get(context.Background(), configMapKind, markKey)
	if err != nil {
		panic(err) // the cluster is in memory
	}
	return u.GetAnnotations()[marked]
}

// event counts what is told.
func (x *toyRun) event(e clusterapi.Event) {
	if e.Type == clusterupdate.EventCompleted {
		x.completed[fmt.Sprint(dataOf(e).Release.Version, " ", len(x.history))]++
	}
}

// look checks the history: it is only appended to, by releases that were asked
// for and that somebody signed.
func (x *toyRun) look() {
	now := x.version().Status.History
	added := len(now) - len(x.history)
	if added < 0 {
		x.problem("the history lost entries: %s", historyOf(x.version()))
		return
	}
	for i, old := range x.history {
		entry := now[added+i]
		if entry.Image != old.Image || !entry.StartedTime.Equal(&old.StartedTime) || old.State == configv1.CompletedUpdate && entry.State != old.State {
			x.problem("entry %d of the history was %v, and is %v", i, old, entry)
		}
		if i > 0 && entry.CompletionTime == nil {
			x.problem("entry %d of the history has no end", added+i)
		}
	}
	for i := range added {
		entry := now[i]
		if !slices.Contains(x.requested, entry.Version) {
			x.problem("%s was accepted, and nobody asked for it", entry.Version)
		}
		if entry.Version == unsigned {
			x.problem("%s was accepted, and nobody signed it", entry.Version)
		}
		if i+1 < len(now) && now[i+1].Image == entry.Image {
			x.problem("two entries of the history in a row are %s", entry.Version)
		}
	}
	x.history = slices.Clone(now)
}

// request asks for a version; empty takes the request back.
func (x *toyRun) request(version string) {
	ctx := context.Background()
	_, err := clusterapi.Modify(ctx, x.cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		if cv.Spec.DesiredUpdate = nil; version != "" {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: version}
		}
		return nil
	})
	if err != nil {
		x.problem("request %s: %v", version, err)
		return
	}
	x.requested = append(x.requested, version)
}

// run steps until a time, or until done says so, looking at the history after
// each step.
func (x *toyRun) run(limit time.Duration, done func() bool) error {
	return x.toyWorld.run(limit, func() bool {
		x.look()
		return done()
	})
}

var toyFaults = reconcile.Faults{
	Before: 0.02, After: 0.02, Conflict: 0.02, Slow: 0.01, Stale: 0.02, Late: 0.1, Double: 0.05, Merge: 0.05,
	Crash: 0.005, Outage: 0.2, ClockBack: 0.1, Until: 45 * time.Minute,
}

// playToy lets an administrator change the request at random times, and checks
// that the cluster ends at what the last request says.
func playToy(releases []*toyRelease, source graph.Source, seed uint64, only map[string]bool) ([]string, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	instances := 1
	if rng.IntN(4) == 0 {
		instances = 2
	}
	o := reconcile.VirtualOptions{Seed: seed, Faults: toyFaults, Order: reconcile.Order(rng.IntN(2))}
	o.Faults.Only = only
	if rng.IntN(2) == 0 {
		o.Faults.Late = 0 // half of all seeds have late events
	}
	var hooks []clusterversion.Hook
	if seed%2 == 0 {
		hooks = []clusterversion.Hook{&marking{}}
	}
	x, err := newToyRun(releases, source, instances, hooks, o)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	// The last request is one that can be fulfilled from wherever the cluster
	// is by then.
	requests := []string{"1.0.1", []string{"", "1.0.1", unsigned}[rng.IntN(3)], "1.0.2"}
	for _, version := range requests {
		until := x.Now().Add(time.Duration(rng.IntN(12)) * time.Minute)
		if err := x.run(time.Hour, func() bool { at, ok := x.Next(); return !ok || at.After(until) }); err != nil {
			return x.Faults(), err
		}
		if err := x.RunUntil(until); err != nil {
			return x.Faults(), err
		}
		x.request(version)
	}
	const last = "1.0.2"
	if err := x.run(6*time.Hour, func() bool { return x.settled(last) }); err != nil {
		return x.Faults(), fmt.Errorf("%w\n%s", err, x.state())
	}
	end := x.Now().Add(15 * time.Minute)
	if err := x.run(time.Hour, func() bool { at, ok := x.Next(); return !ok || at.After(end) }); err != nil {
		return x.Faults(), err
	}
	if err := x.stays(last, 0); err != nil {
		return x.Faults(), fmt.Errorf("%w\n%s", err, x.state())
	}
	if mark := x.mark(); mark != "" {
		return x.Faults(), fmt.Errorf("the cluster is at rest, and marked for %s", mark)
	}
	crashes := 0
	for _, f := range x.Faults() {
		if strings.HasSuffix(f, ": crash") {
			crashes++
		}
	}
	for what, n := range x.completed {
		if n > instances+crashes {
			return x.Faults(), fmt.Errorf("that %s is done was told %d times, with %d crashes", what, n, crashes)
		}
	}
	return x.Faults(), nil
}

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// TestSimulation updates a cluster under faults of every kind.
func TestSimulation(t *testing.T) {
	releases := toyReleases(t)
	source := toyGraph(t, releases)
	simtest.Test(t, 1, func(seed uint64, only map[string]bool) ([]string, error) {
		return playToy(releases, source, seed, only)
	})
}

// TestAnswerOfAHookIsLost: an old state of the ClusterVersion is read just as a hook
// answers. The answer is dropped with what is known of the newer entry of the history,
// so the hook has to be asked about it again.
func TestAnswerOfAHookIsLost(t *testing.T) {
	releases := toyReleases(t)
	faults, err := playToy(releases, toyGraph(t, releases), 248, nil)
	checktest.OK(t, err)
	if stale := "updater Get of the past ClusterVersion version #99: stale"; !slices.Contains(faults, stale) {
		t.Errorf("the run does not have the fault %q any more", stale)
	}
}

// toySimulation is a toy release as the simulated cluster knows it. Its version is none of
// OpenShift, so it says which Kubernetes it has.
func toySimulation(r *toyRelease) simulation.Release {
	release := payload.Release(r.payload)
	release.KubeVersion = "v1.33.0"
	return release
}
