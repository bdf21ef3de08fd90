package mcp_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// genDrainPods draws pods of few apps on few nodes, all with a ReplicaSet or a
// DaemonSet, so that budgets select several.
func genDrainPods(t *rapid.T) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
		app := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "app")
		p := drainedPod(fmt.Sprint("p", i), rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "node"), app)
		p.Namespace = rapid.SampledFrom([]string{"ns", "ns", "ns", "other"}).Draw(t, "namespace")
		p.UID = types.UID(p.Name)
		if rapid.IntRange(0, 3).Draw(t, "unready") == 0 {
			unready(p)
		}
		switch rapid.IntRange(0, 12).Draw(t, "oddity") {
		case 0:
			ownedBy("DaemonSet", "d")(p)
		case 1:
			mirror(p)
		case 2:
			phase(corev1.PodSucceeded)(p)
		case 3:
			phase(corev1.PodPending)(p)
			unready(p)
		case 4:
			p.Labels = nil
		}
		pods = append(pods, p)
	}
	return pods
}

func genDrainBudgets(t *rapid.T) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for i := range rapid.IntRange(0, 4).Draw(t, "budgets") {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("b", i), Generation: 1}}
		app := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "of")
		switch rapid.IntRange(0, 9).Draw(t, "selector") {
		case 0: // none
		case 1:
			b.Spec.Selector = &metav1.LabelSelector{}
		case 2:
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Odd"}}}
		case 3:
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{app, "y"}}}}
		case 4:
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{app}}}}
		default:
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		}
		value := intstr.Parse(rapid.SampledFrom([]string{"0", "1", "1", "2", "3", "50%", "100%", "0%", "200%", "x", "-1", "2147483647", "-5%", ""}).Draw(t, "value"))
		switch rapid.IntRange(0, 4).Draw(t, "number") {
		case 0: // neither
		case 1, 2:
			b.Spec.MaxUnavailable = &value
		default:
			b.Spec.MinAvailable = &value
		}
		if rapid.IntRange(0, 4).Draw(t, "policy") == 0 {
			alwaysAllow(b)
		}
		budgets = append(budgets, b)
	}
	return budgets
}

// keepBudget does what the disruption controller does: every controller wants as
// many pods as it has.
func keepBudget(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) {
	var matched []*corev1.Pod
	wanted := int32(0)
	for _, p := range pods {
		if p.Namespace == b.Namespace && disruption.Selector(b).Matches(labels.Set(p.Labels)) {
			matched = append(matched, p)
			wanted++
		}
	}
	b.Status, _ = disruption.Status(b, matched, wanted, mcptest.Epoch)
}

var theDaemonSets = []types.NamespacedName{{Namespace: "ns", Name: "d"}}

// A drain that is predicted to succeed does, while controllers replace what it
// evicts; a pod whose budget never allows a disruption is never evicted.
func TestP13DrainPrediction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, budgets := genDrainPods(t), genDrainBudgets(t)
		for _, b := range budgets {
			if keepBudget(b, pods); rapid.IntRange(0, 9).Draw(t, "kept") == 0 {
				b.Generation = 2
			}
		}
		d := mcp.DrainPlan("a", drainView(mcp.DrainObjects{Pods: pods, Budgets: budgets, DaemonSets: theDaemonSets}))
		left := drainInMemory(t, "a", pods, budgets)
		for _, p := range d.Pods {
			remains := left[p.Pod]
			switch {
			case d.Succeeds() && remains != (p.Verdict == mcp.DrainStays):
				t.Errorf("%s: remains %t, predicted %+v", p.Pod, remains, p)
			case p.Verdict == mcp.DrainStays && !remains, p.Kind == mcp.DrainNeverAllows && !remains, p.Kind == mcp.DrainTwoBudgets && !remains:
				t.Errorf("%s is gone, predicted %+v", p.Pod, p)
			case (p.Verdict == mcp.DrainEvicts || p.Verdict == mcp.DrainEvictsAfter) && remains:
				t.Errorf("%s remains, predicted %+v", p.Pod, p)
			}
		}
	})
}

// drainInMemory evicts the pods of a node again and again, by the rules of the API
// server, until none goes any more. What it evicts is replaced on another node, and
// budgets are kept, between the rounds. It returns the pods of the node that are left.
func drainInMemory(t *rapid.T, node string, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget) map[types.NamespacedName]bool {
	c := memory.New(memory.Options{Clock: clocktesting.NewFakePassiveClock(mcptest.Epoch)})
	put := func(o any) {
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = c.Load(u)
		}
		checktest.OK(t, err)
	}
	remaining := map[types.NamespacedName]bool{}
	var leave, all []*corev1.Pod
	for _, p := range pods {
		put(p)
		all = append(all, p)
		if p.Spec.NodeName != node {
			continue
		}
		stays, _ := disruption.Stays(p, func(key types.NamespacedName) (bool, error) { return slices.Contains(theDaemonSets, key), nil })
		if remaining[clusterapi.Key(p.Namespace, p.Name)] = true; !stays {
			leave = append(leave, p)
		}
	}
	for _, b := range budgets {
		put(b)
	}
	for round := 0; ; round++ {
		before := len(leave)
		for _, p := range rapid.Permutation(leave).Draw(t, "order") {
			key := clusterapi.Key(p.Namespace, p.Name)
			now := int64(0)
			if err := c.Evict(t.Context(), key, clusterapi.EvictOptions{GracePeriodSeconds: &now}); err != nil {
				continue
			}
			delete(remaining, key)
			leave = slices.DeleteFunc(slices.Clone(leave), func(other *corev1.Pod) bool { return other == p })
			again := p.DeepCopy()
			again.Name, again.UID, again.Spec.NodeName = fmt.Sprintf("%s-again%d", p.Name, round), "", "elsewhere"
			again.Status.Phase, again.Status.Conditions[0].Status = corev1.PodRunning, corev1.ConditionTrue
			put(again)
			all = append(slices.DeleteFunc(slices.Clone(all), func(other *corev1.Pod) bool { return other == p }), again)
		}
		if len(leave) == before {
			return remaining
		}
		for _, b := range budgets {
			if b.Status.ObservedGeneration < b.Generation {
				continue // nobody keeps this one
			}
			if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key(b.Namespace, b.Name), clusterapi.ModifyOptions{Status: true}, func(b *policyv1.PodDisruptionBudget) error {
				keepBudget(b, all)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Whatever budgets and statuses say: each pod of the node gets one verdict, that of
// the API server; waves are of the pods that go, in the order in which they may;
// the order of the input does not matter, and it is not changed.
func TestDrainPlanAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := mcp.DrainObjects{Pods: genDrainPods(t), Budgets: genDrainBudgets(t), DaemonSets: theDaemonSets, Now: mcptest.Epoch, Scales: map[types.UID]mcp.WorkloadScale{}}
		number := rapid.SampledFrom([]int32{0, 0, 1, 1, 2, 3, -1, math.MaxInt32, math.MinInt32})
		for _, b := range o.Budgets {
			if keepBudget(b, o.Pods); rapid.Bool().Draw(t, "odd status") {
				b.Status.DisruptionsAllowed, b.Status.CurrentHealthy = number.Draw(t, "allowed"), number.Draw(t, "healthy")
				b.Status.DesiredHealthy, b.Status.ExpectedPods = number.Draw(t, "desired"), number.Draw(t, "expected")
			}
			if rapid.IntRange(0, 9).Draw(t, "crowd") == 0 {
				crowd(rapid.SampledFrom([]int{1999, 2000, 2001}).Draw(t, "unconfirmed"))(b)
			}
			b.Generation = rapid.SampledFrom([]int64{1, 1, 1, 2, -1, math.MaxInt64}).Draw(t, "generation")
		}
		for _, p := range o.Pods {
			if rapid.IntRange(0, 9).Draw(t, "ending") == 0 {
				endsAt(time.Duration(rapid.IntRange(-200, 200).Draw(t, "seconds")) * time.Second)(p)
			}
			if rapid.IntRange(0, 5).Draw(t, "bare") == 0 {
				bare(p)
			}
		}
		if rapid.Bool().Draw(t, "scales") {
			for _, app := range []string{"x", "y", "z"} {
				o.Scales[types.UID("ReplicaSet-"+app)] = mcp.WorkloadScale{Replicas: number.Draw(t, "replicas"), Workload: types.UID(rapid.SampledFrom([]string{"", "w"}).Draw(t, "workload"))}
			}
		}
		if rapid.Bool().Draw(t, "nodes") {
			for _, name := range []string{"a", "b", "c"} {
				n := mcptest.Worker(name)
				n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
				o.Nodes = append(o.Nodes, &n)
			}
		}
		before := drainObjectsCopy(o)
		together := []string{"a", "b"}
		drains := mcp.DrainPlans(together, mcp.NewDrainView(o))
		if diff := gocmp.Diff(before, o); diff != "" {
			t.Fatalf("the input was changed: %s", diff)
		}
		if len(o.Pods) > 0 {
			o.Pods = rapid.Permutation(o.Pods).Draw(t, "pods")
		}
		if len(o.Budgets) > 0 {
			o.Budgets = rapid.Permutation(o.Budgets).Draw(t, "budgets")
		}
		if len(o.Nodes) > 0 {
			o.Nodes = rapid.Permutation(o.Nodes).Draw(t, "nodes")
		}
		v := mcp.NewDrainView(o)
		if diff := gocmp.Diff(drains, mcp.DrainPlans(together, v)); diff != "" {
			t.Fatalf("the order of the input matters: %s", diff)
		}
		turned := mcp.DrainPlans([]string{"b", "a"}, v)
		slices.Reverse(turned)
		if diff := gocmp.Diff(drains, turned); diff != "" {
			t.Fatalf("the order of the nodes matters: %s", diff)
		}
		for _, d := range drains {
			checkDrain(t, d, o)
		}
	})
}

func drainObjectsCopy(o mcp.DrainObjects) mcp.DrainObjects {
	o.Pods, o.Budgets, o.Nodes = slices.Clone(o.Pods), slices.Clone(o.Budgets), slices.Clone(o.Nodes)
	for i := range o.Pods {
		o.Pods[i] = o.Pods[i].DeepCopy()
	}
	for i := range o.Budgets {
		o.Budgets[i] = o.Budgets[i].DeepCopy()
	}
	for i := range o.Nodes {
		o.Nodes[i] = o.Nodes[i].DeepCopy()
	}
	return o
}

func checkDrain(t *rapid.T, d mcp.Drain, o mcp.DrainObjects) {
	wave := map[types.NamespacedName]int{}
	for i, pods := range d.Waves {
		for _, p := range pods {
			if _, ok := wave[p]; ok {
				t.Errorf("%s goes twice", p)
			}
			wave[p] = i
		}
	}
	var keys []types.NamespacedName
	for _, p := range o.Pods {
		if p.Spec.NodeName == d.Node {
			keys = append(keys, clusterapi.Key(p.Namespace, p.Name))
		}
	}
	if len(keys) != len(d.Pods) {
		t.Fatalf("%d pods, want %d", len(d.Pods), len(keys))
	}
	for _, p := range d.Pods {
		i := slices.IndexFunc(o.Pods, func(o *corev1.Pod) bool { return o.Namespace == p.Pod.Namespace && o.Name == p.Pod.Name })
		pod := o.Pods[i]
		stays, _ := disruption.Stays(pod, func(key types.NamespacedName) (bool, error) { return slices.Contains(theDaemonSets, key), nil })
		var budgets []*policyv1.PodDisruptionBudget
		for _, b := range o.Budgets {
			if b.Namespace == pod.Namespace {
				budgets = append(budgets, b)
			}
		}
		_, err := disruption.Decide(pod, budgets)
		at, goes := wave[p.Pod]
		switch {
		case stays != (p.Verdict == mcp.DrainStays):
			t.Errorf("%+v, stays %t", p, stays)
		case !stays && p.Kind != mcp.DrainTerminating && (err != nil) != (p.Verdict == mcp.DrainBlocked):
			t.Errorf("%+v, the server says %v", p, err)
		case goes != (p.Verdict == mcp.DrainEvicts || p.Verdict == mcp.DrainEvictsAfter):
			t.Errorf("%+v, in a wave: %t", p, goes)
		case (at > 0) != (p.Verdict == mcp.DrainEvictsAfter), p.Before < at, at == 0 && p.Before != 0:
			t.Errorf("%+v in wave %d", p, at)
		}
	}
}
