package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// effect is what a plan does to some nodes, in order.
type effect struct {
	nodes string // for people
	does  []string
}

// effects is what a plan does to nodes, and when: to those that it names, and to those of
// pools.
type effects struct {
	all     []*effect
	groups  map[string]string // by pool, the nodes that the plan moves to it
	changes bool              // an update has started, or a pool is unpaused
	updated map[string]bool   // nodes that an earlier step updates
	window  string            // that is open
}

func effectsOf(p *Plan) []*effect {
	x := &effects{groups: map[string]string{}, updated: map[string]bool{}}
	for i := range p.Steps {
		x.step(i+1, &p.Steps[i])
	}
	return x.all
}

// step adds what a step does; n is its number.
func (x *effects) step(n int, s *Step) {
	a := &s.Args
	switch s.Kind {
	case Gate:
		if from := a.Parameters["from"]; a.Action == actionWindow && from != "" {
			x.window = ", from " + from
		}
	case UpdateCluster:
		x.changes = true
		clear(x.updated)
	case SetPaused:
		x.changes = x.changes || a.Paused != nil && !*a.Paused
	case LabelNodes:
		nodes := allNodes(a.Nodes)
		x.add(nodes, "moved to pool %s in step %d", a.Pool, n)
		x.groups[a.Pool] = nodes
	case WaitPools:
		x.update(n, s)
	case Cordon:
		x.add("node "+a.Node, "cordoned in step %d", n)
	case Drain:
		x.add("node "+a.Node, "drained in step %d", n)
	case Uncordon:
		x.add("node "+a.Node, "uncordoned in step %d", n)
	case Hook:
		if a.Node != "" {
			x.add("node "+a.Node, "%s in step %d", a.Action, n)
		}
	case Manual:
		if a.Node != "" {
			x.add("node "+a.Node, "changed by hand in step %d", n)
		}
	}
}

// update adds that the nodes of pools take on their configuration.
func (x *effects) update(n int, s *Step) {
	until := ""
	if s.Args.Until != nil {
		until = " until " + s.Args.Until.UTC().Format(time.RFC3339)
	}
	for _, pool := range s.Args.Pools {
		nodes := x.groups[pool]
		if nodes == "" && !x.changes {
			continue
		}
		if nodes == "" {
			nodes = "nodes of pool " + pool
		}
		left := ""
		if x.updated[nodes] {
			left = "those that are left: "
		}
		x.updated[nodes] = true
		x.add(nodes, "%sdrained and rebooted by the end of step %d%s%s", left, n, x.window, until)
	}
}

func (x *effects) add(nodes, format string, args ...any) {
	i := slices.IndexFunc(x.all, func(e *effect) bool { return e.nodes == nodes })
	if i < 0 {
		i = len(x.all)
		x.all = append(x.all, &effect{nodes: nodes})
	}
	x.all[i].does = append(x.all[i].does, fmt.Sprintf(format, args...))
}

// allNodes names nodes, in ranges.
func allNodes(nodes []string) string {
	nodes = slices.SortedFunc(slices.Values(nodes), compareNodes)
	return strings.Join(foldNames(nodes), " ")
}
