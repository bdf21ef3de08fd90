package plan

import (
	"errors"
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// keeps returns why an object that the plan created stays, and whether that has to be asked
// again later.
func (x *pass) keeps(u *unstructured.Unstructured) (why string, later bool, err error) {
	switch u.GroupVersionKind() {
	case poolKind:
		return x.keepsPool(u.GetName())
	case configKind:
		if !x.r.rec.Progress.AllowReboots {
			why = "without it nodes drain and reboot"
		}
	}
	return why, false, nil
}

func (x *pass) keepsPool(pool string) (why string, later bool, err error) {
	nodes, err := x.v.nodesOf(pool)
	users, err2 := x.v.usersOf(pool)
	parked, err3 := x.v.parked(users)
	if err := errors.Join(err, err2, err3); err != nil {
		return "", false, err
	}
	ours := func(n *corev1.Node) bool {
		_, labelled := n.Labels[mcp.LabelNodeRolePrefix+pool]
		return !labelled || n.Annotations[annotationPlan] == x.r.plan.ID
	}
	switch {
	case slices.ContainsFunc(nodes, ours):
		return fmt.Sprintf("it has %d nodes", len(nodes)), false, nil
	case len(nodes) > 0 && !x.r.rec.Progress.AllowReboots:
		return fmt.Sprintf("it has %d nodes that somebody else gave it", len(nodes)), false, nil
	case len(users) == 0:
		return "", false, nil
	case parked || x.lingers(pool, users):
		return fmt.Sprintf("node %s still uses its configuration", users[0].Name), false, nil
	}
	return "", true, nil
}

// lingers reports whether nodes have used a pool's configuration for so long
// without any progress that a stop does not wait for them any more. The pool's
// configurations go with it, and a node that is on the way to one, or from one,
// needs it.
func (x *pass) lingers(pool string, users []*corev1.Node) bool {
	first, known := x.r.lingering[pool]
	since := x.since(&first)
	if !known {
		text := fmt.Sprintf("pool %s stays while %d nodes use its configuration", pool, len(users))
		x.emit(EventWaiting, EventData{}, text, nil)
	}
	for _, at := range x.r.moved {
		if at.After(since) {
			since = at
		}
	}
	x.r.lingering[pool] = since
	return x.now.Sub(since) >= 3*x.r.run.o.Stall
}

// reboots returns why going from one state of an object to another makes nodes
// drain and reboot, "" if it does not or reboots are allowed, and which fields do, by how
// their pointers start.
func (x *pass) reboots(now, next *unstructured.Unstructured) (fields, why string, err error) {
	if x.r.rec.Progress.AllowReboots {
		return "", "", nil
	}
	switch now.GroupVersionKind() {
	case poolKind:
		if same(valueAt(now, pathPaused), valueAt(next, pathPaused)) || same(valueAt(next, pathPaused), true) {
			return "", "", nil
		}
		p, err := clusterapi.FromUnstructured[mcfgv1.MachineConfigPool](now)
		if err != nil {
			return "", "", err
		}
		if p.Spec.Configuration.Name == p.Status.Configuration.Name && poolSays(p, mcfgv1.MachineConfigPoolUpdated) {
			return "", "", nil
		}
		return pointer(pathPaused), "a configuration is pending, for which nodes drain and reboot", nil
	case nodeKind:
		n, err := clusterapi.FromUnstructured[corev1.Node](next)
		member, err2 := x.v.membership()
		if err := errors.Join(err, err2); err != nil {
			return "", "", err
		}
		to := member.Of(n.Labels).Primary
		if to == member.Of(now.GetLabels()).Primary {
			return "", "", nil // it moves to no other content
		}
		p, err := x.v.pool(to)
		if err != nil || p == nil {
			return "", "", err
		}
		config := mcp.NodeStateOf(n).CurrentConfig
		if config != "" && !sameConfig(config, p.Spec.Configuration.Name) {
			why = fmt.Sprintf("pool %s has other content, for which the node drains and reboots", p.Name)
			return pointer(labelPath("")), why, nil
		}
	case configKind:
		return "", "nodes drain and reboot for the change", nil
	}
	return "", "", nil
}
