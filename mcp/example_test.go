package mcp_test

import (
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// exampleNode is a worker in a zone, of an age in days.
func exampleNode(name, zone string, days int, current, desired, state string) corev1.Node {
	n := corev1.Node{}
	n.Name = name
	n.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 31-days, 0, 0, 0, 0, time.UTC))
	n.Labels = map[string]string{"node-role.kubernetes.io/worker": "", mcp.LabelZone: zone}
	n.Annotations = map[string]string{
		mcp.AnnotationCurrentConfig: current,
		mcp.AnnotationDesiredConfig: desired,
		mcp.AnnotationState:         state,
	}
	return n
}

func exampleCluster() mcp.Objects {
	worker := mcfgv1.MachineConfigPool{}
	worker.Name = "worker"
	worker.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/worker": ""}}
	worker.Spec.Configuration.Name = "rendered-worker-new"
	const old, next = "rendered-worker-old", "rendered-worker-new"
	return mcp.Objects{
		Pools: []mcfgv1.MachineConfigPool{worker},
		Nodes: []corev1.Node{
			exampleNode("ada", "b", 30, old, old, mcp.StateDone),
			exampleNode("bob", "a", 10, old, old, mcp.StateDone),
			exampleNode("cyd", "a", 20, old, old, mcp.StateDone),
			exampleNode("dan", "b", 5, next, next, mcp.StateDone),
		},
	}
}

// Which node is next, and why not the others?
func ExampleState_Explain() {
	s := mcp.NewState(exampleCluster(), mcp.Options{})
	fmt.Println("next:", s.Candidates("worker").Nodes)
	for node, verdict := range s.Explanations("worker") {
		fmt.Printf("%s: %s: %s\n", node, verdict.Kind, verdict.Text)
	}
	// Output:
	// next: [cyd]
	// ada: NoCapacity: maxUnavailable is 1, taken by cyd
	// bob: NoCapacity: maxUnavailable is 1, taken by cyd
	// cyd: Selected: node cyd is next for MachineConfig rendered-worker-new
	// dan: UpToDate: node dan has MachineConfig rendered-worker-new
}

// Would this node drain, and what stands in its way?
func ExampleDrainPlan() {
	pod := func(name, app string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Labels = "shop", name, map[string]string{"app": app}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, Controller: new(true)}}
		p.Spec.NodeName = "ada"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	budget := func(app string, pods, healthy int32) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{}
		b.Namespace, b.Name = "shop", app
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		b.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: pods, CurrentHealthy: pods, DesiredHealthy: healthy, DisruptionsAllowed: pods - healthy}
		return b
	}
	d := mcp.DrainPlan("ada", mcp.NewDrainView(mcp.DrainObjects{
		Pods:    []*corev1.Pod{pod("db-0", "db"), pod("web-1", "web"), pod("web-2", "web")},
		Budgets: []*policyv1.PodDisruptionBudget{budget("db", 1, 1), budget("web", 3, 2)},
	}))
	for _, p := range d.Pods {
		fmt.Printf("%s: %s: %s\n", p.Pod, p.Verdict, p.Text)
	}
	for _, p := range d.Blocked() {
		fmt.Printf("%s: %s\n", p.Kind, p.Fix)
	}
	fmt.Println("waves:", d.Waves)
	// Output:
	// shop/db-0: Blocked: The disruption budget db needs 1 healthy pods and has 1 currently
	// shop/web-1: Evicts: budget web allows it
	// shop/web-2: EvictsAfter: budget web allows 1 at a time, and 1 go before it
	// NeverAllows: raise the replicas of its workload, or relax budget db: 1 pods expected, 1 must be healthy, 1 are
	// waves: [[shop/web-1] [shop/web-2]]
}

func ExamplePoolStatus() {
	in := mcp.Snapshot{Objects: exampleCluster(), Now: metav1.Now()}
	st := mcp.PoolStatus(in, "worker")
	fmt.Printf("%d of %d updated\n", st.UpdatedMachineCount, st.MachineCount)
	for _, c := range st.Conditions {
		fmt.Printf("%s=%s: %q\n", c.Type, c.Status, c.Message)
	}
	// Output:
	// 1 of 4 updated
	// Updated=False: ""
	// Updating=True: "All nodes are updating to MachineConfig rendered-worker-new"
	// NodeDegraded=False: ""
	// Degraded=False: ""
}

func ExampleMembership_Explain() {
	pool := func(name string) mcfgv1.MachineConfigPool {
		p := mcfgv1.MachineConfigPool{}
		p.Name = name
		p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}
		return p
	}
	m, issues := mcp.NewMembership([]mcfgv1.MachineConfigPool{pool("master"), pool("worker"), pool("canary")})
	fmt.Println("issues:", len(issues))
	for _, match := range m.Explain(map[string]string{"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/canary": ""}) {
		fmt.Printf("%s: matched %v, primary %v: %s\n", match.Pool, match.Matched, match.Primary, match.Why)
	}
	// Output:
	// issues: 0
	// canary: matched true, primary true: the node's labels meet node-role.kubernetes.io/canary=
	// master: matched false, primary false: the node's labels do not meet node-role.kubernetes.io/master=
	// worker: matched true, primary false: the node's labels meet node-role.kubernetes.io/worker=, but custom pool canary goes before worker
}

// How long does an update take by the formula of the documentation?
func ExampleEstimateDocumented() {
	pools := []mcp.EstimatePool{{Nodes: 3, MaxUnavailable: 1}, {Nodes: 6, MaxUnavailable: 2}}
	fmt.Println(mcp.EstimateDocumented(mcp.EstimateInput{Pools: pools}))
	// Output: 1h15m0s
}
