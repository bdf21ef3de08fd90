package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/versions"
)

// ControlPlaneOnlyOptions are the options of [PlanControlPlaneOnly].
type ControlPlaneOnlyOptions struct {
	// ID names the plan; required.
	ID string
	// Versions are the two releases to go to, 4.y+1 and 4.y+2; required. Images are
	// their pull specs where the action needs them, nil or two.
	Versions []string
	Images   []string
	// Channel offers both; empty means eus-4.<y+2>.
	Channel string
	// AtOnce unpauses all pools together, instead of one after another.
	AtOnce bool
	// Operators has UpdateOperators before each of the updates, and after the last
	// one.
	Operators bool
	// Hooks are actions that are called between the two updates, in this order.
	Hooks []string
	// Check is an action that is asked first, besides what the plan checks itself:
	// preconditions, acknowledgements, the platform. Empty: none.
	Check string
}

// PlanControlPlaneOnly builds the documented update by two minor versions with one
// reboot of each compute node, formerly called EUS-to-EUS: the pools but those of the
// control plane are paused, the cluster is updated to 4.y+1 and 4.y+2, the pools are
// unpaused. Pools that were paused before stay so and are named in warnings.
//
// It costs O(n) for n nodes. The error joins all that speaks against it: what is
// wrong with the options, and what the cluster is not fit for.
func PlanControlPlaneOnly(c Cluster, o ControlPlaneOnlyOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	pools := slices.DeleteFunc(b.compute(), func(p string) bool { return b.pools[p].Spec.Paused })
	if len(pools) == 0 {
		b.add("there is no pool besides those of the control plane that could be paused")
	}
	b.atRest(slices.Concat(b.controlPlane(), pools)...)
	b.others("", pools...)
	b.certificates(pools...)
	b.drains(pools...)
	from := b.idle()
	minor, ok := b.hops(from, o)
	if o.Channel == "" && ok {
		o.Channel = fmt.Sprintf("eus-4.%d", minor+2)
	}
	if ok {
		b.offered(o.Channel)
		b.kubelets(minor)
		b.buildControlPlaneOnly(o, pools)
	}
	return b.plan(o.ID, kindControlPlaneOnly)
}

// hops checks the versions and returns y.
func (b *builder) hops(from string, o ControlPlaneOnlyOptions) (minor int, ok bool) {
	if len(o.Versions) != 2 {
		b.add("two versions are needed, 4.y+1 and 4.y+2; there are %d", len(o.Versions))
		return 0, false
	}
	if len(o.Images) != 0 && len(o.Images) != 2 {
		b.add("there are %d images for 2 versions", len(o.Images))
	}
	before := len(b.problems())
	var hops []*semver.Version
	for _, text := range append([]string{from}, o.Versions...) {
		v, err := versions.Parse(text)
		if err != nil {
			b.add("version %s: %w", bounded.Quote(text), err)
			continue
		}
		if v.Major() != 4 {
			b.add("version %s is not 4.y", text)
		}
		hops = append(hops, v)
	}
	if len(b.problems()) > before {
		return 0, false
	}
	y := hops[0].Minor()
	if y%2 != 0 {
		b.add("the cluster is at %s: such an update begins at an even minor version", from)
	}
	for i, v := range hops[1:] {
		if v.Minor() != y+uint64(i)+1 {
			b.add("version %s is not 4.%d: one minor version after another, and two in all", v, y+uint64(i)+1)
		}
	}
	return int(y), len(b.problems()) == before
}

// offered requires that the channel is among those that the present release is in.
func (b *builder) offered(channel string) {
	channels := b.c.Version.Status.Desired.Channels
	if len(channels) > 0 && !slices.Contains(channels, channel) {
		b.add("channel %s is not offered: it takes 45 to 90 days from a release's general availability; there are %s", channel, strings.Join(channels, ", "))
	}
}

// kubernetes is what OpenShift 4.y adds to y: it has Kubernetes 1.(y+13).
const kubernetes = 13

// kubelets requires that no kubelet ends more than two minor versions behind:
// while pools are paused they stay as they are.
func (b *builder) kubelets(minor int) {
	end := minor + 2 + kubernetes
	for _, pool := range b.compute() {
		for _, n := range b.nodes[pool] {
			has, err := minorOf(n.Status.NodeInfo.KubeletVersion)
			if err == nil && end-has > 2 {
				b.add("node %s of pool %s has kubelet %s, which would be %d minor versions behind", n.Name, pool, n.Status.NodeInfo.KubeletVersion, end-has)
			}
			if v, is := isRHEL(n.Node); is {
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
		if len(o.Images) != 2 {
			return ""
		}
		return o.Images[i]
	}
	operators := func(id, version string) {
		if o.Operators {
			b.step(Step{ID: id, Kind: UpdateOperators, Args: Args{Version: version}})
		}
	}
	b.step(Step{ID: "check", Kind: CheckAll, Args: Args{Action: o.Check, Checks: []Check{{Kind: clusterIdle}, {Kind: poolsHealthy, Pools: everything}, {Kind: poolsUnpaused, Pools: pools}}}})
	operators("operators-1", o.Versions[0])
	b.step(Step{ID: "wait-all", Kind: WaitPools, Args: Args{Pools: everything}})
	b.step(Step{ID: "channel", Kind: SetChannel, Args: Args{Channel: o.Channel}})
	b.step(Step{ID: "pause", Kind: SetPaused, Args: Args{Pools: pools, Paused: yes(true)}})
	for i, v := range o.Versions {
		if i > 0 {
			operators("operators-2", v)
			for n, hook := range o.Hooks {
				b.step(Step{ID: fmt.Sprintf("hook-%d", n+1), Kind: Hook, Args: Args{Action: hook}})
			}
		}
		b.step(Step{ID: fmt.Sprintf("update-cluster-%d", i+1), Kind: UpdateCluster, Needs: needPaused(pools), Args: Args{Version: v, Image: image(i)}})
		b.step(Step{ID: fmt.Sprintf("wait-control-plane-%d", i+1), Kind: WaitPools, Args: Args{Pools: controlPlane}})
	}
	operators("operators-3", o.Versions[1])
	if o.AtOnce {
		b.step(Step{ID: "unpause", Kind: SetPaused, Args: Args{Pools: pools, Paused: yes(false)}})
		b.step(Step{ID: "wait-compute", Kind: WaitPools, Args: Args{Pools: pools}})
	} else {
		for _, pool := range pools {
			b.step(Step{ID: "unpause-" + pool, Kind: SetPaused, Args: Args{Pools: []string{pool}, Paused: yes(false)}})
			b.step(Step{ID: "wait-" + pool, Kind: WaitPools, Args: Args{Pools: []string{pool}}})
		}
	}
	b.step(Step{ID: "verify", Kind: CheckAll, Timeout: metav1.Duration{Duration: 5 * time.Minute},
		Args: Args{Checks: []Check{{Kind: clusterAt, Version: o.Versions[1]}, {Kind: poolsUpdated, Pools: everything}}}})
}
