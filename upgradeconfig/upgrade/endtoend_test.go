package upgrade_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"golang.org/x/sync/errgroup"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

func loadPayload(t *testing.T, fsys fs.FS, image string) *manifest.Payload {
	t.Helper()
	p := must(manifest.Load(t.Context(), fsys, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()}))
	return p
}

// TestEndToEnd: a policy in a provider becomes a finished update of a simulated
// cluster, its nodes included. One of its workloads cannot be drained, so the
// drain has to be forced.
func TestEndToEnd(t *testing.T) {
	from, to := loadPayload(t, sample.From(), sample.FromImage), loadPayload(t, sample.To(), sample.ToImage)
	g := must(graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{}))
	synctest.Test(t, func(t *testing.T) {
		two, three := intstr.FromInt32(2), intstr.FromInt32(3)
		cluster := must(simulation.New(simulation.Options{
			Release:        payload.Release(from),
			Pools:          []simulation.Pool{{Name: "worker", Nodes: 3}, {Name: "infra", Nodes: 2}},
			ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.20"},
			Workloads: []simulation.Workload{
				{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two},
				{Namespace: "shop", Name: "stubborn", Replicas: 3, MinAvailable: &three},
			},
		}))
		cluster.Expect(payload.Release(to))
		must(cluster.Create(t.Context(), upgradeconfig.Definition(), clusterapi.CreateOptions{}))
		updater := must(clusterupdate.New(clusterupdate.Options{
			API: cluster,
			Payloads: manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
				return map[string]fs.FS{sample.FromImage: sample.From(), sample.ToImage: sample.To()}[r.Image], nil
			}),
			Graph:    graph.Static(g),
			Verifier: signature.Insecure(),
		}))

		start := time.Now()
		at := start.Add(3 * time.Hour)
		provider := &scheduledPolicy{policies: []upgradeconfig.Policy{{
			ID: "p-1", State: "scheduled", NextRun: at,
			Spec: upgradeconfig.Spec{
				Desired:              upgradeconfig.Update{Version: sample.ToVersion, Channel: "stable-4.21"},
				UpgradeAt:            at.Format(time.RFC3339),
				PDBForceDrainTimeout: 20,
				Type:                 upgradeconfig.OSD,
				CapacityReservation:  true,
			},
		}}, state: upgradeconfig.StateScheduled}
		manager := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: provider, KeepWhileUpgrading: true}))
		capacity := &upgradetest.Capacity{Ready: 10 * time.Minute}
		maintenance := &upgradetest.Maintenance{}
		metrics := &upgrade.Metrics{}
		var judged []string
		var phases []upgradeconfig.Phase
		controller := must(upgrade.New(upgrade.Options{
			API:      cluster,
			Notifier: provider,
			Refresh: func(ctx context.Context) (bool, error) {
				r, err := manager.Sync(ctx)
				return r.Differs(), err
			},
			Validate: upgradeconfig.ValidateOptions{Cincinnati: true, Graph: graph.Static(g)},
			Preconditions: func(_ context.Context, _ *configv1.ClusterVersion, target configv1.Release) error {
				judged = append(judged, target.Version+" "+target.Image)
				return nil
			},
			Capacity: capacity, Maintenance: maintenance,
			Health: upgrade.OperatorHealth(cluster),
			Drain:  (&upgrade.ForcedDrain{API: cluster}).ForceDrain,
			Observe: func(e clusterapi.Event) {
				metrics.Observe(e)
				if e.Type == upgradeconfig.EventPhase {
					phases = append(phases, data(e).Phase)
				}
				if e.Type == upgradeconfig.EventFailed {
					t.Log(e.Time.Sub(start), e.Err)
				}
			},
		}))

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return cluster.Run(ctx) })
		rolling := must(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive}))
		group.Go(func() error { return rolling.Run(ctx) })
		group.Go(func() error { return updater.Run(ctx) })
		group.Go(func() error { return manager.Run(ctx) })
		group.Go(func() error { return controller.Run(ctx) })

		phase := func() upgradeconfig.Phase {
			c := stored(t, cluster)
			if c == nil {
				return upgradeconfig.PhaseUnknown
			}
			return c.Status.Phase(sample.ToVersion)
		}
		for phase() != upgradeconfig.PhaseUpgraded && time.Since(start) < 20*time.Hour {
			time.Sleep(time.Minute)
			cv := version(t, cluster)
			if time.Now().Before(at) && cv.Spec.DesiredUpdate != nil {
				t.Fatal("the update was requested before its time")
			}
		}
		took := time.Since(at)
		cancel()
		if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c := stored(t, cluster)
		checktest.Equal(t, upgradeconfig.PhaseUpgraded, phase(), "after %s: %+v", took, c)
		t.Logf("the upgrade took %s", took)
		e, _ := c.Status.Entry(sample.ToVersion)
		if e.PrecedingVersion != sample.FromVersion || e.CompleteTime == nil || e.WorkerCompleteTime == nil || e.WorkerStartTime == nil || e.StartTime.Time.Before(at) {
			t.Errorf("entry is %+v", e)
		}
		steps, _ := upgrade.Steps(upgradeconfig.OSD)
		checktest.Equal(t, len(steps), len(e.Conditions), "conditions")
		for i, s := range steps {
			if got := e.Conditions[len(steps)-1-i]; got.Type != s || got.Status != "True" || got.CompleteTime == nil {
				t.Errorf("condition %d is %+v, want %s", i, got, s)
			}
		}
		cv := version(t, cluster)
		if h := cv.Status.History[0]; h.Version != sample.ToVersion || h.State != configv1.CompletedUpdate || cv.Spec.Channel != "stable-4.21" {
			t.Errorf("ClusterVersion %s: %+v", cv.Spec.Channel, h)
		}
		nodes := checktest.Get(clusterapi.List[corev1.Node](context.Background(), cluster, clusterapi.ListOptions{}))(t)
		checktest.Equal(t, 8, len(nodes), "len(nodes)")
		for _, n := range nodes {
			if !strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, "v1.34.") || n.Spec.Unschedulable {
				t.Errorf("%s: %s, unschedulable %v", n.Name, n.Status.NodeInfo.KubeletVersion, n.Spec.Unschedulable)
			}
		}
		if want := []upgradeconfig.State{upgradeconfig.StateStarted, upgradeconfig.StateCompleted}; !slices.Equal(provider.told, want) {
			t.Errorf("the provider was told %v, want %v", provider.told, want)
		}
		// A pass that loses a race for a write judges again, but nothing else.
		if want := []string{sample.ToVersion + " " + sample.ToImage}; !slices.Equal(slices.Compact(judged), want) {
			t.Errorf("preconditions judged %v, want %v", judged, want)
		}
		if want := []upgradeconfig.Phase{upgradeconfig.PhaseNew, upgradeconfig.PhasePending, upgradeconfig.PhaseUpgrading, upgradeconfig.PhaseUpgraded}; !slices.Equal(phases, want) {
			t.Errorf("phases %v, want %v", phases, want)
		}
		if capacity.Reserved() || maintenance.Open(upgrade.ControlPlane) || maintenance.Open(upgrade.Workers) {
			t.Error("extra capacity or a maintenance window is left")
		}
		if len(metrics.Samples()) == 0 {
			t.Error("no metrics")
		}
	})
}

func version(t *testing.T, r clusterapi.Reader) *configv1.ClusterVersion {
	t.Helper()
	cv := must(clusterapi.Get[configv1.ClusterVersion](context.Background(), r, clusterapi.Key("", "version")))
	return cv
}
