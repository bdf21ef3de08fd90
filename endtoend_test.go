package clusterupdate_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"

	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// twoNodeGraph has one edge.
func twoNodeGraph(t testing.TB, from, to *manifest.Payload) graph.Source {
	t.Helper()
	g := checktest.Get(graph.New(graph.Data{
		Nodes: []graph.Node{
			{Version: semver.MustParse(from.Release.Version), Image: from.Release.Image},
			{Version: semver.MustParse(to.Release.Version), Image: to.Release.Image},
		},
		Edges: [][2]int{{0, 1}},
	}, graph.DecodeOptions{}))(t)
	return graph.Static(g)
}

// TestEndToEnd updates a simulated cluster, its nodes included, between two
// releases: those built in and, where they are at hand, two real ones.
func TestEndToEnd(t *testing.T) {
	t.Run("sample", func(t *testing.T) {
		endToEnd(t, runlevel.ApplyServerSide, sample.From(), sample.To(), 10, 0)
	})
	t.Run("merged", func(t *testing.T) {
		endToEnd(t, runlevel.ApplyMerge, sample.From(), sample.To(), 10, 0)
	})
	t.Run("real", func(t *testing.T) {
		if israce.Enabled {
			t.Skip("too slow with the race detector; the built-in releases take the same way")
		}
		dir := testdata.Dir(t)
		endToEnd(t, runlevel.ApplyServerSide, os.DirFS(filepath.Join(dir, "payload-4.17.30")), os.DirFS(filepath.Join(dir, "payload-4.18.15")), 34, 806)
	})
}

func endToEnd(t *testing.T, mode runlevel.Mode, fromFS, toFS fs.FS, operators, manifests int) {
	from, to := loadSample(t, fromFS, sample.FromImage), loadSample(t, toFS, sample.ToImage)
	if n := len(to.Operators()); n != operators {
		t.Errorf("%d operators, want %d", n, operators)
	}
	if n := len(to.Manifests); manifests > 0 && n != manifests {
		t.Errorf("%d manifests, want %d", n, manifests)
	}
	synctest.Test(t, func(t *testing.T) {
		two := intstr.FromInt32(2)
		cluster := checktest.Get(simulation.New(simulation.Options{
			Release:        payload.Release(from),
			Pools:          []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
			ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.21"},
			Workloads:      []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}},
		}))(t)
		cluster.Expect(payload.Release(to))
		order := newOrderCheck(to, toFS)
		updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
			API: cluster,
			Payloads: manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
				return map[string]fs.FS{from.Release.Image: fromFS, to.Release.Image: toFS}[r.Image], nil
			}),
			Graph:     twoNodeGraph(t, from, to),
			Verifier:  signature.Insecure(),
			ApplyMode: mode,
			Observe:   order.observe,
		}))(t)
		nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return cluster.Run(ctx) })
		group.Go(func() error { return nodes.Run(ctx) })
		group.Go(func() error { return updater.Run(ctx) })

		time.Sleep(10 * time.Minute) // the cluster is kept as it is
		modify(t, cluster, false, func(cv *configv1.ClusterVersion) {
			if got := historyOf(cv); got != from.Release.Version+" Completed" {
				t.Errorf("history is %s", got)
			}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: to.Release.Version}
		})
		start := time.Now()
		for !updated(t, cluster, to.Release) && time.Since(start) < 6*time.Hour {
			time.Sleep(time.Minute)
			down(t, cluster)
		}
		took := time.Since(start)
		cancel()
		checktest.Good(t, group.Wait())
		cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](context.Background(), cluster, clusterapi.Key("", "version")))(t)
		want := fmt.Sprintf("%s Completed, %s Completed", to.Release.Version, from.Release.Version)
		if got := historyOf(cv); got != want {
			for _, c := range cv.Status.Conditions {
				t.Logf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
			t.Fatalf("history is %s, want %s", got, want)
		}
		t.Logf("the update took %s of the cluster's time", took)
		order.check(t)
		checkApplied(t, &testCluster{Cluster: cluster.Cluster}, to)
		checkNodes(t, cluster, to.Release)
	})
}

// updated reports whether the update has completed, on every node too.
func updated(t testing.TB, c clusterapi.ClusterAPI, r configv1.Release) bool {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](context.Background(), c, clusterapi.Key("", "version")))(t)
	if newest := cv.Status.History[0]; newest.Version != r.Version || newest.State != configv1.CompletedUpdate {
		return false
	}
	pools := checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](context.Background(), c, clusterapi.ListOptions{}))(t)
	for _, p := range pools {
		if p.Status.Configuration.Name != p.Spec.Configuration.Name || p.Status.UpdatedMachineCount != p.Status.MachineCount {
			return false
		}
	}
	return true
}

// down proves that no more than one node of a pool is out at a time, and that
// the shop stays open.
func down(t *testing.T, c clusterapi.ClusterAPI) {
	t.Helper()
	nodes := checktest.Get(clusterapi.List[corev1.Node](context.Background(), c, clusterapi.ListOptions{}))(t)
	out := map[string][]string{}
	for _, n := range nodes {
		pool, _, _ := strings.Cut(n.Name, "-")
		if n.Spec.Unschedulable {
			out[pool] = append(out[pool], n.Name)
		}
	}
	for pool, names := range out {
		if len(names) > 1 {
			t.Errorf("pool %s: %v are out at once", pool, names)
		}
	}
	pods := checktest.Get(clusterapi.List[corev1.Pod](context.Background(), c, clusterapi.ListOptions{Namespace: "shop"}))(t)
	ready := 0
	for _, p := range pods {
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready < 2 {
		t.Errorf("the shop has %d pods that are ready", ready)
	}
}

// checkNodes proves that every node runs the release.
func checkNodes(t *testing.T, c clusterapi.ClusterAPI, r configv1.Release) {
	t.Helper()
	nodes := checktest.Get(clusterapi.List[corev1.Node](context.Background(), c, clusterapi.ListOptions{}))(t)
	if len(nodes) != 9 {
		t.Errorf("%d nodes", len(nodes))
	}
	minor := strings.Split(r.Version, ".")[1]
	for _, n := range nodes {
		var y int
		fmt.Sscan(minor, &y)
		if want := fmt.Sprintf("v1.%d.", y+13); !strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, want) {
			t.Errorf("%s has kubelet %s, want %s…", n.Name, n.Status.NodeInfo.KubeletVersion, want)
		}
		config := n.Annotations[mcp.AnnotationCurrentConfig]
		mc, err := clusterapi.Get[mcfgv1.MachineConfig](context.Background(), c, clusterapi.Key("", config))
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		if got := mc.Annotations["machineconfiguration.openshift.io/release-image-version"]; got != r.Version {
			t.Errorf("%s runs config %s of release %s", n.Name, config, got)
		}
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 && n.Spec.Taints[0].Key == "UpdateInProgress" {
			t.Errorf("%s is not back", n.Name)
		}
	}
}
