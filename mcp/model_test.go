package mcp_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// The status and the candidates of random pools equal a plain calculation, which goes through
// nodes and MachineConfigNodes one by one as the machine-config controller does, and shares no
// code with the package.
func TestEqualsPlainCalculation(t *testing.T) {
	const ordinary = 10 // times as many as of tests that simulate
	simtest.Test(t, ordinary, func(seed uint64, _ map[string]bool) ([]string, error) {
		in := randomCase(rand.New(rand.NewPCG(seed, 12)))
		m := modelOf(in, &in.Pools[0])
		name := m.pool.Name
		for _, c := range []struct {
			what      string
			want, got any
		}{
			{"status", m.status(), mcp.PoolStatus(in, name)},
			{"candidates", m.selection(), briefSelection(mcp.Candidates(in, name))},
			{"taints", m.taints(), mcp.NewState(in.Objects, in.Options).Taints(name)},
		} {
			if !reflect.DeepEqual(c.want, c.got) {
				return nil, fmt.Errorf("%s of pool %s: %s", c.what, name, gocmp.Diff(c.want, c.got))
			}
		}
		return nil, nil
	})
}

// dice draws values.
type dice struct{ *rand.Rand }

func (d dice) pick(values ...string) string { return values[d.IntN(len(values))] }

// once returns true once in so many times.
func (d dice) once(in int) bool { return d.IntN(in) == 0 }

// randomCase draws a pool with a few nodes and MachineConfigNodes of all sorts. It stands first;
// where it is one of the control plane, the other pool of an arbiter cluster may follow.
func randomCase(r *rand.Rand) mcp.Snapshot {
	d := dice{r}
	name := d.pick("worker", "worker", "worker", "master", "master", "arbiter")
	in := mcptest.Snapshot(mcptest.Pools(d.pool(name)))
	in.Options = mcp.Options{Compat: d.once(2), ImageModeStatusReporting: d.once(2), PoolSynchronizers: !d.once(4)}
	if d.once(6) {
		hold := d.once(2)
		in.Options.HoldFailing = &hold
	}
	if d.once(3) {
		in.Options.Order.Last = []string{"n0", "n2"}
	}
	if name == "worker" && d.once(3) {
		progress := [][]string{nil, {"Succeeded"}, {"Succeeded"}, {"Building"}, {"Failed"}, {"Prepared"}, {"Interrupted"},
			{""}}
		mcptest.Layered(&in, d.pick("", "i", "i", "h"), progress[d.IntN(len(progress))]...)
	}
	d.nodes(&in, "n", name, d.IntN(7))
	if name != "worker" {
		in.ControllerConfig = mcptest.Topology(d.pick("HighlyAvailable", "HighlyAvailableArbiter", "HighlyAvailableArbiter"))
		other := map[string]string{"master": "arbiter", "arbiter": "master"}[name]
		if !d.once(5) {
			in.Pools = append(in.Pools, d.pool(other))
			d.nodes(&in, "o", other, d.IntN(4))
		}
		for i := range d.IntN(4) / 2 {
			in.Pods = append(in.Pods, mcptest.OperatorPod(fmt.Sprint("p", i), fmt.Sprint("n", d.IntN(5))))
		}
	}
	in.Pools = append(in.Pools, mcptest.Pool("infra", "I"))
	for config, owner := range map[string]string{"I": "infra", "W": "worker", "G": "gone"} {
		c := mcfgv1.MachineConfig{}
		c.Name = config
		c.OwnerReferences = []metav1.OwnerReference{{Name: owner}}
		in.MachineConfigs = append(in.MachineConfigs, c)
	}
	if d.once(4) {
		return in // of a release that has no MachineConfigNodes
	}
	for i := range 7 {
		if !d.once(4) {
			in.MachineConfigNodes = append(in.MachineConfigNodes, d.machineConfigNode(fmt.Sprint("n", i)))
		}
	}
	return in
}

// pool draws a pool with the status that it had an hour ago.
func (d dice) pool(name string) mcfgv1.MachineConfigPool {
	p := mcptest.Pool(name, "N")
	p.Spec.Paused = d.once(5)
	if d.once(20) {
		p.DeletionTimestamp = &metav1.Time{Time: mcptest.Epoch}
	}
	if d.once(2) {
		v := intstr.Parse(d.pick("0", "2", "3", "4", "50%", "100%", "-1", "x"))
		p.Spec.MaxUnavailable = &v
	}
	if d.once(2) {
		return p
	}
	p.Status.Configuration.Name = "O"
	at := metav1.NewTime(mcptest.Epoch.Add(-time.Hour))
	for _, t := range []mcfgv1.MachineConfigPoolConditionType{"RenderDegraded", "PinnedImageSetsDegraded", "NodeDegraded",
		"ImageBuildDegraded", "Degraded", "Updated", "Updating"} {
		if d.once(3) {
			p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: t,
				Status: corev1.ConditionStatus(d.pick("True", "False")), LastTransitionTime: at})
		}
	}
	return p
}

// nodes draws nodes of a role.
func (d dice) nodes(in *mcp.Snapshot, prefix, role string, count int) {
	for i := range count {
		n := mcptest.Node(fmt.Sprint(prefix, i), role, d.pick("N", "O"), mcptest.Age(d.IntN(3)))
		if d.once(2) {
			d.disturb(&n)
		}
		if d.once(2) {
			mcptest.Zone(d.pick("", "z1", "z2"))(&n)
		}
		if d.once(4) {
			mcptest.Taint(&n)
		}
		if d.once(6) {
			mcptest.Annotate(mcp.AnnotationFirstPivotConfig, d.pick("I", "I", "W", "G", "none"))(&n)
		}
		if d.once(20) {
			mcptest.Annotate(mcp.AnnotationCustomPoolLabelsApplied, "")(&n)
		}
		in.Nodes = append(in.Nodes, n)
	}
}

// disturb changes a node that is Done and Ready.
func (d dice) disturb(n *corev1.Node) {
	n.Spec.Unschedulable = d.once(5)
	if d.once(3) { // its update fails
		mcptest.Annotate(mcp.AnnotationCurrentConfig, "O", mcp.AnnotationDesiredConfig, d.pick("N", "M"),
			mcp.AnnotationState, d.pick("Degraded", "Unreconcilable"), mcp.AnnotationReason, d.pick("bad M", "bad N"))(n)
		return
	}
	for _, a := range []struct{ name, value string }{
		{mcp.AnnotationDesiredConfig, d.pick("N", "O", "")},
		{mcp.AnnotationState, d.pick("Done", "Done", "Working", "Degraded", "Unreconcilable", "")},
		{mcp.AnnotationReason, d.pick("", "disk is full", "bad O", "bad N")},
		{mcp.AnnotationCurrentImage, d.pick("", "i", "h")},
		{mcp.AnnotationDesiredImage, d.pick("", "i", "h")},
	} {
		switch {
		case a.name == mcp.AnnotationDesiredConfig && d.once(2): // stays as it is
		case strings.HasSuffix(a.name, "Image") && d.once(2): // absent
		case d.once(12):
			delete(n.Annotations, a.name)
		default:
			n.Annotations[a.name] = a.value
		}
	}
	if d.once(4) {
		mcptest.Condition(corev1.NodeConditionType(d.pick("Ready", "DiskPressure", "NetworkUnavailable", "MemoryPressure")),
			corev1.ConditionStatus(d.pick("True", "False", "Unknown")))(n)
	}
	if d.once(10) {
		mcptest.Deleting(n)
	}
}

func (d dice) machineConfigNode(name string) mcfgv1.MachineConfigNode {
	m := mcptest.Mcn(name)
	for _, c := range []string{"Updated", "NodeDegraded", "UpdatePrepared", "Resumed"} {
		if !d.once(3) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: c,
				Status:  metav1.ConditionStatus(d.pick("True", "True", "False", "Unknown")),
				Message: d.pick("", "failure. disk is full", "failure")})
		}
	}
	if d.once(6) {
		m.Status.Conditions = nil
	}
	d.Shuffle(len(m.Status.Conditions), func(a, b int) {
		m.Status.Conditions[a], m.Status.Conditions[b] = m.Status.Conditions[b], m.Status.Conditions[a]
	})
	m.Status.ConfigVersion.Desired = d.pick("N", "N", "O")
	if d.once(10) {
		m.Status.ConfigVersion = nil
	}
	m.Status.ConfigImage.DesiredImage = mcfgv1.ImageDigestFormat(d.pick("", "i", "h"))
	for range d.IntN(3) {
		m.Status.PinnedImageSets = append(m.Status.PinnedImageSets, mcfgv1.MachineConfigNodeStatusPinnedImageSet{
			CurrentGeneration: int32(d.IntN(3)), DesiredGeneration: int32(d.IntN(3))})
	}
	return m
}

// model calculates one pool, the first of a snapshot.
type model struct {
	in      mcp.Snapshot
	compat  bool
	pool    *mcfgv1.MachineConfigPool
	nodes   []modelNode // of the pool
	layered bool
	image   string // of the MachineOSConfig
	build   *mcfgv1.MachineOSBuild
}

// modelNode is what counts of one node.
type modelNode struct {
	corev1.Node
	mcn                                  *mcfgv1.MachineConfigNode
	schedulable, done, updated, degraded bool
	unavailable, failing, candidate      bool
	mcnUpdated, mcnDegraded              bool
}

func modelOf(in mcp.Snapshot, pool *mcfgv1.MachineConfigPool) *model {
	m := &model{in: in, compat: in.Options.Compat, pool: pool}
	if pool.Name == "worker" && len(in.MachineOSConfigs) > 0 {
		m.layered = true
		m.image = string(in.MachineOSConfigs[0].Status.CurrentImagePullSpec)
	}
	if m.layered && len(in.MachineOSBuilds) > 0 {
		m.build = &in.MachineOSBuilds[0]
	}
	for _, n := range in.Nodes {
		if _, in := n.Labels[mcp.LabelNodeRolePrefix+pool.Name]; in {
			m.nodes = append(m.nodes, m.node(n))
		}
	}
	return m
}

// progress is the condition of the build.
func (m *model) progress() string {
	switch {
	case m.build == nil:
		return "none"
	case len(m.build.Status.Conditions) == 0:
		return ""
	}
	return m.build.Status.Conditions[0].Type
}

func (m *model) node(n corev1.Node) modelNode {
	c := modelNode{Node: n}
	current, desired := n.Annotations[mcp.AnnotationCurrentConfig], n.Annotations[mcp.AnnotationDesiredConfig]
	currentImage, hasCurrent := n.Annotations[mcp.AnnotationCurrentImage]
	desiredImage, hasDesired := n.Annotations[mcp.AnnotationDesiredImage]
	state := n.Annotations[mcp.AnnotationState]

	c.done = current != "" && current == desired && state == "Done"
	if hasCurrent || hasDesired {
		c.done = c.done && currentImage != "" && currentImage == desiredImage
	}
	c.degraded = state == "Degraded" || state == "Unreconcilable"
	c.schedulable = !n.Spec.Unschedulable
	for _, o := range n.Status.Conditions {
		switch o.Type {
		case "Ready":
			c.schedulable = c.schedulable && o.Status == "True"
		case "DiskPressure", "NetworkUnavailable":
			c.schedulable = c.schedulable && o.Status == "False"
		}
	}
	c.failing = c.degraded && current != desired
	c.unavailable = !c.schedulable || !c.done && !c.failing
	reached := desired == "N" && !hasDesired
	c.candidate = !reached
	if m.layered {
		reached = desired == "N" && m.image != "" && desiredImage == m.image && m.build != nil
		c.candidate = !reached
	}
	c.updated = c.done && reached
	if n.DeletionTimestamp != nil && !m.compat {
		c.candidate = false
	}
	m.marks(&c)
	return c
}

// marks reads the node's MachineConfigNode. The controller reads the conditions in their order and
// stops at the first that counts. Without the gate only NodeDegraded does. An object without
// conditions ends its loop over all objects, in the order of its cache: no calculation has that.
func (m *model) marks(c *modelNode) {
	for i := range m.in.MachineConfigNodes {
		if m.in.MachineConfigNodes[i].Name == c.Name {
			c.mcn = &m.in.MachineConfigNodes[i]
		}
	}
	if c.mcn == nil {
		return
	}
	reached := false
	if v, to := c.mcn.Status.ConfigVersion, string(c.mcn.Status.ConfigImage.DesiredImage); v != nil && v.Desired == "N" {
		reached = to == ""
		if m.layered {
			reached = m.build != nil && m.image != "" && to == m.image
		}
	}
	for _, o := range c.mcn.Status.Conditions {
		if o.Type == "NodeDegraded" && o.Status == "True" {
			c.mcnDegraded = true
			return
		}
		if m.in.Options.ImageModeStatusReporting && o.Type == "Updated" && o.Status == "True" && reached {
			c.mcnUpdated = true
			return
		}
	}
}

// count counts the nodes that have something.
func (m *model) count(has func(*modelNode) bool) (count int32) {
	for i := range m.nodes {
		if has(&m.nodes[i]) {
			count++
		}
	}
	return count
}

// status is the status of the pool, from the one that is stored.
func (m *model) status() mcfgv1.MachineConfigPoolStatus {
	st := *m.pool.Status.DeepCopy()
	gate := m.in.Options.ImageModeStatusReporting
	counts := func(n *modelNode) bool { return gate && n.mcnDegraded || !gate && n.degraded }
	st.ObservedGeneration = 1
	st.MachineCount = int32(len(m.nodes))
	st.UpdatedMachineCount = m.count(func(n *modelNode) bool { return gate && n.mcnUpdated || !gate && n.updated })
	st.ReadyMachineCount = m.count(func(n *modelNode) bool { return n.updated && n.schedulable })
	st.UnavailableMachineCount = m.count(func(n *modelNode) bool { return n.unavailable })
	st.DegradedMachineCount = m.count(counts)
	st.CertExpirys = []mcfgv1.CertExpiry{}
	if m.in.Options.PoolSynchronizers {
		st.PoolSynchronizersStatus = []mcfgv1.PoolSynchronizerStatus{{PoolSynchronizerType: "PinnedImageSets",
			MachineCount: int64(st.MachineCount), ReadyMachineCount: int64(st.ReadyMachineCount),
			UnavailableMachineCount: int64(st.UnavailableMachineCount), UpdatedMachineCount: int64(m.count(pinned)),
			AvailableMachineCount: int64(st.MachineCount - st.UnavailableMachineCount)}}
	}

	progress := m.progress()
	building := progress == "Building" || progress == "Prepared" || progress == "Failed" ||
		progress == "Succeeded" && m.image != "i"
	all := st.UpdatedMachineCount == st.MachineCount && st.ReadyMachineCount == st.MachineCount &&
		st.UnavailableMachineCount == 0 && !building
	line := "MachineConfig N"
	if m.image != "" {
		line += " / Image " + m.image
	}
	updating := "True All nodes are updating to " + line
	switch {
	case all:
		store(&st, "Updated", "True", "", "All nodes are updated with "+line)
		st.Configuration = m.pool.Spec.Configuration
		updating = "False "
	case m.pool.Spec.Paused:
		store(&st, "Updated", "False", "", "")
		updating = "False Pool is paused; will not update to " + line
	default:
		store(&st, "Updated", "False", "", "")
	}
	write := func() {
		status, message, _ := strings.Cut(updating, " ")
		store(&st, "Updating", status, "", message)
	}
	if m.compat {
		write() // and overwrites it
	}
	if text := m.building(all, st.DegradedMachineCount > 0); text != "" {
		updating = text
	}
	write()

	texts, count := m.degradedTexts(counts)
	message := strings.Join(texts, ", ")
	if st.DegradedMachineCount > 0 {
		store(&st, "NodeDegraded", "True", fmt.Sprintf("%d nodes are reporting degraded status on sync", count), message)
	} else {
		store(&st, "NodeDegraded", "False", "", "")
	}
	switch was := stored(m.pool, "ImageBuildDegraded"); {
	case progress == "Building" || progress == "Prepared":
		store(&st, "ImageBuildDegraded", "False", "Building", "New build started")
	case progress == "Succeeded":
		store(&st, "ImageBuildDegraded", "False", "BuildSuccess", "Build completed successfully")
	case m.build == nil && was && m.layered:
		store(&st, "ImageBuildDegraded", "False", "BuildPending",
			"MachineOSConfig updated/created, waiting for MachineOSBuild")
	case m.build == nil && was:
		store(&st, "ImageBuildDegraded", "False", "NoLayeredObjects",
			"No layered pool objects found, clearing stale build degraded condition")
	}
	switch {
	case st.DegradedMachineCount > 0:
		store(&st, "Degraded", "True", "", message)
	case stored(&mcfgv1.MachineConfigPool{Status: st}, "ImageBuildDegraded"):
		store(&st, "Degraded", "True", "", "Custom OS image build failed")
	case stored(m.pool, "RenderDegraded"):
		store(&st, "Degraded", "True", "", "")
	default:
		store(&st, "Degraded", "False", "", "")
	}
	return st
}

// store writes a condition as the controller does, at the time of the snapshot.
func store(st *mcfgv1.MachineConfigPoolStatus, t mcfgv1.MachineConfigPoolConditionType, status, reason, text string) {
	c := mcfgv1.MachineConfigPoolCondition{Type: t, Status: corev1.ConditionStatus(status), Reason: reason, Message: text,
		LastTransitionTime: metav1.NewTime(mcptest.Epoch)}
	for i, old := range st.Conditions {
		if old.Type != t {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		if old == c {
			return
		}
		st.Conditions = slices.Delete(st.Conditions, i, i+1)
		break
	}
	st.Conditions = append(st.Conditions, c)
}

func stored(p *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) bool {
	return mcptest.ConditionOf(p.Status, t).Status == corev1.ConditionTrue
}

// building is Updating of a layered pool, its status first; "" if the build does not matter.
func (m *model) building(all, degraded bool) string {
	if m.compat {
		degraded = stored(m.pool, "NodeDegraded")
	}
	degraded = degraded || stored(m.pool, "RenderDegraded") || stored(m.pool, "PinnedImageSetsDegraded")
	progress := m.progress()
	switch {
	case !m.layered:
		return ""
	case !m.pool.Spec.Paused && degraded:
		return "False Pool update paused due to degraded condition"
	case !m.pool.Spec.Paused && progress == "Succeeded" && all:
		return ""
	}
	texts := map[string][2]string{ // of a pool that is not paused, of one that is
		"none": {"True Pool is waiting for a new OS image build to start (mosc: mosc)",
			"True Pool is paused; waiting for a new OS image build to start (mosc: mosc)"},
		"Prepared": {"True Pool is waiting for OS image build to start (mosb: mosb)",
			"True Pool is paused; OS image build has been prepared but will not rollout (mosb: mosb)"},
		"Building": {"True Pool is waiting for OS image build to complete (mosb: mosb)",
			"True Pool is paused; OS image build in progress (mosb: mosb)"},
		"Succeeded": {"True Pool is waiting for nodes to apply OS image (mosb: mosb)",
			"False Pool is paused; OS image build completed successfully (mosb: mosb)"},
		"Failed": {"False Pool update stopped due to OS image build failure (mosb: mosb)",
			"False Pool is paused; OS image build failed (mosb: mosb)"},
		"Interrupted": {"False Pool update stopped due to OS image build being interrupted (mosb: mosb)",
			"False Pool is paused; OS image build was interrupted (mosb: mosb)"},
		"": {"True Pool is waiting for OS image build to start (mosb: mosb)",
			"True Pool is paused; OS image build has been created but not yet started (mosb: mosb)"},
	}[progress]
	if m.pool.Spec.Paused {
		return texts[1]
	}
	return texts[0]
}

// degradedTexts are the texts about degraded nodes, and how many nodes they are said to be about.
func (m *model) degradedTexts(counts func(*modelNode) bool) (texts []string, count int32) {
	says := func(n *modelNode, text string) string { return fmt.Sprintf("Node %s is reporting: %q", n.Name, text) }
	var reasons []string // of the controller, after all messages
	for i := range m.nodes {
		n := &m.nodes[i]
		message, reason := "", n.Annotations[mcp.AnnotationReason]
		if n.mcn != nil {
			for _, o := range n.mcn.Status.Conditions {
				if o.Type == "NodeDegraded" && o.Status == "True" {
					message = o.Message
				}
			}
		}
		switch {
		case m.compat && n.mcnDegraded:
			texts = append(texts, says(n, message))
			if reason != "" {
				reasons = append(reasons, says(n, reason))
			}
		case m.compat || !counts(n) || message+reason == "":
		case message == "":
			texts = append(texts, says(n, reason))
		case reason == "" || strings.Contains(message, reason):
			texts = append(texts, says(n, message))
		default:
			texts = append(texts, says(n, message+"; "+reason))
		}
	}
	if m.compat {
		return append(texts, reasons...), m.count(func(n *modelNode) bool { return n.mcnDegraded })
	}
	return texts, m.count(counts)
}

// pinned reports whether a node has all its pinned images, of those whose MachineConfigNode has
// conditions.
func pinned(n *modelNode) bool {
	if n.mcn == nil || len(n.mcn.Status.Conditions) == 0 {
		return false
	}
	return !slices.ContainsFunc(n.mcn.Status.PinnedImageSets, func(s mcfgv1.MachineConfigNodeStatusPinnedImageSet) bool {
		return s.DesiredGeneration <= 0 || s.CurrentGeneration != s.DesiredGeneration
	})
}

// selected is a decision without its texts.
type selected struct {
	Block                mcp.BlockKind
	Target               mcp.Target
	Limit, Capacity      int
	Ready, Held          int
	Nodes, Zones, Booted []string
	Deferred             string
}

func briefSelection(s mcp.Selection) selected {
	out := selected{Block: s.Block.Kind, Target: s.Target, Limit: s.MaxUnavailable, Capacity: s.Capacity,
		Ready: s.Candidates, Held: s.Held, Nodes: s.Nodes, Zones: s.Zones, Deferred: s.Deferred}
	for _, b := range s.Boots {
		out.Booted = append(out.Booted, fmt.Sprint(b.Node, " ", b.Pool, " ", b.Labels))
	}
	slices.Sort(out.Booted) // each gets its labels at once
	return out
}

// block is what blocks the pool.
func (m *model) block() mcp.BlockKind {
	master, arbiter := m.other("master"), m.other("arbiter")
	switch {
	case m.pool.DeletionTimestamp != nil:
		return mcp.BlockDeleted
	case m.pool.Spec.Paused:
		return mcp.BlockPaused
	case m.layered && (m.build == nil || m.image == "" || m.progress() != "Succeeded" || m.image != "i"):
		return mcp.BlockBuildNotReady
	case m.pool.Name == "arbiter" && (master == nil || !m.withArbiter() || !master.lets()):
		return mcp.BlockArbiterWaits
	case m.pool.Name == "master" && m.withArbiter() && arbiter == nil:
		return mcp.BlockArbiterMissing
	}
	if _, ok := m.limit(); !ok {
		return mcp.BlockInvalidMaxUnavailable
	}
	return mcp.BlockNone
}

func (m *model) withArbiter() bool {
	c := m.in.ControllerConfig
	return c != nil && c.Spec.Infra.Status.ControlPlaneTopology == "HighlyAvailableArbiter"
}

// other is the model of another pool; nil if there is none.
func (m *model) other(name string) *model {
	for i := range m.in.Pools {
		if p := &m.in.Pools[i]; p.Name == name && name != m.pool.Name {
			return modelOf(m.in, p)
		}
	}
	return nil
}

// lets reports whether the masters let the arbiter go now.
func (m *model) lets() bool {
	unavailable := m.count(func(n *modelNode) bool { return n.unavailable })
	failing := m.count(func(n *modelNode) bool { return n.failing })
	switch {
	case unavailable > 0 || !m.compat && failing > 0:
		return false
	case m.pool.Spec.Paused:
		return true
	case m.block() != mcp.BlockNone:
		return false
	case !m.compat:
		return m.count(func(n *modelNode) bool { return n.candidate }) == 0
	}
	return m.free() <= 0 || m.count(func(n *modelNode) bool { return n.candidate && n.schedulable }) == 0
}

// limit is maxUnavailable, and whether it is valid.
func (m *model) limit() (int, bool) {
	v := m.pool.Spec.MaxUnavailable
	switch {
	case v == nil || m.pool.Name == "arbiter":
		return 1, true
	case v.String() == "x" || v.String() == "-1" && !m.compat:
		return 0, false
	case v.String() == "50%":
		return max(1, len(m.nodes)/2), true
	case v.String() == "100%":
		return max(1, len(m.nodes)), true
	case v.IntValue() == 0:
		return 1, true
	}
	return v.IntValue(), true
}

// free is the capacity, before the arbiter takes it all; not above 0 if there is none.
func (m *model) free() int {
	limit, _ := m.limit()
	taken := m.count(func(n *modelNode) bool { return n.unavailable || !n.candidate && n.failing })
	if m.compat { // counts twice what is both
		taken = m.count(func(n *modelNode) bool { return n.unavailable }) +
			m.count(func(n *modelNode) bool { return !n.candidate && n.failing })
	}
	return limit - int(taken)
}

// held reports whether a node that may be targeted goes first, since it may drain anyhow.
func (m *model) held(n *modelNode) bool {
	hold := !m.compat
	if set := m.in.Options.HoldFailing; set != nil {
		hold = *set
	}
	if !hold || n.unavailable {
		return false
	}
	desired := n.Annotations[mcp.AnnotationDesiredConfig]
	speaksOfIt := n.Annotations[mcp.AnnotationReason] == "bad "+desired
	return n.Annotations[mcp.AnnotationState] == "Degraded" ||
		n.Annotations[mcp.AnnotationState] == "Unreconcilable" && desired != "" && !speaksOfIt
}

// booted is the pool into which a node booted, and whose labels it lacks; nil if there is none.
func (m *model) booted(n *modelNode) *mcfgv1.MachineConfigPool {
	_, applied := n.Annotations[mcp.AnnotationCustomPoolLabelsApplied]
	if n.Annotations[mcp.AnnotationFirstPivotConfig] != "I" || applied {
		return nil
	}
	return &m.in.Pools[len(m.in.Pools)-1]
}

// operatorNode is the node of the operator's only pod; "" if there is not one pod.
func (m *model) operatorNode() string {
	if m.pool.Name != "master" || len(m.in.Pods) != 1 {
		return ""
	}
	return m.in.Pods[0].Spec.NodeName
}

// selection decides which nodes to target.
func (m *model) selection() selected {
	out := selected{Block: m.block()}
	if out.Block != mcp.BlockNone && out.Block != mcp.BlockInvalidMaxUnavailable {
		return out
	}
	out.Target = mcp.Target{Config: "N", Image: m.image}
	var ready []*modelNode
	for i := range m.nodes {
		if n := &m.nodes[i]; n.candidate && n.schedulable {
			ready = append(ready, n)
			if m.held(n) {
				out.Held++
			}
		}
	}
	out.Ready = len(ready)
	if out.Block != mcp.BlockNone {
		return out
	}
	out.Limit, _ = m.limit()
	out.Capacity = max(0, m.free())
	if m.pool.Name == "master" && m.withArbiter() &&
		m.other("arbiter").count(func(n *modelNode) bool { return n.unavailable }) > 0 {
		out.Capacity = 0
	}
	if out.Capacity == 0 {
		return out
	}
	slices.SortFunc(ready, func(a, b *modelNode) int { return strings.Compare(m.order(a), m.order(b)) })
	left := out.Capacity - out.Held
	for _, n := range ready {
		held := m.held(n)
		switch {
		case len(ready) > 1 && !held && n.Name == m.operatorNode():
			out.Deferred = n.Name
		case m.booted(n) != nil:
			p := m.booted(n)
			out.Booted = append(out.Booted, fmt.Sprint(n.Name, " ", p.Name, " ", p.Spec.NodeSelector.MatchLabels))
		case len(out.Nodes) < out.Capacity && (held || left > 0):
			out.Nodes = append(out.Nodes, n.Name)
			out.Zones = append(out.Zones, n.Labels[mcp.LabelZone])
			if !held {
				left--
			}
		}
	}
	slices.Sort(out.Booted)
	return out
}

// order is a text by which nodes are sorted: held ones, then by zone, age and name, and those that
// are to go last.
func (m *model) order(n *modelNode) string {
	class := "1"
	if slices.Contains(m.in.Options.Order.Last, n.Name) {
		class = "2"
	}
	if m.held(n) {
		class = "0"
	}
	zone, zoned := n.Labels[mcp.LabelZone]
	if !zoned {
		zone = "~"
	}
	return strings.Join([]string{class, zone, n.CreationTimestamp.UTC().Format(time.RFC3339), n.Name}, " ")
}

// taints are the nodes whose taint of an update is wrong.
func (m *model) taints() []mcp.TaintChange {
	if m.block() != mcp.BlockNone {
		return nil
	}
	var out []mcp.TaintChange
	for _, n := range m.nodes {
		_, hasCurrent := n.Annotations[mcp.AnnotationCurrentImage]
		desired, hasDesired := n.Annotations[mcp.AnnotationDesiredImage]
		wants := n.Annotations[mcp.AnnotationDesiredConfig] != "N" || hasCurrent && hasDesired
		if m.layered {
			wants = n.Annotations[mcp.AnnotationDesiredConfig] != "N" || desired != m.image
		}
		if is := len(n.Spec.Taints) > 0; is != wants {
			out = append(out, mcp.TaintChange{Node: n.Name, Add: wants})
		}
	}
	return out
}
