package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func conditionOf(st mcfgv1.MachineConfigPoolStatus, t mcfgv1.MachineConfigPoolConditionType) mcfgv1.MachineConfigPoolCondition {
	for _, c := range st.Conditions {
		if c.Type == t {
			return c
		}
	}
	return mcfgv1.MachineConfigPoolCondition{}
}

// brief prints counts and conditions.
func brief(st mcfgv1.MachineConfigPoolStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d updated %d ready %d unavailable %d degraded %d", st.MachineCount, st.UpdatedMachineCount,
		st.ReadyMachineCount, st.UnavailableMachineCount, st.DegradedMachineCount)
	if st.Configuration.Name != "" {
		b.WriteString(" " + st.Configuration.Name)
	}
	b.WriteByte('\n')
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			fmt.Fprintf(&b, " (%s)", c.Reason)
		}
		if c.Message != "" {
			fmt.Fprintf(&b, " %s", c.Message)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func checkStatus(t *testing.T, in mcp.Snapshot, pool, want string) mcfgv1.MachineConfigPoolStatus {
	t.Helper()
	st := mcp.PoolStatus(in, pool)
	if diff := cmp.Diff(strings.TrimSpace(strings.ReplaceAll(want, "\t", "")), brief(st)); diff != "" {
		t.Error(diff)
	}
	again := mcp.NewState(in.Objects, in.Options).Status(pool, st, in.Now.Add(time.Hour))
	if diff := cmp.Diff(st, again); diff != "" && !in.Options.Compat {
		t.Errorf("not idempotent: %s", diff)
	}
	return st
}

func TestPoolStatus(t *testing.T) {
	t.Run("updated", func(t *testing.T) {
		st := checkStatus(t, snapshot(pools(pool("worker", "N")), updated(worker("a")), updated(worker("b"))), "worker", `
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
		in := snapshot(pools(pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Status.Configuration.Name = "O" })),
			updated(worker("a")), updated(worker("b", cordoned)), worker("c"), worker("d", desired("N")))
		checkStatus(t, in, "worker", `
			4 updated 2 ready 1 unavailable 2 degraded 0 O
			Updated=False
			Updating=True All nodes are updating to MachineConfig N
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("paused", func(t *testing.T) {
		checkStatus(t, snapshot(pools(pool("worker", "N", paused)), worker("a")), "worker", `
			1 updated 0 ready 0 unavailable 0 degraded 0
			Updated=False
			Updating=False Pool is paused; will not update to MachineConfig N
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("updated and degraded elsewhere", func(t *testing.T) {
		p := pool("worker", "N", func(p *mcfgv1.MachineConfigPool) {
			p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: "RenderDegraded", Status: isTrue, Message: "Failed to render"}}
		})
		checkStatus(t, snapshot(pools(p), updated(worker("a"))), "worker", `
			1 updated 1 ready 1 unavailable 0 degraded 0 N
			RenderDegraded=True Failed to render
			Updated=True All nodes are updated with MachineConfig N
			Updating=False
			NodeDegraded=False
			Degraded=True`)
	})
	t.Run("no nodes", func(t *testing.T) {
		nothing := pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = nil })
		checkStatus(t, snapshot(pools(nothing), worker("a")), "worker", `
			0 updated 0 ready 0 unavailable 0 degraded 0 N
			Updated=True All nodes are updated with MachineConfig N
			Updating=False
			NodeDegraded=False
			Degraded=False`)
	})
	t.Run("selecting all, unconfigured", func(t *testing.T) {
		all := pool("all", "N", func(p *mcfgv1.MachineConfigPool) {
			p.Spec.NodeSelector = &metav1.LabelSelector{}
			p.Status.MachineCount = 7
		})
		unconfigured := pool("worker", "", func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = 7 })
		in := snapshot(pools(all, unconfigured), worker("a"))
		checkStatus(t, in, "all", `7 updated 0 ready 0 unavailable 0 degraded 0`)
		checkStatus(t, in, "worker", `7 updated 0 ready 0 unavailable 0 degraded 0`)
	})
	t.Run("two custom pools want the node", func(t *testing.T) {
		in := snapshot(pools(pool("infra", "N"), pool("gpu", "N")), node("a", "infra", "O", label(mcp.LabelNodeRolePrefix+"gpu", "")))
		for _, p := range []string{"infra", "gpu"} {
			if st := mcp.PoolStatus(in, p); st.MachineCount != 0 || conditionOf(st, "Updated").Status != isTrue {
				t.Errorf("%s: %s", p, brief(st))
			}
		}
	})
}

func mcn(name string, conditions ...metav1.Condition) mcfgv1.MachineConfigNode {
	m := mcfgv1.MachineConfigNode{}
	m.Name = name
	m.Spec.Pool.Name = "worker"
	m.Status.Conditions = conditions
	m.Status.ConfigVersion = &mcfgv1.MachineConfigNodeStatusMachineConfigVersion{Current: "N", Desired: "N"}
	return m
}

func says(t, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionTrue, Message: message}
}

// A drifted node is degraded and unavailable although its configs are equal.
func TestDrift(t *testing.T) {
	k := updated(worker("k", state("Degraded"), reason("content mismatch")))
	in := snapshot(pools(pool("worker", "N")), k, updated(worker("l")), updated(worker("m")))
	checkStatus(t, in, "worker", `
		3 updated 2 ready 2 unavailable 1 degraded 1
		Updated=False
		Updating=True All nodes are updating to MachineConfig N
		NodeDegraded=True (1 nodes are reporting degraded status on sync) Node k is reporting: "content mismatch"
		Degraded=True Node k is reporting: "content mismatch"`)
	compat := in
	compat.Options.Compat = true
	compat.MachineConfigNodes = []mcfgv1.MachineConfigNode{mcn("k", says("NodeDegraded", "failure. content mismatch")), mcn("l")}
	checkStatus(t, compat, "worker", `
		3 updated 2 ready 2 unavailable 1 degraded 1
		Updated=False
		Updating=True All nodes are updating to MachineConfig N
		NodeDegraded=True (1 nodes are reporting degraded status on sync) Node k is reporting: "failure. content mismatch", Node k is reporting: "content mismatch"
		Degraded=True Node k is reporting: "failure. content mismatch", Node k is reporting: "content mismatch"`)
	compat.MachineConfigNodes = nil
	if c := conditionOf(mcp.PoolStatus(compat, "worker"), "NodeDegraded"); c.Reason != "0 nodes are reporting degraded status on sync" || c.Message != "" {
		t.Errorf("%+v", c)
	}

	for _, n := range []struct {
		max  int
		want mcp.VerdictKind
		sel  []string
	}{{1, mcp.VerdictNoCapacity, nil}, {2, mcp.VerdictSelected, []string{"k"}}} {
		in := snapshot(pools(pool("worker", "N2", atMost(n.max))), in.Nodes...)
		s := mcp.NewState(in.Objects, in.Options)
		if got := s.Candidates("worker").Nodes; !cmp.Equal(got, n.sel) {
			t.Errorf("maxUnavailable %d: %v", n.max, got)
		}
		if v := s.Explain("worker", "k"); v.Kind != n.want {
			t.Errorf("maxUnavailable %d: %+v", n.max, v)
		}
	}
}

func TestDegradedTexts(t *testing.T) {
	for _, tt := range []struct{ message, reason, want string }{
		{"", "", ""},
		{"m", "", `Node k is reporting: "m"`},
		{"", "r", `Node k is reporting: "r"`},
		{"m with r", "r", `Node k is reporting: "m with r"`},
		{"m", "r", `Node k is reporting: "m; r"`},
	} {
		in := snapshot(pools(pool("worker", "N")), worker("k", state("Unreconcilable"), reason(tt.reason)))
		in.MachineConfigNodes = []mcfgv1.MachineConfigNode{mcn("k", says("NodeDegraded", tt.message))}
		c := conditionOf(mcp.PoolStatus(in, "worker"), "NodeDegraded")
		if c.Message != tt.want || c.Reason != "1 nodes are reporting degraded status on sync" {
			t.Errorf("%q, %q: %+v", tt.message, tt.reason, c)
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
			in := snapshot(pools(pool("worker", "N")))
			in.Options.Compat = tt.compat
			for i := range tt.nodes {
				name := fmt.Sprintf("n%03d", i)
				in.Nodes = append(in.Nodes, worker(name, state("Degraded"), reason(tt.reason)))
				if tt.compat {
					in.MachineConfigNodes = append(in.MachineConfigNodes, mcn(name, says("NodeDegraded", "failure. "+tt.reason)))
				}
			}
			st := mcp.PoolStatus(in, "worker")
			for _, c := range st.Conditions {
				if len(c.Message) > limit || len(c.Reason) > 1024 {
					t.Errorf("%s: a message of %d bytes", c.Type, len(c.Message))
				}
			}
			for _, of := range []mcfgv1.MachineConfigPoolConditionType{"NodeDegraded", "Degraded"} {
				text := conditionOf(st, of).Message
				if !strings.HasPrefix(text, tt.want) || !strings.HasSuffix(text, tt.end) {
					t.Errorf("%s: %.60q ... %q", of, text, text[max(0, len(text)-40):])
				}
			}
			if c := conditionOf(st, "NodeDegraded"); c.Reason != fmt.Sprintf("%d nodes are reporting degraded status on sync", tt.nodes) {
				t.Error(c.Reason)
			}
		})
	}
}

func TestImageModeCounts(t *testing.T) {
	in := snapshot(pools(pool("worker", "N")),
		updated(worker("a")), updated(worker("b")), updated(worker("c")), worker("d"), worker("e"))
	other := mcn("c", says("Updated", ""))
	other.Status.ConfigVersion.Desired = "O"
	in.MachineConfigNodes = []mcfgv1.MachineConfigNode{
		mcn("a", says("Updated", "")), mcn("b", says("NodeDegraded", "x"), says("Updated", "")), other,
		mcn("d", says("Updated", ""), says("NodeDegraded", "")), mcn("gone", says("Updated", "")),
	}
	in.Options.ImageModeStatusReporting = true
	st := mcp.PoolStatus(in, "worker")
	if st.UpdatedMachineCount != 2 || st.DegradedMachineCount != 1 || st.ReadyMachineCount != 3 {
		t.Errorf("%s", brief(st))
	}
}

func TestPoolSynchronizers(t *testing.T) {
	in := snapshot(pools(pool("worker", "N")), updated(worker("a")), updated(worker("b")), worker("c", cordoned))
	pinned := func(current, desired int32) mcfgv1.MachineConfigNode {
		m := mcn("b", says("Resumed", ""))
		m.Status.PinnedImageSets = []mcfgv1.MachineConfigNodeStatusPinnedImageSet{{Name: "s", CurrentGeneration: current, DesiredGeneration: desired}}
		return m
	}
	in.MachineConfigNodes = []mcfgv1.MachineConfigNode{mcn("a", says("Updated", "")), pinned(1, 2), mcn("c")} // c has not said anything yet
	if st := mcp.PoolStatus(in, "worker"); st.PoolSynchronizersStatus != nil {
		t.Errorf("%+v", st.PoolSynchronizersStatus)
	}
	in.Options.PoolSynchronizers = true
	for _, tt := range []struct {
		m    mcfgv1.MachineConfigNode
		want int64
	}{{pinned(1, 2), 1}, {pinned(2, 2), 2}, {pinned(0, 0), 1}} {
		in.MachineConfigNodes[1] = tt.m
		want := []mcfgv1.PoolSynchronizerStatus{{PoolSynchronizerType: mcfgv1.PinnedImageSets,
			MachineCount: 3, ReadyMachineCount: 2, AvailableMachineCount: 2, UnavailableMachineCount: 1, UpdatedMachineCount: tt.want}}
		if diff := cmp.Diff(want, mcp.PoolStatus(in, "worker").PoolSynchronizersStatus); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCertificates(t *testing.T) {
	at := metav1.NewTime(epoch)
	in := snapshot(pools(pool("worker", "N")))
	in.ControllerConfig = topology(mcp.TopologyHighlyAvailable)
	in.ControllerConfig.Status.ControllerCertificates = []mcfgv1.ControllerCertificate{
		{BundleFile: "KubeAPIServerServingCAData", Subject: "s", NotAfter: &at}, {BundleFile: "RootCAData", Subject: "t"}}
	want := []mcfgv1.CertExpiry{{Bundle: "KubeAPIServerServingCAData", Subject: "s", Expiry: &at}}
	if diff := cmp.Diff(want, mcp.PoolStatus(in, "worker").CertExpirys); diff != "" {
		t.Error(diff)
	}
}

func TestConditionsMove(t *testing.T) {
	in := snapshot(pools(pool("worker", "N")), worker("a"))
	first := mcp.PoolStatus(in, "worker")
	in.Nodes[0] = updated(in.Nodes[0])
	s := mcp.NewState(in.Objects, in.Options)
	later := s.Status("worker", first, epoch.Add(time.Minute))
	var order []string
	for _, c := range later.Conditions {
		moved := ""
		if !c.LastTransitionTime.Time.Equal(epoch) {
			moved = " moved"
		}
		order = append(order, string(c.Type)+moved)
	}
	if diff := cmp.Diff([]string{"NodeDegraded", "Degraded", "Updated moved", "Updating moved"}, order); diff != "" {
		t.Error(diff)
	}
	// Another message alone moves the condition, not its time.
	p := pool("worker", "N2", paused)
	s.Apply(mcp.Change{Object: &p})
	one := s.Status("worker", later, epoch.Add(2*time.Minute))
	p.Spec.Configuration.Name = "N3"
	s.Apply(mcp.Change{Object: &p})
	two := s.Status("worker", one, epoch.Add(3*time.Minute))
	c := conditionOf(two, "Updating")
	if c.Message != "Pool is paused; will not update to MachineConfig N3" || !c.LastTransitionTime.Time.Equal(epoch.Add(time.Minute)) {
		t.Errorf("%+v", c)
	}
	if two.Conditions[len(two.Conditions)-1].Type != "Updating" {
		t.Errorf("%s", brief(two))
	}
}

func layered(in *mcp.Snapshot, image string, conditions ...string) {
	c := mcfgv1.MachineOSConfig{}
	c.Name = "mosc"
	c.Spec.MachineConfigPool.Name = "worker"
	c.Status.CurrentImagePullSpec = mcfgv1.ImageDigestFormat(image)
	in.MachineOSConfigs = []mcfgv1.MachineOSConfig{c}
	if conditions == nil {
		return
	}
	b := mcfgv1.MachineOSBuild{}
	b.Name = "mosb"
	b.Spec.MachineConfig.Name, b.Spec.MachineOSConfig.Name = "N", "mosc"
	b.Status.DigestedImagePushSpec = "i"
	for _, t := range conditions {
		if t != "" {
			b.Status.Conditions = append(b.Status.Conditions, says(t, ""))
		}
	}
	in.MachineOSBuilds = []mcfgv1.MachineOSBuild{b}
}

func TestLayeredStatus(t *testing.T) {
	type row struct {
		conditions           []string
		going, paused, image string // Updating, Updating when paused, ImageBuildDegraded
	}
	const none = " "
	for _, tt := range []row{
		{nil, "True Pool is waiting for a new OS image build to start (mosc: mosc)",
			"True Pool is paused; waiting for a new OS image build to start (mosc: mosc)", none},
		{[]string{"Prepared"}, "True Pool is waiting for OS image build to start (mosb: mosb)",
			"True Pool is paused; OS image build has been prepared but will not rollout (mosb: mosb)", "False New build started"},
		{[]string{"Building"}, "True Pool is waiting for OS image build to complete (mosb: mosb)",
			"True Pool is paused; OS image build in progress (mosb: mosb)", "False New build started"},
		{[]string{"Succeeded"}, "True Pool is waiting for nodes to apply OS image (mosb: mosb)",
			"False Pool is paused; OS image build completed successfully (mosb: mosb)", "False Build completed successfully"},
		{[]string{"Failed"}, "False Pool update stopped due to OS image build failure (mosb: mosb)",
			"False Pool is paused; OS image build failed (mosb: mosb)", none},
		{[]string{"Interrupted"}, "False Pool update stopped due to OS image build being interrupted (mosb: mosb)",
			"False Pool is paused; OS image build was interrupted (mosb: mosb)", none},
		{[]string{""}, "True Pool is waiting for OS image build to start (mosb: mosb)",
			"True Pool is paused; OS image build has been created but not yet started (mosb: mosb)", none},
	} {
		for _, isPaused := range []bool{false, true} {
			for _, compat := range []bool{false, true} {
				in := snapshot(pools(pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = isPaused })), worker("a"))
				in.Options.Compat = compat
				layered(&in, "i", tt.conditions...)
				want := tt.going
				if isPaused {
					want = tt.paused
				}
				st := mcp.PoolStatus(in, "worker")
				c := conditionOf(st, "Updating")
				if got := string(c.Status) + " " + c.Message; got != want {
					t.Errorf("%v, paused %v: %s, want %s", tt.conditions, isPaused, got, want)
				}
				c = conditionOf(st, "ImageBuildDegraded")
				if got := string(c.Status) + " " + c.Message; got != tt.image {
					t.Errorf("%v: ImageBuildDegraded %q", tt.conditions, got)
				}
				again := mcp.NewState(in.Objects, in.Options).Status("worker", st, epoch.Add(time.Hour))
				if !compat && !cmp.Equal(st, again) {
					t.Errorf("%v, paused %v: not idempotent: %s", tt.conditions, isPaused, cmp.Diff(st, again))
				}
			}
		}
	}
	images := annotate(mcp.AnnotationCurrentImage, "i", mcp.AnnotationDesiredImage, "i")
	in := snapshot(pools(pool("worker", "N")), updated(worker("a", images)))
	layered(&in, "i", "Succeeded")
	checkStatus(t, in, "worker", `
		1 updated 1 ready 1 unavailable 0 degraded 0 N
		Updated=True All nodes are updated with MachineConfig N / Image i
		Updating=False
		NodeDegraded=False
		ImageBuildDegraded=False (BuildSuccess) Build completed successfully
		Degraded=False`)
	in.Nodes = append(in.Nodes, worker("b", state("Degraded"), reason("r")))
	checkStatus(t, in, "worker", `
		2 updated 1 ready 1 unavailable 1 degraded 1
		Updated=False
		Updating=False Pool update paused due to degraded condition
		NodeDegraded=True (1 nodes are reporting degraded status on sync) Node b is reporting: "r"
		ImageBuildDegraded=False (BuildSuccess) Build completed successfully
		Degraded=True Node b is reporting: "r"`)
}

func TestImageBuildDegradedClears(t *testing.T) {
	was := func(p *mcfgv1.MachineConfigPool) {
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: "ImageBuildDegraded", Status: isTrue, Reason: "x"}}
	}
	in := snapshot(pools(pool("worker", "N", was)))
	c := conditionOf(mcp.PoolStatus(in, "worker"), "ImageBuildDegraded")
	if c.Status != isFalse || c.Reason != "NoLayeredObjects" || c.Message != "No layered pool objects found, clearing stale build degraded condition" {
		t.Errorf("%+v", c)
	}
	layered(&in, "")
	c = conditionOf(mcp.PoolStatus(in, "worker"), "ImageBuildDegraded")
	if c.Status != isFalse || c.Reason != "BuildPending" || c.Message != "MachineOSConfig updated/created, waiting for MachineOSBuild" {
		t.Errorf("%+v", c)
	}
	layered(&in, "", "Failed")
	st := mcp.PoolStatus(in, "worker")
	if c := conditionOf(st, "Degraded"); c.Status != isTrue || c.Message != "Custom OS image build failed" {
		t.Errorf("%s", brief(st))
	}
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
		in := snapshot(pools(pool("worker", "N")), worker("a"))
		layered(&in, tt.image, tt.conditions...)
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
	in := snapshot(pools(pool("worker", "N")), worker("a"))
	layered(&in, "i", "Succeeded")
	c := &in.MachineOSConfigs[0]
	c.Annotations = map[string]string{mcp.AnnotationCurrentMachineOSBuild: "mosb"}
	s := mcp.NewState(in.Objects, in.Options)
	if s.StaleBuild("worker") != nil {
		t.Error("the annotation is right")
	}
	p := pool("worker", "N2")
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
