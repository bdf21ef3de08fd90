package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// The JSON of a plan has steps that repeat for many nodes once, with the nodes:
//
//	{"each": ["worker-{0-99}"], "steps": [
//	  {"id": "cordon-{node}", "kind": "Cordon", "args": {"node": "{node}"}}, ...]}
//
// All of the steps are done to one node before the next one's turn comes.

const (
	// placeholder stands for the node in steps that repeat.
	placeholder = "{node}"
	// maxRepeated is the most steps that the repeated steps of a plan stand for.
	maxRepeated = 100_000
)

// jsonPlan is a plan as its JSON has it.
type jsonPlan struct {
	Version int        `json:"version"`
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	Steps   []jsonStep `json:"steps"`
}

// jsonStep is a step, or steps that repeat.
type jsonStep struct {
	*Step
	Each     []string `json:"each,omitempty"`
	Repeated []Step   `json:"steps,omitempty"`
}

// fold returns the JSON of a plan.
func (p Plan) fold() (jsonPlan, error) {
	p, err := p.mapNodes(foldNodes)
	if err != nil {
		return jsonPlan{}, err
	}
	out := jsonPlan{Version: p.Version, ID: p.ID, Kind: p.Kind}
	for steps := p.Steps; len(steps) > 0; {
		nodes, repeated := repeats(steps)
		n := len(nodes) * len(repeated)
		if len(nodes) > plainNodes {
			out.Steps = append(out.Steps, jsonStep{Each: foldNames(nodes), Repeated: repeated})
		} else {
			n = max(n, 1)
			for i := range n {
				out.Steps = append(out.Steps, jsonStep{Step: &steps[i]})
			}
		}
		steps = steps[n:]
	}
	return out, nil
}

// repeats returns the steps for one node with which a list starts, with a placeholder for
// the node, and the nodes for which the list repeats them.
func repeats(steps []Step) (nodes []string, repeated []Step) {
	node := steps[0].node()
	for i := range steps {
		if node == "" || steps[i].node() != node {
			break
		}
		repeated = append(repeated, steps[i].replaceNode(node, placeholder))
	}
	n := len(repeated)
	for n > 0 && len(steps) >= n {
		node := steps[0].node()
		for i := range repeated {
			if node == "" || !reflect.DeepEqual(repeated[i].replaceNode(placeholder, node), steps[i]) {
				return nodes, repeated
			}
		}
		nodes = append(nodes, node)
		steps = steps[n:]
	}
	return nodes, repeated
}

// node is the node that a step and its ID name; empty if they name none.
func (s *Step) node() string {
	node := s.Args.Node
	if node == "" && len(s.Args.Checks) == 1 && len(s.Args.Checks[0].Nodes) == 1 {
		node = s.Args.Checks[0].Nodes[0]
	}
	if !strings.HasSuffix(s.ID, "-"+node) {
		return ""
	}
	return node
}

// replaceNode returns a copy of a step for another node.
func (s Step) replaceNode(old, node string) Step {
	id, is := strings.CutSuffix(s.ID, old)
	if is {
		s.ID = id + node
	}
	if s.Args.Node == old {
		s.Args.Node = node
	}
	s.Needs = slices.Clone(s.Needs)
	s.Args.Parameters = maps.Clone(s.Args.Parameters)
	s.Args.Checks = slices.Clone(s.Args.Checks)
	for i := range s.Args.Checks {
		c := &s.Args.Checks[i]
		if len(c.Nodes) == 1 && c.Nodes[0] == old {
			c.Nodes = []string{node}
		}
	}
	return s
}

// unfold returns the plan of its JSON.
func (j jsonPlan) unfold() (Plan, error) {
	p := Plan{Version: j.Version, ID: j.ID, Kind: j.Kind}
	names := new(unfolder)
	left := maxRepeated
	for i, s := range j.Steps {
		switch {
		case s.Each == nil && s.Repeated == nil && s.Step != nil:
			p.Steps = append(p.Steps, *s.Step)
			continue
		case s.Step != nil || len(s.Each) == 0 || len(s.Repeated) == 0:
			return p, fmt.Errorf("steps[%d]: it has neither the fields of a step nor each and steps alone", i)
		}
		nodes, err := names.unfold(s.Each)
		if err != nil {
			return p, fmt.Errorf("steps[%d]: each: %w", i, err)
		}
		if len(nodes) > left/len(s.Repeated) {
			return p, fmt.Errorf("steps[%d]: %w", i, &limit.LimitError{Where: "each", Max: maxRepeated, What: "steps"})
		}
		left -= len(nodes) * len(s.Repeated)
		p.Steps = slices.Grow(p.Steps, len(nodes)*len(s.Repeated))
		for _, node := range nodes {
			for _, step := range s.Repeated {
				p.Steps = append(p.Steps, step.replaceNode(placeholder, node))
			}
		}
	}
	return p.mapNodes(new(unfolder).unfold)
}
