package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// row is how a node is shown, in one line.
func nodeRow(n view.Node) string {
	version := n.Version
	if version == "" {
		version = "?"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", n.Assessment, n.Phase, version, n.Estimate, n.Message))
}

func TestNodeRules(t *testing.T) {
	const (
		pending    = "Outdated Pending 4.14.0 ?"
		completed  = "Completed Updated 4.14.1 -"
		beingDone  = "Progressing Updating 4.14.0 +5m"
		processing = "Machine Config Daemon is processing the node"
	)
	n := func(annotations ...string) *corev1.Node { return poolNode("n", "worker", annotations...) }
	cordoned := func(n *corev1.Node) *corev1.Node { n.Spec.Unschedulable = true; return n }
	is := func(n *corev1.Node, text string) *corev1.Node { return nodeSays(n, text, after(0), "m") }
	for _, tt := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		// 1 and 2
		{"updated", newNode("n", "worker"), completed},
		{"outdated", oldNode("n", "worker"), pending},
		{"unknown config", doneNode("n", "worker", "gone"), "Outdated Pending ? ?"},
		{"config without version", doneNode("n", "worker", "bare"), "Outdated Pending ? ?"},
		{"config with an empty version", doneNode("n", "worker", "empty"), "Outdated Pending ? ?"},
		{"updated, another config wanted", n("currentConfig=new", "desiredConfig=newer", "state=Done"), "Unavailable Updated 4.14.1 - " + processing},
		{"no annotations", n(), "Unavailable Pending ? ? " + processing},
		// 3
		{"updating", changingNode("n", "worker", "Working"), beingDone},
		{"to another config than the pool's", n("currentConfig=old", "desiredConfig=newer", "state=Working"), "Unavailable Pending 4.14.0 ? " + processing},
		{"to another version", n("currentConfig=older", "desiredConfig=old", "state=Working"), "Unavailable Pending 4.13.0 ? " + processing},
		{"from an unknown version", n("currentConfig=gone", "desiredConfig=new", "state=Working"), "Unavailable Pending ? ? " + processing},
		{"to an unknown version", n("currentConfig=old", "desiredConfig=gone", "state=Working"), "Unavailable Pending 4.14.0 ? " + processing},
		// 4 and 5
		{"draining", changingNode("n", "worker", "Working", "desiredDrain=drain-a", "lastAppliedDrain=uncordon-b"), "Progressing Draining 4.14.0 +10m"},
		{"only drain", changingNode("n", "worker", "Working", "desiredDrain=drain", "lastAppliedDrain=x"), "Progressing Draining 4.14.0 +10m"},
		{"drains", changingNode("n", "worker", "Working", "desiredDrain=drains-a", "lastAppliedDrain=x"), beingDone},
		{"uncordon", changingNode("n", "worker", "Working", "desiredDrain=uncordon-drain", "lastAppliedDrain=drain-a"), beingDone},
		{"drained", changingNode("n", "worker", "Working", "desiredDrain=drain-a", "lastAppliedDrain=drain-a"), beingDone},
		{"drained before it began", changingNode("n", "worker", "Done", "desiredDrain=uncordon-a", "lastAppliedDrain=uncordon-a"), "Progressing Draining 4.14.0 +10m"},
		{"never drained", changingNode("n", "worker", "Done", "desiredDrain=drain-a"), "Completed Updated 4.14.0 -"},
		{"no drain wanted", changingNode("n", "worker", "Done", "lastAppliedDrain=drain-a"), "Completed Updated 4.14.0 -"},
		{"draining and rebooting", changingNode("n", "worker", "Rebooting", "desiredDrain=drain-a", "lastAppliedDrain=x"), "Progressing Draining 4.14.0 +10m"},
		{"rebooting", changingNode("n", "worker", "Rebooting"), "Progressing Rebooting 4.14.0 +5m"},
		{"done", changingNode("n", "worker", "Done"), "Completed Updated 4.14.0 -"},
		{"no state", n("currentConfig=old", "desiredConfig=new"), beingDone},
		{"other state", changingNode("n", "worker", "Odd"), beingDone},
		{"not updating, rebooting", n("currentConfig=old", "desiredConfig=old", "state=Rebooting"), "Unavailable Pending 4.14.0 ? " + processing},
		// 6
		{"not ready", is(oldNode("n", "worker"), "Ready=False"), "Unavailable Pending 4.14.0 ? Not ready"},
		{"unknown", is(oldNode("n", "worker"), "Ready=Unknown"), "Unavailable Pending 4.14.0 ? Not ready"},
		{"disk", is(oldNode("n", "worker"), "DiskPressure=True"), "Unavailable Pending 4.14.0 ? Disk pressure"},
		{"unknown disk", is(oldNode("n", "worker"), "DiskPressure=Unknown"), "Unavailable Pending 4.14.0 ? Disk pressure"},
		{"network", is(oldNode("n", "worker"), "NetworkUnavailable=True"), "Unavailable Pending 4.14.0 ? Network unavailable"},
		{"other conditions", is(is(oldNode("n", "worker"), "MemoryPressure=True"), "DiskPressure=False"), pending},
		{"no conditions", func() *corev1.Node { n := oldNode("n", "worker"); n.Status.Conditions = nil; return n }(), pending},
		{"cordoned", cordoned(oldNode("n", "worker")), "Unavailable Pending 4.14.0 ? Node is marked unschedulable"},
		{"all", cordoned(is(is(is(oldNode("n", "worker"), "NetworkUnavailable=True"), "Ready=False"), "DiskPressure=True")),
			"Unavailable Pending 4.14.0 ? Not ready | Network unavailable | Disk pressure | Node is marked unschedulable"},
		{"updated and not ready", is(newNode("n", "worker"), "Ready=False"), "Unavailable Updated 4.14.1 - Not ready"},
		{"updating and not ready", is(changingNode("n", "worker", "Working"), "Ready=False"), beingDone},
		{"updating and done, not ready", is(changingNode("n", "worker", "Done"), "Ready=False"), "Completed Updated 4.14.0 -"},
		{"daemon at work", n("currentConfig=old", "desiredConfig=old", "state=Working"), "Unavailable Pending 4.14.0 ? " + processing},
		{"daemon at work and not ready", is(n("currentConfig=old", "desiredConfig=old", "state=Working"), "Ready=False"), "Unavailable Pending 4.14.0 ? Not ready"},
		{"done without a config", n("state=Done"), "Unavailable Pending ? ? " + processing},
		{"images", doneNode("n", "worker", "old", "currentImage=a"), "Unavailable Pending 4.14.0 ? " + processing},
		{"empty image", doneNode("n", "worker", "old", "currentImage="), "Unavailable Pending 4.14.0 ? " + processing},
		{"empty images", doneNode("n", "worker", "old", "currentImage=", "desiredImage="), "Unavailable Pending 4.14.0 ? " + processing},
		{"image wanted that the pool does not have", is(doneNode("n", "worker", "old", "desiredImage=a"), "Ready=False"), pending},
		// 7 and overrides
		{"degraded", changingNode("n", "worker", "Degraded", "reason=broken"), "Degraded Updating 4.14.0 ? broken"},
		{"unreconcilable", changingNode("n", "worker", "Unreconcilable", "reason=broken"), "Degraded Updating 4.14.0 ? broken"},
		{"degraded without reason", changingNode("n", "worker", "Degraded"), "Degraded Updating 4.14.0 ?"},
		{"degraded and pending", n("currentConfig=old", "desiredConfig=old", "state=Degraded", "reason=broken"), "Degraded Pending 4.14.0 ? broken"},
		{"degraded and updated", n("currentConfig=new", "desiredConfig=new", "state=Degraded", "reason=broken"), "Degraded Updated 4.14.1 - broken"},
		{"degraded and draining", changingNode("n", "worker", "Degraded", "reason=broken", "desiredDrain=drain-a", "lastAppliedDrain=x"), "Degraded Draining 4.14.0 ? broken"},
		{"degraded and not ready", is(n("currentConfig=old", "desiredConfig=old", "state=Degraded", "reason=broken"), "Ready=False"), "Degraded Pending 4.14.0 ? broken"},
		{"degraded without desired config", n("currentConfig=old", "state=Degraded", "reason=broken"), pending},
		{"reason without trouble", doneNode("n", "worker", "old", "reason=stale"), pending},
	} {
		o := withNodes(updating(), tt.node)
		o.MachineConfigs = append(o.MachineConfigs, configOf("newer", "4.14.1"), configOf("older", "4.13.0"), configOf("empty", ""), &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
		if got := nodeRow(assess(t, o, time.Minute).Pools[1].Nodes[0]); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// Without a history there is no target, and what is unknown is not one.
func TestNodesWithoutTarget(t *testing.T) {
	o := withNodes(updating(), poolNode("n", "worker", "currentConfig=old", "desiredConfig=gone", "state=Working"))
	o.MachineConfigPools[1].Spec.Configuration.Name = "gone"
	o.ClusterVersion.Status.History = nil
	if got, want := nodeRow(assess(t, o, time.Minute).Pools[1].Nodes[0]), "Unavailable Pending 4.14.0 ? Machine Config Daemon is processing the node"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPausedNodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"outdated", oldNode("n", "worker"), "Excluded Paused 4.14.0 -"},
		{"updated", newNode("n", "worker"), "Completed Updated 4.14.1 -"},
		{"updating", changingNode("n", "worker", "Working"), "Progressing Updating 4.14.0 +5m"},
		{"not ready", nodeSays(oldNode("n", "worker"), "Ready=False", after(0), ""), "Unavailable Paused 4.14.0 ? Not ready"},
	} {
		o := withNodes(updating(), tt.node)
		o.MachineConfigPools[1].Spec.Paused = true
		if got := nodeRow(assess(t, o, time.Minute).Pools[1].Nodes[0]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Nodes count as unavailable when they were asked for the image of their pool.
func TestNodeImages(t *testing.T) {
	for _, tt := range []struct {
		label, newest, desired string
		unavailable            bool
	}{
		{"", "", "", true}, {"", "", "a", false}, {"", "a", "a", false}, {"", "a", "", true},
		{"yes", "a", "a", true}, {"yes", "a", "", false}, {"yes", "a", "b", false}, {"yes", "", "", true}, {"yes", "", "a", false},
	} {
		n := nodeSays(doneNode("n", "worker", "old"), "Ready=False", after(0), "")
		if tt.desired != "" {
			n.Annotations[mcd+"desiredImage"] = tt.desired
		}
		o := withNodes(updating(), n)
		pool := o.MachineConfigPools[1]
		pool.Annotations = map[string]string{mcd + "newestImageEquivalentConfig": tt.newest}
		if tt.label != "" {
			pool.Labels = map[string]string{mcd + "layering-enabled": ""}
		}
		if got := assess(t, o, time.Minute).Pools[1].Nodes[0].Unavailable; got != tt.unavailable {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	// The daemon has an image to reach, too.
	o := withNodes(updating(), doneNode("n", "worker", "old", "currentImage=a", "desiredImage=a"), doneNode("m", "worker", "old", "currentImage=b", "desiredImage=a"))
	o.MachineConfigPools[1].Annotations = map[string]string{mcd + "newestImageEquivalentConfig": "a"}
	o.MachineConfigPools[1].Labels = map[string]string{mcd + "layering-enabled": ""}
	if p := assess(t, o, time.Minute).Pools[1]; p.Available != 1 || p.Nodes[0].Name != "m" || p.Nodes[0].Message != "Machine Config Daemon is processing the node" {
		t.Errorf("%+v", p)
	}
}

// While the architecture changes, a node is updated when its config is.
func TestMultiArchNodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"the pool's config", newNode("n", "worker"), "Completed Updated 4.14.1 -"},
		{"another config", doneNode("n", "worker", "newer"), "Outdated Pending 4.14.1 ?"},
		{"on its way", poolNode("n", "worker", "currentConfig=newer", "desiredConfig=new", "state=Working"), "Progressing Updating 4.14.1 +5m"},
		{"on its way elsewhere", poolNode("n", "worker", "currentConfig=new", "desiredConfig=newer", "state=Working"), "Unavailable Pending 4.14.1 ? Machine Config Daemon is processing the node"},
		{"asked for nothing", poolNode("n", "worker", "currentConfig=newer", "state=Done"), "Unavailable Updated 4.14.1 - Machine Config Daemon is processing the node"},
		{"asked for an empty config", poolNode("n", "worker", "currentConfig=newer", "desiredConfig=", "state=Done"), "Unavailable Pending 4.14.1 ? Machine Config Daemon is processing the node"},
		{"another version", oldNode("n", "worker"), "Outdated Pending 4.14.0 ?"},
	} {
		for _, before := range []string{"Completed", "Partial"} {
			o := withNodes(updating(), tt.node)
			o.MachineConfigs = append(o.MachineConfigs, configOf("newer", "4.14.1"))
			h := complete("4.14.1", after(-time.Hour), time.Minute)
			h.Image = "quay.io/release:single"
			if before == "Partial" {
				h = partial("4.14.1", after(-time.Hour))
				h.Image = "quay.io/release:single"
			}
			o.ClusterVersion.Status.History[1] = h
			if got := nodeRow(assess(t, o, time.Minute).Pools[1].Nodes[0]); got != tt.want {
				t.Errorf("%s after %s: %s, want %s", tt.name, before, got, tt.want)
			}
		}
	}
	// Once it has ended, versions alone count.
	o := withNodes(updating(), doneNode("n", "worker", "newer"), oldNode("late", "worker"))
	o.MachineConfigs = append(o.MachineConfigs, configOf("newer", "4.14.1"))
	o.ClusterVersion.Status.History[1] = complete("4.14.1", after(-time.Hour), time.Minute)
	o.ClusterVersion.Status.History[1].Image = "quay.io/release:single"
	o.ClusterVersion.Status.Conditions[0].Status = "False"
	if p := assess(t, o, time.Minute).Pools[1]; p.Updated != 1 {
		t.Errorf("%+v", p)
	}
}

func TestNodeOrder(t *testing.T) {
	drains := []string{"desiredDrain=drain-a", "lastAppliedDrain=x"}
	down := func(n *corev1.Node) *corev1.Node { return nodeSays(n, "Ready=False", after(0), "") }
	o := withNodes(updating(),
		newNode("12-done", "worker"), changingNode("11-done", "worker", "Done"), oldNode("10-pending", "worker"), oldNode("09-pending", "worker"),
		changingNode("08-rebooting", "worker", "Rebooting"), changingNode("07-updating", "worker", "Working"), changingNode("06-updating", "worker", "Working"),
		changingNode("13-draining", "worker", "Working", drains...),
		down(newNode("04-down", "worker")), down(oldNode("14-down", "worker")),
		poolNode("03-bad", "worker", "currentConfig=new", "desiredConfig=new", "state=Degraded"),
		poolNode("15-bad", "worker", "currentConfig=old", "desiredConfig=old", "state=Degraded"),
		changingNode("16-bad", "worker", "Degraded"), changingNode("17-bad", "worker", "Degraded", drains...),
	)
	var names []string
	for _, n := range assess(t, o, time.Minute).Pools[1].Nodes {
		names = append(names, n.Name)
	}
	same(t, "order", "17-bad 16-bad 15-bad 03-bad 14-down 04-down 13-draining 06-updating 07-updating 08-rebooting 09-pending 10-pending 11-done 12-done", strings.Join(names, " "))
	// Paused nodes come behind those on their way, and before the updated.
	o = withNodes(updating(), newNode("a", "worker"), oldNode("b", "worker"), changingNode("c", "worker", "Working"), down(newNode("d", "worker")), down(oldNode("e", "worker")))
	o.MachineConfigPools[1].Spec.Paused = true
	names = nil
	for _, n := range assess(t, o, time.Minute).Pools[1].Nodes {
		names = append(names, n.Name)
	}
	same(t, "paused", "e d c b a", strings.Join(names, " "))
}

func TestNodeTable(t *testing.T) {
	o := withNodes(updating(),
		changingNode("node-b.example", "worker", "Degraded", "reason=node-b.example: cannot reach node-b.example\tnow\nsecond line\nthird\n"),
		changingNode("seven77", "worker", "Degraded", "reason=seven77 is broken"),
		changingNode("eight888", "worker", "Degraded", "reason=eight888 is broken"),
		changingNode("w", "worker", "Rebooting"), doneNode("x", "worker", "gone"), newNode("y", "worker"),
	)
	// A line feed in a message breaks the columns.
	want := "Worker Pool Nodes: worker\n" +
		"NAME             ASSESSMENT   PHASE      VERSION   EST   MESSAGE\n" +
		"eight888         Degraded     Updating   4.14.0    ?     <node> is broken\n" +
		"node-b.example   Degraded     Updating   4.14.0    ?     <node>: cannot reach <node> now\n" +
		"second line\n" +
		"third\n" +
		"\n" +
		"seven77   Degraded      Updating    4.14.0   ?     seven77 is broken\n" +
		"w         Progressing   Rebooting   4.14.0   +5m   \n" +
		"x         Outdated      Pending     ?        ?     \n" +
		"y         Completed     Updated     4.14.1   -     \n"
	same(t, "table", want, section(t, statusText(t, o, time.Minute, view.StatusText{}), "Worker Pool", "\n= Update"))
	for _, i := range assess(t, o, time.Minute).Health {
		if strings.Contains(i.Summary+i.Description, "<node>") {
			t.Errorf("an insight does not name its node: %+v", i)
		}
	}
}

func TestMasterNodes(t *testing.T) {
	text := func(o *view.Objects, d view.Details) string {
		return section(t, statusText(t, o, time.Minute, view.StatusText{Details: d}), "Operator Health", "\n= Update")
	}
	const done = "\nAll control plane nodes successfully updated to "
	for _, tt := range []struct {
		name  string
		nodes []*corev1.Node
		want  string
	}{
		{"none", nil, ""},
		{"done", []*corev1.Node{newNode("a", "master"), newNode("b", "master")}, done + "4.14.1\n"},
		{"done, one of them still old", []*corev1.Node{newNode("b", "master"), changingNode("a", "master", "Done")}, done + "4.14.0\n"},
		{"done, one of them bad", []*corev1.Node{newNode("a", "master"), nodeSays(newNode("b", "master"), "Ready=False", after(0), "")}, done + "4.14.1\n"},
		{"not done", []*corev1.Node{newNode("a", "master"), oldNode("b", "master")},
			"\nControl Plane Nodes\nNAME   ASSESSMENT   PHASE     VERSION   EST   MESSAGE\nb      Outdated     Pending   4.14.0    ?     \na      Completed    Updated   4.14.1    -     \n"},
	} {
		for _, d := range []view.Details{"none", "nodes", "health"} {
			same(t, tt.name, "Operator Health: 4 Healthy\n"+tt.want, text(withNodes(updating(), tt.nodes...), d))
		}
	}
}

// Of many nodes, ten are shown, and those in trouble.
func TestNodeLimit(t *testing.T) {
	show := func(o *view.Objects, d view.Details) (rows int, rest string) {
		text := section(t, statusText(t, o, time.Minute, view.StatusText{Details: d}), "Worker Pool", "\n= Update")
		table, rest, _ := strings.Cut(text, "...\n")
		return strings.Count(table, "\n") - 2, rest
	}
	old := func(n int) []*corev1.Node {
		return numbered(n, func(name string) *corev1.Node { return oldNode(name, "worker") })
	}
	const hint = "Pass along --details=nodes to see all information.\n"
	for _, tt := range []struct {
		name  string
		edit  func(o *view.Objects)
		nodes []*corev1.Node
		rows  int
		rest  string
	}{
		{"ten", nil, old(10), 10, ""},
		{"eleven", nil, old(11), 10, "Omitted additional 1 Total, 0 Completed, 1 Available, 0 Progressing, 1 Outdated, 0 Draining, 0 Excluded, and 0 Degraded nodes.\n" + hint},
		{"done ones", nil, append(old(4), numbered(10, func(n string) *corev1.Node { return newNode("x"+n, "worker") })...), 10,
			"Omitted additional 4 Total, 4 Completed, 4 Available, 0 Progressing, 0 Outdated, 0 Draining, 0 Excluded, and 0 Degraded nodes.\n" + hint},
		{"paused", func(o *view.Objects) { o.MachineConfigPools[1].Spec.Paused = true }, old(13), 10,
			"Omitted additional 3 Total, 0 Completed, 3 Available, 0 Progressing, 3 Outdated, 0 Draining, 3 Excluded, and 0 Degraded nodes.\n" + hint},
		{"draining", nil, numbered(12, func(n string) *corev1.Node {
			return changingNode(n, "worker", "Working", "desiredDrain=drain-a", "lastAppliedDrain=x")
		}), 10, "Omitted additional 2 Total, 0 Completed, 0 Available, 2 Progressing, 2 Outdated, 2 Draining, 0 Excluded, and 0 Degraded nodes.\n" + hint},
		{"being done", nil, numbered(12, func(n string) *corev1.Node { return changingNode(n, "worker", "Done") }), 10,
			"Omitted additional 2 Total, 0 Completed, 0 Available, 0 Progressing, 2 Outdated, 0 Draining, 0 Excluded, and 0 Degraded nodes.\n" + hint},
		{"degraded", nil, numbered(12, func(n string) *corev1.Node { return changingNode(n, "worker", "Degraded") }), 12, ""},
		{"unavailable", nil, append(old(3), numbered(12, func(n string) *corev1.Node {
			return nodeSays(newNode("x"+n, "worker"), "Ready=False", after(0), "")
		})...), 12, "Omitted additional 3 Total, 0 Completed, 3 Available, 0 Progressing, 3 Outdated, 0 Draining, 0 Excluded, and 0 Degraded nodes.\n" + hint},
	} {
		o := withNodes(updating(), tt.nodes...)
		if tt.edit != nil {
			tt.edit(o)
		}
		for _, d := range []view.Details{"", "health", "operators"} {
			if rows, rest := show(o, d); rows != tt.rows || rest != tt.rest {
				t.Errorf("%s, details %q: %d rows and %q, want %d and %q", tt.name, d, rows, rest, tt.rows, tt.rest)
			}
		}
		for _, d := range []view.Details{"nodes", "all"} {
			if rows, rest := show(o, d); rows != len(tt.nodes) || rest != "" {
				t.Errorf("%s, details %q: %d rows and %q", tt.name, d, rows, rest)
			}
		}
	}
}

func TestNodeInsights(t *testing.T) {
	now := 30 * time.Minute
	ago := func(d time.Duration) metav1.Time { return after(now - d) }
	node := func(conditions ...any) *corev1.Node {
		n := oldNode("n1", "worker")
		for i := 0; i < len(conditions); i += 2 {
			nodeSays(n, conditions[i].(string), conditions[i+1].(metav1.Time), "it\n\"is\"")
		}
		return n
	}
	cordoned := func(n *corev1.Node) *corev1.Node { n.Spec.Unschedulable = true; return n }
	degraded := func(n *corev1.Node, reason string) *corev1.Node {
		n.Annotations[mcd+"state"], n.Annotations[mcd+"reason"] = "Degraded", reason
		return n
	}
	const ready = `Node has a Ready!=True condition with Reason "Not ready" and message "it\n\"is\""`
	const disk = `Node has a DiskPressure!=False condition with Reason "Disk pressure" and message "it\n\"is\""`
	const network = `Node has a NetworkUnavailable!=False condition with Reason "Network unavailable" and message "it\n\"is\""`
	const nodeDocs = "https://docs.openshift.com/container-platform/latest/post_installation_configuration/machine-configuration-tasks.html#understanding-the-machine-config-operator"
	for _, tt := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"well", node(), ""},
		{"just below five minutes", node("Ready=False", ago(5*time.Minute-1)), ""},
		{"five minutes", node("Ready=False", ago(5*time.Minute)), "5m Warning Update Speed: Node n1 is not ready: " + ready},
		{"unknown", node("Ready=Unknown", ago(6*time.Minute)), "6m Warning Update Speed: Node n1 is not ready: " + ready},
		{"without a time", node("Ready=False", metav1.Time{}), "- Warning Update Speed: Node n1 is not ready: " + ready},
		{"disk, below a minute", node("DiskPressure=True", ago(time.Minute-1)), ""},
		{"disk", node("DiskPressure=True", ago(time.Minute)), "1m Warning Update Speed: Node n1 has disk pressure: " + disk},
		{"network, below a minute", node("NetworkUnavailable=True", ago(time.Minute-1)), ""},
		{"network", node("NetworkUnavailable=Unknown", ago(time.Minute)), "1m Warning Update Speed: Node n1 has unavailable network: " + network},
		{"cordoned", cordoned(node()), ""},
		{"cordoned and serious", cordoned(node("Ready=False", ago(7*time.Minute))),
			"7m Warning Update Speed: Node n1 is not ready | Node is marked unschedulable: " + ready + " | Node is marked unschedulable"},
		{"one of two is serious", node("Ready=False", ago(time.Minute), "NetworkUnavailable=True", ago(2*time.Minute)),
			"2m Warning Update Speed: Node n1 is not ready | Node n1 has unavailable network: " + ready + " | " + network},
		{"the earliest known", node("Ready=False", metav1.Time{}, "DiskPressure=True", ago(30*time.Second)),
			"30s Warning Update Speed: Node n1 is not ready | Node n1 has disk pressure: " + ready + " | " + disk},
		{"daemon at work", poolNode("n1", "worker", "currentConfig=old", "desiredConfig=old", "state=Working"), ""},
		{"updating", nodeSays(changingNode("n1", "worker", "Working"), "Ready=False", ago(time.Hour), ""), ""},
		{"image of another pool", nodeSays(doneNode("n1", "worker", "old", "desiredImage=a"), "Ready=False", ago(time.Hour), ""), ""},
		{"degraded", degraded(node(), "broken\n"), "- Error Update Stalled: Node n1 is degraded: broken\n"},
		{"degraded without reason", degraded(node(), ""), ""},
		{"both", degraded(node("Ready=False", ago(time.Hour)), "broken"), "- Error Update Stalled: Node n1 is degraded: broken; 1h Warning Update Speed: Node n1 is not ready: broken"},
		{"both without reason", degraded(node("Ready=False", ago(time.Hour)), ""), ""},
	} {
		for _, pool := range []string{"worker", "master"} {
			n := tt.node.DeepCopy()
			n.Labels = map[string]string{"role/" + pool: ""}
			var all []string
			for _, i := range assess(t, withNodes(updating(), n), now).Health {
				since := "-"
				if i.Since != nil {
					since = text.Short(updateStart.Add(now).Sub(*i.Since))
				}
				all = append(all, fmt.Sprintf("%s %s %s: %s: %s", since, i.Level, i.Impact, i.Summary, i.Description))
				scope := "WorkerPool"
				if pool == "master" {
					scope = "ControlPlane"
				}
				if i.Scope != scope || i.Reference != nodeDocs || len(i.Resources) != 1 || i.Resources[0] != (view.Resource{Kind: "Node", Name: "n1"}) {
					t.Errorf("%s: %+v", tt.name, i)
				}
			}
			same(t, tt.name, tt.want, strings.Join(all, "; "))
		}
	}
}

// selecting is a pool with another selector than that of its role.
func selecting(name string, selector *metav1.LabelSelector) *mcfgv1.MachineConfigPool {
	p := configPool(name)
	p.Spec.NodeSelector = selector
	return p
}

func hasLabel(keys ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, key := range keys {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
	}
	return s
}

func TestPoolMembership(t *testing.T) {
	all := &metav1.LabelSelector{}
	role := func(name string) *mcfgv1.MachineConfigPool { return configPool(name) }
	for _, tt := range []struct {
		name  string
		pools []*mcfgv1.MachineConfigPool
		roles string // of the node
		want  string // its pool
	}{
		{"master before all", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker infra master", "master"},
		{"custom before worker", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker infra", "infra"},
		{"worker", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "worker", "worker"},
		{"none", []*mcfgv1.MachineConfigPool{role("worker"), role("infra"), role("master")}, "edge", ""},
		{"the first custom one by name", []*mcfgv1.MachineConfigPool{role("worker"), role("zeta"), role("alpha"), role("beta")}, "worker zeta beta", "beta"},
		{"in any order", []*mcfgv1.MachineConfigPool{role("beta"), role("zeta"), role("worker")}, "worker zeta beta", "beta"},
		{"no selector selects nothing", []*mcfgv1.MachineConfigPool{selecting("master", nil), selecting("infra", nil), role("worker")}, "worker", "worker"},
		{"an empty one everything", []*mcfgv1.MachineConfigPool{role("master"), selecting("infra", all), role("worker")}, "worker", "infra"},
		{"an empty worker's the rest", []*mcfgv1.MachineConfigPool{role("master"), role("infra"), selecting("worker", all)}, "edge", "worker"},
		{"no worker", []*mcfgv1.MachineConfigPool{role("master"), role("infra")}, "worker", ""},
		{"no master", []*mcfgv1.MachineConfigPool{role("infra"), role("worker")}, "master worker", "worker"},
		{"no pools", nil, "master", ""},
		{"expressions", []*mcfgv1.MachineConfigPool{selecting("infra", hasLabel("role/worker", "role/infra")), role("worker")}, "worker infra", "infra"},
		{"all of them", []*mcfgv1.MachineConfigPool{selecting("infra", hasLabel("role/worker", "role/infra")), role("worker")}, "worker", "worker"},
	} {
		n := oldNode("n", "x")
		n.Labels = map[string]string{}
		for _, r := range strings.Fields(tt.roles) {
			n.Labels["role/"+r] = ""
		}
		o := withNodes(updating(), n)
		o.MachineConfigPools = tt.pools
		got := ""
		for i, p := range assess(t, o, 0).Pools {
			checktest.FailIf(t, p.Name != tt.pools[i].Name, "%s: pools changed their order", tt.name)
			if len(p.Nodes) > 0 {
				got += p.Name
			}
		}
		checktest.FailIf(t, got != tt.want, "%s: the node is of %q, want %q", tt.name, got, tt.want)
	}
}

func TestPoolCounts(t *testing.T) {
	o := withNodes(updating(),
		newNode("done", "worker"),
		nodeSays(newNode("done-down", "worker"), "Ready=False", after(0), ""),
		oldNode("pending", "worker"),
		changingNode("draining", "worker", "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"),
		changingNode("draining-degraded", "worker", "Degraded", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"),
		changingNode("updating", "worker", "Working"),
		changingNode("rebooting", "worker", "Rebooting"),
		changingNode("updating-degraded", "worker", "Unreconcilable"),
		poolNode("pending-degraded", "worker", "currentConfig=old", "desiredConfig=old", "state=Degraded"),
		poolNode("done-degraded", "worker", "currentConfig=new", "desiredConfig=new", "state=Degraded"),
	)
	p := assess(t, o, time.Minute).Pools[1]
	p.Nodes = nil
	want := view.Pool{
		Name: "worker", Assessment: "Degraded", Completion: 30, Total: 10, Available: 6, Updated: 3, Outdated: 7,
		Progressing: 3, Draining: 2, Pending: 2, Degraded: 4,
	}
	if p.Name != want.Name || p.Assessment != want.Assessment || p.Completion != want.Completion {
		t.Errorf("%+v", p)
	}
	if p.Total != want.Total || p.Available != want.Available || p.Updated != want.Updated || p.Outdated != want.Outdated ||
		p.Progressing != want.Progressing || p.Draining != want.Draining || p.Pending != want.Pending || p.Degraded != want.Degraded || p.Excluded != 0 {
		t.Errorf("counts\n%+v, want\n%+v", p, want)
	}
	o.MachineConfigPools[1].Spec.Paused = true // nodes on their way go on
	p = assess(t, o, time.Minute).Pools[1]
	checktest.FailIf(t, p.Excluded != 2 || p.Pending != 0 || p.Outdated != 7 || p.Progressing != 3, "paused: %+v", p)
}

func TestPoolTable(t *testing.T) {
	drains := []string{"desiredDrain=drain-new", "lastAppliedDrain=uncordon-old"}
	for _, tt := range []struct {
		name   string
		paused bool
		nodes  []*corev1.Node
		want   string
	}{
		{"all pending", false, []*corev1.Node{oldNode("a", "worker"), oldNode("b", "worker")}, "Pending 0% (0/2) 2 Available, 0 Progressing, 0 Draining"},
		{"all done", false, []*corev1.Node{newNode("a", "worker"), newNode("b", "worker")}, "Completed 100% (2/2) 2 Available, 0 Progressing, 0 Draining"},
		{"some pending", false, []*corev1.Node{newNode("a", "worker"), oldNode("b", "worker")}, "Progressing 50% (1/2) 2 Available, 0 Progressing, 0 Draining"},
		{"draining", false, []*corev1.Node{changingNode("a", "worker", "Working", drains...), oldNode("b", "worker")}, "Progressing 0% (0/2) 1 Available, 1 Progressing, 1 Draining"},
		{"paused", true, []*corev1.Node{newNode("a", "worker"), oldNode("b", "worker"), oldNode("c", "worker")}, "Excluded 33% (1/3) 3 Available, 0 Progressing, 0 Draining, 2 Excluded"},
		{"paused and done", true, []*corev1.Node{newNode("a", "worker")}, "Completed 100% (1/1) 1 Available, 0 Progressing, 0 Draining"},
		{"degraded", false, []*corev1.Node{newNode("a", "worker"), changingNode("b", "worker", "Degraded")}, "Degraded 50% (1/2) 2 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"paused and degraded", true, []*corev1.Node{oldNode("a", "worker"), changingNode("b", "worker", "Degraded")}, "Degraded 0% (0/2) 2 Available, 0 Progressing, 0 Draining, 1 Excluded, 1 Degraded"},
		{"pending and degraded", false, []*corev1.Node{oldNode("a", "worker"), poolNode("b", "worker", "currentConfig=old", "desiredConfig=old", "state=Degraded")}, "Pending 0% (0/2) 2 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"done and degraded", false, []*corev1.Node{poolNode("b", "worker", "currentConfig=new", "desiredConfig=new", "state=Degraded")}, "Completed 100% (1/1) 1 Available, 0 Progressing, 0 Draining, 1 Degraded"},
		{"an eighth", false, append(numbered(7, func(n string) *corev1.Node { return oldNode(n, "worker") }), newNode("a", "worker")), "Progressing 12% (1/8) 8 Available, 0 Progressing, 0 Draining"},
		{"three eighths", false, append(numbered(5, func(n string) *corev1.Node { return oldNode(n, "worker") }), newNode("a", "worker"), newNode("b", "worker"), newNode("c", "worker")), "Progressing 38% (3/8) 8 Available, 0 Progressing, 0 Draining"},
	} {
		o := withNodes(updating(), tt.nodes...)
		o.MachineConfigPools[1].Spec.Paused = tt.paused
		lines := strings.Split(section(t, statusText(t, o, time.Minute, view.StatusText{}), "= Worker", "Worker Pool Nodes"), "\n")
		if got := strings.Join(strings.Fields(lines[3]), " "); got != "worker "+tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPoolTableAlignment(t *testing.T) {
	o := withNodes(updating(), oldNode("a", "infrastructure"), newNode("b", "worker"))
	o.MachineConfigPools = []*mcfgv1.MachineConfigPool{configPool("worker"), configPool("infrastructure"), configPool("empty"), configPool("master")}
	same(t, "table", "= Worker Upgrade =\n\n"+
		"WORKER POOL      ASSESSMENT   COMPLETION   STATUS\n"+
		"worker           Completed    100% (1/1)   1 Available, 0 Progressing, 0 Draining\n"+
		"infrastructure   Pending      0% (0/1)     1 Available, 0 Progressing, 0 Draining\n"+
		"empty            Empty                     0 Total\n",
		section(t, statusText(t, o, time.Minute, view.StatusText{}), "= Worker", "\nWorker Pool Nodes"))
}

// A pool is paused, and nodes in it are outdated: that stalls the update.
func TestPausedPoolInsight(t *testing.T) {
	for _, pool := range []string{"worker", "master"} {
		o := withNodes(updating(), oldNode("a", pool))
		for _, p := range o.MachineConfigPools {
			p.Spec.Paused = true
		}
		s := assess(t, o, time.Minute)
		same(t, pool, "Message: Outdated nodes in a paused pool '"+pool+"' will not be updated\n"+
			"  Since:       -\n  Level:       Warning\n  Impact:      Update Stalled\n"+
			"  Reference:   https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-operator-issues.html#troubleshooting-disabling-autoreboot-mco_troubleshooting-operator-issues\n"+
			"  Resources:\n    machineconfigpools.machineconfiguration.openshift.io: "+pool+"\n"+
			"  Description: Pool is paused, which stops all changes to the nodes in the pool, including updates. The nodes will not be updated until the pool is unpaused by the administrator.\n",
			section(t, statusText(t, o, time.Minute, view.StatusText{Details: "health"}), "Message", ""))
		checktest.FailIf(t, len(s.Health) != 1 || s.Health[0].Scope != "WorkerPool", "%+v", s.Health)
	}
	o := withNodes(updating(), newNode("a", "worker"))
	o.MachineConfigPools[1].Spec.Paused = true
	if s := assess(t, o, time.Minute); len(s.Health) > 0 {
		t.Errorf("a paused pool that is done: %+v", s.Health)
	}
}
