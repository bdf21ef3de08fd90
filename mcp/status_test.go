package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func checkStatus(t *testing.T, in mcp.Snapshot, pool, want string) mcfgv1.MachineConfigPoolStatus {
	t.Helper()
	st := mcp.PoolStatus(in, pool)
	checktest.Same(t, strings.TrimSpace(strings.ReplaceAll(want, "\t", "")), mcptest.Brief(st))
	again := mcp.NewState(in.Objects, in.Options).Status(pool, st, in.Now.Add(time.Hour))
	if diff := cmp.Diff(st, again); diff != "" && !in.Options.Compat {
		t.Errorf("not idempotent: %s", diff)
	}
	return st
}

func TestPoolStatus(t *testing.T) {
	t.Run("updated", func(t *testing.T) {
		st := checkStatus(t, mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Updated(mcptest.Worker("a")), mcptest.Updated(mcptest.Worker("b"))), "worker", `
			2 updated 2 ready 2 unavailable 0 degraded 0 N
			Updated=True All nodes are updated with MachineConfig N
			Updating=False
			NodeDegraded=False
			Degraded=False`)
		if st.ObservedGeneration != 1 || st.CertExpirys == nil {
			t.Errorf("%+v", st)
		}
	})
	t.Run("updating", func(t *testing.T) {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Status.Configuration.Name = "O" })),
			mcptest.Updated(mcptest.Worker("a")), mcptest.Updated(mcptest.Worker("b", mcptest.Cordoned)), mcptest.Worker("c"), mcptest.Worker("d", mcptest.Desired("N")))
		checkStatus(t, in, "worker", `
			4 updated 2 ready 1 unavailable 2 degraded 0 O
			Updated=False
			Updating=True All nodes are updating to MachineConfig N
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("paused", func(t *testing.T) {
		checkStatus(t, mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.Paused)), mcptest.Worker("a")), "worker", `
			1 updated 0 ready 0 unavailable 0 degraded 0
			Updated=False
			Updating=False Pool is paused; will not update to MachineConfig N
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("updated and degraded elsewhere", func(t *testing.T) {
		p := mcptest.Pool("worker", "N", func(p *mcfgv1.MachineConfigPool) {
			p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: "RenderDegraded", Status: isTrue, Message: "Failed to render"}}
		})
		checkStatus(t, mcptest.Snapshot(mcptest.Pools(p), mcptest.Updated(mcptest.Worker("a"))), "worker", `
			1 updated 1 ready 1 unavailable 0 degraded 0 N
			RenderDegraded=True Failed to render
			Updated=True All nodes are updated with MachineConfig N
			Updating=False
			NodeDegraded=False
			Degraded=True`)
	})
	t.Run("no nodes", func(t *testing.T) {
		nothing := mcptest.Pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil })
		checkStatus(t, mcptest.Snapshot(mcptest.Pools(nothing), mcptest.Worker("a")), "worker", `
			0 updated 0 ready 0 unavailable 0 degraded 0 N
			Updated=True All nodes are updated with MachineConfig N
			Updating=False
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("selecting all, unconfigured", func(t *testing.T) {
		all := mcptest.Pool("all", "N", func(p *mcfgv1.MachineConfigPool) {
			p.Spec.NodeSelector = &metav1.LabelSelector{}
			p.Status.MachineCount = 7
		})
		unconfigured := mcptest.Pool("worker", "", func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = 7 })
		in := mcptest.Snapshot(mcptest.Pools(all, unconfigured), mcptest.Worker("a"))
		checkStatus(t, in, "all", `7 updated 0 ready 0 unavailable 0 degraded 0`)
		checkStatus(t, in, "worker", `7 updated 0 ready 0 unavailable 0 degraded 0`)
	})
	t.Run("two custom pools want the node", func(t *testing.T) {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N")), mcptest.Node("a", "infra", "O", mcptest.Label(mcp.LabelNodeRolePrefix+"gpu", "")))
		for _, p := range []string{"infra", "gpu"} {
			if st := mcp.PoolStatus(in, p); st.MachineCount != 0 || mcptest.ConditionOf(st, "Updated").Status != isTrue {
				t.Errorf("%s: %s", p, mcptest.Brief(st))
			}
		}
	})
}

// A drifted node is degraded and unavailable although its configs are equal.
func TestDrift(t *testing.T) {
	k := mcptest.Updated(mcptest.Worker("k", mcptest.State("Degraded"), mcptest.Reason("content mismatch")))
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), k, mcptest.Updated(mcptest.Worker("l")), mcptest.Updated(mcptest.Worker("m")))
	checkStatus(t, in, "worker", `
		3 updated 2 ready 2 unavailable 1 degraded 1
		Updated=False
		Updating=True All nodes are updating to MachineConfig N
		NodeDegraded=True (1 nodes are reporting degraded status on sync) Node k is reporting: "content mismatch"
		Degraded=True Node k is reporting: "content mismatch"`)
	compat := in
	compat.Options.Compat = true
	compat.MachineConfigNodes = []mcfgv1.MachineConfigNode{mcptest.Mcn("k", mcptest.Says("NodeDegraded", "failure. content mismatch")), mcptest.Mcn("l")}
	checkStatus(t, compat, "worker", `
		3 updated 2 ready 2 unavailable 1 degraded 1
		Updated=False
		Updating=True All nodes are updating to MachineConfig N
		NodeDegraded=True (1 nodes are reporting degraded status on sync) Node k is reporting: "failure. content mismatch", Node k is reporting: "content mismatch"
		Degraded=True Node k is reporting: "failure. content mismatch", Node k is reporting: "content mismatch"`)
	compat.MachineConfigNodes = nil
	if c := mcptest.ConditionOf(mcp.PoolStatus(compat, "worker"), "NodeDegraded"); c.Reason != "0 nodes are reporting degraded status on sync" || c.Message != "" {
		t.Errorf("%+v", c)
	}

	for _, n := range []struct {
		max  int
		want string
		sel  []string
	}{{1, "NoCapacity", nil}, {2, "Selected", []string{"k"}}} {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N2", mcptest.AtMost(n.max))), in.Nodes...)
		s := mcp.NewState(in.Objects, in.Options)
		if got := s.Candidates("worker").Nodes; !cmp.Equal(got, n.sel) {
			t.Errorf("maxUnavailable %d: %v", n.max, got)
		}
		if v := s.Explain("worker", "k"); v.Kind != n.want {
			t.Errorf("maxUnavailable %d: %+v", n.max, v)
		}
	}
}

// A condition stays small whatever how many nodes have to say, and says what
// is missing.
func TestDegradedTextsAreBounded(t *testing.T) {
	const limit = 32 << 10
	for _, tt := range []struct {
		name, reason string
		nodes        int
		compat       bool
		want, end    string
	}{
		{"many nodes", strings.Repeat("x", 2000), 400, false, `Node n000 is reporting: "xxx`, ` and 384 more`},
		{"one text", strings.Repeat("x", 256<<10), 1, false, `Node n000 is reporting: "xxx`, `more bytes)"`},
		{"one text that quoting makes long", strings.Repeat("\x00", 256<<10), 2, false, `Node n000 is reporting: "\x00\x00`, ` and 1 more`},
		{"as the controller does it", strings.Repeat("x", 2000), 400, true, `Node n000 is reporting: "failure. xxx`, ` and 784 more`},
		{"all that a daemon may write", strings.Repeat("日", 2000), 5, false, `Node n000 is reporting: "日日`, `日"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")))
			in.Options.Compat = tt.compat
			for i := range tt.nodes {
				name := fmt.Sprintf("n%03d", i)
				in.Nodes = append(in.Nodes, mcptest.Worker(name, mcptest.State("Degraded"), mcptest.Reason(tt.reason)))
				if tt.compat {
					in.MachineConfigNodes = append(in.MachineConfigNodes, mcptest.Mcn(name, mcptest.Says("NodeDegraded", "failure. "+tt.reason)))
				}
			}
			st := mcp.PoolStatus(in, "worker")
			for _, c := range st.Conditions {
				if len(c.Message) > limit || len(c.Reason) > 1024 {
					t.Errorf("%s: a message of %d bytes", c.Type, len(c.Message))
				}
			}
			for _, of := range []mcfgv1.MachineConfigPoolConditionType{"NodeDegraded", "Degraded"} {
				text := mcptest.ConditionOf(st, of).Message
				if !strings.HasPrefix(text, tt.want) || !strings.HasSuffix(text, tt.end) {
					t.Errorf("%s: %.60q ... %q", of, text, text[max(0, len(text)-40):])
				}
			}
			if c := mcptest.ConditionOf(st, "NodeDegraded"); c.Reason != fmt.Sprintf("%d nodes are reporting degraded status on sync", tt.nodes) {
				t.Error(c.Reason)
			}
		})
	}
}

func TestCertificates(t *testing.T) {
	at := metav1.NewTime(mcptest.Epoch)
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")))
	in.ControllerConfig = mcptest.Topology("HighlyAvailable")
	in.ControllerConfig.Status.ControllerCertificates = []mcfgv1.ControllerCertificate{
		{BundleFile: "KubeAPIServerServingCAData", Subject: "s", NotAfter: &at}, {BundleFile: "RootCAData", Subject: "t"}}
	want := []mcfgv1.CertExpiry{{Bundle: "KubeAPIServerServingCAData", Subject: "s", Expiry: &at}}
	checktest.Same(t, want, mcp.PoolStatus(in, "worker").CertExpirys)
}

func TestLayeredCandidates(t *testing.T) {
	for _, tt := range []struct {
		image      string
		conditions []string
		text       string // "" = rolls out
		fails      bool
	}{
		{"i", nil, "No MachineOSConfig or MachineOSBuild for this pool", false},
		{"", []string{"Succeeded"}, "Desired image not set in MachineOSConfig", false},
		{"i", []string{"Succeeded"}, "", false},
		{"h", []string{"Succeeded"}, `Image built successfully, pullspec: i, but MachineOSConfig "mosc" has not updated yet`, false},
		{"i", []string{"Building"}, "Image build pending", false},
		{"i", []string{"Failed"}, "image build for MachineConfigPool mosb failed", true},
		{"i", []string{"Prepared"}, "Image is not ready yet", false},
		{"i", []string{"Interrupted"}, "Image is not ready yet", false},
		{"i", []string{""}, "Image is not ready yet", false},
	} {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Worker("a"))
		mcptest.Layered(&in, tt.image, tt.conditions...)
		sel := mcp.Candidates(in, "worker")
		if tt.text == "" {
			if !cmp.Equal(sel.Nodes, []string{"a"}) || sel.Target != (mcp.Target{Config: "N", Image: "i"}) {
				t.Errorf("%v: %+v", tt.conditions, sel)
			}
			continue
		}
		if sel.Block != (mcp.Block{Kind: mcp.BlockBuildNotReady, Text: tt.text}) || (sel.Err != nil) != tt.fails {
			t.Errorf("%v: %+v", tt.conditions, sel)
		}
	}
}

func TestStaleBuild(t *testing.T) {
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Worker("a"))
	mcptest.Layered(&in, "i", "Succeeded")
	c := &in.MachineOSConfigs[0]
	c.Annotations = map[string]string{mcp.AnnotationCurrentMachineOSBuild: "mosb"}
	s := mcp.NewState(in.Objects, in.Options)
	if s.StaleBuild("worker") != nil {
		t.Error("the annotation is right")
	}
	p := mcptest.Pool("worker", "N2")
	s.Apply(mcp.Change{Object: &p})
	if got := s.StaleBuild("worker"); got == nil || got.Name != "mosc" {
		t.Error("a build for another config is stale")
	}
	c.Annotations[mcp.AnnotationCurrentMachineOSBuild] = "gone"
	s = mcp.NewState(in.Objects, in.Options)
	if s.StaleBuild("worker") == nil || s.Goal("worker") != (mcp.Goal{Config: "N", Layered: true, Image: "i", HasBuild: true, BuildConfig: "N"}) {
		t.Errorf("%+v", s.Goal("worker"))
	}
}
