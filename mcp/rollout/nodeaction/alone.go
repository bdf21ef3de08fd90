package nodeaction

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Func makes an action a function, for plans whose steps cordon, drain and
// uncordon by themselves: it does the action to a node and returns when that is
// done, or with the action's first error. Called again, it goes on where it was:
// the progress is in an annotation of the node meanwhile. It waits with
// [reconcile.Sleep]. The function is safe for concurrent use, for different
// nodes.
func Func(api clusterapi.ClusterAPI, a Action) func(ctx context.Context, node string) error {
	return func(ctx context.Context, node string) error {
		for {
			step, err := StepNode(ctx, api, a, node)
			if err != nil || step.Done {
				return err
			}
			if err := reconcile.Sleep(ctx, step.After); err != nil {
				return err
			}
		}
	}
}

// ProgressAnnotation returns the name of the annotation on nodes in which [Func]
// and [Updater] keep how far an action is.
func ProgressAnnotation(action string) string { return progressPrefix + action }

const progressPrefix = clusterapi.AnnotationPrefix + "progress."

// progress is the value of a ProgressAnnotation, as JSON.
type progress struct {
	Version  int    `json:"version"`
	Progress string `json:"progress"`
	Begun    bool   `json:"begun"` // the action was found to be needed
}

const progressVersion = 1

// StepNode takes the next step of an action that is done to a node without a run,
// for who waits by himself, as the actions of a plan do: Step.After says how long.
// It is one round of [Func], and is called until the step is Done. Its errors are
// those of the action and the cluster.
func StepNode(ctx context.Context, api clusterapi.ClusterAPI, a Action, name string) (Step, error) {
	n, err := clusterapi.Get[corev1.Node](ctx, api, clusterapi.Key("", name))
	if err != nil {
		return Step{}, err
	}
	annotation := ProgressAnnotation(a.Name())
	was := progress{Version: progressVersion}
	if value := n.Annotations[annotation]; value != "" {
		if err := json.Unmarshal([]byte(value), &was); err != nil {
			return Step{}, fmt.Errorf("node %s: annotation %s: %w", name, annotation, err)
		}
		if was.Version > progressVersion {
			return Step{}, fmt.Errorf("node %s: annotation %s: %w: version %d; this program knows 1 to %d", name, annotation, ErrVersion, was.Version, progressVersion)
		}
	}
	if c, ok := a.(Checker); ok && !was.Begun {
		needed, err := c.Needed(ctx, n)
		if err != nil || !needed {
			return Step{Done: !needed}, err
		}
	}
	step, err := a.Step(ctx, n, was.Progress)
	if err != nil {
		return Step{}, err
	}
	if len(step.Progress) > MaxProgress {
		return Step{}, fmt.Errorf("the action's progress has %d bytes; at most %d can be recorded", len(step.Progress), MaxProgress)
	}
	value, err := json.Marshal(progress{progressVersion, step.Progress, true})
	if err != nil {
		return Step{}, err
	}
	_, err = clusterapi.Modify(ctx, api, clusterapi.Key("", name), modify, func(n *corev1.Node) error {
		if step.Done {
			delete(n.Annotations, annotation)
			delete(n.Annotations, ConfirmAnnotation(a.Name()))
		} else {
			annotate(n, annotation, string(value))
		}
		return nil
	})
	return step, err
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
		return u.act(ctx, node, uncordon)
	case mcp.PhaseApplying, mcp.PhaseRebooting:
		if state.DesiredDrain != drain { // told to reach something else meanwhile: it stays drained
			return phase, 0, u.annotate(ctx, node, mcp.AnnotationDesiredDrain, drain)
		}
		return u.act(ctx, node, uncordon)
	case mcp.PhaseUncordoning:
		if state.DesiredDrain != state.LastAppliedDrain {
			return phase, 0, nil
		}
		return mcp.PhaseDone, 0, u.annotate(ctx, node, mcp.AnnotationCurrentConfig, to.Config, mcp.AnnotationState, mcp.StateDone,
			mcp.AnnotationReason, "", mcp.AnnotationCurrentImage, to.Image)
	}
	return phase, 0, nil // the rollout's turn
}

// act takes a step of the action, and asks to be uncordoned after the last one.
func (u updater) act(ctx context.Context, node, uncordon string) (mcp.Phase, time.Duration, error) {
	step, err := StepNode(ctx, u.api, u.action, node)
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

// annotate writes annotations of the node; an empty image is removed.
func (u updater) annotate(ctx context.Context, node string, pairs ...string) error {
	_, err := clusterapi.Modify(ctx, u.api, clusterapi.Key("", node), modify, func(n *corev1.Node) error {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == mcp.AnnotationCurrentImage && pairs[i+1] == "" {
				delete(n.Annotations, pairs[i])
				continue
			}
			annotate(n, pairs[i], pairs[i+1])
		}
		return nil
	})
	return err
}
