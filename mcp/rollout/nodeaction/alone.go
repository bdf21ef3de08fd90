package nodeaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Func makes an action a function, for callers that cordon, drain and uncordon by
// themselves: it does the action to a node and returns when that is done, or with
// the action's first error. It waits with [reconcile.Sleep].
//
// id says what it is done for. How far the action is stands in an annotation of the
// node, clusterupdate.github.io/progress.NAME: called again, also by another program, the function
// goes on there, and does nothing to a node where the action was last done for the
// same id. With an empty id nothing stays once it is done.
//
// The function is safe for concurrent use, for different nodes.
func Func(api clusterapi.ClusterAPI, a Action, id string) func(ctx context.Context, node string) error {
	return func(ctx context.Context, node string) error {
		for {
			step, err := StepNode(ctx, api, a, id, node)
			if err != nil || step.Done {
				return err
			}
			if err := reconcile.Sleep(ctx, step.After); err != nil {
				return err
			}
		}
	}
}

// progressAnnotation returns the name of the annotation on nodes in which [Func],
// [PlanAction] and [Updater] keep how far an action is.
func progressAnnotation(action string) string { return progressPrefix + action }

const progressPrefix = clusterapi.AnnotationPrefix + "progress."

// progress is the value of a progressAnnotation, as JSON.
type progress struct {
	Version  int    `json:"version"`
	Progress string `json:"progress,omitempty"`
	Begun    bool   `json:"begun,omitempty"` // the action was found to be needed
	Done     string `json:"done,omitempty"`  // for this id
}

const progressVersion = 1

// StepNode takes the next step of an action that is done to a node without a run,
// for who waits by himself, as [PlanAction] does: Step.After says how long. It is
// one round of [Func], and is called until the step is Done. Its errors are those
// of the action and the cluster. Where the node does not say any more what the step
// was taken from, the step is not recorded, and another one is due.
func StepNode(ctx context.Context, api clusterapi.ClusterAPI, a Action, id, name string) (Step, error) {
	step, err := stepNode(ctx, api, a, id, name)
	if errors.Is(err, errGoneOn) {
		return Step{Progress: step.Progress, After: time.Second}, nil
	}
	if err != nil {
		return Step{}, err // what is not recorded is not done
	}
	return step, nil
}

// errGoneOn says that a step was taken from what a node does not say any more: it
// was read late, or another program has gone on with the action.
var errGoneOn = errors.New("another program has gone on with the action")

func stepNode(ctx context.Context, api clusterapi.ClusterAPI, a Action, id, name string) (Step, error) {
	n, err := clusterapi.Get[corev1.Node](ctx, api, clusterapi.Key("", name))
	if err != nil {
		return Step{}, err
	}
	was, err := progressOf(n, a)
	if err != nil {
		return Step{}, err
	}
	if id != "" && was.Done == id {
		return Step{Done: true}, nil
	}
	if c, ok := a.(Checker); ok && !was.Begun {
		needed, err := c.Needed(ctx, n)
		if err != nil {
			return Step{}, err
		}
		// Recorded before anything is done: once something is, the action may not be
		// needed any more, though it has not ended.
		step := Step{Done: !needed}
		n, err = record(ctx, api, n, a, id, step)
		if err != nil || step.Done {
			return step, err
		}
	}
	step, err := a.Step(ctx, n, was.Progress)
	if err != nil {
		return Step{}, err
	}
	if len(step.Progress) > maxProgress {
		return Step{}, fmt.Errorf("the action's progress has %d bytes; at most %d can be recorded", len(step.Progress), maxProgress)
	}
	_, err = record(ctx, api, n, a, id, step)
	return step, err
}

// record writes what came of a step, if the node's annotation is still as n has
// it: a program that was slow does not write over the work of the one that went on.
func record(ctx context.Context, api clusterapi.ClusterAPI, n *corev1.Node, a Action, id string, step Step) (*corev1.Node, error) {
	annotation := progressAnnotation(a.Name())
	now := progress{Version: progressVersion, Progress: step.Progress, Begun: true}
	if step.Done {
		now = progress{Version: progressVersion, Done: id}
	}
	value, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	was, next := n.Annotations[annotation], string(value)
	if step.Done && id == "" {
		next = ""
	}
	return clusterapi.Modify(ctx, api, clusterapi.Key("", n.Name), modify, func(n *corev1.Node) error {
		if is := n.Annotations[annotation]; is != was && is != next {
			return errGoneOn
		}
		annotate(n, annotation, next)
		if next == "" {
			delete(n.Annotations, annotation)
		}
		if step.Done {
			delete(n.Annotations, ConfirmAnnotation(a.Name()))
		}
		return nil
	})
}

// progressOf reads how far an action is with a node.
func progressOf(n *corev1.Node, a Action) (progress, error) {
	var was progress
	annotation := progressAnnotation(a.Name())
	value := n.Annotations[annotation]
	if value == "" {
		return was, nil
	}
	if err := json.Unmarshal([]byte(value), &was); err != nil {
		return was, fmt.Errorf("node %s: annotation %s: %w", n.Name, annotation, err)
	}
	if was.Version > progressVersion {
		return was, fmt.Errorf("node %s: annotation %s: %w: version %d; this program knows 1 to %d", n.Name, annotation, ErrVersion, was.Version, progressVersion)
	}
	return was, nil
}

// Updater makes an action an [mcp.NodeUpdater], for a rollout in mode Drive: each
// node that is given another configuration has the action done to it in place of
// a machine-config daemon's update. It asks the rollout to drain and uncordon as
// a daemon does, so the rollout's hooks, limits and drains hold; a Disruption
// other than None drains. An error that is [Permanent] makes the node Degraded.
// It is safe for concurrent use if the action is.
func Updater(api clusterapi.ClusterAPI, a Action) mcp.NodeUpdater { return updater{api, a} }

type updater struct {
	api    clusterapi.ClusterAPI
	action Action
}

// Step implements [mcp.NodeUpdater]. It goes by the node as it is, not by the
// phase that it is told, which may be old.
func (u updater) Step(ctx context.Context, node string, to mcp.Target, _ mcp.Phase) (mcp.Phase, time.Duration, error) {
	n, err := clusterapi.Get[corev1.Node](ctx, u.api, clusterapi.Key("", node))
	if err != nil {
		return "", 0, err
	}
	state := mcp.NodeStateOf(n)
	phase, stuck := mcp.PhaseOf(state)
	if phase == mcp.PhaseFailed {
		phase = stuck
	}
	drain, uncordon := mcp.DrainVerbDrain+"-"+to.Config, mcp.DrainVerbUncordon+"-"+to.Config
	switch phase {
	case mcp.PhaseTargeted:
		return mcp.PhasePreparing, time.Second, u.annotate(ctx, node, mcp.AnnotationState, mcp.StateWorking)
	case mcp.PhasePreparing:
		if u.action.Disruption(n) != None {
			return mcp.PhaseCordoning, 0, u.annotate(ctx, node, mcp.AnnotationDesiredDrain, drain)
		}
		return u.act(ctx, node, to.Config, uncordon)
	case mcp.PhaseApplying, mcp.PhaseRebooting:
		if state.DesiredDrain != drain { // told to reach something else meanwhile: it stays drained
			return phase, 0, u.annotate(ctx, node, mcp.AnnotationDesiredDrain, drain)
		}
		return u.act(ctx, node, to.Config, uncordon)
	case mcp.PhaseUncordoning:
		if state.DesiredDrain != state.LastAppliedDrain {
			return phase, 0, nil
		}
		return mcp.PhaseDone, 0, u.annotate(ctx, node, mcp.AnnotationCurrentConfig, to.Config, mcp.AnnotationState, mcp.StateDone,
			mcp.AnnotationReason, "", mcp.AnnotationCurrentImage, to.Image, progressAnnotation(u.action.Name()), "")
	}
	return phase, 0, nil // the rollout's turn
}

// act takes a step of the action, and asks to be uncordoned after the last one.
func (u updater) act(ctx context.Context, node, config, uncordon string) (mcp.Phase, time.Duration, error) {
	step, err := StepNode(ctx, u.api, u.action, "config "+config, node)
	if IsPermanent(err) {
		reason := bounded.Text(err.Error(), maxRecorded)
		if err := u.annotate(ctx, node, mcp.AnnotationState, mcp.StateDegraded, mcp.AnnotationReason, reason); err != nil {
			return "", 0, err
		}
	}
	if err != nil {
		return "", 0, err
	}
	if step.Done {
		return mcp.PhaseUncordoning, 0, u.annotate(ctx, node, mcp.AnnotationDesiredDrain, uncordon)
	}
	return mcp.PhaseApplying, max(step.After, time.Second), nil
}

// annotate writes annotations of the node; an empty image or progress is removed.
func (u updater) annotate(ctx context.Context, node string, pairs ...string) error {
	_, err := clusterapi.Modify(ctx, u.api, clusterapi.Key("", node), modify, func(n *corev1.Node) error {
		for i := 0; i < len(pairs); i += 2 {
			if name := pairs[i]; pairs[i+1] == "" && (name == mcp.AnnotationCurrentImage || name == progressAnnotation(u.action.Name())) {
				delete(n.Annotations, name)
				continue
			}
			annotate(n, pairs[i], pairs[i+1])
		}
		return nil
	})
	return err
}
