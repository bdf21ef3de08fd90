package upgrade_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// TestForcedDrain: only nodes that have waited long enough for one and the same
// drain lose their pods, and not those that a drain leaves alone.
func TestForcedDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := serving(memory.NewOpenShift(memory.Options{}))
		load := func(obj any) {
			u, err := clusterapi.ToUnstructured(obj)
			if err == nil {
				err = cluster.Load(u)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		yes := true
		for _, name := range []string{"stuck", "drained", "open"} {
			n := &corev1.Node{}
			n.Name = name
			n.Annotations = map[string]string{mcp.AnnotationDesiredDrain: "drain-1", mcp.AnnotationLastAppliedDrain: "uncordon-0"}
			n.Spec.Unschedulable = name != "open"
			if name == "drained" {
				n.Annotations[mcp.AnnotationLastAppliedDrain] = "drain-1"
			}
			load(n)
			for _, kind := range []string{"web", "daemon", "static", "done"} {
				p := &corev1.Pod{}
				p.Namespace, p.Name, p.Spec.NodeName = "shop", name+"-"+kind, name
				switch kind {
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
		drain := &upgrade.ForcedDrain{API: cluster}
		gone := func() (out []string) {
			t.Helper()
			if err := drain.ForceDrain(t.Context(), nil, 20*time.Minute); err != nil {
				t.Fatal(err)
			}
			pods, err := clusterapi.List[corev1.Pod](t.Context(), cluster, clusterapi.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range []string{"drained", "open", "stuck"} {
				for _, kind := range []string{"daemon", "done", "static", "web"} {
					if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == node+"-"+kind }) {
						out = append(out, node+"-"+kind)
					}
				}
			}
			return out
		}
		request := func(drain string) {
			if _, err := clusterapi.Modify(t.Context(), cluster, clusterapi.Key("", "stuck"), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
				n.Annotations[mcp.AnnotationDesiredDrain] = drain
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			wait    time.Duration
			request string
			want    []string
		}{
			{0, "", nil},
			{19 * time.Minute, "", nil},
			{2 * time.Minute, "drain-2", nil}, // another drain, another wait
			{19 * time.Minute, "", nil},
			{time.Minute, "", []string{"stuck-web"}},
		} {
			time.Sleep(step.wait)
			if step.request != "" {
				request(step.request)
			}
			if diff := cmp.Diff(step.want, gone()); diff != "" {
				t.Fatalf("%+v: %s", step, diff)
			}
		}
	})
}

func TestOperatorHealth(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	for name, conditions := range map[string][]configv1.ClusterOperatorStatusCondition{
		"dns":     {{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue}, {Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}},
		"console": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse}},
		"ingress": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionUnknown}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionUnknown}},
		"etcd":    {{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse}},
	} {
		o := &configv1.ClusterOperator{}
		o.Name, o.Status.Conditions = name, conditions
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = cluster.Load(u)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := upgrade.OperatorHealth{API: cluster}.Failing(t.Context(), nil)
	if diff := cmp.Diff([]string{"ClusterOperator console is not available", "ClusterOperator dns is degraded"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestTwoControllers: of two that look at one object, one request and one set
// of notifications come.
func TestTwoControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		m, a := w.operator(upgrade.Options{})
		_, b := w.operator(upgrade.Options{})
		if _, err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			p, _ := a.Sync(t.Context())
			if q, _ := b.Sync(t.Context()); q.Phase == upgradeconfig.PhaseUpgraded {
				break
			}
			time.Sleep(min(p.After, time.Minute))
			w.play()
		}
		if diff := cmp.Diff(startedAndCompleted, w.provider.told); diff != "" || w.entry().Phase != upgradeconfig.PhaseUpgraded || w.requested != 1 {
			t.Errorf("%s, %d requests, %s", w.entry().Phase, w.requested, diff)
		}
	})
}
