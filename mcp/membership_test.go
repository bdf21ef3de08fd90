package mcp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func roles(names ...string) map[string]string {
	l := map[string]string{}
	for _, n := range names {
		l[mcp.LabelNodeRolePrefix+n] = ""
	}
	return l
}

func TestMembershipOf(t *testing.T) {
	m, issues := mcp.NewMembership(mcptest.Pools(
		mcptest.Pool("worker", "N"), mcptest.Pool("master", "N"), mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N"), mcptest.Pool("arbiter", "N"),
		mcptest.Pool("nothing", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil }),
		mcptest.Pool("empty", "N", func(p *mcfgv1.MachineConfigPool) {
			p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
		}),
	))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	windows := roles("worker")
	windows[mcp.LabelOS] = "windows"
	for _, tt := range []struct {
		name     string
		labels   map[string]string
		want     []string
		alert    bool
		conflict []string
	}{
		{"two custom", roles("infra", "gpu"), nil, false, []string{"gpu", "infra"}},
		{"two custom on a master", roles("infra", "gpu", "master", "worker"), nil, false, []string{"gpu", "infra"}},
		{"arbiter is custom", roles("infra", "arbiter"), nil, false, []string{"arbiter", "infra"}},
		{"master and custom", roles("master", "infra"), []string{"master"}, true, nil},
		{"master, worker and custom", roles("master", "worker", "infra"), []string{"master", "worker"}, true, nil},
		{"custom", roles("infra"), []string{"infra"}, false, nil},
		{"custom and worker", roles("infra", "worker"), []string{"infra", "worker"}, false, nil},
		{"master and worker", roles("master", "worker"), []string{"master"}, false, nil},
		{"master", roles("master"), []string{"master"}, false, nil},
		{"worker", roles("worker"), []string{"worker"}, false, nil},
		{"none", roles("other"), nil, false, nil},
		{"windows", windows, nil, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second answer is a remembered one
				a := m.Of(tt.labels)
				checktest.Same(t, tt.want, a.Pools)
				if a.Alert != tt.alert {
					t.Errorf("alert = %v", a.Alert)
				}
				if len(tt.want) > 0 && a.Primary != tt.want[0] || len(tt.want) == 0 && a.Primary != "" {
					t.Errorf("primary = %q", a.Primary)
				}
				var c *mcp.PoolConflictError
				if errors.As(a.Err, &c) != (tt.conflict != nil) {
					t.Fatalf("err = %v", a.Err)
				}
				if c != nil {
					if diff := cmp.Diff(tt.conflict, c.Pools); diff != "" || !errors.Is(a.Err, mcp.ErrPoolConflict) {
						t.Error(diff, a.Err)
					}
				}
			}
		})
	}
}

func invalid(p *mcfgv1.MachineConfigPool) {
	p.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
}

func TestInvalidSelector(t *testing.T) {
	ps := mcptest.Pools(mcptest.Pool("worker", "N"), mcptest.Pool("infra", "N", invalid))
	m, issues := mcp.NewMembership(ps)
	if len(issues) != 1 || issues[0].Pool != "infra" {
		t.Fatalf("issues = %v", issues)
	}
	var s *mcp.SelectorError
	if !errors.As(issues[0].Err, &s) || s.Pool != "infra" || !strings.Contains(s.Error(), "invalid label selector: ") {
		t.Errorf("error = %v", issues[0].Err)
	}
	if a := m.Of(roles("worker", "infra")); a.Primary != "worker" {
		t.Errorf("other pools do not go on: %+v", a)
	}
	if a := m.Compat().Of(roles("worker")); a.Err == nil || a.Primary != "" {
		t.Errorf("compat: %+v", a)
	}
	windows := roles("worker")
	windows[mcp.LabelOS] = "windows"
	if a := m.Compat().Of(windows); a.Err != nil {
		t.Errorf("compat, Windows: %+v", a)
	}

	in := mcptest.Snapshot(ps, mcptest.Node("w", "worker", "O"))
	if sel := mcp.Candidates(in, "infra"); sel.Block.Kind != mcp.BlockInvalidSelector || sel.Err == nil {
		t.Errorf("selection = %+v", sel)
	}
	if got := mcp.Candidates(in, "worker").Nodes; !cmp.Equal(got, []string{"w"}) {
		t.Errorf("worker selects %v", got)
	}
	if st := mcp.PoolStatus(in, "infra"); len(st.Conditions) > 0 {
		t.Errorf("a pool with an invalid selector says: %s", mcptest.Brief(st))
	}
	// The selector is why the pool has no nodes.
	if v := mcp.NewState(in.Objects, in.Options).Explain("infra", "w"); v.Kind != "PoolBlocked" || v.Block.Kind != mcp.BlockInvalidSelector {
		t.Errorf("%+v", v)
	}
	if got := mcp.NewState(in.Objects, in.Options).Issues(); len(got) != 1 || got[0].Pool != "infra" {
		t.Errorf("issues = %v", got)
	}
	in.Options.Compat = true
	if st := mcp.PoolStatus(in, "infra"); len(st.Conditions) > 0 {
		t.Errorf("compat: a pool with an invalid selector says: %s", mcptest.Brief(st))
	}
	st := mcp.PoolStatus(in, "worker")
	if st.MachineCount != 0 || mcptest.ConditionOf(st, "Updated").Status != "True" {
		t.Errorf("compat status = %+v", st)
	}
}

func TestMembershipExplain(t *testing.T) {
	m, _ := mcp.NewMembership(mcptest.Pools(mcptest.Pool("worker", "N"), mcptest.Pool("master", "N"), mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N"),
		mcptest.Pool("nothing", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil })))
	why := func(labels map[string]string, pool string) mcp.Match {
		for _, x := range m.Explain(labels) {
			if x.Pool == pool {
				return x
			}
		}
		t.Fatalf("no explanation for pool %s", pool)
		return mcp.Match{}
	}
	for _, tt := range []struct {
		labels           map[string]string
		pool             string
		matched, primary bool
		why              string
	}{
		{roles("worker", "infra"), "infra", true, true, "meet node-role.kubernetes.io/infra="},
		{roles("worker", "infra"), "worker", true, false, "custom pool infra goes before worker"},
		{roles("worker", "infra"), "gpu", false, false, "do not meet node-role.kubernetes.io/gpu="},
		{roles("worker", "infra"), "nothing", false, false, "selects no node"},
		{roles("master", "infra"), "infra", true, false, "not supported"},
		{roles("master", "worker"), "worker", true, false, "master goes before worker"},
		{roles("gpu", "infra"), "gpu", true, false, "more than one custom pool matches (gpu, infra)"},
	} {
		x := why(tt.labels, tt.pool)
		if x.Matched != tt.matched || x.Primary != tt.primary || !strings.Contains(x.Why, tt.why) {
			t.Errorf("%v in %s: %+v", tt.labels, tt.pool, x)
		}
	}
}
