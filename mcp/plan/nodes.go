package plan

import (
	"cmp"
	"slices"
)

// PlanNodes completes a plan whose steps take nodes out of service, do something to them
// and put them back. It refuses nodes that do not exist, are not ready or are being updated,
// and drains that never end, warns of nodes that are cordoned already and of pods that block
// drains, and adds the steps that pause MachineHealthChecks. A Version of 0 means [Format],
// and an empty Kind means Custom.
//
// It costs O(n log n) for n nodes and steps. The error joins all that speaks against it.
func PlanNodes(c Cluster, p Plan) (_ Plan, warnings []string, err error) {
	b := newBuilder(c, p.ID)
	var drained []string
	seen := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind != Cordon && s.Kind != Drain {
			continue
		}
		name := s.Args.Node
		if !seen[name] {
			seen[name] = true
			b.fit(name)
		}
		if s.Kind == Drain {
			drained = append(drained, name)
		}
	}
	b.drains(b.view(b.c.Nodes), drained)
	b.steps = slices.Clone(p.Steps)
	return b.plan(p.ID, cmp.Or(p.Kind, kindCustom))
}

// fit requires that a node exists and is ready for what is to come.
func (b *builder) fit(name string) {
	n := b.node[name]
	if n == nil {
		b.add("node %s %s", name, b.c.lacks("Node"))
		return
	}
	s := n.state
	if s.Unschedulable {
		b.warn("node %s is cordoned already, and stays so", name)
		s.Unschedulable = false
	}
	if !s.Ready() {
		b.add("node %s is not available: %s", name, s.NotReadyText())
	}
	if why := updating(n.Node); why != "" {
		b.add("%s", why)
	}
}
