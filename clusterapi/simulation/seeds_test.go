package simulation_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// rough is a bit of every fault, for the simulated cluster's own process.
func rough(seed uint64, only map[string]bool) reconcile.VirtualOptions {
	o := reconcile.VirtualOptions{Seed: seed, Faults: reconcile.Faults{Processes: []string{"cluster"}, Only: only,
		Before: 0.05, After: 0.05, Conflict: 0.05, Slow: 0.02, Crash: 0.002, Outage: 0.2, ClockBack: 0.1}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	if seed%4 < 2 {
		o.Latency.Watch = time.Second
		o.Faults.Stale, o.Faults.Late, o.Faults.Double, o.Faults.Merge = 0.1, 0.2, 0.1, 0.1
	}
	return o
}

// exactly says whether events come at once in the runs of a seed, so that no
// behaviour acts on what is no longer true.
func exactly(seed uint64) bool { return seed%4 >= 2 }

// playUpdate plays the update of an operator, a pool of nodes and a workload,
// and returns the faults that took place and a hash of all that happened.
func playUpdate(seed uint64, o reconcile.VirtualOptions) (faults []string, hash string, err error) {
	one := intstr.FromInt32(1)
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c := checktest.Must(simulation.New(simulation.Options{Clock: clock, Release: release("4.20.3", "machine-config", "dns"),
		Memory: memory.Options{CheckShared: true},
		Workloads: []simulation.Workload{
			{Name: "web", Replicas: 4, MaxUnavailable: &one},
			{Name: "agent", DaemonSet: true},
		}}))
	to := release("4.21.1", "machine-config", "dns")
	c.Expect(to)
	all, sum := c.Follow(), sha256.New()
	defer all.Close()
	o.Cluster, o.Clock = c, clock
	v := reconcile.NewVirtual(o, c.Process(), drainerProcess())
	defer v.Close()
	defer func() { faults = v.Faults() }()
	pass := func(d time.Duration) { fail(v.RunUntil(clock.Now().Add(d))) }
	ctx := context.Background()
	pass(10 * time.Minute)
	for _, op := range to.Operators {
		checktest.Must(c.Apply(ctx, op.Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}))
	}
	pass(20 * time.Minute)
	pool := checktest.Must(clusterapi.Get[mcfgv1.MachineConfigPool](ctx, c, clusterapi.Key("", "worker")))
	config := pool.Spec.Configuration.Name
	for i := range 3 {
		node := clusterapi.Key("", fmt.Sprintf("worker-%d", i))
		checktest.Must(clusterapi.Modify(ctx, c, node, clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			n.Annotations[mcp.AnnotationDesiredConfig] = config
			return nil
		}))
		for range 60 {
			pass(time.Minute)
			if n := healthyPods(ctx, c, "web"); n < 3 && exactly(seed) {
				return nil, "", fmt.Errorf("%s: %d healthy pods of 4, of which 1 may be missing", clock.Now(), n)
			}
		}
	}
	pass(time.Hour)
	for change, ok := all.Next(); ok; change, ok = all.Next() {
		line := checktest.Must(json.Marshal(change.Object().Unstructured()))
		fmt.Fprintln(sum, change.New != nil, string(line))
	}
	fail(c.CheckShared())
	return nil, hex.EncodeToString(sum.Sum(nil)), atRest(ctx, c, config)
}

// fail panics with an error, which ends the run of a seed.
func fail(err error) {
	if err != nil {
		panic(err)
	}
}

// atRest says what is not as it should be after the update.
func atRest(ctx context.Context, c *simulation.Cluster, config string) error {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	operators := checktest.Must(clusterapi.List[configv1.ClusterOperator](ctx, c, clusterapi.ListOptions{}))
	for _, co := range operators {
		// Of the machine-config operator's pools nobody here writes the status.
		if got := conditions(&co) + " " + version(&co); co.Name == "dns" && got != "ATrue PFalse DFalse 4.21.1" {
			complain("operator %s: %s", co.Name, got)
		}
	}
	nodes := checktest.Must(clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}))
	for _, n := range nodes {
		if a := n.Annotations; strings.HasPrefix(n.Name, "worker") && (a[mcp.AnnotationCurrentConfig] != config || a[mcp.AnnotationState] != mcp.StateDone ||
			n.Spec.Unschedulable || n.Status.NodeInfo.KubeletVersion != "v1.34.0" || a[annotationDisk] != "" || a[annotationBoot] != "") {
			complain("node %s: %v, kubelet %s, cordoned %t", n.Name, a, n.Status.NodeInfo.KubeletVersion, n.Spec.Unschedulable)
		}
	}
	pods := checktest.Must(clusterapi.List[corev1.Pod](ctx, c, clusterapi.ListOptions{Namespace: "default"}))
	for _, app := range []struct {
		name string
		want int
	}{{"web", 4}, {"agent", 3}} {
		if n := healthyPods(ctx, c, app.name); n != app.want {
			complain("%d healthy pods of %s, want %d", n, app.name, app.want)
		}
	}
	if len(pods) != 7 {
		complain("%d pods, want 7", len(pods))
	}
	b := checktest.Must(clusterapi.Get[policyv1.PodDisruptionBudget](ctx, c, clusterapi.Key("default", "web")))
	if s := &b.Status; s.CurrentHealthy != 4 || s.DesiredHealthy != 3 || s.DisruptionsAllowed != 1 || len(s.DisruptedPods) != 0 {
		complain("budget %+v", s)
	}
	d := checktest.Must(clusterapi.Get[appsv1.Deployment](ctx, c, clusterapi.Key("default", "web")))
	if s := &d.Status; s.AvailableReplicas != 4 || s.Replicas != 4 || s.ObservedGeneration != d.Generation {
		complain("deployment %+v", s)
	}
	ds := checktest.Must(clusterapi.Get[appsv1.DaemonSet](ctx, c, clusterapi.Key("default", "agent")))
	if s := &ds.Status; s.NumberReady != 3 || s.UpdatedNumberScheduled != 3 || s.DesiredNumberScheduled != 3 {
		complain("daemon set %+v", s)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// Whatever fails on the way, a simulated cluster comes to the same end.
func TestUpdateUnderFaults(t *testing.T) {
	simtest.Test(t, 0.1, func(seed uint64, only map[string]bool) ([]string, error) {
		faults, _, err := playUpdate(seed, rough(seed, only))
		return faults, err
	})
}

// The same seed is the same run, byte for byte, on any number of processors.
func TestSameSeedSameCluster(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, seed := range []uint64{1, 2, 3, 4} {
		var first string
		for _, processors := range []int{1, 2} {
			runtime.GOMAXPROCS(processors)
			_, hash, err := playUpdate(seed, rough(seed, nil))
			checktest.OK(t, err)
			if first == "" {
				first = hash
			} else if hash != first {
				t.Errorf("seed %d: another run on %d processors", seed, processors)
			}
		}
	}
}
