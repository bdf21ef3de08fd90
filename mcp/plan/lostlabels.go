package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// labelChange is what a plan has done to a label of a node.
type labelChange struct {
	added bool    // by the first step that changed it
	now   *string // what the last one wrote; nil: it removed the label
}

// reportLostLabels reports the labels of nodes that are as the plan made them, and are not
// put back: somebody has removed the marks of the nodes, and nothing else records what the
// labels were.
func (x *pass) reportLostLabels(r *Report) error {
	nodes, err := x.v.allNodes()
	if err != nil {
		return err
	}
	unmarked := map[string]*corev1.Node{}
	for _, n := range nodes {
		if n.Annotations[annotationPlan] != x.r.plan.ID {
			unmarked[n.Name] = n
		}
	}
	changes := map[string]map[string]labelChange{} // by node and label
	for i := range x.r.plan.Steps {
		s := &x.r.plan.Steps[i]
		if s.Kind != LabelNodes || x.r.rec.Progress.Steps[s.ID].State != stepDone {
			continue
		}
		for _, name := range s.Args.Nodes {
			if unmarked[name] == nil {
				continue
			}
			of := changes[name]
			if of == nil {
				of = map[string]labelChange{}
				changes[name] = of
			}
			s.changeLabels(of)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		of := changes[name]
		for _, label := range slices.Sorted(maps.Keys(of)) {
			c := of[label]
			value, there := unmarked[name].Labels[label]
			if there != c.added || there != (c.now != nil) || there && value != *c.now {
				continue
			}
			text := "was added, and somebody removed the mark that has what it was"
			if !c.added {
				text = "was removed, and somebody removed the mark that has what it was"
			}
			r.add(&r.Left, Item{Object: nodeKind.Kind + "/" + name, Field: pointer(labelPath(label)), Text: text})
		}
	}
	return nil
}

// changeLabels adds what a step does to the labels of a node.
func (s *Step) changeLabels(of map[string]labelChange) {
	for label, value := range s.Args.Add {
		c, known := of[label]
		c.added = c.added || !known
		c.now = &value
		of[label] = c
	}
	for _, label := range s.Args.Remove {
		c := of[label]
		c.now = nil
		of[label] = c
	}
}
