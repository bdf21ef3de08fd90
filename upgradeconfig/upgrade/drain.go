package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// ForcedDrain removes the pods of worker nodes which the
// machine-config operator waits to drain, as the managed-upgrade operator does:
// pods that no PodDisruptionBudget protects after TimeOut, the others after the
// time that ForceDrain is given and ExpectedDrainTime. Removed pods get no time to
// end, and lose their finalizers. Pods of DaemonSets, static pods and those that
// are finished stay, and so do all pods of control-plane nodes.
//
// The wait of a node starts when the taint node.kubernetes.io/unschedulable was
// added to it. A node without that time is not forced. ForcedDrain is safe for
// concurrent use.
type ForcedDrain struct {
	API   clusterapi.ReadWriter // required
	Clock clock.PassiveClock    // nil means the real one

	// TimeOut is after which time pods without a budget are removed; 0 means 45
	// minutes, [reconcile.Never] that they stay.
	TimeOut time.Duration
	// ExpectedDrainTime is how much longer than its time-out a pod with a budget is
	// left alone; 0 means 8 minutes.
	ExpectedDrainTime time.Duration
	// IgnoredNamespaces are regular expressions; pods in namespaces that one of
	// them matches somewhere stay.
	IgnoredNamespaces []string

	// FromConfig takes TimeOut, ExpectedDrainTime and IgnoredNamespaces from key
	// nodeDrain of the operator's ConfigMap, each time; what that does not name has
	// its default. Namespace is the ConfigMap's; empty means
	// [upgradeconfig.DefaultNamespace].
	FromConfig bool
	Namespace  string
}

const (
	defaultDrainTimeOut      = 45 * time.Minute
	defaultExpectedDrainTime = 8 * time.Minute
)

// ForceDrain removes what keeps nodes from being drained, and returns all errors
// that it meets on the way: those of the cluster and of the ConfigMap, a pattern that is
// not a regular expression, and a negative time.
func (d *ForcedDrain) ForceDrain(ctx context.Context, _ *upgradeconfig.UpgradeConfig, after time.Duration) error {
	r, err := d.rules(ctx, after)
	if err != nil || r == nil {
		return err
	}
	nodes, err := clusterapi.List[corev1.Node](ctx, d.API, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	nodes = slices.DeleteFunc(nodes, func(n corev1.Node) bool { return !r.isDue(n) })
	if len(nodes) == 0 {
		return nil
	}
	budgets, err := clusterapi.List[policyv1.PodDisruptionBudget](ctx, d.API, clusterapi.ListOptions{})
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for _, b := range budgets {
		r.budgets = append(r.budgets, budget{b.Namespace, disruption.Selector(&b)})
	}
	var errs []error
	for _, node := range nodes {
		if err := d.empty(ctx, r, node); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", node.Name, err))
		}
	}
	return errors.Join(errs...)
}

// drainRules say which pods are due for removal.
type drainRules struct {
	now                 time.Time
	ordinary, protected time.Duration // after the taint; ordinary may be reconcile.Never
	ignored             []*regexp.Regexp
	budgets             []budget
}

type budget struct {
	namespace string
	selector  labels.Selector
}

// rules are nil if nothing is removed at all.
func (d *ForcedDrain) rules(ctx context.Context, after time.Duration) (*drainRules, error) {
	timeOut, expected, ignored := d.TimeOut, d.ExpectedDrainTime, d.IgnoredNamespaces
	if d.FromConfig {
		c, err := upgradeconfig.ReadNodeDrain(ctx, d.API, d.Namespace)
		if err != nil || c.DisableDrainStrategies {
			return nil, err
		}
		timeOut, expected, ignored = minutes(c.TimeOut), minutes(c.ExpectedNodeDrainTime), c.IgnoredNamespacePatterns
	}
	if timeOut < 0 && timeOut != reconcile.Never || expected < 0 || after < 0 {
		return nil, fmt.Errorf("a forced drain after %s, %s and %s: negative", timeOut, expected, after)
	}
	r := &drainRules{now: clock.RealClock{}.Now(), ordinary: cmp.Or(timeOut, defaultDrainTimeOut)}
	if d.Clock != nil {
		r.now = d.Clock.Now()
	}
	r.protected = after + cmp.Or(expected, defaultExpectedDrainTime)
	for _, pattern := range ignored {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern of ignored namespaces: %w", err)
		}
		r.ignored = append(r.ignored, re)
	}
	return r, nil
}

// minutes are at most a year, so that sums do not overflow.
func minutes(n int64) time.Duration {
	return time.Duration(min(n, 366*24*60)) * time.Minute
}

// isDue reports whether pods of a node may be removed now.
func (r *drainRules) isDue(n corev1.Node) bool {
	for _, role := range []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} {
		if _, is := n.Labels[role]; is {
			return false
		}
	}
	s := mcp.NodeStateOf(&n)
	if !s.Unschedulable || s.DesiredDrain == s.LastAppliedDrain {
		return false
	}
	return r.isLate(n, r.protected) || r.isLate(n, r.ordinary)
}

// isLate reports whether a node waits for longer than a time.
func (r *drainRules) isLate(n corev1.Node, limit time.Duration) bool {
	if limit == reconcile.Never {
		return false
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule {
			return t.TimeAdded != nil && r.now.Sub(t.TimeAdded.Time) > limit
		}
	}
	return false
}

// isProtected reports whether a disruption budget is about a pod.
func (r *drainRules) isProtected(p corev1.Pod) bool {
	return slices.ContainsFunc(r.budgets, func(b budget) bool {
		return b.namespace == p.Namespace && b.selector.Matches(labels.Set(p.Labels))
	})
}

func (d *ForcedDrain) empty(ctx context.Context, r *drainRules, node corev1.Node) error {
	pods, err := clusterapi.List[corev1.Pod](ctx, d.API, clusterapi.ListOptions{NodeName: node.Name})
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if p.Spec.NodeName != node.Name || stays(p) { // a backend may be unable to select by node
			continue
		}
		if slices.ContainsFunc(r.ignored, func(re *regexp.Regexp) bool { return re.MatchString(p.Namespace) }) {
			continue
		}
		protected := r.isProtected(p)
		limit := r.ordinary
		if protected {
			limit = r.protected
		}
		if !r.isLate(node, limit) {
			continue
		}
		// A protected pod that is ending already has the time that it asks for.
		ends := p.DeletionTimestamp == nil || !protected && len(p.Finalizers) == 0
		if err := d.remove(ctx, p, ends); err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// remove deletes a pod unless that is left out, and takes its finalizers away.
func (d *ForcedDrain) remove(ctx context.Context, p corev1.Pod, ends bool) error {
	gone := func(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
	key := clusterapi.Key(p.Namespace, p.Name)
	if ends {
		none := int64(0)
		err := d.API.Delete(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), key, clusterapi.DeleteOptions{UID: p.UID, GracePeriodSeconds: &none})
		if err != nil {
			if gone(err) {
				return nil
			}
			return err
		}
	}
	if len(p.Finalizers) == 0 {
		return nil
	}
	_, err := clusterapi.Modify(ctx, d.API, key, clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}, func(stored *corev1.Pod) error {
		if stored.UID == p.UID {
			stored.Finalizers = nil
		}
		return nil
	})
	if err != nil && !gone(err) {
		return err
	}
	return nil
}

// stays reports whether a drain leaves a pod if it is.
func stays(p corev1.Pod) bool {
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	if c := metav1.GetControllerOfNoCopy(&p); c != nil && c.Kind == "DaemonSet" {
		return true
	}
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
