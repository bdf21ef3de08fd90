package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// WriteText writes a plan for people: a line for each step, with what it changes or
// waits for, and what it does to which nodes, and when. A line with control characters is
// quoted. Its error is w's.
func WriteText(w io.Writer, p Plan) error {
	return writeText(w, p, nil)
}

// WriteProgress writes a plan as WriteText does, with how far each step has come,
// and what the last stop has left. Its error is w's.
func WriteProgress(w io.Writer, p Plan, progress Progress) error {
	return writeText(w, p, &progress)
}

func writeText(w io.Writer, p Plan, progress *Progress) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan %s (%s), %d steps", p.ID, p.Kind, len(p.Steps))
	if progress != nil {
		fmt.Fprintf(&b, ": %s", fieldchange.Plain(string(progress.State)))
		if progress.Holder != "" {
			fmt.Fprintf(&b, ", run by %s", fieldchange.Plain(progress.Holder))
		}
	}
	b.WriteByte('\n')
	t := text.NewTable(&b, 0, 2)
	for i := range p.Steps {
		s := &p.Steps[i]
		row, below := []string{fmt.Sprintf("%3d", i+1), s.ID}, []string{"", ""}
		var sp StepProgress
		if progress != nil {
			sp = progress.Steps[s.ID]
			row, below = append(row, fieldchange.Plain(cmp.Or(sp.State, stepPending))), append(below, "")
		}
		t.Row(append(row, fieldchange.Plain(s.describe()))...)
		for _, note := range s.notes(sp) {
			t.Row(append(below, "  "+fieldchange.Plain(note))...)
		}
	}
	_ = t.Flush() // to memory
	if progress == nil {
		writeEffects(&b, effectsOf(&p))
	}
	if progress != nil && progress.Report != nil {
		r := progress.Report
		for _, list := range []struct {
			title string
			items []Item
		}{{"Restored", r.Restored}, {"Left", r.Left}, {"Changed by others", r.Conflicts}} {
			for i, item := range list.items {
				if i == 0 {
					fmt.Fprintf(&b, "%s:\n", list.title)
				}
				line := strings.TrimSpace(item.Object+" "+item.Field) + " " + item.Text
				fmt.Fprintf(&b, "  %s\n", fieldchange.Plain(line))
			}
		}
		if r.More > 0 {
			fmt.Fprintf(&b, "and %d more\n", r.More)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeEffects writes what a plan does to nodes.
func writeEffects(b *strings.Builder, all []*effect) {
	for i, e := range all {
		if i == 0 {
			b.WriteString("Nodes:\n")
		}
		fmt.Fprintf(b, "  %s\n", e.nodes)
		for _, does := range e.does {
			fmt.Fprintf(b, "    %s\n", fieldchange.Plain(does))
		}
	}
}

// notes are what else is to be known of a step.
func (s *Step) notes(sp StepProgress) []string {
	var out []string
	for _, c := range s.Needs {
		out = append(out, "needs: "+c.describe())
	}
	for _, c := range s.Args.Checks {
		out = append(out, "checks: "+c.describe())
	}
	if !s.Done.isZero() {
		out = append(out, "done when: "+s.Done.describe())
	}
	if s.Timeout.Duration > 0 {
		follows := "then the plan stops"
		if !s.stops() {
			follows = "then the next step follows"
		}
		out = append(out, fmt.Sprintf("at most %s, %s", s.Timeout.Duration, follows))
	} else if !s.stops() {
		out = append(out, "a failure does not stop the plan")
	}
	if s.Args.Until != nil {
		out = append(out, "until "+s.Args.Until.UTC().Format(time.RFC3339))
	}
	if sp.Error != "" {
		out = append(out, "error: "+sp.Error)
	}
	return out
}

// describe describes what a step does.
func (s *Step) describe() string {
	a := &s.Args
	switch s.Kind {
	case CheckAll:
		return "check the cluster" + parameters(s.action(), a.Parameters)
	case SetPaused:
		if a.Paused != nil && *a.Paused {
			if a.Unfinished {
				return "pause " + poolList(a.Pools) + ", as far as nodes are left to update"
			}
			return "pause " + poolList(a.Pools)
		}
		return "unpause " + poolList(a.Pools) + ", as far as this plan paused them"
	case SetHealthChecksPaused:
		if a.Paused != nil && *a.Paused {
			return "pause the MachineHealthChecks that replace nodes which are not Ready"
		}
		return "resume the MachineHealthChecks that this plan paused"
	case SetMaxUnavailable:
		return fmt.Sprintf("set maxUnavailable of %s to %s", poolList(a.Pools), a.MaxUnavailable)
	case CreatePool:
		text := fmt.Sprintf("create pool %s with the MachineConfigs of %s", a.Pool, strings.Join(a.Roles, ", "))
		if a.MaxUnavailable != nil {
			text += ", maxUnavailable " + a.MaxUnavailable.String()
		}
		return text
	case DeletePool:
		return "delete pool " + a.Pool
	case LabelNodes:
		return fmt.Sprintf("move %s to pool %s: %s", nodeList(a.Nodes), a.Pool, labelList(a))
	case SetChannel:
		return "set the channel to " + a.Channel
	case UpdateCluster:
		return "update the cluster to " + a.Version
	case UpdateOperators:
		return "update operators for " + a.Version
	case WaitPools:
		return "wait until all nodes are updated in " + poolList(a.Pools)
	case WaitCluster:
		return "wait until the cluster is at " + a.Version
	case Gate:
		text := "hold at gate" + parameters(a.Action, a.Parameters)
		if len(a.Pools) > 0 {
			text += ", about " + poolList(a.Pools)
		}
		if len(a.Nodes) > 0 {
			text += ", about " + nodeList(a.Nodes)
		}
		return text
	case Cordon:
		return "cordon node " + a.Node
	case Drain:
		return "drain node " + a.Node
	case Uncordon:
		return "uncordon node " + a.Node + ", if this plan cordoned it"
	case Hook:
		text := "call" + parameters(a.Action, a.Parameters)
		if a.Node != "" {
			text += " for node " + a.Node
		}
		return text
	case Manual:
		if a.Node != "" {
			return "by hand, node " + a.Node + ": " + a.Text
		}
		return "by hand: " + a.Text
	case ApplyObject:
		return "apply " + objectName(objectOf(s))
	}
	return string(s.Kind)
}

// parameters is an action with its parameters.
func parameters(action string, all map[string]string) string {
	if action == "" {
		return ""
	}
	text := " " + action
	for _, k := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf(" %s=%s", k, all[k])
	}
	return text
}

const shownNodes = 4

func nodeList(nodes []string) string {
	switch {
	case len(nodes) == 1:
		return "node " + nodes[0]
	case len(nodes) <= shownNodes:
		return fmt.Sprintf("%d nodes (%s)", len(nodes), strings.Join(nodes, ", "))
	}
	return fmt.Sprintf("%d nodes (%s, ..., %s)", len(nodes), strings.Join(nodes[:shownNodes-1], ", "), nodes[len(nodes)-1])
}

func labelList(a *Args) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(a.Add)) {
		out = append(out, "+"+k+"="+a.Add[k])
	}
	for _, k := range a.Remove {
		out = append(out, "-"+k)
	}
	return strings.Join(out, " ")
}

func (c Check) describe() string {
	text := string(c.Kind)
	if len(c.Pools) > 0 {
		text += " " + strings.Join(c.Pools, ", ")
	}
	if len(c.Nodes) > 0 {
		text += " " + nodeList(c.Nodes)
	}
	if c.Version != "" {
		text += " " + c.Version
	}
	return text
}
