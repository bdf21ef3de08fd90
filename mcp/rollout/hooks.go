package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Hooks run around the update of each node, in this order:
//
//	PreCordon, then the node is cordoned and drained,
//	PreUpgrade, then it is updated,
//	PreUncordon, then it is uncordoned,
//	PostUpgrade, then the next node may follow.
//
// nil: nothing is run there. A hook must be idempotent: after a crash it may run
// again. Its error halts the run: the node stays as it is, no further node is
// started, and nodes that are under way finish. Another run, once the cause is
// mended, runs the hook again and continues from there; nodes that are finished are
// left alone. They must be safe for concurrent use if several nodes may be
// updated at a time.
//
// These are the hooks of RHEL compute machines in the OpenShift documentation
// (openshift_node_pre_cordon_hook and so on), for every kind of node.
type Hooks struct {
	PreCordon, PreUpgrade, PreUncordon, PostUpgrade func(ctx context.Context, node string) error
}

// Hook names one of [Hooks].
type Hook string

// The hooks, in order.
const (
	HookPreCordon   Hook = "PreCordon"
	HookPreUpgrade  Hook = "PreUpgrade"
	HookPreUncordon Hook = "PreUncordon"
	HookPostUpgrade Hook = "PostUpgrade"
)

// of returns the hook of a name; nil if absent. Its errors are the hook's.
func (h Hooks) of(name Hook) func(ctx context.Context, node string) error {
	switch name {
	case HookPreCordon:
		return h.PreCordon
	case HookPreUpgrade:
		return h.PreUpgrade
	case HookPreUncordon:
		return h.PreUncordon
	case HookPostUpgrade:
		return h.PostUpgrade
	}
	return nil
}

func (h Hooks) any() bool {
	return h.PreCordon != nil || h.PreUpgrade != nil || h.PreUncordon != nil || h.PostUpgrade != nil
}

// HookError reports that a hook failed, which halts the run.
type HookError struct {
	Node string
	Hook Hook
	Err  error
}

func (e *HookError) Error() string {
	return fmt.Sprintf("node %s: hook %s failed: %v", e.Node, e.Hook, e.Err)
}

func (e *HookError) Unwrap() error { return e.Err }

// annotationHooks on a node records which hooks have run for the update under way,
// and which one failed, so that another [Rollout] continues from there. It goes
// when the last one has run. [Uninstall] removes it.
const annotationHooks = clusterapi.AnnotationPrefix + "hooks"

// hooksRecord is the value of clusterupdate.github.io/hooks, as JSON.
type hooksRecord struct {
	Version int    `json:"version"`
	Config  string `json:"config"` // that the node is updated to
	Done    []Hook `json:"done,omitempty"`
	Failed  Hook   `json:"failed,omitempty"`
	Error   string `json:"error,omitempty"`
}

const hooksVersion = 1

// maxRecorded is the most bytes that an error has in an annotation.
const maxRecorded = 2000

// hooksOf reads which hooks have run for the update of a node to config.
func hooksOf(n *corev1.Node, config string) (hooksRecord, error) {
	r := hooksRecord{Version: hooksVersion, Config: config}
	value := n.Annotations[annotationHooks]
	if value == "" {
		return r, nil
	}
	var stored hooksRecord
	if err := json.Unmarshal([]byte(value), &stored); err != nil {
		return r, nil // not ours: it is written again
	}
	if stored.Version > hooksVersion {
		return r, fmt.Errorf("node %s: annotation %s has version %d; this program knows 1 to %d", n.Name, annotationHooks, stored.Version, hooksVersion)
	}
	if stored.Config != config {
		return r, nil // of an earlier target
	}
	return stored, nil
}

func (r hooksRecord) write(n *corev1.Node) {
	value, _ := json.Marshal(r)
	setAnnotation(n, annotationHooks, string(value))
}

// nodeHook is the hook of a node that runs, or whose error halts the run.
type nodeHook struct {
	hook   Hook
	config string

	// Guarded by run.mu.
	over  bool
	err   error
	noted bool // the error is on the node
}

// hooked reports whether a hook has run for the update of a node to config, and
// starts it if it has not.
func (x *drainer) hooked(n *corev1.Node, hook Hook, config string) (bool, error) {
	if x.run.o.Hooks.of(hook) == nil {
		return true, nil
	}
	record, err := hooksOf(n, config)
	if err != nil {
		return false, err
	}
	if slices.Contains(record.Done, hook) {
		return true, nil
	}
	h := x.d.hook
	if h == nil || h.hook != hook || h.config != config {
		x.d.hook = &nodeHook{hook: hook, config: config}
		return false, nil
	}
	x.run.lock(x.now)
	over, failure, noted := h.over, h.err, h.noted
	x.run.release()
	if !over || noted {
		return false, nil
	}
	_, err = clusterapi.Modify(x.ctx, x.run.api, clusterapi.Key("", x.node), modifyNode, func(n *corev1.Node) error {
		r, err := hooksOf(n, config)
		if err != nil {
			return err
		}
		r.Failed, r.Error = "", ""
		if failure != nil {
			r.Failed, r.Error = hook, bounded.Text(failure.Error(), maxRecorded)
		} else if !slices.Contains(r.Done, hook) {
			r.Done = append(r.Done, hook)
		}
		r.write(n)
		return nil
	})
	if err != nil {
		return false, err
	}
	if failure != nil {
		h.noted = true
		return false, nil
	}
	x.d.hook = nil
	return true, nil
}

// hookedDrained reports whether the hook of a node that has just been drained
// has run.
func (x *drainer) hookedDrained() (bool, error) {
	if x.run.o.Hooks.PreUpgrade == nil {
		return true, nil
	}
	n, err := clusterapi.Read[corev1.Node](x.ctx, x.run.api, clusterapi.Key("", x.node))
	if apierrors.IsNotFound(err) {
		x.d.hook = nil
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, config, _ := strings.Cut(x.d.attempt.asked, "-")
	return x.hooked(n, HookPreUpgrade, config)
}

// afterUpdate runs the last hook of a node that is done.
func (x *drainer) afterUpdate(n *corev1.Node) error {
	state := mcp.NodeStateOf(n)
	if n.Annotations[annotationHooks] == "" || !state.Done() || x.run.o.Hooks.PostUpgrade == nil {
		return nil
	}
	if done, err := x.hooked(n, HookPostUpgrade, state.CurrentConfig); !done {
		return err
	}
	_, err := clusterapi.Modify(x.ctx, x.run.api, clusterapi.Key("", x.node), modifyNode, func(n *corev1.Node) error {
		delete(n.Annotations, annotationHooks)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// oweLast changes the record of a node that is uncordoned: what stays reports that
// its last hook is to be run.
func (x *drainer) oweLast(n *corev1.Node, config string) {
	delete(n.Annotations, annotationHooks)
	if x.run.o.Hooks.PostUpgrade != nil {
		hooksRecord{Version: hooksVersion, Config: config, Done: []Hook{HookPreCordon, HookPreUpgrade, HookPreUncordon}}.write(n)
	}
}

// job runs a hook.
func (r *drainsReconciler) job(node string, d *nodeDrain, h *nodeHook) reconcile.Job {
	return reconcile.Job{
		ID: h,
		Run: func(ctx context.Context, _ func(any)) (any, error) {
			return nil, r.run.rollout.o.Hooks.of(h.hook)(ctx, node)
		},
		Done: func(_ any, err error) []reconcile.Wake {
			r.run.mu.Lock()
			defer r.run.release()
			h.over = true
			d.enqueue(r.run.now)
			data := EventData{Node: node}
			if _, assign, ok := r.run.state.Node(node); ok {
				data.Pool = assign.Primary
			}
			if err != nil {
				r.run.rollout.logPanic("rollout: a hook failed", err)
				h.err = &HookError{Node: node, Hook: h.hook, Err: err}
				r.run.halted = true
				data.Warning = true
				r.run.emit(EventHookFailed, data, "", h.err)
			} else {
				r.run.emit(EventHookDone, data, fmt.Sprintf("node %s: hook %s has run", node, h.hook), nil)
			}
			return []reconcile.Wake{{Key: nodeKey(node)}}
		},
	}
}

// allowedByHooks returns how many of a pool's nodes may be targeted at most: none
// once a hook has failed; and a node keeps its unit until its last hook has run.
func (x *run) allowedByHooks(pool string, sel mcp.Selection) int {
	if x.halted {
		return 0
	}
	allowed := sel.Capacity
	for node := range x.owing {
		if n, assign, ok := x.state.Node(node); ok && assign.Primary == pool && !n.Unavailable() {
			allowed--
		}
	}
	return max(0, min(allowed, len(sel.Nodes)))
}

// noticeHooks remembers whether a node's last hook is to be run. Its pool may
// continue when it has.
func (x *run) noticeHooks(n *corev1.Node) {
	owes := x.o.Hooks.PostUpgrade != nil && n.Annotations[annotationHooks] != ""
	if owes == x.owing[n.Name] {
		return
	}
	if owes {
		x.owing[n.Name] = true
		return
	}
	delete(x.owing, n.Name)
	if _, assign, ok := x.state.Node(n.Name); ok && assign.Primary != "" {
		x.enqueue([]string{assign.Primary})
	}
}
