package plan_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// exampleCluster is a cluster at rest, as ReadCluster returns it.
func exampleCluster(workers int, change ...func(*corev1.Node)) plan.Cluster {
	c := plan.Cluster{Version: &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.3"}}}}}
	for _, name := range []string{"master", "worker"} {
		p := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}
		p.Spec.Configuration.Name, p.Status.Configuration.Name = "rendered-"+name+"-1", "rendered-"+name+"-1"
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
		c.Pools = append(c.Pools, p)
	}
	for i := range workers {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("worker-", i), Labels: map[string]string{"node-role.kubernetes.io/worker": ""}, Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": "rendered-worker-1", "machineconfiguration.openshift.io/desiredConfig": "rendered-worker-1", "machineconfiguration.openshift.io/state": "Done"}}}
		n.Status.NodeInfo.KubeletVersion = "v1.33.2"
		for _, f := range change {
			f(&n)
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// A canary rollout of a new MachineConfig, planned and run on a simulated cluster in
// virtual time. With a real cluster, Run takes the place of the driver.
func Example() {
	ctx, clock := context.Background(), reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster, err := simulation.New(simulation.Options{Clock: clock, Release: simulation.Release{Version: "4.20.3"}, Pools: []simulation.Pool{{Name: "worker", Nodes: 3}}})
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := rollout.New(rollout.Options{Mode: rollout.Drive})
	if err != nil {
		log.Fatal(err)
	}
	run := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, cluster.Process(), nodes.Process())
	defer run.Close()
	if err := run.RunUntil(clock.Now().Add(time.Minute)); err != nil {
		log.Fatal(err)
	}

	now, err := plan.ReadCluster(ctx, cluster)
	if err != nil {
		log.Fatal(err)
	}
	p, warnings, err := plan.PlanCanary(now, plan.CanaryOptions{ID: "audit", Sizes: []int{1}, SparePercent: 34, Gate: "approval"})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	if err := plan.WriteText(os.Stdout, p); err != nil {
		log.Fatal(err)
	}
	runner, err := plan.New(plan.Options{Plan: p, Observe: func(e clusterapi.Event) {
		if e.Type == plan.EventStepDone {
			fmt.Println(e.Message)
		}
		about := e.Data.(*plan.EventData)
		if about.Step == "pause" && e.Type == plan.EventStepDone { // what is to be tried on the canary
			audit := &mcfgv1.MachineConfig{}
			audit.Name, audit.Labels = "50-worker-audit", map[string]string{"machineconfiguration.openshift.io/role": "worker"}
			audit.Spec.KernelArguments = []string{"audit=1"}
			if _, err := clusterapi.Create(ctx, cluster, audit, clusterapi.CreateOptions{}); err != nil {
				log.Fatal(err)
			}
		}
		if e.Type == plan.EventWaiting && about.Kind == plan.Gate { // somebody has looked at the node
			if err := plan.Confirm(ctx, cluster, "", p.ID, about.Step); err != nil {
				log.Fatal(err)
			}
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	run.Add(runner.Process())
	if err := run.RunUntil(clock.Now().Add(2 * time.Hour)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(runner.Progress().State)
	// Output:
	// Plan audit (Canary), 12 steps
	//   1  check                     check the cluster
	//                                  checks: PoolsUpdated worker
	//                                  checks: PoolsUnpaused worker
	//   2  create-workerpool-canary  create pool workerpool-canary with the MachineConfigs of worker, workerpool-canary, maxUnavailable 1
	//   3  label-workerpool-canary   move node worker-0 to pool workerpool-canary: +node-role.kubernetes.io/workerpool-canary=
	//   4  same-content              check the cluster
	//                                  checks: PoolsHealthy worker, workerpool-canary
	//                                  checks: PoolsSameContent worker, workerpool-canary
	//                                  at most 5m0s, then the plan stops
	//   5  pause                     pause pool worker
	//   6  wait-workerpool-canary    wait until all nodes are updated in pool workerpool-canary
	//   7  gate-workerpool-canary    hold at gate approval, about pool workerpool-canary
	//   8  unpause-worker            unpause pool worker, as far as this plan paused them
	//   9  wait-worker               wait until all nodes are updated in pool worker
	//  10  gate-worker               hold at gate approval, about pool worker
	//  11  return-workerpool-canary  move node worker-0 to pool worker: -node-role.kubernetes.io/workerpool-canary
	//  12  delete-workerpool-canary  delete pool workerpool-canary
	// Nodes:
	//   worker-0
	//     moved to pool workerpool-canary in step 3
	//     drained and rebooted by the end of step 6
	//     moved to pool worker in step 11
	//   nodes of pool worker
	//     drained and rebooted by the end of step 9
	// step check is done
	// step create-workerpool-canary is done
	// step label-workerpool-canary is done
	// step same-content is done
	// step pause is done
	// step wait-workerpool-canary is done
	// step gate-workerpool-canary is done
	// step unpause-worker is done
	// step wait-worker is done
	// step gate-worker is done
	// step return-workerpool-canary is done
	// step delete-workerpool-canary is done
	// Finished
}

func ExamplePlanCanary() {
	// The documented example: 100 workers, 10 % spare capacity, windows of four
	// hours, eight minutes a node.
	p, warnings, err := plan.PlanCanary(exampleCluster(100), plan.CanaryOptions{
		ID: "canary", Version: "4.21.1", SparePercent: 10, Window: 4 * time.Hour, NodeTime: 8 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Kind == plan.LabelNodes && s.Args.Pool != "worker" {
			fmt.Println(s.Args.Pool, len(s.Args.Nodes))
		}
	}
	fmt.Println(len(warnings), "warnings")
	// Output:
	// workerpool-canary 10
	// workerpool-a 30
	// workerpool-b 30
	// workerpool-c 30
	// 0 warnings
}

func ExamplePlanWindows() {
	night := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
	p, warnings, err := plan.PlanWindows(exampleCluster(30), plan.WindowsOptions{
		ID: "nights", Version: "4.21.1", NodeTime: 15 * time.Minute,
		Windows: []plan.Window{{Start: night, Duration: 4 * time.Hour}, {Start: night.Add(24 * time.Hour), Duration: 4 * time.Hour}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Steps), "steps", warnings)
	_, _, err = plan.PlanWindows(exampleCluster(20), plan.WindowsOptions{ID: "nights", Pools: []string{"master"}, NodeTime: time.Hour, Windows: []plan.Window{{Start: night, Duration: time.Minute}}})
	fmt.Println(err)
	// Output:
	// 14 steps [pool worker: 30 nodes, 1 at a time, take 30 times 15m0s; the windows have room for 28]
	// pool master: an update of the cluster waits for it, so it cannot be paused
	// window 1 of 1m0s is shorter than the 1h0m0s that a node takes
}

func ExamplePlanControlPlaneOnly() {
	p, _, err := plan.PlanControlPlaneOnly(exampleCluster(3), plan.ControlPlaneOnlyOptions{ID: "eus", Versions: []string{"4.21.9", "4.22.4"}, Operators: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range p.Steps {
		fmt.Println(s.ID)
	}
	// Output:
	// check
	// operators-1
	// wait-all
	// channel
	// pause
	// update-cluster-1
	// wait-control-plane-1
	// operators-2
	// update-cluster-2
	// wait-control-plane-2
	// operators-3
	// unpause-worker
	// wait-worker
	// verify
}

// A node is taken out of service, something is done to it, and it is put back. The action
// "flash" is the caller's: see Options.Actions.
func ExamplePlanNodes() {
	node := plan.Args{Node: "worker-0"}
	p, warnings, err := plan.PlanNodes(exampleCluster(2), plan.Plan{ID: "firmware", Steps: []plan.Step{
		{ID: "cordon", Kind: plan.Cordon, Args: node},
		{ID: "drain", Kind: plan.Drain, Args: node},
		{ID: "flash", Kind: plan.Hook, Args: plan.Args{Node: "worker-0", Action: "flash"}},
		{ID: "uncordon", Kind: plan.Uncordon, Args: node},
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(warnings), "warnings")
	if err := plan.WriteText(os.Stdout, p); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 warnings
	// Plan firmware (Custom), 4 steps
	//   1  cordon    cordon node worker-0
	//   2  drain     drain node worker-0
	//   3  flash     call flash for node worker-0
	//   4  uncordon  uncordon node worker-0, if this plan cordoned it
	// Nodes:
	//   node worker-0
	//     cordoned in step 1
	//     drained in step 2
	//     flash in step 3
	//     uncordoned in step 4
}
