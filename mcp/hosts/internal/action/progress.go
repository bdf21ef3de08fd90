package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/annotation"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// progressAnnotation returns the name of the annotation on nodes in which
// [New] keeps how far an action is.
func progressAnnotation(action string) string { return annotation.Progress + action }

// progress is the value of a progressAnnotation, as JSON.
type progress struct {
	Version  int    `json:"version"`
	Progress string `json:"progress,omitempty"`
	Begun    bool   `json:"begun,omitempty"` // the action was found to be needed
	Done     string `json:"done,omitempty"`  // for this id
}

const progressVersion = 1

// errGoneOn reports that a step was taken from what a node does not say any more:
// it was read late, or another program has continued the action.
var errGoneOn = errors.New("another program has continued the action")

// takeStep takes the next step of an action that is done to a node for an id, and
// records it. If the node does not say any more what the step was taken from, the
// step is not recorded, and the next one is due.
func takeStep(ctx context.Context, c plan.Call, a Action, id string) (Step, error) {
	step, err := stepNode(ctx, c, a, id)
	if errors.Is(err, errGoneOn) {
		return Step{Progress: step.Progress, After: atOnce}, nil
	}
	if err != nil {
		return Step{}, err // what is not recorded is not done
	}
	return step, nil
}

func stepNode(ctx context.Context, c plan.Call, a Action, id string) (Step, error) {
	n, err := clusterapi.Get[corev1.Node](ctx, c.API, clusterapi.Key("", c.Step.Args.Node))
	if err != nil {
		return Step{}, err
	}
	was, err := progressOf(n, a)
	if err != nil {
		return Step{}, err
	}
	if was.Done == id {
		return Step{Done: true}, nil
	}
	if c.Cordoned && !n.Spec.Unschedulable {
		return Step{Progress: was.Progress, After: atOnce, Waiting: "the plan to cordon it again"}, nil
	}
	if checker, ok := a.(Checker); ok && !was.Begun {
		needed, err := checker.Needed(ctx, n)
		if err != nil {
			return Step{}, err
		}
		// Recorded before anything is done: once something is, the action may not be
		// needed any more, though it has not ended.
		step := Step{Done: !needed}
		n, err = record(ctx, c.API, n, a, id, step)
		if err != nil || step.Done {
			return step, err
		}
	}
	step, err := a.Step(ctx, n, was.Progress)
	if err != nil {
		return Step{}, err
	}
	if len(step.Progress) > maxProgress {
		return Step{}, hosts.Permanent(fmt.Errorf("the action's progress has %d bytes; at most %d can be recorded",
			len(step.Progress), maxProgress))
	}
	_, err = record(ctx, c.API, n, a, id, step)
	return step, err
}

// record writes the result of a step, if the node's annotation is still as n has
// it: a program that was slow does not write over the work of the one that went on.
func record(
	ctx context.Context, api clusterapi.ClusterAPI, n *corev1.Node, a Action, id string, step Step,
) (*corev1.Node, error) {
	key := progressAnnotation(a.Name())
	now := progress{Version: progressVersion, Progress: step.Progress, Begun: true}
	if step.Done {
		now = progress{Version: progressVersion, Done: id}
	}
	value, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	was, next := n.Annotations[key], string(value)
	return clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), modify, func(n *corev1.Node) error {
		if is := n.Annotations[key]; is != was && is != next {
			return errGoneOn
		}
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[key] = next
		if step.Done {
			delete(n.Annotations, annotation.Confirmed+a.Name())
		}
		return nil
	})
}

// progressOf reads how far an action is with a node.
func progressOf(n *corev1.Node, a Action) (progress, error) {
	var was progress
	key := progressAnnotation(a.Name())
	value := n.Annotations[key]
	if value == "" {
		return was, nil
	}
	if err := json.Unmarshal([]byte(value), &was); err != nil {
		return was, fmt.Errorf("node %s: annotation %s: %w", n.Name, key, err)
	}
	if was.Version > progressVersion {
		return was, fmt.Errorf("node %s: annotation %s: %w: version %d; this program knows 1 to %d",
			n.Name, key, hosts.ErrVersion, was.Version, progressVersion)
	}
	return was, nil
}

var modify = clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}
