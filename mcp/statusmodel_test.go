package mcp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

var statuses = flag.Int("statuses", 2000, "how many random pool statuses are compared with a plain calculation")

// TestStatusEqualsPlainCalculation compares pool status with a calculation
// that goes through the pool's nodes and MachineConfigNodes one by one, and
// shares no code with the package.
func TestStatusEqualsPlainCalculation(t *testing.T) {
	for seed := range uint64(*statuses) {
		in := randomPool(rand.New(rand.NewPCG(seed, 12)))
		want := plainStatus(in)
		got := mcptest.Brief(mcp.PoolStatus(in, "worker"))
		if i := strings.Index(got, "\nImageBuildDegraded="); i >= 0 { // has a test of its own
			_, rest, _ := strings.Cut(got[i+1:], "\n")
			got = got[:i] + "\n" + rest
		}
		if got != want {
			t.Fatalf("seed %d:\n%s", seed, cmp.Diff(want, got))
		}
		pinned := mcp.PoolStatus(in, "worker").PoolSynchronizersStatus[0].UpdatedMachineCount
		if want := plainPinned(in); pinned != want {
			t.Fatalf("seed %d: %d nodes have their pinned images, want %d", seed, pinned, want)
		}
	}
}

// randomPool draws a pool with a few nodes and MachineConfigNodes of all sorts.
func randomPool(r *rand.Rand) mcp.Snapshot {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	maybe := func(one int) bool { return r.IntN(one) == 0 }
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = maybe(4) })))
	in.Options = mcp.Options{Compat: maybe(2), ImageModeStatusReporting: maybe(2), PoolSynchronizers: true}
	if maybe(3) {
		mcptest.Layered(&in, pick("", "i", "h"), [][]string{nil, {"Succeeded"}, {"Building"}, {"Failed"}, {"Prepared"}, {""}}[r.IntN(6)]...)
	}
	for i := range r.IntN(6) {
		n := mcptest.Node(fmt.Sprint("n", i), "worker", pick("N", "O"))
		for _, a := range []struct{ name, value string }{
			{mcp.AnnotationDesiredConfig, pick("N", "O", "")}, {mcp.AnnotationState, pick("Done", "Done", "Working", "Degraded", "Unreconcilable", "")},
			{mcp.AnnotationReason, pick("", "disk is full")}, {mcp.AnnotationCurrentImage, pick("", "i", "h")}, {mcp.AnnotationDesiredImage, pick("", "i", "h")},
		} {
			switch {
			case a.name == mcp.AnnotationDesiredConfig && maybe(2): // stays as it is
			case strings.HasSuffix(a.name, "Image") && maybe(2): // absent
			case maybe(12):
				delete(n.Annotations, a.name)
			default:
				n.Annotations[a.name] = a.value
			}
		}
		n.Spec.Unschedulable = maybe(5)
		if maybe(4) {
			mcptest.Condition(corev1.NodeConditionType(pick("Ready", "DiskPressure", "NetworkUnavailable", "MemoryPressure")), corev1.ConditionStatus(pick("True", "False", "Unknown")))(&n)
		}
		in.Nodes = append(in.Nodes, n)
	}
	none := maybe(4) // a cluster whose release has no MachineConfigNodes
	for i := range 7 {
		if none || maybe(4) {
			continue
		}
		m := mcptest.Mcn(fmt.Sprint("n", i))
		for _, c := range []string{"Updated", "NodeDegraded", "UpdatePrepared", "Resumed"} {
			if !maybe(3) {
				m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
					Type: c, Status: metav1.ConditionStatus(pick("True", "True", "False", "Unknown")), Message: pick("", "failure. disk is full", "failure")})
			}
		}
		if maybe(6) {
			m.Status.Conditions = nil
		}
		r.Shuffle(len(m.Status.Conditions), func(a, b int) {
			m.Status.Conditions[a], m.Status.Conditions[b] = m.Status.Conditions[b], m.Status.Conditions[a]
		})
		m.Status.ConfigVersion.Desired = pick("N", "N", "O")
		if maybe(10) {
			m.Status.ConfigVersion = nil
		}
		m.Status.ConfigImage.DesiredImage = mcfgv1.ImageDigestFormat(pick("", "i", "h"))
		for range r.IntN(3) {
			m.Status.PinnedImageSets = append(m.Status.PinnedImageSets, mcfgv1.MachineConfigNodeStatusPinnedImageSet{
				CurrentGeneration: int32(r.IntN(3)), DesiredGeneration: int32(r.IntN(3))})
		}
		in.MachineConfigNodes = append(in.MachineConfigNodes, m)
	}
	return in
}

// plainNode is what counts of one node.
type plainNode struct{ updated, ready, unavailable, degraded, mcnUpdated, mcnDegraded bool }

// plainStatus is the pool's status in the words of brief.
func plainStatus(in mcp.Snapshot) string {
	p := in.Pools[0]
	image, config, hasBuild, progress, pushed := "", "", false, "", ""
	isLayered := len(in.MachineOSConfigs) > 0
	if isLayered {
		image = string(in.MachineOSConfigs[0].Status.CurrentImagePullSpec)
	}
	if len(in.MachineOSBuilds) > 0 {
		b := in.MachineOSBuilds[0]
		hasBuild, config, pushed = true, b.Spec.MachineConfig.Name, string(b.Status.DigestedImagePushSpec)
		if len(b.Status.Conditions) > 0 {
			progress = b.Status.Conditions[0].Type
		}
	}

	var total, updated, ready, unavailable, degraded, theirs int
	var own, first, second []string // texts by node; and Compat's
	for _, n := range in.Nodes {
		c := plainClass(n, in, isLayered, image, hasBuild, config)
		total++
		updated += one(in.Options.ImageModeStatusReporting && c.mcnUpdated || !in.Options.ImageModeStatusReporting && c.updated)
		ready += one(c.ready)
		unavailable += one(c.unavailable)
		counts := in.Options.ImageModeStatusReporting && c.mcnDegraded || !in.Options.ImageModeStatusReporting && c.degraded
		degraded += one(counts)
		theirs += one(c.mcnDegraded)

		message, hasMessage := "", false
		if m := nodeOf(in, n.Name); m != nil {
			for _, o := range m.Status.Conditions {
				if o.Type == "NodeDegraded" && o.Status == "True" {
					message, hasMessage = o.Message, true
				}
			}
		}
		reason := n.Annotations[mcp.AnnotationReason]
		says := func(text string) string { return fmt.Sprintf("Node %s is reporting: %q", n.Name, text) }
		if c.mcnDegraded && hasMessage {
			first = append(first, says(message))
		}
		if c.mcnDegraded && reason != "" {
			second = append(second, says(reason))
		}
		if !counts {
			continue
		}
		switch {
		case message == "" && reason == "":
		case message == "":
			own = append(own, says(reason))
		case reason == "" || strings.Contains(message, reason):
			own = append(own, says(message))
		default:
			own = append(own, says(message+"; "+reason))
		}
	}

	building := isLayered && hasBuild && (progress == "Building" || progress == "Prepared" || progress == "Failed" ||
		progress == "Succeeded" && pushed != "" && pushed != image)
	all := updated == total && ready == total && unavailable == 0 && !building
	line := "MachineConfig N"
	if image != "" {
		line += " / Image " + image
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d updated %d ready %d unavailable %d degraded %d", total, updated, ready, unavailable, degraded)
	if all {
		b.WriteString(" N")
	}
	updating := ""
	switch {
	case all:
		b.WriteString("\nUpdated=True All nodes are updated with " + line)
		updating = "False"
	case p.Spec.Paused:
		b.WriteString("\nUpdated=False")
		updating = "False Pool is paused; will not update to " + line
	default:
		b.WriteString("\nUpdated=False")
		updating = "True All nodes are updating to " + line
	}
	if isLayered {
		// The stored status has no conditions: the controller does not yet know
		// of the nodes that are degraded.
		if text := plainBuild(p.Spec.Paused, !in.Options.Compat && degraded > 0, all, hasBuild, progress); text != "" {
			updating = text
		}
	}
	b.WriteString("\nUpdating=" + updating)
	texts, count := own, degraded
	if in.Options.Compat {
		texts, count = slices.Concat(first, second), theirs
	}
	nodeLine, degradedLine := "False", "False"
	if degraded > 0 {
		text := strings.Join(texts, ", ")
		nodeLine = fmt.Sprintf("True (%d nodes are reporting degraded status on sync)", count)
		degradedLine = "True"
		if text != "" {
			nodeLine += " " + text
			degradedLine += " " + text
		}
	}
	b.WriteString("\nNodeDegraded=" + nodeLine + "\nDegraded=" + degradedLine)
	return b.String()
}

// plainBuild is Updating of a layered pool; "" where the build says nothing.
func plainBuild(paused, degraded, all, hasBuild bool, progress string) string {
	if !paused && degraded {
		return "False Pool update paused due to degraded condition"
	}
	if !hasBuild {
		progress = "none"
	}
	type texts struct{ updating, paused string }
	t := map[string]texts{
		"none":      {"True Pool is waiting for a new OS image build to start (mosc: mosc)", "True Pool is paused; waiting for a new OS image build to start (mosc: mosc)"},
		"Prepared":  {"True Pool is waiting for OS image build to start (mosb: mosb)", "True Pool is paused; OS image build has been prepared but will not rollout (mosb: mosb)"},
		"Building":  {"True Pool is waiting for OS image build to complete (mosb: mosb)", "True Pool is paused; OS image build in progress (mosb: mosb)"},
		"Succeeded": {"True Pool is waiting for nodes to apply OS image (mosb: mosb)", "False Pool is paused; OS image build completed successfully (mosb: mosb)"},
		"Failed":    {"False Pool update stopped due to OS image build failure (mosb: mosb)", "False Pool is paused; OS image build failed (mosb: mosb)"},
		"":          {"True Pool is waiting for OS image build to start (mosb: mosb)", "True Pool is paused; OS image build has been created but not yet started (mosb: mosb)"},
	}[progress]
	switch {
	case paused:
		return t.paused
	case progress == "Succeeded" && all:
		return ""
	}
	return t.updating
}

func plainClass(n corev1.Node, in mcp.Snapshot, isLayered bool, image string, hasBuild bool, buildConfig string) (c plainNode) {
	value := func(name string) (string, bool) { v, ok := n.Annotations[name]; return v, ok }
	current, _ := value(mcp.AnnotationCurrentConfig)
	desired, _ := value(mcp.AnnotationDesiredConfig)
	state, _ := value(mcp.AnnotationState)
	currentImage, hasCurrent := value(mcp.AnnotationCurrentImage)
	desiredImage, hasDesired := value(mcp.AnnotationDesiredImage)

	done := current != "" && current == desired && state == "Done"
	if hasCurrent || hasDesired {
		done = done && currentImage != "" && currentImage == desiredImage
	}
	c.degraded = state == "Degraded" || state == "Unreconcilable"
	isReady := !n.Spec.Unschedulable
	for _, o := range n.Status.Conditions {
		switch o.Type {
		case "Ready":
			isReady = isReady && o.Status == "True"
		case "DiskPressure", "NetworkUnavailable":
			isReady = isReady && o.Status == "False"
		}
	}
	c.unavailable = !isReady || !done && !(current != desired && c.degraded)
	c.updated = done && desired == "N" && !hasDesired
	if isLayered {
		c.updated = done && desired == "N" && image != "" && desiredImage == image && hasBuild && desired == buildConfig
	}
	c.ready = c.updated && isReady

	m := nodeOf(in, n.Name)
	if m == nil {
		return c
	}
	// The controller reads the conditions in their order and stops at the first that
	// counts. Without the gate only NodeDegraded does.
	reached := false
	if v, to := m.Status.ConfigVersion, string(m.Status.ConfigImage.DesiredImage); v != nil && v.Desired == "N" {
		reached = to == ""
		if isLayered {
			reached = hasBuild && buildConfig == "N" && image != "" && to == image
		}
	}
	for _, o := range m.Status.Conditions {
		if o.Type == "NodeDegraded" && o.Status == "True" {
			c.mcnDegraded = true
			break
		}
		if in.Options.ImageModeStatusReporting && o.Type == "Updated" && o.Status == "True" && reached {
			c.mcnUpdated = true
			break
		}
	}
	return c
}

// plainPinned counts the nodes that have all their pinned images, among those
// whose MachineConfigNode says anything.
func plainPinned(in mcp.Snapshot) (count int64) {
	for _, n := range in.Nodes {
		m := nodeOf(in, n.Name)
		if m == nil || len(m.Status.Conditions) == 0 {
			continue
		}
		all := true
		for _, s := range m.Status.PinnedImageSets {
			all = all && s.DesiredGeneration > 0 && s.CurrentGeneration == s.DesiredGeneration
		}
		count += int64(one(all))
	}
	return count
}

func nodeOf(in mcp.Snapshot, name string) *mcfgv1.MachineConfigNode {
	for i := range in.MachineConfigNodes {
		if in.MachineConfigNodes[i].Name == name {
			return &in.MachineConfigNodes[i]
		}
	}
	return nil
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
