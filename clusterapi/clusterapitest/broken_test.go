package clusterapitest_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

type (
	object = *unstructured.Unstructured
	list   = *unstructured.UnstructuredList
	gvk    = schema.GroupVersionKind
	key    = types.NamespacedName
	call   = probe.Call
	event  = clusterapi.WatchEvent
	events = iter.Seq2[event, error]
)

// broken is a backend with a fault: a cluster in memory, some verbs of which
// do something else.
type broken struct {
	*memory.Cluster
	do         func(context.Context, call) (object, error) // all verbs but List and Watch
	list       func(context.Context, gvk, clusterapi.ListOptions) (list, error)
	watch      func(context.Context, gvk, clusterapi.ListOptions) events
	getShared  func(context.Context, gvk, key) (*clusterapi.Object, error)
	listShared func(context.Context, gvk, clusterapi.ListOptions) ([]*clusterapi.Object, error)
	follow     func() clusterapi.Cursor
}

func newBroken(c *memory.Cluster) *broken {
	do := func(ctx context.Context, what call) (object, error) { return what.Do(ctx, c) }
	return &broken{c, do, c.List, c.Watch, c.GetShared, c.ListShared, c.Follow}
}

func (b *broken) GetShared(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
	return b.getShared(ctx, g, k)
}
func (b *broken) ListShared(ctx context.Context, g gvk, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	return b.listShared(ctx, g, o)
}
func (b *broken) Follow() clusterapi.Cursor { return b.follow() }

func (b *broken) Get(ctx context.Context, g gvk, k key) (object, error) {
	return b.do(ctx, call{Verb: "Get", Kind: g, Key: k})
}
func (b *broken) List(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
	return b.list(ctx, g, o)
}
func (b *broken) Create(ctx context.Context, u object, o clusterapi.CreateOptions) (object, error) {
	return b.do(ctx, probe.By(o.FieldManager, "Create", u))
}
func (b *broken) Apply(ctx context.Context, u object, o clusterapi.ApplyOptions) (object, error) {
	return b.do(ctx, probe.By(o.FieldManager, "Apply", u))
}
func (b *broken) Update(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
	return b.do(ctx, probe.By(o.FieldManager, "Update", u))
}
func (b *broken) UpdateStatus(ctx context.Context, u object, o clusterapi.UpdateOptions) (object, error) {
	return b.do(ctx, probe.By(o.FieldManager, "UpdateStatus", u))
}
func (b *broken) Delete(ctx context.Context, g gvk, k key, o clusterapi.DeleteOptions) error {
	_, err := b.do(ctx, call{
		Verb: "Delete", Kind: g, Key: k, UID: o.UID, ResourceVersion: o.ResourceVersion, Propagation: o.Propagation, Grace: o.GracePeriodSeconds,
	})
	return err
}
func (b *broken) Evict(ctx context.Context, k key, o clusterapi.EvictOptions) error {
	_, err := b.do(ctx, call{Verb: "Evict", Kind: podKind, Key: k, UID: o.UID, Grace: o.GracePeriodSeconds})
	return err
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

// around has f carry a verb out.
func around(verb string, f func(b *broken, ctx context.Context, c call) (object, error)) func(*broken) {
	return func(b *broken) {
		before := b.do
		b.do = func(ctx context.Context, c call) (object, error) {
			if c.Verb != verb {
				return before(ctx, c)
			}
			return f(b, ctx, c)
		}
	}
}

// asks changes what a verb is asked for; the object is a copy.
func asks(verb string, change func(b *broken, ctx context.Context, c *call)) func(*broken) {
	return around(verb, func(b *broken, ctx context.Context, c call) (object, error) {
		c.Object = c.Object.DeepCopy()
		change(b, ctx, &c)
		return c.Do(ctx, b.Cluster)
	})
}

// answers changes what a verb answers.
func answers(verb string, change func(b *broken, ctx context.Context, c call, stored object) object) func(*broken) {
	return around(verb, func(b *broken, ctx context.Context, c call) (object, error) {
		stored, err := c.Do(ctx, b.Cluster)
		if err != nil {
			return nil, err
		}
		return change(b, ctx, c, stored), nil
	})
}

// both joins faults.
func both(all ...func(*broken)) func(*broken) {
	return func(b *broken) {
		for _, one := range all {
			one(b)
		}
	}
}

// stored is what is there of an object, one without anything if it is not.
func (b *broken) stored(ctx context.Context, u object) object {
	old, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
	if err != nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return old
}

// fresh gives an object the resourceVersion that is stored.
func fresh(b *broken, ctx context.Context, c *call) {
	if version := b.stored(ctx, c.Object).GetResourceVersion(); version != "" {
		c.Object.SetResourceVersion(version)
	}
}

// withoutVersion is fresh for what has no resourceVersion.
func withoutVersion(b *broken, ctx context.Context, c *call) {
	if c.Object.GetResourceVersion() == "" {
		fresh(b, ctx, c)
	}
}

// keeps adds what is stored of a map and is not passed.
func keeps(field string) func(b *broken, ctx context.Context, c *call) {
	return func(b *broken, ctx context.Context, c *call) {
		was, _ := b.stored(ctx, c.Object).Object[field].(map[string]any)
		now, ok := c.Object.Object[field].(map[string]any)
		if !ok && field == "data" {
			return
		}
		was = maps.Clone(was)
		if was == nil {
			was = map[string]any{}
		}
		maps.Copy(was, now)
		c.Object.Object[field] = was
	}
}

// metadataToo makes UpdateStatus write some metadata as well.
func metadataToo(copy func(to, from object)) func(*broken) {
	return around("UpdateStatus", func(b *broken, ctx context.Context, c call) (object, error) {
		stored, err := c.Do(ctx, b.Cluster)
		if err != nil {
			return nil, err
		}
		next := stored.DeepCopy()
		copy(next, c.Object)
		return probe.By(c.Manager, "Update", next).Do(ctx, b.Cluster)
	})
}

// statusToo writes the status that was passed as well.
func statusToo(b *broken, ctx context.Context, c call, stored object) object {
	if c.Object.Object["status"] == nil {
		return stored
	}
	return b.writes(ctx, "UpdateStatus", c, stored, c.Object.Object["status"], "status")
}

// writes sets a field of what a verb stored, if that succeeds.
func (b *broken) writes(ctx context.Context, verb string, c call, stored object, v any, path ...string) object {
	next := stored.DeepCopy()
	if v == nil {
		unstructured.RemoveNestedField(next.Object, path...)
	} else if unstructured.SetNestedField(next.Object, v, path...) != nil {
		return stored
	}
	if second, err := probe.By(c.Manager, verb, next).Do(ctx, b.Cluster); err == nil {
		return second
	}
	return stored
}

// passed returns what was passed.
func passed(_ *broken, _ context.Context, c call, _ object) object { return c.Object.DeepCopy() }

func noUID(_ *broken, _ context.Context, c *call)     { c.Object.SetUID("") }
func noVersion(_ *broken, _ context.Context, c *call) { c.Object.SetResourceVersion("") }

// touch writes an annotation there and back, so that only the resourceVersion
// moves.
func (b *broken) touch(ctx context.Context, u object) object {
	before := u.GetAnnotations()
	added := maps.Clone(before)
	if added == nil {
		added = map[string]string{}
	}
	added["touched"] = "x"
	for _, annotations := range []map[string]string{added, before} {
		next := u.DeepCopy()
		next.SetAnnotations(annotations)
		stored, err := b.Cluster.Update(ctx, next, clusterapi.UpdateOptions{FieldManager: "toucher"})
		if err != nil {
			return u
		}
		u = stored
	}
	return u
}

// manages changes the managers of writes.
func manages(verb string, as func(string) string) func(*broken) {
	return asks(verb, func(_ *broken, _ context.Context, c *call) { c.Manager = as(c.Manager) })
}

func everybody(string) string { return "everybody" }

// lists changes what lists are asked for.
func lists(change func(*clusterapi.ListOptions)) func(*broken) {
	return func(b *broken) {
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			change(&o)
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

// returned changes the objects that the verbs return, but for watches.
func returned(change func(object)) func(*broken) {
	return func(b *broken) {
		for _, verb := range []string{"Get", "Create", "Apply", "Update", "UpdateStatus"} {
			answers(verb, func(_ *broken, _ context.Context, _ call, stored object) object {
				change(stored)
				return stored
			})(b)
		}
		listed(eachItem(change))(b)
	}
}

// watches changes what watches are asked for.
func watches(change func(*clusterapi.ListOptions)) func(*broken) {
	return func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			change(&o)
			return b.Cluster.Watch(ctx, g, o)
		}
	}
}

// watching has f hand on the events of a watch.
func watching(f func(ctx context.Context, g gvk, all events, yield func(event, error) bool)) func(*broken) {
	return func(b *broken) {
		b.watch = func(ctx context.Context, g gvk, o clusterapi.ListOptions) events {
			return func(yield func(event, error) bool) { f(ctx, g, b.Cluster.Watch(ctx, g, o), yield) }
		}
	}
}

// watched changes the events of watches: change returns those in the place of
// one.
func watched(change func(gvk, event) []event) func(*broken) {
	return watching(func(_ context.Context, g gvk, all events, yield func(event, error) bool) {
		for e, err := range all {
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
	})
}

// without drops the events that the function says.
func without(drop func(gvk, event) bool) func(*broken) {
	return watched(func(g gvk, e event) []event {
		if drop(g, e) {
			return nil
		}
		return []event{e}
	})
}

// errs changes the errors of a verb of a class; any verb if that is empty.
func errs(verb, class string, change func(error) error) func(*broken) {
	is := func(v string, err error) bool {
		return err != nil && (verb == "" || verb == v) && probe.Class(err) == class
	}
	return func(b *broken) {
		b.do = func(ctx context.Context, c call) (object, error) {
			u, err := c.Do(ctx, b.Cluster)
			if !is(c.Verb, err) {
				return u, err
			}
			if err = change(err); err == nil {
				u = &unstructured.Unstructured{Object: map[string]any{}}
			}
			return u, err
		}
		b.list = func(ctx context.Context, g gvk, o clusterapi.ListOptions) (list, error) {
			l, err := b.Cluster.List(ctx, g, o)
			if is("List", err) {
				err = change(err)
			}
			return l, err
		}
	}
}

func succeeds(error) error    { return nil }
func another(err error) error { return errors.New(err.Error()) }
func isNotFound(_ error) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x")
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
func slowly(b *broken, ctx context.Context, c call) (object, error) {
	if ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		ctx = context.WithoutCancel(ctx)
	}
	return c.Do(ctx, b.Cluster)
}

// contextless ignores its context.
func contextless(b *broken, ctx context.Context, c call) (object, error) {
	return c.Do(context.WithoutCancel(ctx), b.Cluster)
}

// shares changes what GetShared returns.
func shares(change func(g gvk, k key, o *clusterapi.Object) *clusterapi.Object) func(*broken) {
	return func(b *broken) {
		b.getShared = func(ctx context.Context, g gvk, k key) (*clusterapi.Object, error) {
			o, err := b.Cluster.GetShared(ctx, g, k)
			if err != nil {
				return nil, err
			}
			return change(g, k, o), nil
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

// followsEach edits each change.
func followsEach(edit func(*clusterapi.Change)) func(*broken) {
	return follows(func(all []clusterapi.Change) []clusterapi.Change {
		for i := range all {
			edit(&all[i])
		}
		return all
	})
}

// open cannot be closed.
type open struct{ clusterapi.Cursor }

func (*open) Close() {}

// dropBogus leaves out the fields that the tests make up.
func dropBogus(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "bogusField")
		for _, e := range v {
			dropBogus(e)
		}
	case []any:
		for _, e := range v {
			dropBogus(e)
		}
	}
}

// propagates changes one propagation into another.
func propagates(from, to metav1.DeletionPropagation) func(*broken) {
	return asks("Delete", func(_ *broken, _ context.Context, c *call) {
		if c.Propagation == from {
			c.Propagation = to
		}
	})
}

var containers, tolerations = []string{"spec", "template", "spec", "containers"}, []string{"spec", "template", "spec", "tolerations"}

var faults = []fault{
	{"GetShared without managedFields", "Shared/Get", false, shares(func(_ gvk, _ key, o *clusterapi.Object) *clusterapi.Object {
		u := o.Unstructured().DeepCopy()
		u.SetManagedFields(nil)
		return clusterapi.NewObject(u)
	})},
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
	{"Get hands out what is stored", "Shared/CopiesAreApart", false, around("Get", func(b *broken, ctx context.Context, c call) (object, error) {
		o, err := b.Cluster.GetShared(ctx, c.Kind, c.Key)
		return o.Unstructured(), err
	})},
	{"updates change what is shared", "Shared/Stays", false, func(b *broken) {
		seen := map[key]*clusterapi.Object{}
		shares(func(g gvk, k key, o *clusterapi.Object) *clusterapi.Object {
			if g.Kind != "Deployment" {
				return o
			}
			if was := seen[k]; was != nil {
				was.Unstructured().Object = o.Unstructured().Object
				return was
			}
			u := *o.Unstructured()
			seen[k] = clusterapi.NewObject(&u)
			return seen[k]
		})(b)
	}},
	{"GetShared is late", "Shared/Stays", false, func(b *broken) {
		seen := map[key]*clusterapi.Object{}
		shares(func(g gvk, k key, o *clusterapi.Object) *clusterapi.Object {
			if g.Kind != "Widget" {
				return o
			}
			if seen[k] == nil {
				seen[k] = o
			}
			return seen[k]
		})(b)
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
	{"Old is not told", "Follower/Order", false, followsEach(func(c *clusterapi.Change) {
		if c.New != nil {
			c.Old = nil
		}
	})},
	{"deletions are told as states", "Follower/Order", false, followsEach(func(c *clusterapi.Change) {
		if c.New == nil {
			c.New = c.Old
		}
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
		answers("Update", func(_ *broken, _ context.Context, c call, stored object) object {
			if stored.GetResourceVersion() == c.Object.GetResourceVersion() {
				extra = append(extra, clusterapi.Change{Old: clusterapi.NewObject(c.Object), New: clusterapi.NewObject(stored)})
			}
			return stored
		})(b)
		follows(func(c []clusterapi.Change) []clusterapi.Change { return append(c, extra...) })(b)
	}},

	// UpdateStatus
	{"UpdateStatus writes labels", "UpdateStatus/LeavesAllElse/Labels", true, metadataToo(func(to, from object) { to.SetLabels(from.GetLabels()) })},
	{"UpdateStatus writes annotations", "UpdateStatus/LeavesAllElse/Annotations", true, metadataToo(func(to, from object) { to.SetAnnotations(from.GetAnnotations()) })},
	{"UpdateStatus writes finalizers", "UpdateStatus/LeavesAllElse/Finalizers", true, metadataToo(func(to, from object) { to.SetFinalizers(from.GetFinalizers()) })},
	{"UpdateStatus writes owners", "UpdateStatus/LeavesAllElse/OwnerReferences", true, metadataToo(func(to, from object) { to.SetOwnerReferences(from.GetOwnerReferences()) })},
	{"UpdateStatus writes spec", "UpdateStatus/LeavesAllElse/Spec", true, metadataToo(func(to, from object) { to.Object["spec"] = from.Object["spec"] })},
	{"UpdateStatus merges", "UpdateStatus/Replaces", true, asks("UpdateStatus", keeps("status"))},
	{"UpdateStatus takes stale objects", "UpdateStatus/Stale", true, asks("UpdateStatus", fresh)},
	{"UpdateStatus takes objects without a resourceVersion", "UpdateStatus/WithoutResourceVersion", true, asks("UpdateStatus", withoutVersion)},
	{"UpdateStatus of any kind", "UpdateStatus/WithoutSubresource", true, errs("UpdateStatus", "NotFound", succeeds)},

	// Update
	{"Update writes status", "Update/LeavesStatus", true, answers("Update", statusToo)},
	{"Update clears status", "Update/KeepsStatus", true, answers("Update", func(b *broken, ctx context.Context, c call, stored object) object {
		if c.Object.Object["status"] != nil || stored.Object["status"] == nil {
			return stored
		}
		return b.writes(ctx, "UpdateStatus", c, stored, nil, "status")
	})},
	{"Update merges", "Update/Replaces", true, asks("Update", keeps("data"))},
	{"Update takes stale objects", "Update/Stale", true, asks("Update", fresh)},
	{"Update takes objects without a resourceVersion", "Update/WithoutResourceVersion", true, asks("Update", withoutVersion)},
	{"Update creates", "Update/NotFound", true, around("Update", func(b *broken, ctx context.Context, c call) (object, error) {
		stored, err := c.Do(ctx, b.Cluster)
		if apierrors.IsNotFound(err) {
			u := c.Object.DeepCopy()
			u.SetResourceVersion("")
			return probe.By(c.Manager, "Create", u).Do(ctx, b.Cluster)
		}
		return stored, err
	})},
	{"Update returns what it was passed", "Update/Replaces", true, answers("Update", passed)},
	{"Update ignores the UID", "Update/OtherUID", true, asks("Update", noUID)},
	{"Update moves the resourceVersion without a change", "Update/NoChange", true, answers("Update", func(b *broken, ctx context.Context, c call, stored object) object {
		if stored.GetResourceVersion() != c.Object.GetResourceVersion() {
			return stored
		}
		return b.touch(ctx, stored)
	})},

	// Create
	{"Create replaces", "Create/AlreadyExistsChangesNothing", true, around("Create", func(b *broken, ctx context.Context, c call) (object, error) {
		stored, err := c.Do(ctx, b.Cluster)
		if apierrors.IsAlreadyExists(err) {
			update := probe.By(c.Manager, "Update", c.Object.DeepCopy())
			fresh(b, ctx, &update)
			_, _ = update.Do(ctx, b.Cluster)
		}
		return stored, err
	})},
	{"Create of what is there succeeds", "Create/AlreadyExists", true, errs("Create", "AlreadyExists", succeeds)},
	{"Create stores status", "Create/WithoutStatus", true, answers("Create", statusToo)},
	{"Create returns what it was passed", "Create/Stored", true, answers("Create", passed)},
	{"Create takes a resourceVersion", "Create/Refused", true, asks("Create", noVersion)},

	// Apply
	{"Apply is not forced", "Apply/TakesOverByForce", true, around("Apply", func(b *broken, ctx context.Context, c call) (object, error) {
		old := b.stored(ctx, c.Object)
		others := slices.ContainsFunc(old.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != c.Manager })
		if others && (overlaps(c.Object.Object["spec"], old.Object["spec"]) || overlaps(c.Object.Object["data"], old.Object["data"])) {
			return nil, apierrors.NewApplyConflict(nil, "conflict with another manager")
		}
		return c.Do(ctx, b.Cluster)
	})},
	{"Apply refuses labels", "Apply/Metadata", true, around("Apply", func(b *broken, ctx context.Context, c call) (object, error) {
		if len(c.Object.GetLabels()) > 0 {
			return nil, apierrors.NewBadRequest("labels are not supported")
		}
		return c.Do(ctx, b.Cluster)
	})},
	{"Apply ignores labels", "Apply/Metadata", true, asks("Apply", func(_ *broken, _ context.Context, c *call) {
		unstructured.RemoveNestedField(c.Object.Object, "metadata", "labels")
	})},
	{"Apply in one name", "Apply/KeyedList", true, manages("Apply", func(m string) string { return strings.Repeat("everybody", min(len(m), 1)) })},
	{"Apply in nobody's name", "Apply/WithoutFieldManager", true, manages("Apply", func(m string) string { return cmp.Or(m, "somebody") })},
	{"Apply gives nothing up", "Apply/GivesUp", true, asks("Apply", keeps("data"))},
	{"Apply replaces", "Apply/LeavesOtherFields", true, answers("Apply", func(b *broken, ctx context.Context, c call, stored object) object {
		if c.Object.Object["data"] == nil {
			return stored
		}
		return b.writes(ctx, "Update", c, stored, c.Object.Object["data"], "data")
	})},
	{"Apply writes status", "Apply/TakesNoStatus", true, answers("Apply", statusToo)},
	{"Apply merges keyed lists as one value", "Apply/KeyedList", true, answers("Apply", func(b *broken, ctx context.Context, c call, stored object) object {
		for _, path := range [][]string{containers, {"spec", "parts"}} {
			if value, ok, _ := unstructured.NestedSlice(c.Object.Object, path...); ok {
				return b.writes(ctx, "Update", c, stored, value, path...)
			}
		}
		return stored
	})},
	{"Apply merges atomic lists", "Apply/AtomicList", true, asks("Apply", func(b *broken, ctx context.Context, c *call) {
		was, _, _ := unstructured.NestedSlice(b.stored(ctx, c.Object).Object, tolerations...)
		now, ok, _ := unstructured.NestedSlice(c.Object.Object, tolerations...)
		if ok && len(was) > 0 && !reflect.DeepEqual(was, now) {
			_ = unstructured.SetNestedSlice(c.Object.Object, append(was, now...), tolerations...)
		}
	})},
	{"Apply drops unknown fields", "Apply/UnknownField", true, asks("Apply", func(_ *broken, _ context.Context, c *call) { dropBogus(c.Object.Object) })},
	{"Apply without a change moves the resourceVersion", "Apply/NoChangeASecondLater", true, around("Apply", func(b *broken, ctx context.Context, c call) (object, error) {
		before := b.stored(ctx, c.Object)
		stored, err := c.Do(ctx, b.Cluster)
		if err != nil || stored.GetResourceVersion() != before.GetResourceVersion() {
			return stored, err
		}
		return b.touch(ctx, stored), nil
	})},
	{"Apply by two managers moves the resourceVersion", "Apply/NoChangeOfTwoManagers", false, func(b *broken) {
		var mu sync.Mutex
		last := map[string]string{}
		around("Apply", func(b *broken, ctx context.Context, c call) (object, error) {
			before := b.stored(ctx, c.Object)
			stored, err := c.Do(ctx, b.Cluster)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			id := c.Kind.Kind + c.Key.String()
			turned := last[id] != c.Manager
			last[id] = c.Manager
			if turned && stored.GetResourceVersion() == before.GetResourceVersion() && len(stored.GetManagedFields()) > 1 {
				return b.touch(ctx, stored), nil
			}
			return stored, nil
		})(b)
	}},
	{"Apply ignores the UID", "Apply/Conditions", true, asks("Apply", noUID)},
	{"Apply ignores the resourceVersion", "Apply/Conditions", true, asks("Apply", noVersion)},

	// Field managers
	{"Create ignores the field manager", "FieldManager/Named", true, manages("Create", everybody)},
	{"Update ignores the field manager", "FieldManager/Named", true, manages("Update", everybody)},
	{"UpdateStatus ignores the field manager", "FieldManager/Named", true, manages("UpdateStatus", everybody)},
	{"another default manager", "FieldManager/Default", true, manages("Update", func(m string) string { return cmp.Or(m, "unknown") })},

	// Generation
	{"the generation does not move", "Generation/Deployment", true, returned(func(u object) {
		if u.GetGeneration() > 0 {
			u.SetGeneration(1)
		}
	})},
	{"the generation is that of the resourceVersion", "Generation/Custom", true, returned(func(u object) {
		if u.GetGeneration() > 0 {
			u.SetGeneration(int64(len(u.GetResourceVersion())) + u.GetGeneration())
		}
	})},
	{"the generation moves with status", "Generation/Deployment", true, func(b *broken) {
		var mu sync.Mutex
		extra := map[types.UID]int64{}
		more := func(n int64) func(*broken, context.Context, call, object) object {
			return func(_ *broken, _ context.Context, _ call, u object) object {
				mu.Lock()
				defer mu.Unlock()
				if extra[u.GetUID()] += n; u.GetGeneration() > 0 {
					u.SetGeneration(u.GetGeneration() + extra[u.GetUID()])
				}
				return u
			}
		}
		both(answers("UpdateStatus", more(1)), answers("Get", more(0)))(b)
	}},

	// Get
	{"Get ignores the namespace", "Get/ItAndNoOther", true, around("Get", func(b *broken, ctx context.Context, c call) (object, error) {
		u, err := c.Do(ctx, b.Cluster)
		l, fault := b.Cluster.List(ctx, c.Kind, clusterapi.ListOptions{})
		if c.Key.Namespace == "" || fault != nil {
			return u, err
		}
		for i := range l.Items {
			if l.Items[i].GetName() == c.Key.Name {
				return &l.Items[i], nil
			}
		}
		return u, err
	})},
	{"Get answers the next object", "Get/NotFound", true, around("Get", func(b *broken, ctx context.Context, c call) (object, error) {
		u, err := c.Do(ctx, b.Cluster)
		if apierrors.IsNotFound(err) {
			if l, _ := b.Cluster.List(ctx, c.Kind, clusterapi.ListOptions{Namespace: c.Key.Namespace}); l != nil && len(l.Items) > 0 {
				return &l.Items[0], nil
			}
		}
		return u, err
	})},
	{"Get answers nothing, and no error", "Get/NotFound", true, around("Get", func(b *broken, ctx context.Context, c call) (object, error) {
		u, err := c.Do(ctx, b.Cluster)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return u, err
	})},
	{"Get without the kind", "Get/Existing", true, answers("Get", func(_ *broken, _ context.Context, _ call, u object) object {
		delete(u.Object, "kind")
		delete(u.Object, "apiVersion")
		return u
	})},
	{"integers are floating-point numbers", "Get/Integers", false, returned(func(u object) {
		if n, ok, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); ok {
			_ = unstructured.SetNestedField(u.Object, float64(n), "spec", "replicas")
		}
	})},

	// List
	{"List ignores NodeName", "List/NodeName", true, lists(func(o *clusterapi.ListOptions) { o.NodeName = "" })},
	{"List ignores NodeName with a namespace", "List/NodeName", true, lists(func(o *clusterapi.ListOptions) {
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
			return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
		})
	})},
	{"List ignores the limit", "List/LimitExceeded", true, lists(func(o *clusterapi.ListOptions) { o.Limit = 0 })},
	{"List takes one more than the limit", "List/LimitExceeded", true, lists(func(o *clusterapi.ListOptions) { o.Limit += min(o.Limit, 1) })},
	{"List takes one less than the limit", "List/LimitNotExceeded", true, lists(func(o *clusterapi.ListOptions) {
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
	{"List returns a page", "List/Complete", false, listed(func(l list, _ clusterapi.ListOptions) { l.Items = l.Items[:min(len(l.Items), 500)] })},
	{"List ignores labels", "List/Labels", true, lists(func(o *clusterapi.ListOptions) { o.Labels = nil })},
	{"List ignores sets of labels", "List/LabelsOfSets", true, lists(func(o *clusterapi.ListOptions) {
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
	{"List ignores the namespace", "List/Namespace", true, lists(func(o *clusterapi.ListOptions) { o.Namespace = "" })},

	// Delete
	{"Delete ignores the UID", "Delete/Preconditions", true, asks("Delete", func(_ *broken, _ context.Context, c *call) { c.UID = "" })},
	{"Delete ignores the resourceVersion", "Delete/Preconditions", true, asks("Delete", func(_ *broken, _ context.Context, c *call) { c.ResourceVersion = "" })},
	{"Delete makes orphans by default", "Delete/Default", false, propagates("", metav1.DeletePropagationOrphan)},
	{"Delete waits by default", "Delete/Default", false, propagates("", metav1.DeletePropagationForeground)},
	{"Delete never waits", "Delete/Foreground", false, propagates(metav1.DeletePropagationForeground, "")},
	{"Delete does not wait for dependents of custom kinds", "Delete/Foreground", false, asks("Delete", func(_ *broken, _ context.Context, c *call) {
		if c.Kind.Kind == "Widget" {
			c.Propagation = ""
		}
	})},
	{"Delete collects orphans", "Delete/Orphan", false, propagates(metav1.DeletePropagationOrphan, "")},
	{"Delete ignores finalizers", "Delete/Finalizers", true, answers("Delete", func(b *broken, _ context.Context, c call, _ object) object {
		if c.Propagation == "" && c.Kind != podKind {
			_ = b.Remove(c.Kind, c.Key)
		}
		return nil
	})},
	{"Delete of nothing succeeds", "Delete/NotFound", true, errs("Delete", "NotFound", succeeds)},

	// Evict
	{"Evict deletes", "Evict/NotAllowed", true, asks("Evict", func(_ *broken, _ context.Context, c *call) { c.Verb, c.Grace = "Delete", nil })},
	{"Evict ignores the grace period", "Evict/Grace", true, asks("Evict", func(_ *broken, _ context.Context, c *call) { c.Grace = nil })},
	{"Evict always ends pods at once", "Evict/Grace", true, asks("Evict", func(_ *broken, _ context.Context, c *call) { c.Grace = new(int64) })},
	{"Evict ignores the UID", "Evict/OtherUID", true, asks("Evict", func(_ *broken, _ context.Context, c *call) { c.UID = "" })},
	{"Evict of nothing succeeds", "Evict/NotFound", true, errs("Evict", "NotFound", succeeds)},

	// Watch
	{"Watch is silent but for ConfigMaps", "Watch/Kinds/Deployment", true, without(func(g gvk, e event) bool { return g != configMapKind && e.Type != clusterapi.Synced })},
	{"Watch is silent of custom kinds", "Watch/Kinds/Widget", true, without(func(g gvk, e event) bool { return g.Kind == "Widget" && e.Type != clusterapi.Synced })},
	{"Watch loses Modified", "Watch/Sequence", true, without(func(_ gvk, e event) bool { return e.Type == clusterapi.Modified })},
	{"Watch loses changes of status", "Watch/Kinds/Deployment", true, func(b *broken) {
		var mu sync.Mutex
		last := map[types.UID]any{}
		without(func(_ gvk, e event) bool {
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
	{"Watch loses Deleted", "Watch/Sequence", true, without(func(_ gvk, e event) bool { return e.Type == clusterapi.Deleted })},
	{"Watch loses what is there", "Watch/Sequence", true, watching(func(_ context.Context, _ gvk, all events, yield func(event, error) bool) {
		synced := false
		for e, err := range all {
			synced = synced || e.Type == clusterapi.Synced
			if (synced || err != nil) && !yield(e, err) {
				return
			}
		}
	})},
	{"Watch has no Synced", "Watch/Sequence", true, without(func(_ gvk, e event) bool { return e.Type == clusterapi.Synced })},
	{"Watch has Synced first", "Watch/Sequence", true, watched(func(_ gvk, e event) []event {
		if e.Type == clusterapi.Added {
			return []event{{Type: clusterapi.Synced}, e}
		}
		return []event{e}
	})},
	{"Watch tells all twice", "Watch/Sequence", true, watched(func(_ gvk, e event) []event {
		if e.Type == clusterapi.Synced {
			return []event{e}
		}
		return []event{e, e}
	})},
	{"Watch calls changes Added", "Watch/Sequence", true, watched(func(_ gvk, e event) []event {
		if e.Type == clusterapi.Modified {
			e.Type = clusterapi.Added
		}
		return []event{e}
	})},
	{"Watch ignores labels", "Watch/Sequence", true, watches(func(o *clusterapi.ListOptions) { o.Labels = nil })},
	{"Watch ignores the namespace", "Watch/Sequence", true, watches(func(o *clusterapi.ListOptions) { o.Namespace = "" })},
	{"Watch ignores NodeName", "Watch/Selection", true, watches(func(o *clusterapi.ListOptions) { o.NodeName = "" })},
	{"Watch calls its end an error", "Watch/Sequence", true, watching(func(ctx context.Context, _ gvk, all events, yield func(event, error) bool) {
		for e, err := range all {
			if !yield(e, err) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(event{}, ctx.Err())
		}
	})},
	{"Watch does not end", "Watch/Sequence", true, watching(func(_ context.Context, _ gvk, all events, yield func(event, error) bool) {
		for e, err := range all {
			if !yield(e, err) || err != nil {
				return
			}
		}
		time.Sleep(time.Minute)
	})},
	{"Watch of nothing ends without an error", "Watch/NoMatch", true, watching(func(_ context.Context, _ gvk, all events, yield func(event, error) bool) {
		for e, err := range all {
			if err != nil || !yield(e, nil) {
				return
			}
		}
	})},
	{"Watch shares its objects", "Watch/TwoAtOnce", false, func(b *broken) {
		shared := &sharing{}
		watched(func(_ gvk, e event) []event {
			if e.Object != nil {
				e.Object = shared.of(e.Object)
			}
			return []event{e}
		})(b)
	}},

	// Objects
	{"Get shares what it returns", "Ownership/Returned", true, func(b *broken) {
		shared := &sharing{}
		answers("Get", func(_ *broken, _ context.Context, _ call, u object) object { return shared.of(u) })(b)
	}},
	{"List and Get share what they return", "Ownership/Returned", true, func(b *broken) {
		shared := &sharing{}
		listed(eachItem(func(u object) { *u = *shared.of(u.DeepCopy()) }))(b)
		answers("Get", func(_ *broken, _ context.Context, _ call, u object) object { return shared.of(u).DeepCopy() })(b)
	}},
	{"Create keeps what it is passed", "Ownership/PassedIn", true, func(b *broken) {
		shared := &sharing{}
		answers("Create", func(_ *broken, _ context.Context, c call, stored object) object {
			kept := stored.DeepCopy()
			if data, ok := c.Object.Object["data"]; ok {
				kept.Object["data"] = data // not a copy
			}
			shared.of(kept)
			return stored
		})(b)
		answers("Get", func(_ *broken, _ context.Context, _ call, u object) object { return shared.of(u).DeepCopy() })(b)
	}},
	{"Apply changes what it is passed", "Ownership/PassedIn", true, answers("Apply", func(_ *broken, _ context.Context, c call, stored object) object {
		c.Object.SetResourceVersion(stored.GetResourceVersion())
		return stored
	})},

	// Errors
	{"NotFound of Get is another error", "Get/NotFound", true, errs("Get", "NotFound", another)},
	{"NotFound of Update is another error", "Update/NotFound", true, errs("Update", "NotFound", another)},
	{"NotFound of UpdateStatus is another error", "UpdateStatus/NotFound", true, errs("UpdateStatus", "NotFound", another)},
	{"NotFound of Delete is another error", "Delete/NotFound", true, errs("Delete", "NotFound", another)},
	{"NotFound of Evict is another error", "Evict/NotFound", true, errs("Evict", "NotFound", another)},
	{"AlreadyExists is another error", "Create/AlreadyExists", true, errs("Create", "AlreadyExists", another)},
	{"Conflict of Update is another error", "Update/Stale", true, errs("Update", "Conflict", another)},
	{"Conflict of UpdateStatus is another error", "UpdateStatus/Stale", true, errs("UpdateStatus", "Conflict", another)},
	{"Conflict of Delete is another error", "Delete/Preconditions", true, errs("Delete", "Conflict", another)},
	{"Conflict of Apply is another error", "Apply/Conditions", true, errs("Apply", "Conflict", another)},
	{"Conflict of Evict is another error", "Evict/OtherUID", true, errs("Evict", "Conflict", another)},
	{"TooManyRequests is another error", "Evict/NotAllowed", true, errs("Evict", "TooManyRequests", another)},
	{"InternalError of two budgets is TooManyRequests", "Evict/TwoBudgets", false, errs("Evict", "InternalError", func(err error) error {
		return apierrors.NewTooManyRequests(err.Error(), 0)
	})},
	{"the limit is another error", "List/LimitExceeded", true, errs("List", "Limit", func(err error) error { return apierrors.NewBadRequest(err.Error()) })},
	{"a kind that is not served is NotFound", "Get/NoMatch", true, errs("", "NoMatch", isNotFound)},
	{"a kind that is not served is NotFound for Apply", "Get/NoMatch", true, errs("Apply", "NoMatch", isNotFound)},

	// Contexts
	{"Get ignores its context", "Context/Get", true, around("Get", contextless)},
	{"Evict ignores its context", "Context/Evict", false, around("Evict", contextless)},
	{"Delete goes through after its context has ended", "Context/Delete", true, around("Delete", func(b *broken, ctx context.Context, c call) (object, error) {
		_, _ = contextless(b, ctx, c)
		return c.Do(ctx, b.Cluster)
	})},
	{"an ended context is NotFound", "Context/Get", true, errs("Get", "Canceled", isNotFound)},
	{"Get goes on after its context ends in mid-call", "Context/InMidCall/Get", false, around("Get", slowly)},
	{"Apply goes on after its context ends in mid-call", "Context/InMidCall/Apply", false, around("Apply", slowly)},
	{"Delete goes on after its context ends in mid-call", "Context/InMidCall/Delete", false, around("Delete", slowly)},
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
	{"an end in mid-call is a time-out of the server", "Context/InMidCall/Update", false, around("Update", func(b *broken, ctx context.Context, c call) (object, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stored, err := c.Do(ctx, b.Cluster)
		if errors.Is(err, context.Canceled) {
			return nil, apierrors.NewServerTimeout(schema.GroupResource{Resource: "x"}, "update", 1)
		}
		return stored, err
	})},
}
