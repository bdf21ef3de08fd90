package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
)

// fork is what a cluster with an [Options].Base knows about that.
type fork struct {
	base clusterapi.Reader

	// mu guards reading, the reads that are under way.
	mu      sync.Mutex
	reading map[schema.GroupKind]*reading

	// Cluster.mu guards all below.

	kinds  map[schema.GroupKind]*baseKind   // that have been read
	absent map[schema.GroupVersionKind]bool // that the base does not serve
	served map[schema.GroupKind]bool        // that it does
	// defined are the kinds whose definition the base has.
	defined map[schema.GroupKind]bool
	// What was deleted before other kinds were read: namespaces, kinds with
	// their definition, and owners with what becomes of their dependents.
	namespaces map[string]bool
	ended      map[schema.GroupKind]bool
	owners     map[types.UID]fate
	// gone are objects that are known not to be there, of kinds that are not
	// known whole.
	gone map[ref]bool
	// generation is part of new UIDs. It is greater than those in UIDs of the base.
	generation int64
}

// baseKind is a kind that has been read from the base.
type baseKind struct {
	// partial is why not all objects are known, nil where they are.
	partial error
	// none reports that nothing was there.
	none bool
}

// fate is what becomes of the dependents of an owner that was deleted.
type fate int

const (
	collected  fate = iota + 1 // they go, if they have no other owner
	orphaned                   // they stay
	foreground                 // they go before it
)

// reading is one read of a kind, which several callers may wait for.
type reading struct {
	done      chan struct{}
	err       error
	calledOff bool // the context of the caller that reads has ended
}

// Time returns the time of [Options].Clock or, without one, of [Options].Base; zero
// without both. See [clusterapi.TimeOf].
func (c *Cluster) Time() time.Time {
	if c.o.Clock != nil {
		return c.o.Clock.Now()
	}
	return clusterapi.TimeOf(c.o.Base)
}

// Firing returns the alerts of [Options].Base. The error is from
// [clusterapi.AlertsOf].
func (c *Cluster) Firing(ctx context.Context) ([]clusterapi.Alert, error) {
	return clusterapi.AlertsOf(ctx, c.o.Base)
}

// Assumed reports whether [Options].Base takes a kind for complete without evidence.
// See [clusterapi.Assumed].
func (c *Cluster) Assumed(gvk schema.GroupVersionKind) bool {
	return clusterapi.Assumed(c.o.Base, gvk)
}

func newFork(base clusterapi.Reader) *fork {
	f := &fork{
		base:       base,
		reading:    make(map[schema.GroupKind]*reading),
		kinds:      make(map[schema.GroupKind]*baseKind),
		absent:     make(map[schema.GroupVersionKind]bool),
		served:     make(map[schema.GroupKind]bool),
		defined:    make(map[schema.GroupKind]bool),
		namespaces: make(map[string]bool),
		ended:      make(map[schema.GroupKind]bool),
		owners:     make(map[types.UID]fate),
		gone:       make(map[ref]bool),
		generation: 1,
	}
	if c, ok := base.(*Cluster); ok {
		f.generation = c.generation() + 1
	}
	return f
}

// generation is how many forks there are between the cluster and one without a
// base.
func (c *Cluster) generation() int64 {
	if c.fork == nil {
		return 0
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.fork.generation
}

// touch finds what is known about a kind, as kind does, for a verb: the objects
// of the base are there when it returns.
func (c *Cluster) touch(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	if c.fork == nil {
		return c.kind(gvk)
	}
	if err := c.readFirst(ctx, gvk); err != nil {
		return nil, err
	}
	k, err := c.kind(gvk)
	if meta.IsNoMatchError(err) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		if partial := c.unknownIn(gvk.GroupKind(), ""); partial != nil {
			return nil, partial // whether it is served is not known either
		}
	}
	return k, err
}

// readFirst reads a kind from the base, unless that has been done.
func (c *Cluster) readFirst(ctx context.Context, gvk schema.GroupVersionKind) error {
	if c.hasRead(gvk) || gvk.Kind == "" || gvk.Version == "" {
		return nil
	}
	// Definitions say what is served, and namespaces what takes objects. A
	// recording may lack them.
	for _, first := range []schema.GroupVersionKind{definitionKind.WithVersion("v1"), namespaceKind.WithVersion("v1")} {
		if first.GroupKind() == gvk.GroupKind() {
			break
		}
		if err := c.readOnce(ctx, first); err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
			return fmt.Errorf("reading %ss before %s: %w", first.Kind, gvk.Kind, err)
		}
	}
	return c.readOnce(ctx, gvk)
}

func (c *Cluster) hasRead(gvk schema.GroupVersionKind) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.fork.kinds[gvk.GroupKind()] != nil || c.fork.absent[gvk]
}

// readOnce reads a kind from the base. Of several callers one reads, and the rest
// wait for it. If the context of the reader ends, the next caller starts again.
func (c *Cluster) readOnce(ctx context.Context, gvk schema.GroupVersionKind) error {
	f, gk := c.fork, gvk.GroupKind()
	for !c.hasRead(gvk) {
		f.mu.Lock()
		r := f.reading[gk]
		mine := r == nil
		if mine {
			r = &reading{done: make(chan struct{}), calledOff: true} // should the base panic
			f.reading[gk] = r
		}
		f.mu.Unlock()
		if mine {
			return c.carryOut(ctx, r, gvk)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done:
		}
		if r.err != nil && !r.calledOff {
			return r.err
		}
	}
	return nil
}

// carryOut reads a kind for all who wait.
func (c *Cluster) carryOut(ctx context.Context, r *reading, gvk schema.GroupVersionKind) error {
	defer func() {
		c.fork.mu.Lock()
		defer c.fork.mu.Unlock()
		delete(c.fork.reading, gvk.GroupKind())
		close(r.done)
	}()
	if c.hasRead(gvk) { // by a caller that has ended since
		return nil
	}
	r.err = c.readKind(ctx, gvk)
	r.calledOff = r.err != nil && ctx.Err() != nil
	return r.err
}

// readKind lists a kind in the version that was asked for, or in another that
// the base may serve, and stores what there is.
func (c *Cluster) readKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	var asked []schema.GroupVersionKind
	for _, version := range c.versions(gvk) {
		list, err := c.listBase(ctx, version)
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		switch {
		case meta.IsNoMatchError(err):
			asked = append(asked, version)
			continue
		case errors.Is(err, clusterapi.ErrNotCollected) && (len(list) == 0 && c.definedHere(gvk.GroupKind())):
			err, list = nil, nil
		case err != nil && (list == nil || !errors.Is(err, clusterapi.ErrNotCollected)):
			return err
		}
		return c.adopt(gvk.GroupKind(), list, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, version := range asked {
		c.fork.absent[version] = true
	}
	return nil
}

// versions are those of a kind: the given one, and others that are known.
func (c *Cluster) versions(gvk schema.GroupVersionKind) []schema.GroupVersionKind {
	names := []string{gvk.Version}
	c.mu.RLock()
	if d := c.crds[gvk.GroupKind()]; d != nil {
		for _, v := range apiserver.Versions(d.obj.Object) {
			if name, ok := v["name"].(string); ok && v["served"] != false {
				names = append(names, name)
			}
		}
	}
	c.mu.RUnlock()
	names = append(names, builtin().versions(gvk.GroupKind())...)
	var out []schema.GroupVersionKind
	for _, name := range names {
		if version := gvk.GroupKind().WithVersion(name); !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	return out
}

// listBase lists a kind of the base. The list is nil only where the base gave
// none, and belongs to the cluster or is shared.
func (c *Cluster) listBase(ctx context.Context, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	base := c.fork.base
	objects, err := clusterapi.ListShared(ctx, base, gvk, clusterapi.ListOptions{})
	if objects == nil {
		return nil, err
	}
	s, ok := base.(interface{ Shares(clusterapi.Reader) bool })
	shared := ok && s.Shares(base)
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = o.Unstructured()
		if shared {
			continue
		}
		content, fault := copyTree(out[i].Object, nil, "")
		if fault != nil {
			return nil, fmt.Errorf("%s %s of the base: %w", gvk.Kind, out[i].GetName(), fault)
		}
		tree, _ := content.(map[string]any)
		out[i] = &unstructured.Unstructured{Object: tree}
	}
	return out, err
}

// definedHere reports whether the base had no objects of a kind because its
// definition is the fork's own.
func (c *Cluster) definedHere(gk schema.GroupKind) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ownDefinition(gk)
}

// ownDefinition is definedHere. The lock is held.
func (c *Cluster) ownDefinition(gk schema.GroupKind) bool {
	return c.crds[gk] != nil && (!c.fork.defined[gk] || c.fork.ended[gk])
}

// adopt stores the objects of a kind as they are, as Load does, and does to them
// what the fork has done before it knew them. No watch reports them as added: they
// have been all along.
func (c *Cluster) adopt(gk schema.GroupKind, list []*unstructured.Unstructured, partial error) error {
	c.mu.Lock()
	c.fork.served[gk] = partial == nil || len(list) > 0
	c.mu.Unlock()
	entries, err := c.entriesOf(list)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fork.kinds[gk] = &baseKind{partial: partial, none: len(list) == 0}
	for _, e := range entries {
		c.passRevision(e.obj)
	}
	var stored []ref
	for _, e := range entries {
		r := ref{kind: gk, key: clusterapi.KeyOf(e.obj)}
		if c.find(r) != nil || c.fork.gone[r] {
			continue // Load was faster
		}
		if m := metadata(e.obj); e.obj.GetUID() == "" {
			m["uid"] = c.newUID()
		}
		metadata(e.obj)["resourceVersion"] = c.nextRevision()
		c.store(r, nil, e)
		if d := c.definitionOf(r, e); d != nil {
			c.fork.defined[d.gk] = true
		}
		stored = append(stored, r)
	}
	for _, r := range stored {
		c.catchUp(r)
	}
	return nil
}

// entriesOf prepares objects of the base.
func (c *Cluster) entriesOf(list []*unstructured.Unstructured) ([]*entry, error) {
	out := make([]*entry, 0, len(list))
	for _, u := range list {
		k, err := c.kind(u.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("%s %s of the base: %w", u.GetKind(), u.GetName(), err)
		}
		e, err := c.loaded(k, u)
		if err != nil {
			return nil, fmt.Errorf("of the base: %w", err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (c *Cluster) definitionOf(r ref, e *entry) *definition {
	if r.kind != definitionKind {
		return nil
	}
	return readDefinition(e.obj)
}

// passRevision makes new resourceVersions greater than those of the base's objects,
// and new UIDs different from the base's.
func (c *Cluster) passRevision(obj *unstructured.Unstructured) {
	if n, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64); err == nil && n < maxRevision {
		c.revision = max(c.revision, n)
	}
	if rest, ok := strings.CutPrefix(string(obj.GetUID()), uidPrefix); ok && len(rest) > 4 {
		if n, err := strconv.ParseInt(rest[:4], 16, 64); err == nil {
			c.fork.generation = max(c.fork.generation, n-uidVariant+1)
		}
	}
}

// maxRevision is a resourceVersion that leaves room for those that follow.
const maxRevision = 1 << 62

// catchUp does to an object of the base what was done before it was read. The
// lock is held.
func (c *Cluster) catchUp(r ref) {
	f := c.fork
	owners := ownerUIDs(c.find(r).obj)
	if f.ended[r.kind] || r.key.Namespace != "" && f.namespaces[r.key.Namespace] {
		c.delete(r, metav1.DeletePropagationBackground, c.graceOf(r))
	}
	for _, uid := range owners {
		switch f.owners[uid] {
		case collected:
			c.release(r, uid, true)
		case orphaned:
			c.release(r, uid, false)
		case foreground:
			c.deleteDependent(r, uid)
		}
	}
}

// begins remembers that an object is being deleted, for the kinds that have not
// been read. The lock is held.
func (f *fork) begins(r ref, e *entry, propagation metav1.DeletionPropagation) {
	if f == nil {
		return
	}
	switch r.kind {
	case namespaceKind:
		f.namespaces[r.key.Name] = true
	case definitionKind:
		if d := readDefinition(e.obj); d != nil {
			f.ended[d.gk] = true
		}
	}
	switch propagation {
	case metav1.DeletePropagationOrphan:
		f.owners[e.obj.GetUID()] = orphaned
	case metav1.DeletePropagationForeground:
		f.owners[e.obj.GetUID()] = foreground
	}
}

// ends remembers that an object has gone.
func (f *fork) ends(r ref, e *entry) {
	if f == nil {
		return
	}
	if uid := e.obj.GetUID(); f.owners[uid] != orphaned {
		f.owners[uid] = collected
	}
	if known := f.kinds[r.kind]; known != nil && known.partial != nil {
		f.gone[r] = true
	}
}

// mayOwn reports whether an object may have another owner than the given one, of a
// kind that has not been read.
func (f *fork) mayOwn(obj *unstructured.Unstructured, other types.UID) bool {
	if f == nil {
		return false
	}
	for _, o := range obj.GetOwnerReferences() {
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		if o.UID != other && f.owners[o.UID] == 0 && f.kinds[gvk.GroupKind()] == nil && !f.absent[gvk] {
			return true
		}
	}
	return false
}

// unknown explains why it is not known whether an object exists that is not stored;
// nil means that it does not. The lock is held.
func (c *Cluster) unknown(r ref) error {
	if c.fork == nil || c.fork.gone[r] {
		return nil
	}
	return c.unknownIn(r.kind, r.key.Namespace)
}

// unknownIn explains why the objects of a kind, in a namespace if one is given, are
// not known to be all that there are. The lock is held.
func (c *Cluster) unknownIn(gk schema.GroupKind, namespace string) error {
	if c.fork == nil || namespace != "" && c.fork.namespaces[namespace] {
		return nil
	}
	known := c.fork.kinds[gk]
	if known == nil || c.fork.ended[gk] || known.none && c.ownDefinition(gk) {
		return nil
	}
	return known.partial
}

// serves reports whether the base serves a kind. The lock is held.
func (f *fork) serves(gk schema.GroupKind) bool {
	return f != nil && f.served[gk] && !f.ended[gk]
}
