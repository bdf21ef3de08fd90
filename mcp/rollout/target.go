package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// targetNodes targets the nodes that the pool's decision selects. If a node
// turns out to have changed since, it decides again.
func (x *run) targetNodes(ctx context.Context, pool string) error {
	var targeted []string
	var to mcp.Target
	defer func() { x.reportTargeted(pool, targeted, to) }()
	deferred := ""
	for round := 0; ; round++ {
		if err := x.refresh(ctx); err != nil {
			return err
		}
		sel := x.state.Candidates(pool)
		to = sel.Target
		if sel.Deferred != "" && sel.Deferred != deferred {
			deferred = sel.Deferred
			d := EventData{Pool: pool, Node: deferred, Reason: ReasonDeferringOperatorNode}
			x.emit(EventPool, d, fmt.Sprintf(mcp.TextDeferring, deferred), nil)
		}
		if round == 0 {
			for _, b := range sel.Boots {
				if err := x.labelBoot(ctx, b); err != nil {
					x.fail(pool, b.Node, err) // it stays a candidate
				}
			}
			if len(sel.Boots) > 0 {
				continue
			}
		}
		again := false
		for _, node := range sel.Nodes[:x.allowedByHooks(pool, sel)] {
			stale, err := x.target(ctx, pool, node, to)
			if err != nil {
				return &TargetError{Node: node, Config: to.Config, Err: err}
			}
			if stale {
				again = true
				break
			}
			targeted = append(targeted, node)
		}
		if !again {
			return nil
		}
		if round > 2*len(sel.Nodes)+10 {
			x.enqueue([]string{pool}) // somebody else is very busy with these nodes
			return nil
		}
	}
}

func (x *run) reportTargeted(pool string, nodes []string, to mcp.Target) {
	if len(nodes) == 0 {
		return
	}
	reason, line := ReasonSetDesiredConfig, "MachineConfig: "+to.Config
	if to.Image != "" {
		reason, line = ReasonSetDesiredConfigAndOSImage, line+" / Image: "+to.Image
	}
	text := fmt.Sprintf("Set target for %d nodes to %s", len(nodes), line)
	if len(nodes) == 1 {
		text = fmt.Sprintf("Targeted node %s to %s", nodes[0], line)
	}
	x.emit(EventPool, EventData{Pool: pool, Reason: reason}, text, nil)
}

// target gives a node its target, provided that it is still what was decided on:
// stale reports that it was not.
func (x *run) target(ctx context.Context, pool, node string, to mcp.Target) (stale bool, err error) {
	x.copyToMachineConfigNode(ctx, node, to)
	decided := x.versions[node]
	o := modifyNode
	o.Once = true
	_, err = clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", node), o, func(n *corev1.Node) error {
		if n.ResourceVersion != decided {
			return errStale
		}
		setAnnotation(n, mcp.AnnotationDesiredConfig, to.Config)
		if to.Image != "" {
			setAnnotation(n, mcp.AnnotationDesiredImage, to.Image)
		} else {
			delete(n.Annotations, mcp.AnnotationDesiredImage)
		}
		return nil
	})
	switch {
	case errors.Is(err, errStale):
		x.learn(node)
		return true, nil
	case apierrors.IsConflict(err):
		x.verify[node] = true
		return true, nil
	case apierrors.IsNotFound(err):
		x.dropNode(node)
		return true, nil
	case err != nil:
		// It may have been written all the same: nothing is decided before the
		// node has been read.
		x.verify[node] = true
		return false, err
	}
	x.learn(node)
	x.noticeTargeted(pool, node, to)
	return false, nil
}

// copyToMachineConfigNode repeats a target in the node's MachineConfigNode, if
// there is one. Nothing is decided by it, so a failure is only logged.
func (x *run) copyToMachineConfigNode(ctx context.Context, node string, to mcp.Target) {
	if !x.state.HasMachineConfigNode(node) {
		return
	}
	_, err := clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", node), modifyNode, func(m *mcfgv1.MachineConfigNode) error {
		m.Spec.ConfigVersion.Desired = to.Config
		m.Spec.ConfigImage.DesiredImage = mcfgv1.ImageDigestFormat(to.Image)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		x.o.Logger.Warn("rollout: MachineConfigNode not updated", "node", node, "error", err)
	}
}

// labelBoot gives a node the labels of the pool that it booted into.
func (x *run) labelBoot(ctx context.Context, b mcp.Boot) error {
	_, err := clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", b.Node), modifyNode, func(n *corev1.Node) error {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		maps.Copy(n.Labels, b.Labels)
		setAnnotation(n, mcp.AnnotationCustomPoolLabelsApplied, "true")
		return nil
	})
	if err != nil {
		return fmt.Errorf("labels of pool %s for node %s: %w", b.Pool, b.Node, err)
	}
	x.learn(b.Node)
	return nil
}

// refresh reads the nodes whose stored state is in doubt.
func (x *run) refresh(ctx context.Context) error {
	for _, node := range slices.Sorted(maps.Keys(x.verify)) {
		_, err := clusterapi.Read[corev1.Node](ctx, x.o.API, clusterapi.Key("", node))
		switch {
		case apierrors.IsNotFound(err):
			x.dropNode(node)
		case err != nil:
			return fmt.Errorf("reading node %s again: %w", node, err)
		default:
			x.learn(node)
		}
	}
	return nil
}
