package preview

import (
	"context"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Left is an object of the running release that the target does not mention, so
// that it stays as it is. It is plain data.
type Left struct {
	Object Object `json:"object"`
	Task   Task   `json:"task"`
	// Exists reports whether the cluster has it; nil if that is not known.
	Exists *bool `json:"exists,omitempty"`
}

// left finds what the running release has and the target does not mention.
func (r *run) left(ctx context.Context, p *Preview) error {
	if r.o.Running == nil {
		return nil
	}
	mentioned := make(map[ref]bool)
	for _, g := range r.groups {
		mentioned[g.ref] = true
	}
	for i, m := range r.o.Running.Manifests {
		object := Object{m.GVK(), clusterapi.KeyOf(m.Object())}
		at := refOf(object.GroupVersionKind, object.NamespacedName)
		if mentioned[at] || m.Deletes() || !r.o.Filter.Judge(m).Included {
			continue
		}
		mentioned[at] = true
		_, err := clusterapi.GetShared(ctx, r.Cluster, object.GroupVersionKind, object.NamespacedName)
		if err != nil && !clusterapi.IsAbsent(err) {
			return errorf("%s: %w", object, err)
		}
		left := Left{Object: object, Task: taskOf(m, i+1)}
		if exists := err == nil; exists || clusterapi.IsMissing(err) {
			left.Exists = &exists
		}
		p.Left = append(p.Left, left)
	}
	return nil
}

// Configuration is an object that was read to put its values into others, or to
// decide what to do. It is plain data.
type Configuration struct {
	Object Object `json:"object"`
	// Seen is its state; nil if absent.
	Seen *Seen `json:"seen,omitempty"`
}

// configuration reports what was read besides the release's objects.
func (r *run) configuration(ctx context.Context, p *Preview) error {
	for _, at := range sortedRefs(r.configs) {
		if r.objects[at] != nil {
			continue
		}
		c := Configuration{Object: Object{at.GroupKind.WithVersion("v1"), at.NamespacedName}}
		live, err := clusterapi.GetShared(ctx, r.Cluster, c.Object.GroupVersionKind, at.NamespacedName)
		switch {
		case err == nil:
			c.Seen = r.seen(at, live.Unstructured())
		case !clusterapi.IsAbsent(err):
			return errorf("%s: %w", c.Object, err)
		}
		p.Configuration = append(p.Configuration, c)
	}
	return nil
}
