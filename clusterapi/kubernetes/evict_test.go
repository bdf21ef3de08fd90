package kubernetes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// TestEvict has a budget in the way of an eviction: alone, and in a drain that
// tries again until the budget allows it.
func TestEvict(t *testing.T) {
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	define(t, api, []schema.GroupVersionKind{
		configv1.GroupVersion.WithKind("Infrastructure"),
		mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
		mcfgv1.GroupVersion.WithKind("MachineConfig"),
		mcfgv1.GroupVersion.WithKind("ControllerConfig"),
	})
	create(t, api, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: app}}`))
	create(t, api, object(t, `
apiVersion: v1
kind: Node
metadata:
  name: w0
  labels: {node-role.kubernetes.io/worker: ""}
  annotations:
    machineconfiguration.openshift.io/currentConfig: rendered-worker-old
    machineconfiguration.openshift.io/desiredConfig: rendered-worker-new
    machineconfiguration.openshift.io/state: Working
    machineconfiguration.openshift.io/desiredDrain: drain-rendered-worker-new
    machineconfiguration.openshift.io/lastAppliedDrain: uncordon-rendered-worker-old
status:
  conditions: [{type: Ready, status: "True"}]
`))
	create(t, api, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: app, labels: {app: web}}
spec:
  nodeName: w0
  terminationGracePeriodSeconds: 0
  containers: [{name: web, image: registry.example/web}]
`))
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("app", "web"), clusterapi.ModifyOptions{Status: true},
			func(p *corev1.Pod) error {
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				return nil
			})))
	create(t, api, object(t, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: app}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`))
	t.Run("Refused", func(t *testing.T) { testRefusals(t, api) })
	t.Run("Drain", func(t *testing.T) { testDrain(t, api) })
}

// allow plays the disruption controller.
func allow(t testing.TB, api clusterapi.ClusterAPI, disruptions int32, behind bool) {
	t.Helper()
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("app", "web"), clusterapi.ModifyOptions{Status: true},
			func(b *policyv1.PodDisruptionBudget) error {
				b.Status.ObservedGeneration = b.Generation
				if behind {
					b.Status.ObservedGeneration--
				}
				b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = disruptions, 1+disruptions, 1, 2
				return nil
			})))
}

// A refusal comes back at once, also where the server names a time to wait.
func testRefusals(t *testing.T, api clusterapi.ClusterAPI) {
	for name, behind := range map[string]bool{"nothing allowed": false, "behind its generation": true} {
		allow(t, api, 0, behind)
		began := time.Now()
		err := api.Evict(t.Context(), clusterapi.Key("app", "web"), clusterapi.EvictOptions{})
		checktest.FailIf(t, !apierrors.IsTooManyRequests(err),
			"%s: got %v, want an error that IsTooManyRequests recognises", name, err)
		if _, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); !ok {
			t.Errorf("%s: the error has lost its cause: %#v", name, err)
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok != behind {
			t.Errorf("%s: a delay of %d s is suggested: %t", name, seconds, ok)
		}
		took := time.Since(began)
		checktest.FailIf(t, took > 5*time.Second, "%s: the answer took %s", name, took)
	}
}

// The drain of a node goes on asking until the budget allows the eviction.
func testDrain(t *testing.T, api clusterapi.ClusterAPI) {
	allow(t, api, 0, false)
	create(t, api, object(t, `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
  configuration: {name: rendered-worker-new}
`))
	var once sync.Once
	blocked := make(chan error)
	drained := make(chan struct{})
	nodes, err := rollout.New(rollout.Options{
		API: api, Mode: rollout.Drive, Logger: logTo(t),
		Delays: rollout.Delays{EvictionRetry: 100 * time.Millisecond, PodPoll: 100 * time.Millisecond, PoolQueue: 100 * time.Millisecond},
		Observe: func(e clusterapi.Event) {
			t.Logf("%s %s", e.Type, e.Message)
			switch e.Type {
			case rollout.EventDrainBlocked:
				once.Do(func() { blocked <- e.Err })
			case rollout.EventDrained:
				close(drained)
			}
		},
	})
	checktest.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- nodes.Run(ctx) }()
	defer func() {
		cancel()
		checktest.Good(t, <-ended)
	}()
	select {
	case err := <-blocked:
		checktest.FailIf(t, !apierrors.IsTooManyRequests(err), "the drain was blocked by %v", err)
	case <-ctx.Done():
		t.Fatal("the drain was not blocked")
	}
	checktest.OK(t, checktest.Err(clusterapi.Get[corev1.Pod](ctx, api, clusterapi.Key("app", "web"))))
	allow(t, api, 1, false)
	select {
	case <-drained:
	case <-ctx.Done():
		t.Fatal("the node was not drained")
	}
	if _, err := clusterapi.Get[corev1.Pod](ctx, api, clusterapi.Key("app", "web")); !apierrors.IsNotFound(err) {
		t.Errorf("the pod, when its node was drained: %v", err)
	}
	err = poll(ctx, 10*time.Second, func(ctx context.Context) (bool, error) {
		node, err := clusterapi.Get[corev1.Node](ctx, api, clusterapi.Key("", "w0"))
		if err != nil {
			return false, err
		}
		return node.Spec.Unschedulable && node.Annotations[mcp.AnnotationLastAppliedDrain] == "drain-rendered-worker-new", nil
	})
	checktest.Good(t, err)
}
