package preview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	operatorGroup  = schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterOperator"}
)

// preview makes the result from the notes.
func (r *run) preview(ctx context.Context, tasks []*manifest.Task) (*Preview, error) {
	p := &Preview{Mode: r.o.Mode, Time: r.o.Clock.Now()}
	if r.o.Payload != nil {
		p.Release = releaseOf(r.o.Payload)
	}
	if r.o.Running != nil {
		running := releaseOf(r.o.Running)
		p.Running = &running
	}
	if err := r.readDefinitions(ctx); err != nil {
		return nil, err
	}
	running := byObject(r.o.Running)
	r.groups = groups(tasks, r.o.Payload)
	for _, g := range r.groups {
		c, err := r.change(ctx, g, running[g.ref])
		if err != nil {
			return nil, err
		}
		p.Changes = append(p.Changes, *c)
	}
	sortChanges(p.Changes)
	needOther(p, r.plurals)
	held(p, tasks)
	for _, about := range []func(context.Context, *Preview) error{r.configuration, r.left, r.implicit, r.removedAPIs} {
		if err := about(ctx, p); err != nil {
			return nil, err
		}
	}
	if r.o.Running != nil && r.o.Payload != nil {
		p.Images = manifest.ImageChanges(r.o.Running, r.o.Payload)
	}
	p.Access = r.access(ctx, p)
	r.namespaces = r.assumedNamespaces(ctx, p)
	p.Unknowns = r.unknowns(p)
	p.Assumed = r.assumed(p)
	if err := errors.Join(ctx.Err(), r.base.failure()); err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	return p, nil
}

func releaseOf(p *manifest.Payload) Release {
	return Release{Version: p.Release.Version, Image: p.Release.Image, Hash: p.Hash}
}

// group is the manifests of one object.
type group struct {
	ref       ref
	manifests []*manifest.Manifest
	tasks     []Task
	verdicts  []manifest.Verdict // for those that loading has excluded; else the zero value
}

// groups puts the manifests of each object together, in the order of the first.
// Those that loading has excluded count only where no other is left.
func groups(tasks []*manifest.Task, p *manifest.Payload) []*group {
	var out []*group
	at := make(map[ref]*group)
	add := func(m *manifest.Manifest, index int, v manifest.Verdict) {
		ref := refOf(m.GVK(), clusterapi.KeyOf(m.Object()))
		g := at[ref]
		if g == nil {
			g = &group{ref: ref}
			at[ref], out = g, append(out, g)
		} else if index == 0 && g.tasks[0].Index > 0 {
			return
		}
		g.manifests, g.tasks = append(g.manifests, m), append(g.tasks, taskOf(m, index))
		g.verdicts = append(g.verdicts, v)
	}
	for _, t := range tasks {
		add(t.Manifest, t.Index, manifest.Verdict{})
	}
	if p != nil {
		for _, e := range p.Excluded {
			add(e.Manifest, 0, e.Verdict)
		}
	}
	return out
}

// byObject are the manifests of a payload by object.
func byObject(p *manifest.Payload) map[ref][]*manifest.Manifest {
	out := make(map[ref][]*manifest.Manifest)
	if p != nil {
		for _, m := range p.Manifests {
			at := refOf(m.GVK(), clusterapi.KeyOf(m.Object()))
			out[at] = append(out[at], m)
		}
	}
	return out
}

// change reports what became of an object.
func (r *run) change(ctx context.Context, g *group, running []*manifest.Manifest) (*Change, error) {
	c := &Change{Tasks: g.tasks, hider: r.hider}
	last := g.manifests[len(g.manifests)-1]
	c.Object = Object{last.GVK(), clusterapi.KeyOf(last.Object())}
	included := r.included(g, c)
	if len(included) == 0 {
		return c, nil
	}
	last = included[len(included)-1]
	c.Object.GroupVersionKind = last.GVK()
	n := r.objects[g.ref]
	if n == nil {
		return nil, errorf("%s was not looked at", c.Object)
	}
	if n.old != nil {
		c.old = n.old.Unstructured()
		// Some manifests of kinds without namespaces name one anyway.
		c.Object.NamespacedName = clusterapi.KeyOf(c.old)
		c.Seen = r.seen(refOf(c.Object.GroupVersionKind, c.Object.NamespacedName), c.old)
	}
	stored, err := r.Cluster.GetShared(ctx, c.Object.GroupVersionKind, c.Object.NamespacedName)
	switch {
	case err == nil:
		c.new = stored.Unstructured()
		c.Object.NamespacedName = stored.Key()
	case !clusterapi.IsAbsent(err):
		return nil, fmt.Errorf("preview: %s: %w", c.Object, err)
	}
	switch g.ref.GroupKind {
	case operatorGroup:
		c.Awaited = last.OperandVersions()
	case definitionKind.GroupKind():
		c.Dropped, c.unserved = droppedVersions(c.old, last), unservedVersions(c.old, last)
	}
	c.Server, c.refused = n.answer, n.refused
	switch {
	case n.unknown != nil:
		c.Action, c.Reason = Unknown, n.unknown.Error()
		if n.fault != nil && !errors.Is(n.fault, clusterapi.ErrNotCollected) {
			c.Action, c.Reason = Fail, n.fault.Error()
		}
	case errors.Is(n.fault, clusterapi.ErrNotCollected):
		c.Action, c.Reason = Unknown, n.fault.Error()
	case n.fault != nil:
		c.Action, c.Reason = Fail, n.fault.Error()
	case last.Deletes():
		r.deletion(c, n)
	case c.old == nil:
		c.Action = Create
	case createsOnly(included):
		c.Action, c.Reason = skip, "it exists, and the release only creates it"
		c.Fields = r.shown(c.old, r.lacks(c.old, last))
	case g.ref.GroupKind == operatorGroup:
		c.Action = keep
		c.Reason = awaitedText(c.Awaited)
	default:
		r.update(c, included, running)
	}
	if c.Action == Update {
		return c, r.rolls(ctx, c)
	}
	return c, nil
}

// included returns the manifests of a group that apply; if there are none, the
// change is settled.
func (r *run) included(g *group, c *Change) []*manifest.Manifest {
	var included []*manifest.Manifest
	var tasks []Task
	for i, m := range g.manifests {
		v := g.verdicts[i]
		if g.tasks[i].Index > 0 {
			v = r.o.Filter.Judge(m)
		}
		if v.Included {
			included, tasks = append(included, m), append(tasks, g.tasks[i])
			continue
		}
		if c.Action == "" {
			c.Action, c.Reason = excluded, v.String()
			if v.Rule == manifest.RuleOverride {
				c.Action, c.Reason = unmanaged, "an override of the ClusterVersion says that it is not managed"
			}
		}
	}
	if len(included) > 0 {
		c.Action, c.Reason, c.Tasks = "", "", tasks
	}
	return included
}

// update compares what was there with what is there now.
func (r *run) update(c *Change, included, running []*manifest.Manifest) {
	fields := r.compare(c.old, c.new)
	c.Fields = r.shown(c.new, fields)
	if c.Object.GroupKind() == definitionKind.GroupKind() {
		c.Fields, c.Schemas = r.hider.Definitions(r.filled(c.old), r.filled(c.new), r.o.Descriptions)
	}
	c.Action = Update
	if len(c.Fields) == 0 && len(c.Schemas) == 0 {
		c.Action = keep
	}
	if statesOnce(included, running) {
		target := included[0].Object()
		released := r.compare(running[0].Object(), target)
		r.stale(c, running[0].Object(), target, released)
		c.Drift = r.drift(c, fields, released)
	}
}

// statesOnce reports that one manifest each speaks of an object.
func statesOnce(included, running []*manifest.Manifest) bool {
	return len(included) == 1 && len(running) == 1 && !running[0].Deletes() && !createsOnly(running)
}

// deletion reports what a deletion does.
func (r *run) deletion(c *Change, n *note) {
	switch {
	case c.old == nil:
		c.Action = absent
	case c.new != nil:
		c.Action, c.Finalizers = Delete, c.new.GetFinalizers()
		c.Reason = "it stays until what it holds is gone"
		if len(c.Finalizers) > 0 {
			c.Reason = "finalizers hold it: " + strings.Join(c.Finalizers, ", ")
		}
		c.Dependents = n.deletes
		if c.old.GetDeletionTimestamp() != nil {
			c.Reason = "it is being deleted already; " + c.Reason
		}
	default:
		c.Action, c.Dependents = Delete, n.deletes
	}
}

// createsOnly reports that no manifest states more than that an object exists.
func createsOnly(manifests []*manifest.Manifest) bool {
	return !slices.ContainsFunc(manifests, func(m *manifest.Manifest) bool { return !m.CreatesOnly() })
}

func awaitedText(versions []configv1.OperandVersion) string {
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = v.Name + " " + v.Version
	}
	return "awaited: " + strings.Join(texts, ", ")
}

// sortedRefs are the keys of a map, sorted.
func sortedRefs[V any](m map[ref]V) []ref {
	return slices.SortedFunc(maps.Keys(m), func(a, b ref) int {
		return strings.Compare(a.GroupKind.String()+" "+a.NamespacedName.String(), b.GroupKind.String()+" "+b.NamespacedName.String())
	})
}
