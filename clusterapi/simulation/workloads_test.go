package simulation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// pods returns "name@node" of the pods in namespace default, with what is
// special about them.
func pods(t *testing.T, c *cluster) []string {
	t.Helper()
	var out []string
	for _, p := range list[corev1.Pod](t, c, clusterapi.ListOptions{Namespace: "default"}) {
		name := p.Name
		if i := strings.IndexByte(name, '-'); i >= 0 { // leave the template's hash away
			if parts := strings.Split(name, "-"); len(parts) == 3 && len(parts[1]) == 8 {
				name = parts[0] + "-" + parts[2]
			}
		}
		text := name + "@" + p.Spec.NodeName
		if p.DeletionTimestamp != nil {
			text += " ending"
		}
		ready := false
		for _, cond := range p.Status.Conditions {
			ready = ready || cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue
		}
		if !ready {
			text += " unready"
		}
		out = append(out, text)
	}
	return out
}

func expectPods(t *testing.T, c *cluster, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, pods(t, c)); diff != "" {
		t.Errorf("%s: pods (-want +got):\n%s", when, diff)
	}
}

func cordon(t *testing.T, c *cluster, name string, on bool) {
	t.Helper()
	modify(t, c, "", name, func(n *corev1.Node) { n.Spec.Unschedulable = on })
}

func TestWorkloadIsReplacedElsewhere(t *testing.T) {
	one := intstr.FromInt32(1)
	c := start(t, simulation.Options{Release: release("4.20.3"),
		Workloads: []simulation.Workload{{Name: "web", Replicas: 3, MaxUnavailable: &one}}})
	c.pass(5 * time.Second)
	expectPods(t, c, "starting", "web-0@worker-0 unready", "web-1@worker-1 unready", "web-2@worker-2 unready")
	c.pass(10 * time.Second)
	expectPods(t, c, "started", "web-0@worker-0", "web-1@worker-1", "web-2@worker-2")
	name := podNamed(t, c, "worker-1")

	cordon(t, c, "worker-1", true)
	c.pass(time.Minute)
	expectPods(t, c, "cordoned", "web-0@worker-0", "web-1@worker-1", "web-2@worker-2")
	checktest.OK(t, c.Evict(t.Context(), name, clusterapi.EvictOptions{}))
	c.pass(time.Second)
	expectPods(t, c, "evicted", "web-0@worker-0", "web-1@worker-1 ending", "web-2@worker-2", "web-3@worker-0 unready")
	// The budget is used up until the replacement is Ready.
	if err := c.Evict(t.Context(), podNamed(t, c, "worker-2"), clusterapi.EvictOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a second eviction: %v, want 429", err)
	}
	c.pass(6 * time.Second)
	expectPods(t, c, "ended", "web-0@worker-0", "web-2@worker-2", "web-3@worker-0 unready")
	c.pass(5 * time.Second)
	expectPods(t, c, "replaced", "web-0@worker-0", "web-2@worker-2", "web-3@worker-0")
	if err := c.Evict(t.Context(), podNamed(t, c, "worker-2"), clusterapi.EvictOptions{}); err != nil {
		t.Errorf("with the replacement Ready: %v", err)
	}
	d := get[appsv1.Deployment](t, c, "default", "web")
	if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 3 {
		t.Errorf("deployment status %+v", d.Status)
	}
}

// podNamed is the key of the first pod of a node.
func podNamed(t *testing.T, c *cluster, node string) (key struct{ Namespace, Name string }) {
	t.Helper()
	p := list[corev1.Pod](t, c, clusterapi.ListOptions{NodeName: node})
	if len(p) == 0 {
		t.Fatalf("no pod on %s", node)
	}
	key.Namespace, key.Name = p[0].Namespace, p[0].Name
	return key
}

func TestNoNodeWillDo(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3"), Pools: []simulation.Pool{{Nodes: 1}},
		Workloads: []simulation.Workload{{Name: "web", Replicas: 1, NodeSelector: map[string]string{}}}})
	cordon(t, c, "worker-0", true)
	c.run(t)
	c.pass(time.Hour)
	expectPods(t, c, "cordoned", "web-0@ unready") // masters are tainted
	p := list[corev1.Pod](t, c, clusterapi.ListOptions{Namespace: "default"})[0]
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != corev1.PodReasonUnschedulable {
		t.Errorf("conditions %+v", p.Status.Conditions)
	}
	cordon(t, c, "worker-0", false)
	c.pass(time.Minute)
	expectPods(t, c, "uncordoned", "web-0@worker-0")
}

// Pods that are kept apart wait for a node without one of them, and pods with volumes for a node that
// reaches these.
func TestPodsChooseTheirNodes(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3"), Pools: []simulation.Pool{{Nodes: 2}},
		Workloads: []simulation.Workload{{Name: "router", Replicas: 3, Apart: true},
			{Name: "disk", Replicas: 1, VolumeZone: "zone-b"}}})
	cordon(t, c, "worker-1", true)
	c.run(t)
	c.pass(time.Minute)
	expectPods(t, c, "one node", "disk-0@ unready", "router-0@worker-0", "router-1@ unready", "router-2@ unready")
	cordon(t, c, "worker-1", false)
	c.pass(time.Minute)
	expectPods(t, c, "two nodes", "disk-0@worker-1", "router-0@worker-0", "router-1@worker-1", "router-2@ unready")
	cordon(t, c, "worker-1", true)
	router := list[corev1.Pod](t, c, clusterapi.ListOptions{Namespace: "default", NodeName: "worker-0"})[0]
	checktest.OK(t, c.Evict(t.Context(), clusterapi.Key("default", router.Name), clusterapi.EvictOptions{}))
	c.pass(time.Minute)
	expectPods(t, c, "another", "disk-0@worker-1", "router-1@worker-1", "router-2@worker-0", "router-3@ unready")
}

func TestSchedulerAvoidsNodesThatWaitForAnUpdate(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3"), Workloads: []simulation.Workload{{Name: "web", Replicas: 2}}})
	for _, name := range []string{"worker-0", "worker-1"} {
		modify(t, c, "", name, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "UpdateInProgress", Effect: corev1.TaintEffectPreferNoSchedule}}
		})
	}
	c.run(t)
	c.pass(time.Minute)
	expectPods(t, c, "both on the free node", "web-0@worker-2", "web-1@worker-2")
}

func TestPodsOfANodeThatGoesDown(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3"),
		Workloads: []simulation.Workload{{Name: "web", Replicas: 2}, {Name: "agent", DaemonSet: true}}})
	c.pass(time.Minute)
	expectPods(t, c, "at rest", "agent-worker-0@worker-0", "agent-worker-1@worker-1", "agent-worker-2@worker-2", "web-0@worker-0", "web-1@worker-1")
	setReady := func(on corev1.ConditionStatus) {
		if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "worker-1"), clusterapi.ModifyOptions{Status: true}, func(n *corev1.Node) error {
			for i := range n.Status.Conditions {
				if n.Status.Conditions[i].Type == corev1.NodeReady {
					n.Status.Conditions[i].Status = on
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	setReady(corev1.ConditionUnknown)
	c.pass(time.Minute)
	expectPods(t, c, "down", "agent-worker-0@worker-0", "agent-worker-1@worker-1 unready", "agent-worker-2@worker-2", "web-0@worker-0", "web-1@worker-1 unready")
	if ds := get[appsv1.DaemonSet](t, c, "default", "agent"); ds.Status.NumberReady != 2 || ds.Status.DesiredNumberScheduled != 3 {
		t.Errorf("daemon set status %+v", ds.Status)
	}
	setReady(corev1.ConditionTrue)
	c.pass(time.Minute)
	expectPods(t, c, "back", "agent-worker-0@worker-0", "agent-worker-1@worker-1", "agent-worker-2@worker-2", "web-0@worker-0", "web-1@worker-1")

	checktest.OK(t, c.Delete(t.Context(), corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.Key("", "worker-1"), clusterapi.DeleteOptions{}))
	c.pass(time.Minute)
	expectPods(t, c, "gone", "agent-worker-0@worker-0", "agent-worker-2@worker-2", "web-0@worker-0", "web-2@worker-2")
}

func TestPodFaults(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3"), Workloads: []simulation.Workload{
		{Name: "db", Replicas: 1, Fault: &simulation.Fault{Kind: simulation.FaultPodStays, For: 20 * time.Minute}},
		{Name: "web", Replicas: 1},
	}})
	c.pass(time.Minute)
	expectPods(t, c, "at rest", "db-0@worker-0", "web-0@worker-1")
	for _, node := range []string{"worker-0", "worker-1"} {
		checktest.OK(t, c.Evict(t.Context(), podNamed(t, c, node), clusterapi.EvictOptions{}))
	}
	c.pass(10 * time.Minute)
	expectPods(t, c, "one refuses to end", "db-0@worker-0 ending", "db-1@worker-2", "web-1@worker-0")
	c.pass(15 * time.Minute)
	expectPods(t, c, "it has ended", "db-1@worker-2", "web-1@worker-0")

	web := podNamed(t, c, "worker-0")
	c.SetPodFault(web.Namespace, web.Name, &simulation.Fault{Kind: simulation.FaultPodUnready})
	c.pass(time.Minute)
	expectPods(t, c, "crash-looping", "db-1@worker-2", "web-1@worker-0 unready")
	c.SetPodFault(web.Namespace, web.Name, nil)
	c.pass(time.Minute)
	expectPods(t, c, "repaired", "db-1@worker-2", "web-1@worker-0")
}

func TestDeploymentRollsOver(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3"), Workloads: []simulation.Workload{
		{Name: "web", Replicas: 2}, {Name: "agent", DaemonSet: true}}})
	c.pass(time.Minute)
	old := pods(t, c)
	change := func(spec *corev1.PodSpec) { spec.Containers[0].Image = "registry.example/simulated/next:2" }
	modify(t, c, "default", "web", func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec) })
	modify(t, c, "default", "agent", func(d *appsv1.DaemonSet) { change(&d.Spec.Template.Spec) })
	c.pass(5 * time.Second)
	d := get[appsv1.Deployment](t, c, "default", "web")
	if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 2 || d.Status.UpdatedReplicas != 2 || d.Status.Replicas != 4 {
		t.Errorf("in between: %+v", d.Status)
	}
	c.pass(5 * time.Minute)
	names := func(all []string) (out []string) {
		for _, p := range all {
			name, _, _ := strings.Cut(p, "@")
			out = append(out, name)
		}
		return out
	}
	checktest.SameIn(t, "pods after the rollout (-before +after)", names(old), names(pods(t, c)))
	for _, p := range list[corev1.Pod](t, c, clusterapi.ListOptions{Namespace: "default"}) {
		if p.Spec.Containers[0].Image != "registry.example/simulated/next:2" {
			t.Errorf("pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	modify(t, c, "default", "web", func(d *appsv1.Deployment) { zero := int32(0); d.Spec.Replicas = &zero })
	c.pass(time.Minute)
	if got := get[appsv1.Deployment](t, c, "default", "web").Status; got.Replicas != 0 || got.AvailableReplicas != 0 {
		t.Errorf("scaled to zero: %+v", got)
	}
}

func TestWorkloadsWithoutPods(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	labels := map[string]string{"app": "x"}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "x"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""}, Containers: []corev1.Container{{Name: "x", Image: "x"}}}}
	toCompletion := template
	toCompletion.Spec.RestartPolicy = corev1.RestartPolicyNever
	two := int32(2)
	for _, obj := range []any{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: selector, Template: template}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: template}},
		&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Completions: &two, Template: toCompletion}},
	} {
		u := checktest.Get(clusterapi.ToUnstructured(obj))(t)
		apply(t, c, u)
	}
	c.pass(time.Second)
	d := get[appsv1.Deployment](t, c, "default", "x")
	if d.Status.ObservedGeneration != 1 || d.Status.UpdatedReplicas != 0 || condition(d, appsv1.DeploymentAvailable) != corev1.ConditionFalse ||
		condition(d, appsv1.DeploymentProgressing) != corev1.ConditionTrue {
		t.Errorf("deployment at first: %+v", d.Status)
	}
	if j := get[batchv1.Job](t, c, "default", "x"); j.Status.Active != 1 || j.Status.StartTime == nil || j.Status.Succeeded != 0 {
		t.Errorf("job at first: %+v", j.Status)
	}
	c.pass(time.Minute)
	d = get[appsv1.Deployment](t, c, "default", "x")
	if d.Status.UpdatedReplicas != 2 || d.Status.AvailableReplicas != 2 || condition(d, appsv1.DeploymentAvailable) != corev1.ConditionTrue {
		t.Errorf("deployment later: %+v", d.Status)
	}
	if ds := get[appsv1.DaemonSet](t, c, "default", "x"); ds.Status.DesiredNumberScheduled != 3 || ds.Status.NumberAvailable != 3 || ds.Status.ObservedGeneration != 1 {
		t.Errorf("daemon set: %+v", ds.Status)
	}
	if ss := get[appsv1.StatefulSet](t, c, "default", "x"); ss.Status.UpdatedReplicas != 2 || ss.Status.ObservedGeneration != 1 {
		t.Errorf("stateful set: %+v", ss.Status)
	}
	j := get[batchv1.Job](t, c, "default", "x")
	if j.Status.Active != 0 || j.Status.Succeeded != 2 || j.Status.CompletionTime == nil || len(j.Status.Conditions) != 1 || j.Status.Conditions[0].Type != batchv1.JobComplete {
		t.Errorf("job: %+v", j.Status)
	}
	if got := len(list[corev1.Pod](t, c, clusterapi.ListOptions{})); got != 0 {
		t.Errorf("%d pods, want none", got)
	}

	// A change keeps the old replicas available while it rolls out.
	modify(t, c, "default", "x", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "y" })
	c.pass(time.Second)
	d = get[appsv1.Deployment](t, c, "default", "x")
	if d.Status.ObservedGeneration != 2 || d.Status.UpdatedReplicas != 0 || condition(d, appsv1.DeploymentAvailable) != corev1.ConditionTrue {
		t.Errorf("deployment in its second rollout: %+v", d.Status)
	}
	c.pass(time.Minute)
	if d = get[appsv1.Deployment](t, c, "default", "x"); d.Status.UpdatedReplicas != 2 {
		t.Errorf("deployment after it: %+v", d.Status)
	}
}

func condition(d *appsv1.Deployment, t appsv1.DeploymentConditionType) corev1.ConditionStatus {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return "none"
}

func TestBudgetSelectors(t *testing.T) {
	tests := []struct {
		name     string
		selector *metav1.LabelSelector
		want     int32 // pods counted as healthy
	}{
		{"absent selects nothing", nil, 0},
		{"empty selects all of the namespace", &metav1.LabelSelector{}, 3},
		{"labels", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, 2},
		{"invalid selects nothing", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, simulation.Options{Release: release("4.20.3"), Memory: memory.Options{Lenient: true}, // a selector is invalid
				Workloads: []simulation.Workload{{Name: "web", Replicas: 2}, {Name: "db", Replicas: 1}, {Name: "other", Namespace: "elsewhere", Replicas: 1}}})
			one := intstr.FromInt32(1)
			checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), c, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: tt.selector, MaxUnavailable: &one},
			}, clusterapi.CreateOptions{})))
			c.pass(time.Minute)
			b := get[policyv1.PodDisruptionBudget](t, c, "default", "b")
			if b.Status.CurrentHealthy != tt.want || b.Status.ExpectedPods != tt.want || b.Status.ObservedGeneration != b.Generation {
				t.Errorf("status %+v, want %d healthy and expected", b.Status, tt.want)
			}
		})
	}
}
