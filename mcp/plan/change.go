package plan

import (
	"fmt"
	"maps"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// marked reads an object that has no namespace, and its mark.
func (x *pass) marked(gvk schema.GroupVersionKind, name string) (u *unstructured.Unstructured, m mark, err error) {
	return x.markedAt(gvk, types.NamespacedName{Name: name})
}

// markedAt reads an object and the mark of this plan on it. u is nil if the object does not
// exist; it is shared. Another plan's mark is a failure, unless that plan has ended.
func (x *pass) markedAt(
	gvk schema.GroupVersionKind, key types.NamespacedName,
) (u *unstructured.Unstructured, m mark, err error) {
	o, err := clusterapi.GetShared(x.ctx, x.r.api, gvk, key)
	if apierrors.IsNotFound(err) {
		return nil, m, nil
	}
	if err != nil {
		return nil, m, err
	}
	u = o.Unstructured()
	id, m, err := markOf(u)
	switch {
	case id == x.r.plan.ID:
		if err != nil {
			err = &failure{err: err}
		}
		return u, m, err
	case id == "":
		return u, x.remembered()[objectName(u)], nil
	}
	over, err := finished(x.ctx, x.r.api, x.r.run.o.Namespace, id)
	if err != nil {
		return nil, m, err
	}
	if !over {
		return nil, m, failf("%s: %w: plan %s", objectName(u), ErrPlanConflict, id)
	}
	return u, mark{}, nil
}

// update makes fields of an object true: what they were is recorded first, then
// the object is written on condition that it is still the one that was read.
func (x *pass) update(i int, u *unstructured.Unstructured, m mark, fields []field) error {
	next, err := m.write(u, x.r.plan.ID, i, fields)
	if err != nil {
		return &failure{err: err}
	}
	if u.GetKind() != nodeKind.Kind || x.r.plan.Steps[i].Kind != LabelNodes {
		if err := x.recordBefore(i, u, fields); err != nil || x.r.over {
			return err
		}
	}
	_, err = x.r.api.Update(x.ctx, next, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerRollout})
	return err
}

// recordBefore writes into the record what fields have.
func (x *pass) recordBefore(i int, u *unstructured.Unstructured, fields []field) error {
	sp := x.r.rec.Progress.Steps[x.r.plan.Steps[i].ID]
	have := sp.Before[objectName(u)]
	before := maps.Clone(have)
	if before == nil {
		before = map[string]any{}
	}
	changed := false
	for _, f := range fields {
		p, v := pointer(f.path), valueAt(u, f.path)
		if old, ok := before[p]; !ok || !same(integers(old), v) {
			before[p], changed = v, true
		}
	}
	if !changed {
		return nil
	}
	sp.Before = maps.Clone(sp.Before)
	if sp.Before == nil {
		sp.Before = map[string]map[string]any{}
	}
	sp.Before[objectName(u)] = before
	x.r.rec.Progress.Steps[x.r.plan.Steps[i].ID] = sp
	return x.store()
}

// create makes an object, with our mark.
func (x *pass) create(i int, u *unstructured.Unstructured) error {
	if err := (mark{Created: true, Step: i}).put(u, x.r.plan.ID); err != nil {
		return &failure{err: err}
	}
	_, err := x.r.api.Create(x.ctx, u, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerRollout})
	if apierrors.IsAlreadyExists(err) {
		return nil // the next look says whose it is
	}
	return err
}

// remove deletes an object as it was read.
func (x *pass) remove(u *unstructured.Unstructured) error {
	asRead := clusterapi.DeleteOptions{UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}
	return unlessAbsent(x.r.api.Delete(x.ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), asRead))
}

// fieldsOf are the objects that a step changes, by name, and how.
func (s *Step) fieldsOf() (gvk schema.GroupVersionKind, objects []string, f field) {
	switch s.Kind {
	case SetPaused:
		return poolKind, s.Args.Pools, field{pathPaused, orNil(*s.Args.Paused)}
	case SetMaxUnavailable:
		if v := s.Args.MaxUnavailable; v.StrVal != "" {
			return poolKind, s.Args.Pools, field{pathMaxUnavailable, v.StrVal}
		}
		return poolKind, s.Args.Pools, field{pathMaxUnavailable, int64(s.Args.MaxUnavailable.IntVal)}
	case SetChannel:
		return versionKind, []string{clusterVersionKey.Name}, field{pathChannel, s.Args.Channel}
	case Cordon:
		return nodeKind, []string{s.Args.Node}, field{pathUnschedulable, true}
	}
	return nodeKind, []string{s.Args.Node}, field{pathUnschedulable, nil} // Uncordon
}

// undoes reports whether a step takes back what an earlier one did, so that it
// leaves alone what the plan did not do.
func (s *Step) undoes() bool {
	return s.Kind == Uncordon || s.Kind == SetPaused && !*s.Args.Paused
}

func orNil(b bool) any {
	if b {
		return true
	}
	return nil
}

// lookAtFields changes a field of objects, one object after another.
func (x *pass) lookAtFields(i int, s *Step) (look, error) {
	l := look{writes: true, done: true}
	gvk, objects, f := s.fieldsOf()
	for _, name := range objects {
		u, m, err := x.marked(gvk, name)
		if err != nil {
			return l, err
		}
		what := gvk.Kind + "/" + name
		if err := x.mustExist(what, u != nil); err != nil {
			return l, err
		}
		if u == nil {
			l.done, l.why = false, what+" does not exist"
			continue
		}
		if s.Args.Unfinished {
			why, err := x.v.updated(name)
			if err != nil {
				return l, err
			}
			if why == "" {
				continue
			}
		}
		noted, ours := m.Fields[pointer(f.path)]
		wanted := f
		if s.undoes() && !ours {
			continue // somebody else did it
		}
		if s.undoes() && same(noted.Before, f.value) {
			wanted.value = noted.Before
		}
		x.want(&l, i, u, m, []field{wanted}, ours && same(noted.Set, f.value))
	}
	return l, nil
}

// want adds to a look at a step that an object is to have fields; ours reports whether a
// mark of ours is on them if it has them. A look makes the first of its changes.
func (x *pass) want(l *look, i int, u *unstructured.Unstructured, m mark, fields []field, ours bool) {
	wrong := due(u, fields)
	if len(wrong) == 0 {
		l.ours = l.ours || ours
		return
	}
	l.done = false
	if l.change == nil {
		l.change = func() error { return x.update(i, u, m, wrong) }
	}
}

// labelsAtOnce is how many nodes one look labels.
const labelsAtOnce = 50

// lookAtLabels moves nodes to a pool.
func (x *pass) lookAtLabels(i int, s *Step) (look, error) {
	l := look{writes: true}
	var fields []field
	for _, k := range slices.Sorted(maps.Keys(s.Args.Add)) {
		fields = append(fields, field{labelPath(k), s.Args.Add[k]})
	}
	for _, k := range s.Args.Remove {
		fields = append(fields, field{labelPath(k), nil})
	}
	member, err := x.v.membership()
	if err != nil {
		return l, err
	}
	var moved []*corev1.Node
	var late []string
	for _, name := range s.Args.Nodes {
		n, err := x.v.node(name)
		switch {
		case err != nil:
			return l, err
		case n == nil:
			x.warnOnce(EventNodeGone, s, name, fmt.Sprintf("node %s does not exist", name), nil)
		case s.elsewhere(n.Labels, member) != "":
			in := s.elsewhere(n.Labels, member)
			x.warnOnce(EventNodeGone, s, name, fmt.Sprintf("node %s is in pool %s by now", name, in), nil)
		case maps.Equal(s.Args.relabel(n.Labels), n.Labels):
			moved = append(moved, n)
			l.ours = l.ours || n.Annotations[annotationPlan] == x.r.plan.ID
		default:
			late = append(late, name)
		}
	}
	if len(late) > 0 {
		l.why = fmt.Sprintf("%d nodes are to be labelled", len(late))
		l.change = func() error {
			for _, name := range late[:min(len(late), labelsAtOnce)] {
				u, m, err := x.marked(nodeKind, name)
				if err != nil {
					return err
				}
				if u == nil || s.elsewhere(u.GetLabels(), member) != "" {
					continue
				}
				if fields := due(u, fields); len(fields) > 0 {
					if err := x.update(i, u, m, fields); err != nil {
						return err
					}
				}
			}
			return nil
		}
		return l, nil
	}
	l.wait = []string{s.Args.Pool}
	l.why, err = x.arrived(s.Args.Pool, moved)
	l.done = l.why == "" && err == nil
	return l, err
}

// elsewhere returns the pool that keeps a node from being moved, as somebody has put the
// node there since the plan was made: with the labels of the step the node would be in two
// custom pools, or in that one. It is empty if absent.
func (s *Step) elsewhere(labels map[string]string, member *mcp.Membership) string {
	now, then := member.Of(labels), member.Of(s.Args.relabel(labels))
	custom := now.Primary != mcp.PoolWorker && now.Primary != mcp.PoolMaster
	stays := then.Err != nil || then.Primary == now.Primary
	if now.Err != nil || now.Primary == s.Args.Pool || !custom || !stays { // the step may end such an error
		return ""
	}
	return now.Primary
}

// relabel returns labels as the step leaves them.
func (a *Args) relabel(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+len(a.Add))
	maps.Copy(out, labels)
	maps.Copy(out, a.Add)
	for _, k := range a.Remove {
		delete(out, k)
	}
	return out
}

// arrived explains why nodes are not in a pool yet, or the pool not updated.
func (x *pass) arrived(pool string, nodes []*corev1.Node) (why string, err error) {
	p, err := x.v.pool(pool)
	if err != nil {
		return "", err
	}
	if err := x.mustExist(poolKind.Kind+"/"+pool, p != nil); err != nil {
		return "", err
	}
	if p == nil {
		return fmt.Sprintf("pool %s does not exist", pool), nil
	}
	member, err := x.v.membership()
	if err != nil {
		return "", err
	}
	there := 0
	for _, n := range nodes {
		a := member.Of(n.Labels)
		if a.Err != nil {
			return "", failf("node %s: %w", n.Name, a.Err)
		}
		if a.Primary != pool {
			return fmt.Sprintf("node %s belongs to pool %q, not %s", n.Name, a.Primary, pool), nil
		}
		s := mcp.NodeStateOf(n)
		if p.Spec.Paused || !s.Managed() || s.DesiredConfig == p.Spec.Configuration.Name && s.Done() {
			there++
		}
	}
	if there < len(nodes) {
		return fmt.Sprintf("%d of %d nodes have the configuration of pool %s", there, len(nodes), pool), nil
	}
	all, err := x.v.nodesOf(pool)
	if err != nil {
		return "", err
	}
	if int(p.Status.MachineCount) != len(all) {
		return fmt.Sprintf("pool %s counts %d nodes, it has %d", pool, p.Status.MachineCount, len(all)), nil
	}
	if p.Spec.Paused {
		return "", nil
	}
	return x.v.updated(pool)
}

// newPool is the pool that a step creates.
func newPool(s *Step) *unstructured.Unstructured {
	p := &mcfgv1.MachineConfigPool{}
	p.Name = s.Args.Pool
	p.Spec.MachineConfigSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: mcp.LabelRole, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(s.Args.Roles)}}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{mcp.LabelNodeRolePrefix + p.Name: ""}}
	p.Spec.MaxUnavailable = s.Args.MaxUnavailable
	u, err := clusterapi.ToUnstructured(p)
	if err != nil {
		panic(err) // a type of the scheme always converts
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if c := valueAt(u, []string{"spec", "configuration"}); c != nil {
		unstructured.RemoveNestedField(u.Object, "spec", "configuration")
	}
	return u
}

// objectOf is the object that a step applies; it must not be changed.
func objectOf(s *Step) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: s.Args.Object}
}

// lookAtObject makes the fields true that a plan's object names.
func (x *pass) lookAtObject(i int, s *Step) (look, error) {
	l := look{writes: true, done: true}
	want := objectOf(s)
	u, m, err := x.markedAt(want.GroupVersionKind(), clusterapi.KeyOf(want))
	if err != nil {
		return l, err
	}
	if u == nil {
		l.done = false
		l.change = func() error { return x.create(i, want.DeepCopy()) }
		return l, nil
	}
	x.want(&l, i, u, m, leaves(s.Args.Object), m.Created || len(m.Fields) > 0)
	return l, nil
}
