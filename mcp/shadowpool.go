package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
)

// due tells of a disagreement, once, after it has lasted.
func (d *disagreement) due(now time.Time, grace time.Duration) bool {
	if d.since.IsZero() || d.told || now.Before(d.since.Add(grace)) {
		return false
	}
	d.told = true
	return true
}

// set takes in what differs now; "": nothing.
func (d *disagreement) set(now time.Time, what string) {
	switch {
	case what == "":
		*d = disagreement{}
	case d.what != what:
		*d = disagreement{since: now, what: what}
	}
}

// idle says that it has been a node's turn for long.
func (h *Shadow) idle(now time.Time, pool string, p *shadowPool) (Difference, bool) {
	what := ""
	if len(p.sel.Nodes) > 0 && h.state.hasControllerConfig {
		what = p.sel.Nodes[0] + " " + p.sel.Target.String()
	}
	p.idle.set(now, what)
	if !p.idle.due(now, h.grace) {
		return Difference{}, false
	}
	node := p.sel.Nodes[0]
	return Difference{Kind: differenceIdle, Time: p.idle.since, Pool: pool, Node: node, Theirs: "not targeted",
		Ours: "to be targeted to " + p.sel.Target.String(), Verdict: h.state.Explain(pool, node)}, true
}

// wrongTaints are the nodes whose taint has not been as it should be for long.
func (h *Shadow) wrongTaints(now time.Time, pool string, p *shadowPool) (found []Difference) {
	wrong := map[TaintChange]bool{}
	for _, change := range h.state.Taints(pool) {
		wrong[change] = true
		d := p.taints[change]
		if d == nil {
			d = &disagreement{}
			p.taints[change] = d
		}
		d.set(now, h.state.nodes[change.Node].state.DesiredConfig+" for "+p.sel.Target.String())
		if !d.due(now, h.grace) {
			continue
		}
		has := map[bool]string{true: "taint " + TaintUpdateInProgress + " is there", false: "taint " + TaintUpdateInProgress + " is absent"}
		found = append(found, Difference{Kind: differenceTaint, Time: d.since, Pool: pool, Node: change.Node,
			Theirs: has[!change.Add], Ours: has[change.Add], Verdict: h.state.Explain(pool, change.Node)})
	}
	for change := range p.taints {
		if !wrong[change] {
			delete(p.taints, change)
		}
	}
	return found
}

// compareStatus remembers what would be written into a pool, and sees whether what is
// there is, or was not long ago, the same.
func (h *Shadow) compareStatus(now time.Time, pool string, p *shadowPool) {
	stored := &h.state.pools[pool].pool.Status
	ours := h.state.Status(pool, *stored, now)
	text, theirs := statusText(&ours), statusText(stored)
	if n := len(p.statuses); n == 0 || p.statuses[n-1].text != text {
		if n > 0 {
			p.statuses[n-1].until = now
		}
		p.statuses = append(p.statuses, pastStatus{text: text})
	}
	p.statuses = slices.DeleteFunc(p.statuses, func(s pastStatus) bool {
		return !s.until.IsZero() && !s.until.Add(h.grace).After(now)
	})
	p.outdated = time.Time{}
	switch d, at := &p.unlike, slices.IndexFunc(p.statuses, func(s pastStatus) bool { return s.text == theirs }); {
	case at >= 0:
		d.set(now, "")
		if until := p.statuses[at].until; !until.IsZero() && text != theirs {
			p.outdated = until.Add(h.grace)
		}
	case d.since.IsZero(), d.told:
		d.set(now, theirs)
	}
}

// unlike says that the status of a pool has been another one for long.
func (h *Shadow) unlike(now time.Time, pool string, p *shadowPool) (Difference, bool) {
	if !p.unlike.due(now, h.grace) {
		return Difference{}, false
	}
	stored := &h.state.pools[pool].pool.Status
	ours := h.state.Status(pool, *stored, now)
	a, b := lessEqual(strings.Split(statusText(stored), "\n"), strings.Split(statusText(&ours), "\n"))
	return Difference{Kind: differenceStatus, Time: p.unlike.since, Pool: pool, Theirs: a, Ours: b}, true
}

// lessEqual leaves out the lines that both have.
func lessEqual(a, b []string) (string, string) {
	without := func(lines, other []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return slices.Contains(other, s) }), "; ")
	}
	return without(a, b), without(b, a)
}

// statusText is what counts of a pool's status, a line for each part.
func statusText(st *mcfgv1.MachineConfigPoolStatus) string {
	lines := []string{
		fmt.Sprintf("machineCount %d", st.MachineCount),
		fmt.Sprintf("updatedMachineCount %d", st.UpdatedMachineCount),
		fmt.Sprintf("readyMachineCount %d", st.ReadyMachineCount),
		fmt.Sprintf("unavailableMachineCount %d", st.UnavailableMachineCount),
		fmt.Sprintf("degradedMachineCount %d", st.DegradedMachineCount),
		"configuration " + st.Configuration.Name,
	}
	conditions := slices.Clone(st.Conditions)
	slices.SortStableFunc(conditions, func(a, b mcfgv1.MachineConfigPoolCondition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range conditions {
		line := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			line += " (" + c.Reason + ")"
		}
		if c.Message != "" {
			line += " " + c.Message
		}
		lines = append(lines, strings.ReplaceAll(line, "\n", " "))
	}
	return strings.Join(lines, "\n")
}
