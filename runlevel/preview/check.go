package preview

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Moved is an object that is not any more as the preview saw it. It is plain data.
type Moved struct {
	Object Object `json:"object"`
	// Reason describes what has happened to it.
	Reason string `json:"reason"`
}

// Check reports whether a preview still holds: it returns the objects of the release,
// and of the configuration that goes into them, that are not as the preview saw them. A
// change of status or managedFields alone does not count. Objects that are excluded,
// not managed or were unknown do not either. Failing to read is an error, except that
// what was not collected counts as moved.
func (p *Preview) Check(ctx context.Context, reader clusterapi.Reader) ([]Moved, error) {
	c := checker{reader: reader, kinds: make(map[schema.GroupVersionKind]*listed)}
	for i := range p.Changes {
		change := &p.Changes[i]
		switch change.Action {
		case excluded, unmanaged, Unknown:
			continue
		}
		if err := c.check(ctx, change.Object, change.Seen); err != nil {
			return nil, err
		}
	}
	for _, config := range p.Configuration {
		if err := c.check(ctx, config.Object, config.Seen); err != nil {
			return nil, err
		}
	}
	return c.moved, nil
}

// checker reads each kind once.
type checker struct {
	reader clusterapi.Reader
	kinds  map[schema.GroupVersionKind]*listed
	moved  []Moved
}

type listed struct {
	objects map[ref]*clusterapi.Object
	err     error // clusterapi.ErrNotCollected, for what is not among them
}

func (c *checker) check(ctx context.Context, o Object, seen *Seen) error {
	kind := c.kinds[o.GroupVersionKind]
	if kind == nil {
		list, err := clusterapi.ListShared(ctx, c.reader, o.GroupVersionKind, clusterapi.ListOptions{})
		if err != nil && !clusterapi.IsAbsent(err) {
			return errorf("reading %s: %w", o.Kind, err)
		}
		kind = &listed{objects: make(map[ref]*clusterapi.Object), err: err}
		for _, obj := range list {
			kind.objects[refOf(o.GroupVersionKind, obj.Key())] = obj
		}
		c.kinds[o.GroupVersionKind] = kind
	}
	live := kind.objects[refOf(o.GroupVersionKind, o.NamespacedName)]
	reason := ""
	switch {
	case live == nil && errors.Is(kind.err, clusterapi.ErrNotCollected):
		reason = kind.err.Error()
	case live == nil && seen != nil:
		reason = "it was deleted"
	case live != nil && seen == nil:
		reason = "it was created"
	case live == nil || live.ResourceVersion() != "" && live.ResourceVersion() == seen.ResourceVersion:
	case live.UID() != seen.UID:
		reason = "it was deleted and created again"
	case digest(live.Unstructured()) != seen.Digest:
		reason = "it was changed"
	}
	if reason != "" {
		c.moved = append(c.moved, Moved{o, reason})
	}
	return nil
}
