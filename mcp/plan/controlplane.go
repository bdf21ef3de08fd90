package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// ControlPlaneOnlyOptions are the options of [PlanControlPlaneOnly].
type ControlPlaneOnlyOptions struct {
	// ID names the plan; required.
	ID string
	// Versions are the releases to go to, one of each minor version up to the next one
	// with extended update support: of 4.21 and 4.22 from 4.20, of 5.0, 5.1 and 5.2 from
	// 4.22. Required. Images are their pull specs, as many, if the action needs them;
	// nil: it does not.
	Versions []string
	Images   []string
	// Channel offers all of them; empty means the eus channel of the last one.
	Channel string
	// AtOnce unpauses all pools together, instead of one after another.
	AtOnce bool
	// Operators has UpdateOperators before each of the updates, and after the last
	// one.
	Operators bool
	// Hooks are actions that are called between two updates, in this order.
	Hooks []string
	// Check is an action that is asked first, besides what the plan checks itself:
	// preconditions, acknowledgements, the platform. Empty: none.
	Check string
}

// PlanControlPlaneOnly builds the documented update from one minor version with extended
// update support to the next, with one reboot of each compute node, formerly called
// EUS-to-EUS: the pools but those of the control plane are paused, the cluster is updated
// minor version by minor version, the pools are unpaused. Pools that were paused before
// stay so and are named in warnings.
//
// It costs O(n) for n nodes. The error joins all that speaks against it: what is
// wrong with the options, and what the cluster is not fit for.
func PlanControlPlaneOnly(c Cluster, o ControlPlaneOnlyOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	pools := slices.DeleteFunc(b.compute(), func(p string) bool { return b.pools[p].Spec.Paused })
	if len(pools) == 0 {
		b.add("there is no pool besides those of the control plane that could be paused")
	} else if b.isCompact() {
		b.add("the cluster is compact: no pool but those of the control plane has a node, and these are not paused")
	}
	b.atRest(slices.Concat(b.controlPlane(), pools)...)
	b.others("", pools...)
	b.certificates(pools...)
	b.drains(b.view(b.c.Nodes), b.drained("any", pools...))
	from := b.idle()
	hops := b.hops(from, o)
	if hops != nil {
		last := hops[len(hops)-1]
		if o.Channel == "" {
			o.Channel = "eus-" + last.String()
		}
		b.offered(o.Channel)
		b.kubelets(hops)
		b.packages(last)
		b.buildControlPlaneOnly(o, pools)
	}
	return b.plan(o.ID, kindControlPlaneOnly)
}

// isCompact reports whether all nodes are in pools of the control plane. If not every node
// is recorded, that is not known.
func (b *builder) isCompact() bool {
	hasNodes := func(pool string) bool { return len(b.nodes[pool]) > 0 }
	return !b.c.isUnknown("Node") && !slices.ContainsFunc(b.compute(), hasNodes)
}

// hops checks the versions, and returns the minor version of the cluster and those of the
// updates; nil if the versions do not fit.
func (b *builder) hops(from string, o ControlPlaneOnlyOptions) []openshift.Minor {
	if len(o.Images) != 0 && len(o.Images) != len(o.Versions) {
		b.add("there are %d images for %d versions", len(o.Images), len(o.Versions))
	}
	before := len(b.problems())
	var minors []openshift.Minor
	for _, text := range append([]string{from}, o.Versions...) {
		v, err := openshift.ParseVersion(text)
		if err != nil {
			b.add("version %s: %w", bounded.Quote(text), err)
			continue
		}
		minors = append(minors, openshift.MinorOf(v))
	}
	if len(b.problems()) > before {
		return nil
	}
	want := minors[0].ControlPlaneOnly()
	if want == nil {
		b.add("the cluster is at %s: such an update begins at a minor version with extended update support", from)
		return nil
	}
	if len(o.Versions) != len(want) {
		b.add("from %s %d versions are needed, of %s; there are %d", from, len(want), minorList(want), len(o.Versions))
		return nil
	}
	for i, m := range minors[1:] {
		if !m.Follows(minors[i]) || m == minors[i] || i == len(want)-1 && m != want[i] {
			b.add("version %s is not %s: one minor version after another, of %s", o.Versions[i], want[i], minorList(want))
		}
	}
	if len(b.problems()) > before {
		return nil
	}
	return minors
}

func minorList(minors []openshift.Minor) string {
	var out []string
	for _, m := range minors {
		out = append(out, m.String())
	}
	return strings.Join(out, ", ")
}

// offered requires that the channel is among those that the present release is in.
func (b *builder) offered(channel string) {
	channels := b.c.Version.Status.Desired.Channels
	if len(channels) > 0 && !slices.Contains(channels, channel) {
		b.add("channel %s is not offered: it takes 45 to 90 days from a release's general availability; there are %s",
			channel, strings.Join(channels, ", "))
	}
}

// kubelets requires that no kubelet is further behind than OpenShift supports, at each
// hop: while pools are paused they stay as they are.
func (b *builder) kubelets(minors []openshift.Minor) {
	server, known := minors[0].Kubernetes()
	if !known {
		server = b.newestKubelet()
	}
	servers := []uint64{server}
	for _, m := range minors[1:] {
		server++
		if is, known := m.Kubernetes(); known {
			server = is
		} else {
			b.warn("the Kubernetes version of OpenShift %s is not known: 1.%d is assumed", m, server)
		}
		servers = append(servers, server)
	}
	for _, pool := range b.compute() {
		for _, n := range b.nodes[pool] {
			has, err := minorOf(n.Status.NodeInfo.KubeletVersion)
			if err != nil {
				continue
			}
			for i, m := range minors[1:] {
				if behind := int(servers[i+1]) - has; behind > int(m.KubeletSkew()) {
					b.add("node %s of pool %s has kubelet %s, "+
						"which would be %d minor versions behind at OpenShift %s; %d are supported",
						n.Name, pool, n.Status.NodeInfo.KubeletVersion, behind, m, m.KubeletSkew())
					break
				}
			}
		}
	}
}

// newestKubelet is the newest minor version of Kubernetes 1 of the control plane's kubelets.
func (b *builder) newestKubelet() (newest uint64) {
	for _, pool := range b.controlPlane() {
		for _, n := range b.nodes[pool] {
			if minor, err := minorOf(n.Status.NodeInfo.KubeletVersion); err == nil {
				newest = max(newest, uint64(minor))
			}
		}
	}
	return newest
}

// packages refuses an update to a minor version in which nodes from packages are not
// supported any more, and warns of such nodes otherwise.
func (b *builder) packages(to openshift.Minor) {
	for _, pool := range b.poolNames() {
		for _, n := range b.nodes[pool] {
			v, is := openshift.PackageRHEL(n.Status.NodeInfo.OSImage)
			switch {
			case is && !to.PackageBased():
				b.add("node %s runs Red Hat Enterprise Linux %s: OpenShift 4.19 and later do not support that, "+
					"replace it first", n.Name, v)
			case is:
				b.warn("node %s runs Red Hat Enterprise Linux %s: run its playbook when it becomes NotReady", n.Name, v)
			}
		}
	}
}

func (b *builder) buildControlPlaneOnly(o ControlPlaneOnlyOptions, pools []string) {
	controlPlane := b.controlPlane()
	everything := slices.Concat(controlPlane, pools)
	slices.Sort(everything)
	image := func(i int) string {
		if i < len(o.Images) {
			return o.Images[i]
		}
		return ""
	}
	operators := func(id, version string) {
		if o.Operators {
			b.step(Step{ID: id, Kind: UpdateOperators, Args: Args{Version: version}})
		}
	}
	b.step(Step{ID: "check", Kind: CheckAll, Args: Args{Action: o.Check, Checks: []Check{
		{Kind: clusterIdle}, {Kind: poolsHealthy, Pools: everything}, {Kind: poolsUnpaused, Pools: pools}}}})
	operators("operators-1", o.Versions[0])
	b.wait("wait-all", everything)
	b.step(Step{ID: "channel", Kind: SetChannel, Args: Args{Channel: o.Channel}})
	b.setPaused("pause", true, pools)
	for i, v := range o.Versions {
		if i > 0 {
			operators(fmt.Sprintf("operators-%d", i+1), v)
			for n, hook := range o.Hooks {
				id := fmt.Sprintf("hook-%d", n+1)
				if i > 1 {
					id = fmt.Sprintf("hook-%d-%d", n+1, i)
				}
				b.step(Step{ID: id, Kind: Hook, Args: Args{Action: hook}})
			}
		}
		b.updateCluster(fmt.Sprintf("update-cluster-%d", i+1), v, image(i), pools)
		b.wait(fmt.Sprintf("wait-control-plane-%d", i+1), controlPlane)
	}
	target := o.Versions[len(o.Versions)-1]
	operators(fmt.Sprintf("operators-%d", len(o.Versions)+1), target)
	if o.AtOnce {
		b.setPaused("unpause", false, pools)
		b.wait("wait-compute", pools)
	} else {
		for _, pool := range pools {
			b.setPaused("unpause-"+pool, false, []string{pool})
			b.wait("wait-"+pool, []string{pool})
		}
	}
	b.verify("verify", Check{Kind: clusterAt, Version: target}, Check{Kind: poolsUpdated, Pools: everything})
}
