package rollout

import (
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// noticeNode reports what a change of a node means.
func (x *run) noticeNode(had bool, old, n mcp.NodeState, pool string) {
	phase, stuck := x.state.Phase(n.Name)
	now := nodePhase{phase, stuck}
	before, known := x.phases[n.Name]
	x.phases[n.Name] = now
	if pool == mcp.PoolMaster && had {
		x.noticeAnnotations(old, n)
	}
	to := mcp.Target{Config: n.DesiredConfig, Image: n.DesiredImage}
	if x.o.Mode == ReadOnly && had && to.Config != "" && to != (mcp.Target{Config: old.DesiredConfig, Image: old.DesiredImage}) {
		x.noticeTargeted(pool, n.Name, to)
	}
	if known && before == now {
		return
	}
	x.moved[pool] = x.now
	delete(x.stalled, pool)
	if !known && (phase == mcp.PhaseDone || phase == mcp.PhaseJoining) {
		return // as it was at the start
	}
	d := EventData{Pool: pool, Node: n.Name, Phase: phase, Stuck: stuck}
	x.emit(EventNodePhase, d, fmt.Sprintf("node %s: %s", n.Name, phase.In(stuck)), nil)
	switch {
	case phase == mcp.PhaseDone:
		reached := mcp.Target{Config: n.CurrentConfig, Image: n.CurrentImage}
		x.emit(EventNodeDone, d, fmt.Sprintf("node %s has reached %s", n.Name, reached), nil)
	case phase == mcp.PhaseFailed && before.phase != mcp.PhaseFailed:
		d.Warning = true
		x.emit(EventNodeFailed, d, n.Reason, nil)
	}
}

// noticeTargeted reports that a node got a target.
func (x *run) noticeTargeted(pool, node string, to mcp.Target) {
	d := EventData{Pool: pool, Node: node, Phase: mcp.PhaseTargeted}
	x.emit(EventNodeTargeted, d, fmt.Sprintf("node %s is to reach %s", node, to), nil)
}

// noticeAnnotations reports changes on the control plane one by one, except
// the one that completes an update.
func (x *run) noticeAnnotations(old, n mcp.NodeState) {
	if !old.Done() && n.Done() {
		return
	}
	has := func(v string) bool { return v != "" }
	for _, a := range []struct {
		name     string
		old, now string
		had, has bool
	}{
		{mcp.AnnotationCurrentConfig, old.CurrentConfig, n.CurrentConfig, has(old.CurrentConfig), has(n.CurrentConfig)},
		{mcp.AnnotationDesiredConfig, old.DesiredConfig, n.DesiredConfig, has(old.DesiredConfig), has(n.DesiredConfig)},
		{mcp.AnnotationState, old.State, n.State, has(old.State), has(n.State)},
		{mcp.AnnotationReason, old.Reason, n.Reason, has(old.Reason), has(n.Reason)},
		{mcp.AnnotationCurrentImage, old.CurrentImage, n.CurrentImage, old.HasCurrentImage, n.HasCurrentImage},
		{mcp.AnnotationDesiredImage, old.DesiredImage, n.DesiredImage, old.HasDesiredImage, n.HasDesiredImage},
	} {
		if a.old == a.now && a.had == a.has {
			continue
		}
		text := fmt.Sprintf("Node %s now has %s=%s", n.Name, a.name, a.now)
		if !a.has {
			text = fmt.Sprintf("Node %s no longer has %s", n.Name, a.name)
		}
		x.emit(EventPool, EventData{Pool: mcp.PoolMaster, Node: n.Name, Reason: ReasonAnnotationChange}, text, nil)
	}
}

// noticePool reports a pool that is done, or whose counts changed.
func (x *run) noticePool(p *mcfgv1.MachineConfigPool, deleted bool) {
	if deleted {
		delete(x.done, p.Name)
		delete(x.pools, p.Name)
		delete(x.blocks, p.Name)
		return
	}
	st := &p.Status
	last, known := x.done[p.Name]
	if name := st.Configuration.Name; name != last || !known {
		x.done[p.Name] = name
		if known && name != "" {
			goal := x.state.Goal(p.Name)
			if name != goal.Config { // its target is another now
				goal = mcp.Goal{Config: name}
			}
			text := fmt.Sprintf("Pool %s has completed update to %s", p.Name, goal.Label())
			x.emit(EventPool, EventData{Pool: p.Name, Reason: ReasonCompleted}, text, nil)
			x.emit(EventPoolDone, EventData{Pool: p.Name}, text, nil)
		}
	}
}

// noticeCounts reports the counts of a pool when they changed.
func (x *run) noticeCounts(pool string, st mcfgv1.MachineConfigPoolStatus) {
	c := poolCounts{int(st.UpdatedMachineCount), int(st.UnavailableMachineCount), int(st.DegradedMachineCount), int(st.MachineCount)}
	if old, known := x.pools[pool]; known && old == c {
		return
	}
	x.pools[pool] = c
	d := EventData{Pool: pool, Updated: c.updated, Unavailable: c.unavailable, Degraded: c.degraded, Total: c.total}
	x.emit(EventPoolProgress, d, fmt.Sprintf("pool %s: %d of %d nodes updated, %d unavailable, %d degraded",
		pool, c.updated, c.total, c.unavailable, c.degraded), nil)
}

// noticeBlock reports what keeps a pool from being updated, once.
func (x *run) noticeBlock(pool string, b mcp.Block, err error) {
	if x.blocks[pool] == b {
		return
	}
	x.blocks[pool] = b
	if b.Kind != mcp.BlockNone && b.Kind != mcp.BlockNoPool {
		x.emit(EventPoolBlocked, EventData{Pool: pool, Reason: string(b.Kind)}, b.Text, err)
	}
}

// checkStall reports a pool with nodes on their way if nothing has moved for long.
// It returns when to look again; zero: when something has moved.
func (x *run) checkStall(pool string) time.Time {
	since, ok := x.moved[pool]
	if !ok || x.stalled[pool] || x.state.Pool(pool) == nil {
		return time.Time{}
	}
	if at := since.Add(x.o.Delays.Stall); x.now.Before(at) {
		return at
	}
	x.stalled[pool] = true // until something moves again
	for _, node := range x.state.Nodes(pool) {
		p := x.phases[node]
		if p.phase == mcp.PhaseDone || p.phase == mcp.PhaseJoining {
			continue
		}
		err := &StalledError{Node: node, Phase: p.phase, Since: since}
		x.emit(EventStalled, EventData{Pool: pool, Node: node, Phase: p.phase, Stuck: p.stuck, Warning: true}, "", err)
	}
	return time.Time{}
}
