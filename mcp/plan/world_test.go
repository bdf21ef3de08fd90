package plan_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// The releases of the tests' clusters.
const (
	version0 = "4.20.3"
	version1 = "4.21.1"
	version2 = "4.22.4"
)

// machineConfig is a release whose one operator is the machine-config operator.
func machineConfig(version string) simulation.Release {
	labels, one := map[string]string{"app": "machine-config"}, int32(1)
	u, err := clusterapi.ToUnstructured(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-config", Name: "machine-config"},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "operator", Image: "registry.example/mco:" + version,
					Env: []corev1.EnvVar{{Name: "RELEASE_VERSION", Value: version}}}}}}},
	})
	if err != nil {
		panic(err)
	}
	return simulation.Release{Version: version, Image: imageOf(version), KubeVersion: machineConfigKubelet(version), Operators: []simulation.Operator{{Name: "machine-config", Workloads: []*unstructured.Unstructured{u}}}}
}

func imageOf(version string) string {
	minor := strings.Split(version, ".")[1]
	return "registry.example/release@sha256:" + strings.Repeat(minor[len(minor)-1:], 64)
}

// versionOperator plays the cluster-version operator, as far as plans see it: it
// applies the release that is asked for, and completes it when its operator has.
type versionOperator struct {
	api     clusterapi.ClusterAPI
	cluster *simulation.Cluster
}

func (versionOperator) Name() string { return "version operator" }

func (o versionOperator) Watches() []reconcile.Watch {
	look := func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake {
		return []reconcile.Wake{{Key: reconcile.Key{Name: "version"}, After: time.Second}}
	}
	return []reconcile.Watch{
		{GVK: configv1.GroupVersion.WithKind("ClusterVersion"), Changed: look},
		{GVK: configv1.GroupVersion.WithKind("ClusterOperator"), Changed: look},
	}
}

func (o versionOperator) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	key := clusterapi.Key("", "version")
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, o.api, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := metav1.NewTime(r.Now)
	newest := cv.Status.History[0]
	if want := cv.Spec.DesiredUpdate; want != nil && want.Version != newest.Version {
		to := machineConfig(want.Version)
		if err := o.cluster.Expect(to); err != nil {
			return reconcile.Result{}, err
		}
		if _, err := o.api.Apply(ctx, to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
			return reconcile.Result{}, err
		}
		_, err := clusterapi.Modify(ctx, o.api, key, clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
			cv.Status.Desired = configv1.Release{Version: want.Version, Image: to.Image}
			cv.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: want.Version, Image: to.Image, StartedTime: now}}, cv.Status.History...)
			return nil
		})
		return reconcile.Result{}, err
	}
	operator, err := clusterapi.Get[configv1.ClusterOperator](ctx, o.api, clusterapi.Key("", "machine-config"))
	if err != nil || newest.State == configv1.CompletedUpdate {
		return reconcile.Result{}, err
	}
	if slices.ContainsFunc(operator.Status.Versions, func(v configv1.OperandVersion) bool { return v.Version == newest.Version }) {
		_, err = clusterapi.Modify(ctx, o.api, key, clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
			cv.Status.History[0].State, cv.Status.History[0].CompletionTime = configv1.CompletedUpdate, &now
			return nil
		})
	}
	return reconcile.Result{}, err
}

// updateCluster is the action that asks for an update.
func updateCluster(ctx context.Context, c plan.Call) (plan.Outcome, error) {
	_, err := clusterapi.Modify(ctx, c.API, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: c.Step.Args.Version, Image: imageOf(c.Step.Args.Version), Force: true}
		return nil
	})
	return plan.Outcome{Done: err == nil}, err
}

var actions = map[string]plan.Action{"UpdateCluster": plan.ActionFunc(updateCluster)}

// world is a simulated cluster in virtual time, whose nodes a rollout updates.
type world struct {
	*reconcile.Virtual
	cluster *simulation.Cluster
	clock   *reconcile.Clock
	log     []string // of plans
	events  []clusterapi.Event
	memory  *memory.Cluster // of a world without a simulated cluster
	look    func() error    // judges what has changed after each step, if not nil
	waits   string          // the step of the last event, if it waited
	brief   bool            // the log has the first of the waits of a step alone
}

// worldOptions describe one.
type worldOptions struct {
	version   string // empty: version0
	seed      uint64
	pools     []simulation.Pool
	workloads []simulation.Workload
	faults    map[string]*simulation.Fault
	timing    simulation.Timing
	calls     reconcile.Faults // of processes that it names
	random    bool
	check     bool // that nobody changes shared objects
}

func newWorld(o worldOptions) *world {
	w := &world{clock: reconcile.NewClock(mcptest.Epoch)}
	var err error
	w.cluster, err = simulation.New(simulation.Options{Clock: w.clock, Release: machineConfig(cmp.Or(o.version, version0)), Pools: o.pools,
		Workloads: o.workloads, Timing: o.timing, Memory: memory.Options{CheckShared: o.check}})
	if err != nil {
		panic(err)
	}
	for name, f := range o.faults {
		w.cluster.SetNodeFault(name, f)
	}
	nodes, err := rollout.New(rollout.Options{Mode: rollout.Drive})
	if err != nil {
		panic(err)
	}
	versions := reconcile.Process{Name: "versions", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{versionOperator{api, w.cluster}}
	}}
	vo := reconcile.VirtualOptions{Cluster: w.cluster, Clock: w.clock, Seed: o.seed, Faults: o.calls, Latency: reconcile.Latency{Watch: 500 * time.Millisecond, Job: time.Second}}
	if o.random {
		vo.Order = reconcile.Random
	}
	w.Virtual = reconcile.NewVirtual(vo, w.cluster.Process(), nodes.Process(), versions)
	return w
}

func (w *world) context() context.Context { return context.Background() }

// state reads the cluster for builders.
func (w *world) state() plan.Cluster {
	c, err := plan.ReadCluster(context.Background(), w.cluster)
	if err != nil {
		panic(err)
	}
	return c
}

// observe is told what a runner does.
func (w *world) observe(name string) func(clusterapi.Event) {
	return func(e clusterapi.Event) {
		w.events = append(w.events, e)
		d := e.Data.(*plan.EventData)
		if w.brief && e.Type == plan.EventWaiting && d.Step == w.waits {
			return
		}
		w.waits = ""
		if e.Type == plan.EventWaiting {
			w.waits = d.Step
		}
		w.log = append(w.log, fmt.Sprintf("%s%s %s %s", name, w.since(e.Time), e.Type, e.Message))
	}
}

func (w *world) since(t time.Time) string {
	return fmt.Sprintf("%6s", strings.TrimSuffix(t.Sub(mcptest.Epoch).Truncate(time.Minute).String(), "0s"))
}

// start adds a runner.
func (w *world) start(name string, o plan.Options) *plan.Runner {
	if o.Actions == nil {
		o.Actions = actions
	}
	o.Observe = w.observe("")
	r, err := plan.New(o)
	if err != nil {
		panic(err)
	}
	p := r.Process()
	p.Name = name
	w.Add(p)
	return r
}

// ends runs until the runner's plan is in one of some states.
func (w *world) ends(r *plan.Runner, limit time.Duration, states ...plan.State) error {
	var wrong error
	err := w.RunWhile(limit, func() bool {
		if w.look != nil && wrong == nil {
			wrong = w.look()
		}
		return wrong == nil && !slices.Contains(states, r.Progress().State)
	})
	err = errors.Join(err, wrong)
	if err != nil {
		return fmt.Errorf("%w\nthe plan is %s\n%s", err, r.Progress().State, strings.Join(w.last(12), "\n"))
	}
	return nil
}

func (w *world) last(n int) []string { return w.log[max(len(w.log)-n, 0):] }

// fields are what plans may change in a cluster, by object, without what is the
// cluster's own.
func fields(c clusterapi.ClusterAPI) map[string]string {
	out := map[string]string{}
	ctx := context.Background()
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, c, clusterapi.ListOptions{})
	nodes, err2 := clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{})
	cv, err3 := clusterapi.Get[configv1.ClusterVersion](ctx, c, clusterapi.Key("", "version"))
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	for _, p := range pools {
		out["pool "+p.Name] = fmt.Sprintf("paused %v, maxUnavailable %s, %s", p.Spec.Paused, p.Spec.MaxUnavailable, marks(p.Annotations))
	}
	for _, n := range nodes {
		labels, _ := json.Marshal(n.Labels)
		out["node "+n.Name] = fmt.Sprintf("unschedulable %v, %s, %s", n.Spec.Unschedulable, labels, marks(n.Annotations))
	}
	out["channel"] = cv.Spec.Channel + marks(cv.Annotations)
	return out
}

func marks(annotations map[string]string) string {
	return annotations["clusterupdate.github.io/plan"] + annotations["clusterupdate.github.io/before"]
}

// atRest says what is not updated to a release, "" where all is.
func atRest(c clusterapi.ClusterAPI, version string) error {
	ctx := context.Background()
	var wrong []string
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, c, clusterapi.ListOptions{})
	nodes, err2 := clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, p := range pools {
		config, err := clusterapi.Get[mcfgv1.MachineConfig](ctx, c, clusterapi.Key("", p.Spec.Configuration.Name))
		if err != nil {
			return err
		}
		if config.Annotations[mcp.AnnotationReleaseImageVersion] != version || p.Spec.Paused ||
			mcptest.ConditionOf(p.Status, mcfgv1.MachineConfigPoolUpdated).Status != corev1.ConditionTrue {
			wrong = append(wrong, fmt.Sprintf("pool %s, paused %v, of release %s: %s", p.Name, p.Spec.Paused, config.Annotations[mcp.AnnotationReleaseImageVersion], mcptest.Brief(p.Status)))
		}
	}
	kubelet := machineConfigKubelet(version)
	for _, n := range nodes {
		if s := mcp.NodeStateOf(&n); !s.Done() || s.Unschedulable || n.Status.NodeInfo.KubeletVersion != kubelet {
			wrong = append(wrong, fmt.Sprintf("node %s, kubelet %s: %+v", n.Name, n.Status.NodeInfo.KubeletVersion, s))
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

func machineConfigKubelet(version string) string {
	minor := must(openshift.ParseMinor(version[:strings.LastIndexByte(version, '.')]))
	kubernetes, known := minor.Kubernetes()
	if !known {
		kubernetes = 36 + minor.Minor // as OpenShift 5 may continue
	}
	return fmt.Sprintf("v1.%d.0", kubernetes)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func diffFields(a, b map[string]string) string { return gocmp.Diff(a, b) }
