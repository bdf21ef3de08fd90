package clusterapitest_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

type (
	object = *unstructured.Unstructured
	list   = *unstructured.UnstructuredList
	gvk    = schema.GroupVersionKind
	key    = types.NamespacedName
	events = iter.Seq2[clusterapi.WatchEvent, error]
)

// broken is a backend with a fault: a cluster in memory, some verbs of which
// do something else.
type broken struct {
	*memory.Cluster
	get          func(context.Context, gvk, key) (object, error)
	list         func(context.Context, gvk, clusterapi.ListOptions) (list, error)
	create       func(context.Context, object, clusterapi.CreateOptions) (object, error)
	apply        func(context.Context, object, clusterapi.ApplyOptions) (object, error)
	update       func(context.Context, object, clusterapi.UpdateOptions) (object, error)
	updateStatus func(context.Context, object, clusterapi.UpdateOptions) (object, error)
	delete       func(context.Context, gvk, key, clusterapi.DeleteOptions) error
	evict        func(context.Context, key, clusterapi.EvictOptions) error
	watch        func(context.Context, gvk, clusterapi.ListOptions) events
	getShared    func(context.Context, gvk, key) (*clusterapi.Object, error)
	listShared   func(context.Context, gvk, clusterapi.ListOptions) ([]*clusterapi.Object, error)
	follow       func() clusterapi.Cursor
}

func newBroken(c *memory.Cluster) *broken {
	return &broken{c, c.Get, c.List, c.Create, c.Apply, c.Update, c.UpdateStatus, c.Delete, c.Evict, c.Watch, c.GetShared, c.ListShared, c.Follow}
}

func (b *broken) GetShared(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
	return b.getShared(ctx, g, k)
}
func (b *broken) ListShared(ctx context.Context, g gvk, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	return b.listShared(ctx, g, o)
}
func (b *broken) Follow() clusterapi.Cursor { return b.follow() }

func (b *broken) Get(ctx context.Context, g gvk, k key) (object, error) { return b.get(ctx, g, k) }
func (b *broken) List(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
	return b.list(ctx, g, o)
}
func (b *broken) Create(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
	return b.create(ctx, u, o)
}
func (b *broken) Apply(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
	return b.apply(ctx, u, o)
}
func (b *broken) Update(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
	return b.update(ctx, u, o)
}
func (b *broken) UpdateStatus(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
	return b.updateStatus(ctx, u, o)
}
func (b *broken) Delete(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
	return b.delete(ctx, g, k, o)
}
func (b *broken) Evict(ctx context.Context, k key, o clusterapi.EvictOptions) error {
	return b.evict(ctx, k, o)
}
func (b *broken) Watch(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
	return b.watch(ctx, g, o)
}

// fault is one way to be wrong.
type fault struct {
	name string
	// test is the sub-test of the suite that must fail.
	test string
	// differs says that random sequences tell it apart, too. The others show
	// only while time goes by, where two calls meet, or hardly ever.
	differs bool
	make    func(*broken)
}

// asServer makes memory do all that an API server does.
var asServer = memory.Options{CheckNamespaces: true, GracefulPods: true}

var (
	podKind       = gvk{Version: "v1", Kind: "Pod"}
	configMapKind = gvk{Version: "v1", Kind: "ConfigMap"}
)

// metadataToo makes UpdateStatus write some metadata as well.
func metadataToo(copy func(to, from object)) func(*broken) {
	return func(b *broken) {
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.UpdateStatus(ctx, u, o)
			if err != nil {
				return nil, err
			}
			next := stored.DeepCopy()
			copy(next, u)
			return b.Cluster.Update(ctx, next, o)
		}
	}
}

// manages changes the managers of writes.
func manages(verb string, as func(string) string) func(*broken) {
	return func(b *broken) {
		switch verb {
		case "Create":
			b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
				o.FieldManager = as(o.FieldManager)
				return b.Cluster.Create(ctx, u, o)
			}
		case "Update":
			b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
				o.FieldManager = as(o.FieldManager)
				return b.Cluster.Update(ctx, u, o)
			}
		case "UpdateStatus":
			b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
				o.FieldManager = as(o.FieldManager)
				return b.Cluster.UpdateStatus(ctx, u, o)
			}
		case "Apply":
			b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
				o.FieldManager = as(o.FieldManager)
				return b.Cluster.Apply(ctx, u, o)
			}
		}
	}
}

func everybody(string) string { return "everybody" }

// lists changes what lists are asked for.
func lists(change func(gvk, *clusterapi.ListOptions)) func(*broken) {
	return func(b *broken) {
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			change(g, &o)
			return b.Cluster.List(ctx, g, o)
		}
	}
}

// listed changes what lists answer.
func listed(change func(list, clusterapi.ListOptions)) func(*broken) {
	return func(b *broken) {
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			l, err := b.Cluster.List(ctx, g, o)
			if err == nil {
				change(l, o)
			}
			return l, err
		}
	}
}

func eachItem(change func(object)) func(list, clusterapi.ListOptions) {
	return func(l list, _ clusterapi.ListOptions) {
		for i := range l.Items {
			change(&l.Items[i])
		}
	}
}

// watched changes the events of watches: change returns those in the place of
// one.
func watched(change func(gvk, clusterapi.WatchEvent) []clusterapi.WatchEvent) func(*broken) {
	return func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				for e, err := range b.Cluster.Watch(ctx, g, o) {
					if err != nil {
						yield(e, err)
						return
					}
					for _, e := range change(g, e) {
						if !yield(e, nil) {
							return
						}
					}
				}
			}
		}
	}
}

// without drops the events that the function says.
func without(drop func(gvk, clusterapi.WatchEvent) bool) func(*broken) {
	return watched(func(g gvk, e clusterapi.WatchEvent) []clusterapi.WatchEvent {
		if drop(g, e) {
			return nil
		}
		return []clusterapi.WatchEvent{e}
	})
}

// errs changes the errors of all verbs.
func errs(change func(verb string, err error) error) func(*broken) {
	return func(b *broken) {
		c := *newBroken(b.Cluster)
		of := func(verb string) func(object, error) (object, error) {
			return func(u object, err error) (object, error) {
				if err == nil {
					return u, nil
				}
				if err = change(verb, err); err == nil {
					return &unstructured.Unstructured{Object: map[string]any{}}, nil
				}
				return nil, err
			}
		}
		b.get = func(ctx context.Context, g gvk, k key) (object, error) { return of("Get")(c.get(ctx, g, k)) }
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			l, err := c.list(ctx, g, o)
			if err != nil {
				if err = change("List", err); err == nil {
					return &unstructured.UnstructuredList{}, nil
				}
				return nil, err
			}
			return l, nil
		}
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			return of("Create")(c.create(ctx, u, o))
		}
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			return of("Apply")(c.apply(ctx, u, o))
		}
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			return of("Update")(c.update(ctx, u, o))
		}
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			return of("UpdateStatus")(c.updateStatus(ctx, u, o))
		}
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			_, err := of("Delete")(nil, c.delete(ctx, g, k, o))
			return err
		}
		b.evict = func(ctx context.Context, k key, o clusterapi.EvictOptions) error {
			_, err := of("Evict")(nil, c.evict(ctx, k, o))
			return err
		}
	}
}

// anotherError gives errors of a class another one, for one verb.
func anotherError(verb string, is func(error) bool) func(*broken) {
	return errs(func(v string, err error) error {
		if v == verb && is(err) {
			return errors.New(err.Error())
		}
		return err
	})
}

// overlaps tells whether two trees have different values at a place.
func overlaps(a, b any) bool {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		return !reflect.DeepEqual(a, b)
	}
	for name, v := range am {
		if w, ok := bm[name]; ok && overlaps(v, w) {
			return true
		}
	}
	return false
}

// sharing keeps objects and hands them out again and again.
type sharing struct {
	mu   sync.Mutex
	kept map[string]object
}

func (s *sharing) of(u object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := u.GroupVersionKind().String() + clusterapi.KeyOf(u).String() + u.GetResourceVersion()
	if s.kept == nil {
		s.kept = make(map[string]object)
	}
	if s.kept[id] == nil {
		s.kept[id] = u
	}
	return s.kept[id]
}

// slowly makes a verb take a while, and look at its context only before.
func slowly(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	time.Sleep(100 * time.Millisecond)
	return context.WithoutCancel(ctx)
}

var faults = []fault{
	{"GetShared without managedFields", "Shared/Get", false, func(b *broken) {
		b.getShared = func(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err != nil {
				return nil, err
			}
			u.SetManagedFields(nil)
			return clusterapi.NewObject(u), nil
		}
	}},
	{"ListShared in another order", "Shared/List", false, func(b *broken) {
		b.listShared = func(ctx context.Context, g gvk, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
			list, err := b.Cluster.ListShared(ctx, g, o)
			list = slices.Clone(list)
			slices.Reverse(list)
			return list, err
		}
	}},
	{"GetShared finds nothing", "Shared/Errors", false, func(b *broken) {
		b.getShared = func(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
			o, err := b.Cluster.GetShared(ctx, g, k)
			if apierrors.IsNotFound(err) {
				return nil, errors.New("there is nothing")
			}
			return o, err
		}
	}},
	{"Get hands out what is stored", "Shared/CopiesAreApart", false, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			o, err := b.Cluster.GetShared(ctx, g, k)
			return o.Unstructured(), err
		}
	}},
	{"updates change what is shared", "Shared/Stays", false, func(b *broken) {
		seen := map[key]*clusterapi.Object{}
		b.getShared = func(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
			o, err := b.Cluster.GetShared(ctx, g, k)
			if err == nil && g.Kind == "Deployment" {
				if was := seen[k]; was != nil {
					was.Unstructured().Object = o.Unstructured().Object
					return was, nil
				}
				u := *o.Unstructured()
				o = clusterapi.NewObject(&u)
				seen[k] = o
			}
			return o, err
		}
	}},
	{"GetShared is late", "Shared/Stays", false, func(b *broken) {
		seen := map[key]*clusterapi.Object{}
		b.getShared = func(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
			if o := seen[k]; o != nil && g.Kind == "Widget" {
				return o, nil
			}
			o, err := b.Cluster.GetShared(ctx, g, k)
			if g.Kind == "Widget" {
				seen[k] = o
			}
			return o, err
		}
	}},
	{"changes are skipped", "Follower/Order", false, follows(func(c []clusterapi.Change) []clusterapi.Change {
		return slices.DeleteFunc(c, func(c clusterapi.Change) bool {
			return c.Old != nil && c.New != nil && c.New.Unstructured().GetAnnotations()["a"] == "b"
		})
	})},
	{"changes come in another order", "Follower/Order", false, follows(func(c []clusterapi.Change) []clusterapi.Change {
		slices.Reverse(c)
		return c
	})},
	{"Old is not told", "Follower/Order", false, follows(func(c []clusterapi.Change) []clusterapi.Change {
		for i := range c {
			if c[i].New != nil {
				c[i].Old = nil
			}
		}
		return c
	})},
	{"deletions are told as states", "Follower/Order", false, follows(func(c []clusterapi.Change) []clusterapi.Change {
		for i := range c {
			if c[i].New == nil {
				c[i].New = c[i].Old
			}
		}
		return c
	})},
	{"a cursor begins with what is there", "Follower/BeginsNow", false, func(b *broken) {
		b.follow = func() clusterapi.Cursor {
			all, _ := b.Cluster.ListShared(context.Background(), configMapKind, clusterapi.ListOptions{})
			var changes []clusterapi.Change
			for _, o := range all {
				changes = append(changes, clusterapi.Change{New: o})
			}
			return &edited{Cursor: b.Cluster.Follow(), waiting: changes}
		}
	}},
	{"cursors share what they tell", "Follower/Apart", false, func(b *broken) {
		one := b.Cluster.Follow()
		b.follow = func() clusterapi.Cursor { return one }
	}},
	{"a closed cursor goes on", "Follower/Apart", false, func(b *broken) {
		b.follow = func() clusterapi.Cursor { return &open{b.Cluster.Follow()} }
	}},
	{"writes that change nothing are told", "Follower/NothingChanged", false, func(b *broken) {
		var extra []clusterapi.Change
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.Update(ctx, u, o)
			if err == nil && stored.GetResourceVersion() == u.GetResourceVersion() {
				extra = append(extra, clusterapi.Change{Old: clusterapi.NewObject(u), New: clusterapi.NewObject(stored)})
			}
			return stored, err
		}
		b.follow = func() clusterapi.Cursor {
			return &edited{Cursor: b.Cluster.Follow(), edit: func(c []clusterapi.Change) []clusterapi.Change { return append(c, extra...) }}
		}
	}},
	// UpdateStatus
	{"UpdateStatus writes labels", "UpdateStatus/LeavesAllElse/Labels", true, metadataToo(func(to, from object) { to.SetLabels(from.GetLabels()) })},
	{"UpdateStatus writes annotations", "UpdateStatus/LeavesAllElse/Annotations", true, metadataToo(func(to, from object) { to.SetAnnotations(from.GetAnnotations()) })},
	{"UpdateStatus writes finalizers", "UpdateStatus/LeavesAllElse/Finalizers", true, metadataToo(func(to, from object) { to.SetFinalizers(from.GetFinalizers()) })},
	{"UpdateStatus writes owners", "UpdateStatus/LeavesAllElse/OwnerReferences", true, metadataToo(func(to, from object) { to.SetOwnerReferences(from.GetOwnerReferences()) })},
	{"UpdateStatus writes spec", "UpdateStatus/LeavesAllElse/Spec", true, metadataToo(func(to, from object) { to.Object["spec"] = from.Object["spec"] })},
	{"UpdateStatus merges", "UpdateStatus/Replaces", true, func(b *broken) {
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
				u = u.DeepCopy()
				status, _ := u.Object["status"].(map[string]any)
				was, _ := old.Object["status"].(map[string]any)
				if status == nil {
					status = map[string]any{}
				}
				for name, v := range was {
					if _, ok := status[name]; !ok {
						status[name] = v
					}
				}
				u.Object["status"] = status
			}
			return b.Cluster.UpdateStatus(ctx, u, o)
		}
	}},
	{"UpdateStatus takes stale objects", "UpdateStatus/Stale", true, func(b *broken) {
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			return b.Cluster.UpdateStatus(ctx, b.fresh(ctx, u), o)
		}
	}},
	{"UpdateStatus takes objects without a resourceVersion", "UpdateStatus/WithoutResourceVersion", true, func(b *broken) {
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if u.GetResourceVersion() == "" {
				u = b.fresh(ctx, u)
			}
			return b.Cluster.UpdateStatus(ctx, u, o)
		}
	}},
	{"UpdateStatus of any kind", "UpdateStatus/WithoutSubresource", true, errs(func(verb string, err error) error {
		if verb == "UpdateStatus" && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})},

	// Update
	{"Update writes status", "Update/LeavesStatus", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.Update(ctx, u, o)
			if err != nil || u.Object["status"] == nil {
				return stored, err
			}
			next := stored.DeepCopy()
			next.Object["status"] = u.Object["status"]
			if both, err := b.Cluster.UpdateStatus(ctx, next, o); err == nil {
				return both, nil
			}
			return stored, nil
		}
	}},
	{"Update clears status", "Update/KeepsStatus", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.Update(ctx, u, o)
			if err != nil || u.Object["status"] != nil || stored.Object["status"] == nil {
				return stored, err
			}
			next := stored.DeepCopy()
			delete(next.Object, "status")
			if both, err := b.Cluster.UpdateStatus(ctx, next, o); err == nil {
				return both, nil
			}
			return stored, nil
		}
	}},
	{"Update merges", "Update/Replaces", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
				u = u.DeepCopy()
				was, _ := old.Object["data"].(map[string]any)
				data, ok := u.Object["data"].(map[string]any)
				for name, v := range was {
					if _, has := data[name]; ok && !has {
						data[name] = v
					}
				}
			}
			return b.Cluster.Update(ctx, u, o)
		}
	}},
	{"Update takes stale objects", "Update/Stale", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			return b.Cluster.Update(ctx, b.fresh(ctx, u), o)
		}
	}},
	{"Update takes objects without a resourceVersion", "Update/WithoutResourceVersion", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if u.GetResourceVersion() == "" {
				u = b.fresh(ctx, u)
			}
			return b.Cluster.Update(ctx, u, o)
		}
	}},
	{"Update creates", "Update/NotFound", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.Update(ctx, u, o)
			if apierrors.IsNotFound(err) {
				u = u.DeepCopy()
				u.SetResourceVersion("")
				return b.Cluster.Create(ctx, u, clusterapi.CreateOptions(o))
			}
			return stored, err
		}
	}},
	{"Update returns what it was passed", "Update/Replaces", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if _, err := b.Cluster.Update(ctx, u, o); err != nil {
				return nil, err
			}
			return u.DeepCopy(), nil
		}
	}},
	{"Update ignores the UID", "Update/OtherUID", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			u = u.DeepCopy()
			u.SetUID("")
			return b.Cluster.Update(ctx, u, o)
		}
	}},
	{"Update moves the resourceVersion without a change", "Update/NoChange", true, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.Update(ctx, u, o)
			if err != nil || stored.GetResourceVersion() != u.GetResourceVersion() {
				return stored, err
			}
			return b.touch(ctx, stored), nil
		}
	}},

	// Create
	{"Create replaces", "Create/AlreadyExistsChangesNothing", true, func(b *broken) {
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			stored, err := b.Cluster.Create(ctx, u, o)
			if apierrors.IsAlreadyExists(err) {
				_, _ = b.Cluster.Update(ctx, b.fresh(ctx, u), clusterapi.UpdateOptions(o))
			}
			return stored, err
		}
	}},
	{"Create of what is there succeeds", "Create/AlreadyExists", true, errs(func(verb string, err error) error {
		if verb == "Create" && apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})},
	{"Create stores status", "Create/WithoutStatus", true, func(b *broken) {
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			stored, err := b.Cluster.Create(ctx, u, o)
			if err != nil || u.Object["status"] == nil {
				return stored, err
			}
			next := stored.DeepCopy()
			next.Object["status"] = u.Object["status"]
			if both, err := b.Cluster.UpdateStatus(ctx, next, clusterapi.UpdateOptions(o)); err == nil {
				return both, nil
			}
			return stored, nil
		}
	}},
	{"Create returns what it was passed", "Create/Stored", true, func(b *broken) {
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			if _, err := b.Cluster.Create(ctx, u, o); err != nil {
				return nil, err
			}
			return u.DeepCopy(), nil
		}
	}},
	{"Create takes a resourceVersion", "Create/Refused", true, func(b *broken) {
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			u = u.DeepCopy()
			u.SetResourceVersion("")
			return b.Cluster.Create(ctx, u, o)
		}
	}},

	// Apply
	{"Apply is not forced", "Apply/TakesOverByForce", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
			if err == nil && slices.ContainsFunc(old.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != o.FieldManager }) {
				if overlaps(u.Object["spec"], old.Object["spec"]) || overlaps(u.Object["data"], old.Object["data"]) {
					return nil, apierrors.NewApplyConflict(nil, "conflict with another manager")
				}
			}
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply refuses labels", "Apply/Metadata", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			if len(u.GetLabels()) > 0 {
				return nil, apierrors.NewBadRequest("labels are not supported")
			}
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply ignores labels", "Apply/Metadata", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			u = u.DeepCopy()
			unstructured.RemoveNestedField(u.Object, "metadata", "labels")
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply in one name", "Apply/KeyedList", true, manages("Apply", func(m string) string {
		if m == "" {
			return ""
		}
		return "everybody"
	})},
	{"Apply in nobody's name", "Apply/WithoutFieldManager", true, manages("Apply", func(m string) string {
		if m == "" {
			return "somebody"
		}
		return m
	})},
	{"Apply gives nothing up", "Apply/GivesUp", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			if old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
				u = u.DeepCopy()
				was, _ := old.Object["data"].(map[string]any)
				data, ok := u.Object["data"].(map[string]any)
				for name, v := range was {
					if _, has := data[name]; ok && !has {
						data[name] = v
					}
				}
			}
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply replaces", "Apply/LeavesOtherFields", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			stored, err := b.Cluster.Apply(ctx, u, o)
			if err != nil || u.Object["data"] == nil {
				return stored, err
			}
			next := stored.DeepCopy()
			next.Object["data"] = u.Object["data"]
			return b.Cluster.Update(ctx, next, clusterapi.UpdateOptions(o))
		}
	}},
	{"Apply writes status", "Apply/TakesNoStatus", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			stored, err := b.Cluster.Apply(ctx, u, o)
			if err != nil || u.Object["status"] == nil {
				return stored, err
			}
			next := stored.DeepCopy()
			next.Object["status"] = u.Object["status"]
			if both, err := b.Cluster.UpdateStatus(ctx, next, clusterapi.UpdateOptions(o)); err == nil {
				return both, nil
			}
			return stored, nil
		}
	}},
	{"Apply merges keyed lists as one value", "Apply/KeyedList", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			stored, err := b.Cluster.Apply(ctx, u, o)
			containers, ok, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			parts, isWidget, _ := unstructured.NestedSlice(u.Object, "spec", "parts")
			if err != nil || !ok && !isWidget {
				return stored, err
			}
			next := stored.DeepCopy()
			if ok {
				_ = unstructured.SetNestedSlice(next.Object, containers, "spec", "template", "spec", "containers")
			} else {
				_ = unstructured.SetNestedSlice(next.Object, parts, "spec", "parts")
			}
			if both, err := b.Cluster.Update(ctx, next, clusterapi.UpdateOptions(o)); err == nil {
				return both, nil
			}
			return stored, nil
		}
	}},
	{"Apply merges atomic lists", "Apply/AtomicList", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			path := []string{"spec", "template", "spec", "tolerations"}
			if old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
				was, _, _ := unstructured.NestedSlice(old.Object, path...)
				now, ok, _ := unstructured.NestedSlice(u.Object, path...)
				if ok && len(was) > 0 && !reflect.DeepEqual(was, now) {
					u = u.DeepCopy()
					_ = unstructured.SetNestedSlice(u.Object, append(was, now...), path...)
				}
			}
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply drops unknown fields", "Apply/UnknownField", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			return b.Cluster.Apply(ctx, dropBogus(u), o)
		}
	}},
	{"Apply without a change moves the resourceVersion", "Apply/NoChangeASecondLater", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			before, missing := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
			stored, err := b.Cluster.Apply(ctx, u, o)
			if err != nil || missing != nil || stored.GetResourceVersion() != before.GetResourceVersion() {
				return stored, err
			}
			return b.touch(ctx, stored), nil
		}
	}},
	{"Apply by two managers moves the resourceVersion", "Apply/NoChangeOfTwoManagers", false, func(b *broken) {
		var mu sync.Mutex
		last := map[string]string{}
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			before, missing := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
			stored, err := b.Cluster.Apply(ctx, u, o)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			id := u.GetKind() + clusterapi.KeyOf(u).String()
			turned := last[id] != o.FieldManager
			last[id] = o.FieldManager
			if missing == nil && turned && stored.GetResourceVersion() == before.GetResourceVersion() && len(stored.GetManagedFields()) > 1 {
				return b.touch(ctx, stored), nil
			}
			return stored, nil
		}
	}},
	{"Apply ignores the UID", "Apply/Conditions", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			u = u.DeepCopy()
			u.SetUID("")
			return b.Cluster.Apply(ctx, u, o)
		}
	}},
	{"Apply ignores the resourceVersion", "Apply/Conditions", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			u = u.DeepCopy()
			u.SetResourceVersion("")
			return b.Cluster.Apply(ctx, u, o)
		}
	}},

	// Field managers
	{"Create ignores the field manager", "FieldManager/Named", true, manages("Create", everybody)},
	{"Update ignores the field manager", "FieldManager/Named", true, manages("Update", everybody)},
	{"UpdateStatus ignores the field manager", "FieldManager/Named", true, manages("UpdateStatus", everybody)},
	{"another default manager", "FieldManager/Default", true, manages("Update", func(m string) string {
		if m == "" {
			return "unknown"
		}
		return m
	})},

	// Generation
	{"the generation does not move", "Generation/Deployment", true, generation(func(n int64) int64 { return 1 })},
	{"the generation is that of the resourceVersion", "Generation/Custom", true, func(b *broken) {
		returned(b, func(u object) object {
			if u.GetGeneration() > 0 {
				u.SetGeneration(int64(len(u.GetResourceVersion())) + u.GetGeneration())
			}
			return u
		})
	}},
	{"the generation moves with status", "Generation/Deployment", true, func(b *broken) {
		var mu sync.Mutex
		extra := map[types.UID]int64{}
		b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			stored, err := b.Cluster.UpdateStatus(ctx, u, o)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				extra[stored.GetUID()]++
				stored.SetGeneration(stored.GetGeneration() + extra[stored.GetUID()])
			}
			return stored, err
		}
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err == nil && u.GetGeneration() > 0 {
				mu.Lock()
				defer mu.Unlock()
				u.SetGeneration(u.GetGeneration() + extra[u.GetUID()])
			}
			return u, err
		}
	}},

	// Get
	{"Get ignores the namespace", "Get/ItAndNoOther", true, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if k.Namespace == "" {
				return u, err
			}
			l, fault := b.Cluster.List(ctx, g, clusterapi.ListOptions{})
			if fault != nil {
				return u, err
			}
			for i := range l.Items {
				if l.Items[i].GetName() == k.Name {
					return &l.Items[i], nil
				}
			}
			return u, err
		}
	}},
	{"Get answers the next object", "Get/NotFound", true, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if apierrors.IsNotFound(err) {
				if l, _ := b.Cluster.List(ctx, g, clusterapi.ListOptions{Namespace: k.Namespace}); l != nil && len(l.Items) > 0 {
					return &l.Items[0], nil
				}
			}
			return u, err
		}
	}},
	{"Get answers nothing, and no error", "Get/NotFound", true, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return u, err
		}
	}},
	{"Get without the kind", "Get/Existing", true, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err == nil {
				delete(u.Object, "kind")
				delete(u.Object, "apiVersion")
			}
			return u, err
		}
	}},
	{"integers are floating-point numbers", "Get/Integers", false, func(b *broken) {
		returned(b, func(u object) object {
			if n, ok, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); ok {
				_ = unstructured.SetNestedField(u.Object, float64(n), "spec", "replicas")
			}
			return u
		})
	}},

	// List
	{"List ignores NodeName", "List/NodeName", true, lists(func(_ gvk, o *clusterapi.ListOptions) { o.NodeName = "" })},
	{"List ignores NodeName with a namespace", "List/NodeName", true, lists(func(_ gvk, o *clusterapi.ListOptions) {
		if o.Namespace != "" {
			o.NodeName = ""
		}
	})},
	{"List of all is empty", "List/Unfiltered", false, listed(func(l list, o clusterapi.ListOptions) {
		if o.Labels == nil && o.NodeName == "" && o.Namespace == "" {
			l.Items = nil
		}
	})},
	{"items without resourceVersion", "List/SortedByNamespaceThenName", true, listed(eachItem(func(u object) { u.SetResourceVersion("") }))},
	{"items without kind", "List/SortedByNamespaceThenName", true, listed(eachItem(func(u object) { delete(u.Object, "kind"); delete(u.Object, "apiVersion") }))},
	{"items without managedFields", "List/ItemsAreWhatGetReturns", true, listed(eachItem(func(u object) { u.SetManagedFields(nil) }))},
	{"List is not sorted", "List/SortedByNamespaceThenName", true, listed(func(l list, _ clusterapi.ListOptions) { slices.Reverse(l.Items) })},
	{"List is sorted by name", "List/SortedByNamespaceThenName", false, listed(func(l list, _ clusterapi.ListOptions) {
		slices.SortStableFunc(l.Items, func(a, b unstructured.Unstructured) int {
			return cmpText(a.GetName()+"/"+a.GetNamespace(), b.GetName()+"/"+b.GetNamespace())
		})
	})},
	{"List ignores the limit", "List/LimitExceeded", true, lists(func(_ gvk, o *clusterapi.ListOptions) { o.Limit = 0 })},
	{"List takes one more than the limit", "List/LimitExceeded", true, lists(func(_ gvk, o *clusterapi.ListOptions) {
		if o.Limit > 0 {
			o.Limit++
		}
	})},
	{"List takes one less than the limit", "List/LimitNotExceeded", true, lists(func(_ gvk, o *clusterapi.ListOptions) {
		if o.Limit > 1 {
			o.Limit--
		}
	})},
	{"List cuts off at the limit", "List/LimitExceeded", true, func(b *broken) {
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			limit := o.Limit
			o.Limit = 0
			l, err := b.Cluster.List(ctx, g, o)
			if err == nil && limit > 0 && len(l.Items) > limit {
				l.Items = l.Items[:limit]
			}
			return l, err
		}
	}},
	{"List returns a page", "List/Complete", false, listed(func(l list, _ clusterapi.ListOptions) {
		if len(l.Items) > 500 {
			l.Items = l.Items[:500]
		}
	})},
	{"List ignores labels", "List/Labels", true, lists(func(_ gvk, o *clusterapi.ListOptions) { o.Labels = nil })},
	{"List ignores sets of labels", "List/LabelsOfSets", true, lists(func(_ gvk, o *clusterapi.ListOptions) {
		if o.Labels == nil {
			return
		}
		kept := labels.NewSelector()
		all, _ := o.Labels.Requirements()
		for _, r := range all {
			if r.Operator() == "=" || r.Operator() == "==" {
				kept = kept.Add(r)
			}
		}
		o.Labels = kept
	})},
	{"List ignores the namespace", "List/Namespace", true, lists(func(_ gvk, o *clusterapi.ListOptions) { o.Namespace = "" })},

	// Delete
	{"Delete ignores the UID", "Delete/Preconditions", true, deletes(func(o *clusterapi.DeleteOptions) { o.UID = "" })},
	{"Delete ignores the resourceVersion", "Delete/Preconditions", true, deletes(func(o *clusterapi.DeleteOptions) { o.ResourceVersion = "" })},
	{"Delete makes orphans by default", "Delete/Default", false, deletes(func(o *clusterapi.DeleteOptions) {
		if o.Propagation == "" {
			o.Propagation = metav1.DeletePropagationOrphan
		}
	})},
	{"Delete waits by default", "Delete/Default", false, deletes(func(o *clusterapi.DeleteOptions) {
		if o.Propagation == "" {
			o.Propagation = metav1.DeletePropagationForeground
		}
	})},
	{"Delete never waits", "Delete/Foreground", false, deletes(func(o *clusterapi.DeleteOptions) {
		if o.Propagation == metav1.DeletePropagationForeground {
			o.Propagation = ""
		}
	})},
	{"Delete does not wait for dependents of custom kinds", "Delete/Foreground", false, func(b *broken) {
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			if g.Kind == "Widget" {
				o.Propagation = ""
			}
			return b.Cluster.Delete(ctx, g, k, o)
		}
	}},
	{"Delete collects orphans", "Delete/Orphan", false, deletes(func(o *clusterapi.DeleteOptions) {
		if o.Propagation == metav1.DeletePropagationOrphan {
			o.Propagation = ""
		}
	})},
	{"Delete ignores finalizers", "Delete/Finalizers", true, func(b *broken) {
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			if err := b.Cluster.Delete(ctx, g, k, o); err != nil {
				return err
			}
			if o.Propagation == "" && g != podKind {
				_ = b.Remove(g, k)
			}
			return nil
		}
	}},
	{"Delete of nothing succeeds", "Delete/NotFound", true, errs(func(verb string, err error) error {
		if verb == "Delete" && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})},

	// Evict
	{"Evict deletes", "Evict/NotAllowed", true, func(b *broken) {
		b.evict = func(ctx context.Context, k key, o clusterapi.EvictOptions) error {
			return b.Cluster.Delete(ctx, podKind, k, clusterapi.DeleteOptions{UID: o.UID})
		}
	}},
	{"Evict ignores the grace period", "Evict/Grace", true, evicts(func(o *clusterapi.EvictOptions) { o.GracePeriodSeconds = nil })},
	{"Evict always ends pods at once", "Evict/Grace", true, evicts(func(o *clusterapi.EvictOptions) { o.GracePeriodSeconds = new(int64) })},
	{"Evict ignores the UID", "Evict/OtherUID", true, evicts(func(o *clusterapi.EvictOptions) { o.UID = "" })},
	{"Evict of nothing succeeds", "Evict/NotFound", true, errs(func(verb string, err error) error {
		if verb == "Evict" && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})},

	// Watch
	{"Watch is silent but for ConfigMaps", "Watch/Kinds/Deployment", true, without(func(g gvk, e clusterapi.WatchEvent) bool {
		return g != configMapKind && e.Type != clusterapi.Synced
	})},
	{"Watch is silent of custom kinds", "Watch/Kinds/Widget", true, without(func(g gvk, e clusterapi.WatchEvent) bool {
		return g.Kind == "Widget" && e.Type != clusterapi.Synced
	})},
	{"Watch loses Modified", "Watch/Sequence", true, without(func(_ gvk, e clusterapi.WatchEvent) bool { return e.Type == clusterapi.Modified })},
	{"Watch loses changes of status", "Watch/Kinds/Deployment", true, func(b *broken) {
		var mu sync.Mutex
		last := map[types.UID]any{}
		without(func(_ gvk, e clusterapi.WatchEvent) bool {
			if e.Object == nil {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			was, ok := last[e.Object.GetUID()]
			last[e.Object.GetUID()] = e.Object.Object["status"]
			return ok && e.Type == clusterapi.Modified && !reflect.DeepEqual(was, e.Object.Object["status"])
		})(b)
	}},
	{"Watch loses Deleted", "Watch/Sequence", true, without(func(_ gvk, e clusterapi.WatchEvent) bool { return e.Type == clusterapi.Deleted })},
	{"Watch loses what is there", "Watch/Sequence", true, func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				synced := false
				for e, err := range b.Cluster.Watch(ctx, g, o) {
					synced = synced || e.Type == clusterapi.Synced
					if (synced || err != nil) && !yield(e, err) {
						return
					}
				}
			}
		}
	}},
	{"Watch has no Synced", "Watch/Sequence", true, without(func(_ gvk, e clusterapi.WatchEvent) bool { return e.Type == clusterapi.Synced })},
	{"Watch has Synced first", "Watch/Sequence", true, watched(func(_ gvk, e clusterapi.WatchEvent) []clusterapi.WatchEvent {
		if e.Type == clusterapi.Added {
			return []clusterapi.WatchEvent{{Type: clusterapi.Synced}, e}
		}
		return []clusterapi.WatchEvent{e}
	})},
	{"Watch tells all twice", "Watch/Sequence", true, watched(func(_ gvk, e clusterapi.WatchEvent) []clusterapi.WatchEvent {
		if e.Type == clusterapi.Synced {
			return []clusterapi.WatchEvent{e}
		}
		return []clusterapi.WatchEvent{e, e}
	})},
	{"Watch calls changes Added", "Watch/Sequence", true, watched(func(_ gvk, e clusterapi.WatchEvent) []clusterapi.WatchEvent {
		if e.Type == clusterapi.Modified {
			e.Type = clusterapi.Added
		}
		return []clusterapi.WatchEvent{e}
	})},
	{"Watch ignores labels", "Watch/Sequence", true, watches(func(o *clusterapi.ListOptions) { o.Labels = nil })},
	{"Watch ignores the namespace", "Watch/Sequence", true, watches(func(o *clusterapi.ListOptions) { o.Namespace = "" })},
	{"Watch ignores NodeName", "Watch/Selection", true, watches(func(o *clusterapi.ListOptions) { o.NodeName = "" })},
	{"Watch calls its end an error", "Watch/Sequence", true, func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				for e, err := range b.Cluster.Watch(ctx, g, o) {
					if !yield(e, err) {
						return
					}
				}
				if ctx.Err() != nil {
					yield(clusterapi.WatchEvent{}, ctx.Err())
				}
			}
		}
	}},
	{"Watch does not end", "Watch/Sequence", true, func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				ok := true
				for e, err := range b.Cluster.Watch(ctx, g, o) {
					if ok = yield(e, err); !ok || err != nil {
						return
					}
				}
				time.Sleep(time.Minute)
			}
		}
	}},
	{"Watch of nothing ends without an error", "Watch/NoMatch", true, func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(clusterapi.WatchEvent, error) bool) {
				for e, err := range b.Cluster.Watch(ctx, g, o) {
					if err != nil || !yield(e, nil) {
						return
					}
				}
			}
		}
	}},
	{"Watch shares its objects", "Watch/TwoAtOnce", false, func(b *broken) {
		shared := &sharing{}
		watched(func(_ gvk, e clusterapi.WatchEvent) []clusterapi.WatchEvent {
			if e.Object != nil {
				e.Object = shared.of(e.Object)
			}
			return []clusterapi.WatchEvent{e}
		})(b)
	}},

	// Objects
	{"Get shares what it returns", "Ownership/Returned", true, func(b *broken) {
		shared := &sharing{}
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err != nil {
				return nil, err
			}
			return shared.of(u), nil
		}
	}},
	{"List and Get share what they return", "Ownership/Returned", true, func(b *broken) {
		shared := &sharing{}
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			l, err := b.Cluster.List(ctx, g, o)
			if err == nil {
				for i := range l.Items {
					l.Items[i] = *shared.of(l.Items[i].DeepCopy())
				}
			}
			return l, err
		}
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err != nil {
				return nil, err
			}
			return shared.of(u).DeepCopy(), nil
		}
	}},
	{"Create keeps what it is passed", "Ownership/PassedIn", true, func(b *broken) {
		shared := &sharing{}
		b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
			stored, err := b.Cluster.Create(ctx, u, o)
			if err == nil {
				kept := stored.DeepCopy()
				if data, ok := u.Object["data"]; ok {
					kept.Object["data"] = data // not a copy
				}
				shared.of(kept)
			}
			return stored, err
		}
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			u, err := b.Cluster.Get(ctx, g, k)
			if err != nil {
				return nil, err
			}
			return shared.of(u).DeepCopy(), nil
		}
	}},
	{"Apply changes what it is passed", "Ownership/PassedIn", true, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			stored, err := b.Cluster.Apply(ctx, u, o)
			if err == nil {
				u.SetResourceVersion(stored.GetResourceVersion())
			}
			return stored, err
		}
	}},

	// Errors
	{"NotFound of Get is another error", "Get/NotFound", true, anotherError("Get", apierrors.IsNotFound)},
	{"NotFound of Update is another error", "Update/NotFound", true, anotherError("Update", apierrors.IsNotFound)},
	{"NotFound of UpdateStatus is another error", "UpdateStatus/NotFound", true, anotherError("UpdateStatus", apierrors.IsNotFound)},
	{"NotFound of Delete is another error", "Delete/NotFound", true, anotherError("Delete", apierrors.IsNotFound)},
	{"NotFound of Evict is another error", "Evict/NotFound", true, anotherError("Evict", apierrors.IsNotFound)},
	{"AlreadyExists is another error", "Create/AlreadyExists", true, anotherError("Create", apierrors.IsAlreadyExists)},
	{"Conflict of Update is another error", "Update/Stale", true, anotherError("Update", apierrors.IsConflict)},
	{"Conflict of UpdateStatus is another error", "UpdateStatus/Stale", true, anotherError("UpdateStatus", apierrors.IsConflict)},
	{"Conflict of Delete is another error", "Delete/Preconditions", true, anotherError("Delete", apierrors.IsConflict)},
	{"Conflict of Apply is another error", "Apply/Conditions", true, anotherError("Apply", apierrors.IsConflict)},
	{"Conflict of Evict is another error", "Evict/OtherUID", true, anotherError("Evict", apierrors.IsConflict)},
	{"TooManyRequests is another error", "Evict/NotAllowed", true, anotherError("Evict", apierrors.IsTooManyRequests)},
	{"InternalError of two budgets is TooManyRequests", "Evict/TwoBudgets", false, errs(func(verb string, err error) error {
		if verb == "Evict" && apierrors.IsInternalError(err) {
			return apierrors.NewTooManyRequests(err.Error(), 0)
		}
		return err
	})},
	{"the limit is another error", "List/LimitExceeded", true, errs(func(verb string, err error) error {
		if verb == "List" && errors.As(err, new(*clusterapi.LimitError)) {
			return apierrors.NewBadRequest(err.Error())
		}
		return err
	})},
	{"a kind that is not served is NotFound", "Get/NoMatch", true, errs(func(_ string, err error) error {
		if meta.IsNoMatchError(err) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x")
		}
		return err
	})},
	{"a kind that is not served is NotFound for Apply", "Get/NoMatch", true, errs(func(verb string, err error) error {
		if verb == "Apply" && meta.IsNoMatchError(err) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x")
		}
		return err
	})},

	// Contexts
	{"Get ignores its context", "Context/Get", true, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			return b.Cluster.Get(context.WithoutCancel(ctx), g, k)
		}
	}},
	{"Evict ignores its context", "Context/Evict", false, func(b *broken) {
		b.evict = func(ctx context.Context, k key, o clusterapi.EvictOptions) error {
			return b.Cluster.Evict(context.WithoutCancel(ctx), k, o)
		}
	}},
	{"Delete goes through after its context has ended", "Context/Delete", true, func(b *broken) {
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			_ = b.Cluster.Delete(context.WithoutCancel(ctx), g, k, o)
			return b.Cluster.Delete(ctx, g, k, o)
		}
	}},
	{"an ended context is NotFound", "Context/Get", true, errs(func(verb string, err error) error {
		if verb == "Get" && errors.Is(err, context.Canceled) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x")
		}
		return err
	})},
	{"Get goes on after its context ends in mid-call", "Context/InMidCall/Get", false, func(b *broken) {
		b.get = func(ctx context.Context, g gvk, k key) (object, error) {
			return b.Cluster.Get(slowly(ctx), g, k)
		}
	}},
	{"Apply goes on after its context ends in mid-call", "Context/InMidCall/Apply", false, func(b *broken) {
		b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
			return b.Cluster.Apply(slowly(ctx), u, o)
		}
	}},
	{"Delete goes on after its context ends in mid-call", "Context/InMidCall/Delete", false, func(b *broken) {
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			return b.Cluster.Delete(slowly(ctx), g, k, o)
		}
	}},
	{"List returns a part when its context ends in mid-call", "Context/InMidCall/List", false, func(b *broken) {
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			l, err := b.Cluster.List(context.WithoutCancel(ctx), g, o)
			if err == nil && len(l.Items) > 100 && ctx.Err() != nil {
				l.Items = l.Items[:100]
			}
			return l, err
		}
	}},
	{"an end in mid-call is a time-out of the server", "Context/InMidCall/Update", false, func(b *broken) {
		b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			stored, err := b.Cluster.Update(ctx, u, o)
			if errors.Is(err, context.Canceled) {
				return nil, apierrors.NewServerTimeout(schema.GroupResource{Resource: "x"}, "update", 1)
			}
			return stored, err
		}
	}},
}

// fresh gives an object the resourceVersion that is stored.
func (b *broken) fresh(ctx context.Context, u object) object {
	u = u.DeepCopy()
	if now, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
		u.SetResourceVersion(now.GetResourceVersion())
	}
	return u
}

// touch writes an annotation there and back, so that only the resourceVersion
// moves.
func (b *broken) touch(ctx context.Context, u object) object {
	for _, add := range []bool{true, false} {
		next := u.DeepCopy()
		a := next.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		if add {
			a["touched"] = "x"
		} else {
			delete(a, "touched")
		}
		if len(a) == 0 {
			a = nil
		}
		next.SetAnnotations(a)
		stored, err := b.Cluster.Update(ctx, next, clusterapi.UpdateOptions{FieldManager: "toucher"})
		if err != nil {
			return u
		}
		u = stored
	}
	return u
}

// returned changes the objects that the verbs return, but for watches.
func returned(b *broken, change func(object) object) {
	c := *newBroken(b.Cluster)
	of := func(u object, err error) (object, error) {
		if err != nil {
			return nil, err
		}
		return change(u), nil
	}
	b.get = func(ctx context.Context, g gvk, k key) (object, error) { return of(c.get(ctx, g, k)) }
	b.create = func(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
		return of(c.create(ctx, u, o))
	}
	b.apply = func(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
		return of(c.apply(ctx, u, o))
	}
	b.update = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
		return of(c.update(ctx, u, o))
	}
	b.updateStatus = func(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
		return of(c.updateStatus(ctx, u, o))
	}
	b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
		l, err := c.list(ctx, g, o)
		if err == nil {
			for i := range l.Items {
				l.Items[i] = *change(&l.Items[i])
			}
		}
		return l, err
	}
}

func generation(of func(int64) int64) func(*broken) {
	return func(b *broken) {
		returned(b, func(u object) object {
			if n := u.GetGeneration(); n > 0 {
				u.SetGeneration(of(n))
			}
			return u
		})
	}
}

func deletes(change func(*clusterapi.DeleteOptions)) func(*broken) {
	return func(b *broken) {
		b.delete = func(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
			change(&o)
			return b.Cluster.Delete(ctx, g, k, o)
		}
	}
}

func evicts(change func(*clusterapi.EvictOptions)) func(*broken) {
	return func(b *broken) {
		b.evict = func(ctx context.Context, k key, o clusterapi.EvictOptions) error {
			change(&o)
			return b.Cluster.Evict(ctx, k, o)
		}
	}
}

func watches(change func(*clusterapi.ListOptions)) func(*broken) {
	return func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			change(&o)
			return b.Cluster.Watch(ctx, g, o)
		}
	}
}

// edited is a cursor with a fault.
type edited struct {
	clusterapi.Cursor
	edit    func([]clusterapi.Change) []clusterapi.Change
	waiting []clusterapi.Change
	read    bool
}

func (e *edited) Next() (clusterapi.Change, bool) {
	if !e.read && e.edit != nil {
		e.read = true
		var all []clusterapi.Change
		for c, ok := e.Cursor.Next(); ok; c, ok = e.Cursor.Next() {
			all = append(all, c)
		}
		e.waiting = e.edit(all)
	}
	if len(e.waiting) == 0 {
		return e.Cursor.Next()
	}
	first := e.waiting[0]
	e.waiting = e.waiting[1:]
	return first, true
}

func follows(edit func([]clusterapi.Change) []clusterapi.Change) func(*broken) {
	return func(b *broken) {
		b.follow = func() clusterapi.Cursor { return &edited{Cursor: b.Cluster.Follow(), edit: edit} }
	}
}

// open cannot be closed.
type open struct{ clusterapi.Cursor }

func (*open) Close() {}

// dropBogus leaves out the fields that the tests make up.
func dropBogus(u object) object {
	u = u.DeepCopy()
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "bogusField")
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(u.Object)
	return u
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
