package mcp_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func readList[T any](t *testing.T, files ...string) []T {
	t.Helper()
	var list struct{ Items []T }
	b := checktest.Get(os.ReadFile(filepath.Join(files...)))(t)
	checktest.OK(t, yaml.Unmarshal(b, &list))
	return list.Items
}

// A real cluster whose masters and workers had started to update.
func TestRealCluster(t *testing.T) {
	const name = "4.14.1-workers-started-updating-multiple-pools"
	dir := filepath.Join(testdata.Dir(t), "clusters", name)
	in := mcp.Snapshot{Objects: mcp.Objects{
		Pools: readList[mcfgv1.MachineConfigPool](t, dir, name+"-mcp.yaml"),
		Nodes: readList[corev1.Node](t, dir, name+"-node.yaml"),
	}, Now: metav1.NewTime(mcptest.Epoch)}

	st := mcp.PoolStatus(in, "master")
	if st.MachineCount != 3 || st.UpdatedMachineCount != 0 || st.ReadyMachineCount != 0 || st.UnavailableMachineCount != 1 || st.DegradedMachineCount != 0 {
		t.Errorf("%s", mcptest.Brief(st))
	}
	// The recorded status is that of the cluster's own controller: nothing is
	// to be changed in it.
	for _, p := range in.Pools {
		if p.Name == "master" {
			p.Status.CertExpirys = []mcfgv1.CertExpiry{} // this release did not have it yet
			checktest.Same(t, p.Status, st)
		}
	}
	s := mcp.NewState(in.Objects, in.Options)
	phases := map[mcp.Phase]int{}
	for _, name := range s.Nodes("master") {
		n, _, _ := s.Node(name)
		phase, _ := mcp.PhaseOf(n)
		phases[phase]++
	}
	checktest.Same(t, map[mcp.Phase]int{mcp.PhaseDraining: 1, mcp.PhaseDone: 2}, phases)
	verdicts := map[string]int{}
	for _, v := range s.Explanations("master") {
		verdicts[v.Kind]++
	}
	checktest.Same(t, map[string]int{"InProgress": 1, "NoCapacity": 2}, verdicts)
	for _, p := range s.Pools() {
		t.Logf("%s: %d nodes, %s", p, len(s.Nodes(p)), mcp.Candidates(in, p).Block.Text)
	}
}

// The recorded status of each pool of a real cluster is what its own controller made
// of the nodes that were recorded with it: nothing is to be changed in it, and no node
// to be targeted that was not.
func TestRealClusters(t *testing.T) {
	// Nodes of two pools of this one were taken out by hand after it was recorded.
	byHand := map[string][]string{"4.14.1-workers-started-updating-multiple-pools": {"worker", "infra"}}
	compared := 0
	for _, name := range []string{"4.14.1-degraded", "4.14.1-workers-started-updating-multiple-pools", "4.15.0-ec2-early", "not-upgrading"} {
		dir := filepath.Join(testdata.Dir(t), "clusters", name)
		objs := mcp.Objects{
			Pools: readList[mcfgv1.MachineConfigPool](t, dir, name+"-mcp.yaml"),
			Nodes: readList[corev1.Node](t, dir, name+"-node.yaml"),
		}
		s := mcp.NewState(objs, mcp.Options{})
		for _, p := range objs.Pools {
			want, got := p.Status, s.Status(p.Name, p.Status, mcptest.Epoch)
			want.CertExpirys, got.CertExpirys = nil, nil                   // these releases did not have it yet
			want.Configuration.Source, got.Configuration.Source = nil, nil // left out of some recordings
			if slices.Contains(byHand[name], p.Name) {
				want.MachineCount--
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: pool %s: %s", name, p.Name, diff)
			}
			if sel := s.Candidates(p.Name); len(sel.Nodes) > 0 {
				t.Errorf("%s: pool %s: would target %v", name, p.Name, sel.Nodes)
			}
			compared++
		}
	}
	if compared != 9 {
		t.Errorf("%d pools compared", compared)
	}
}
