package upgrade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

var cordonedAt = at("2031-02-04T03:00:00Z")

// drainSite has nodes that wait to be drained since cordonedAt, and others. Each
// has the same pods: web and old have a budget, job and last have none; old and
// last are ending already, and finalized has a finalizer.
func drainSite(t *testing.T, o memory.Options) *memory.Cluster {
	o.GracefulPods = true
	cluster := serving(memory.NewOpenShift(o))
	load := func(obj any) {
		t.Helper()
		u, err := clusterapi.ToUnstructured(obj)
		if err == nil {
			err = cluster.Load(u)
		}
		checktest.OK(t, err)
	}
	yes, grace := true, int64(600)
	for _, name := range []string{"stuck", "infra", "drained", "open", "timeless", "master", "control-plane"} {
		n := &corev1.Node{}
		n.Name = name
		n.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
		n.Annotations = map[string]string{mcp.AnnotationDesiredDrain: "drain-1", mcp.AnnotationLastAppliedDrain: "uncordon-0"}
		n.Spec.Unschedulable = name != "open"
		if n.Spec.Unschedulable {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: cordonedAt}}}
		}
		switch name {
		case "drained":
			n.Annotations[mcp.AnnotationLastAppliedDrain] = "drain-1"
		case "timeless":
			n.Spec.Taints[0].TimeAdded = nil
		case "master", "control-plane":
			n.Labels["node-role.kubernetes.io/"+name] = ""
		}
		load(n)
		for _, kind := range []string{"web", "old", "job", "last", "finalized", "system", "daemon", "static", "done"} {
			p := &corev1.Pod{}
			p.Namespace, p.Name, p.Spec.NodeName, p.Labels = "shop", name+"-"+kind, name, map[string]string{"app": kind}
			p.Spec.TerminationGracePeriodSeconds = &grace
			p.Status.Phase = corev1.PodRunning
			switch kind {
			case "old", "last":
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: cordonedAt}, &grace
			case "finalized":
				p.Finalizers = []string{"example.com/hold"}
			case "system":
				p.Namespace = "openshift-system"
			case "daemon":
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "u", Controller: &yes}}
			case "static":
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			case "done":
				p.Status.Phase = corev1.PodSucceeded
			}
			load(p)
		}
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"web": {MatchLabels: map[string]string{"app": "web"}}, "old": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In", Values: []string{"old"}}}},
		"nothing": nil,
	} {
		b := &policyv1.PodDisruptionBudget{}
		b.Namespace, b.Name, b.Spec.Selector = "shop", name, selector
		load(b)
	}
	other := &policyv1.PodDisruptionBudget{}
	other.Namespace, other.Name, other.Spec.Selector = "elsewhere", "all", &metav1.LabelSelector{}
	load(other)
	return cluster
}

// gone are the pods that are not there any more.
func gone(t *testing.T, cluster *memory.Cluster) (out []string) {
	t.Helper()
	pods := must(clusterapi.List[corev1.Pod](t.Context(), cluster, clusterapi.ListOptions{}))
	for _, node := range []string{"control-plane", "drained", "infra", "master", "open", "stuck", "timeless"} {
		for _, kind := range []string{"daemon", "done", "finalized", "job", "last", "old", "static", "system", "web"} {
			if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == node+"-"+kind }) {
				out = append(out, node+"-"+kind)
			}
		}
	}
	return out
}

func TestForcedDrain(t *testing.T) {
	on := func(kinds ...string) (out []string) {
		for _, node := range []string{"infra", "stuck"} {
			for _, kind := range kinds {
				out = append(out, node+"-"+kind)
			}
		}
		return out
	}
	ordinary := on("finalized", "job", "last", "system")
	for _, tt := range []struct {
		name   string
		drain  upgrade.ForcedDrain
		config string
		after  time.Duration
		waited time.Duration
		want   []string
		err    string
	}{
		{name: "at once, and no time is named", waited: time.Second},
		{name: "no time is named, before the expected one", waited: 8 * time.Minute},
		{name: "no time is named, after the expected one", waited: 8*time.Minute + time.Second, want: on("web")},
		{name: "before both", after: time.Hour, waited: 45 * time.Minute},
		{name: "pods without a budget", after: time.Hour, waited: 45*time.Minute + time.Second, want: ordinary},
		{name: "all but those that end", after: time.Hour, waited: 68*time.Minute + time.Second, want: on("finalized", "job", "last", "system", "web")},
		{name: "pods with a budget alone", drain: upgrade.ForcedDrain{TimeOut: reconcile.Never}, after: time.Hour, waited: 48 * time.Hour, want: on("web")},
		{name: "own times", drain: upgrade.ForcedDrain{TimeOut: time.Hour, ExpectedDrainTime: time.Minute}, after: time.Minute, waited: 3 * time.Minute, want: on("web")},
		{name: "ignored namespaces", drain: upgrade.ForcedDrain{IgnoredNamespaces: []string{"^openshift-", "x"}}, after: time.Hour, waited: time.Hour, want: on("finalized", "job", "last")},
		{name: "no pattern", drain: upgrade.ForcedDrain{IgnoredNamespaces: []string{"("}}, waited: time.Hour, err: "pattern of ignored namespaces: "},
		{name: "negative", drain: upgrade.ForcedDrain{TimeOut: -time.Second}, waited: time.Hour, err: "negative"},

		{name: "from the configuration", config: "nodeDrain: {timeOut: 30, expectedNodeDrainTime: 2, ignoredNamespacePatterns: [system]}", after: 10 * time.Minute, waited: 31 * time.Minute, want: on("finalized", "job", "last", "web")},
		{name: "configuration without times", config: "nodeDrain: {}", after: time.Hour, waited: 46 * time.Minute, want: ordinary},
		{name: "configuration without the key, at once", config: "upgradeType: OSD", waited: time.Minute},
		{name: "switched off", config: "nodeDrain: {timeOut: 1, disableDrainStrategies: true}", waited: 48 * time.Hour},
		{name: "negative in the configuration", config: "nodeDrain: {timeOut: -1}", waited: time.Hour, err: "config node drain time is invalid"},
		{name: "damaged configuration", config: "nodeDrain: {timeOut: soon}", waited: time.Hour, err: "incorrect yaml formatting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster := drainSite(t, memory.Options{})
			if tt.config != "" {
				u, err := clusterapi.ToUnstructured(configMap(upgradeconfig.DefaultNamespace, tt.config))
				if err == nil {
					err = cluster.Load(u)
				}
				checktest.OK(t, err)
				tt.drain.FromConfig = true
			}
			tt.drain.API, tt.drain.Clock = cluster, clocktesting.NewFakePassiveClock(cordonedAt.Add(tt.waited))
			err := tt.drain.ForceDrain(t.Context(), nil, tt.after)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v", err)
			}
			checktest.Same(t, tt.want, gone(t, cluster))
		})
	}
}

// TestForcedDrainGoesOn: a pod that cannot be removed keeps no other one, and is
// named.
func TestForcedDrainGoesOn(t *testing.T) {
	cluster := drainSite(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if call.Verb == "Delete" && call.Key.Name == "infra-job" {
			return errInjected
		}
		return do(ctx)
	}})
	d := &upgrade.ForcedDrain{API: cluster, Clock: clocktesting.NewFakePassiveClock(cordonedAt.Add(2 * time.Hour))}
	err := d.ForceDrain(t.Context(), nil, time.Hour)
	if !errors.Is(err, errInjected) || !strings.Contains(err.Error(), "node infra: pod shop/infra-job: ") {
		t.Errorf("error %v", err)
	}
	want := []string{"infra-finalized", "infra-last", "infra-system", "infra-web", "stuck-finalized", "stuck-job", "stuck-last", "stuck-system", "stuck-web"}
	checktest.Same(t, want, gone(t, cluster))
}
