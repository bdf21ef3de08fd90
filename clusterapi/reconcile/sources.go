package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// lookAgain is the time after which a kind that was not served is looked for
// again.
const lookAgain = time.Minute

// sources are the watches of a core. There is one for each kind and options, but
// where a new watch wants more of the objects than those under way keep.
type sources struct {
	host host
	api  clusterapi.ClusterAPI // for lists; nil: nothing can be watched

	mu      sync.Mutex
	started bool
	all     []*source
	byID    map[watchID][]*source
	// cached are those that fill Objects, by kind.
	cached map[schema.GroupVersionKind][]*source
}

// source is one watch, with views of its objects.
type source struct {
	sources *sources
	host    host
	id      watchID
	options clusterapi.ListOptions
	cancel  context.CancelFunc // a live host's

	mu      sync.Mutex
	views   []*view // at least one while it has subscribers
	listed  bool    // once
	listing bool    // a list is under way
	empty   bool    // nothing was known when it began
	// seen are the objects of the list under way, written those that this process
	// wrote in the meantime.
	seen, written map[types.NamespacedName]bool
	synced        time.Time // when the last list was complete
	failing       failing
}

// view is what subscribers with one Trim know of the objects of a source. All views
// of a source know the same objects in the same versions.
type view struct {
	trim    func(*unstructured.Unstructured) *unstructured.Unstructured // nil keeps all
	objects *Objects                                                    // of the first subscriber
	subs    []*subscriber
	known   map[types.NamespacedName]stored
	// old and state are the change under way, if fresh.
	old, state stored
	fresh      bool
}

// stored is a state of an object. Trim may have left nothing of its metadata.
type stored struct {
	object  *clusterapi.Object
	uid     types.UID
	version string
}

// subscriber is the interest of a reconciler, or of one of its keys.
type subscriber struct {
	c       *controller
	watch   Watch
	initial bool // a watch that the reconciler waits for
	ended   bool // the dispatcher's
	on      *source
	view    *view
}

// watchID is equal for watches that are the same.
type watchID struct {
	gvk                         schema.GroupVersionKind
	namespace, labels, nodeName string
}

func idOf(w Watch) watchID {
	id := watchID{gvk: w.GVK, namespace: w.Options.Namespace, nodeName: w.Options.NodeName}
	if w.Options.Labels != nil {
		id.labels = w.Options.Labels.String()
	}
	return id
}

// start starts all watches.
func (s *sources) start() {
	s.mu.Lock()
	s.started = true
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for _, one := range all {
		s.host.follow(one)
	}
}

// subscribe adds a subscriber, and shows it what is known.
func (s *sources) subscribe(sub *subscriber) {
	if one := s.attach(sub); one != nil {
		s.host.follow(one)
	}
}

// attach returns the watch that is to be started for a subscriber, or nil.
func (s *sources) attach(sub *subscriber) *source {
	id := idOf(sub.watch)
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := false
	for _, one := range s.byID[id] {
		if one.join(sub, s.started) {
			break
		}
	}
	if sub.on == nil {
		one := &source{sources: s, host: s.host, id: id, options: sub.watch.Options}
		one.options.Limit = 0
		s.all = append(s.all, one)
		s.byID[id] = append(s.byID[id], one)
		begin = s.started
		one.join(sub, false)
	}
	if sub.watch.Objects != nil && !slices.Contains(s.cached[id.gvk], sub.on) {
		if s.cached == nil {
			s.cached = make(map[schema.GroupVersionKind][]*source)
		}
		s.cached[id.gvk] = append(s.cached[id.gvk], sub.on)
	}
	if begin {
		return sub.on
	}
	return nil
}

// join adds a subscriber and shows it what is known. It reports false where no view
// of a watch that has started has what the subscriber wants.
func (s *source) join(sub *subscriber, begun bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.viewOf(sub.watch)
	if v == nil {
		v = &view{trim: sub.watch.Trim, objects: sub.watch.Objects, known: make(map[types.NamespacedName]stored)}
		all := slices.IndexFunc(s.views, func(v *view) bool { return v.trim == nil })
		switch {
		case all >= 0:
			for key, state := range s.views[all].known {
				v.known[key] = v.keep(state.object)
			}
		case begun:
			return false
		}
		s.views = append(s.views, v)
	}
	v.subs = append(v.subs, sub)
	sub.on, sub.view = s, v
	for _, key := range s.keys() {
		state := v.known[key]
		s.fill([]*subscriber{sub}, key, stored{}, state)
		s.cache([]*subscriber{sub}, stored{}, state)
		s.changed([]*subscriber{sub}, key, stored{}, state)
	}
	if s.listed && sub.initial {
		sub.c.list()
	}
	return true
}

// viewOf returns the view that has what w asks for, nil if none has. Functions
// cannot be compared: watches that trim share a view if their Objects are the same.
func (s *source) viewOf(w Watch) *view {
	for _, v := range s.views {
		switch {
		case w.Trim == nil && v.trim == nil:
			return v
		case w.Trim != nil && v.trim != nil && w.Objects != nil && w.Objects == v.objects:
			return v
		}
	}
	return nil
}

// read takes a state that a call of the process's own returned into the Objects of
// its kind. o is shared.
func (s *sources) read(o *clusterapi.Object) {
	for _, one := range s.filling(o.Kind()) {
		one.read(o)
	}
}

// filling returns the watches of a kind that fill Objects.
func (s *sources) filling(gvk schema.GroupVersionKind) []*source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cached[gvk]
}

// write makes a call that writes an object, and takes what was stored into the
// Objects of its kind.
func (s *sources) write(ctx context.Context, gvk schema.GroupVersionKind,
	f func(context.Context) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if len(s.filling(gvk)) == 0 {
		return f(ctx)
	}
	o, err := clusterapi.WriteShared(ctx, f)
	if err != nil {
		return nil, err
	}
	s.read(o)
	if o.ShareResult(ctx) {
		return o.Unstructured(), nil
	}
	return o.Unstructured().DeepCopy(), nil
}

// unsubscribe ends a subscription, and its watch with the last one.
func (s *sources) unsubscribe(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.ended = true
	one := sub.on
	one.mu.Lock()
	defer one.mu.Unlock()
	v := sub.view
	v.subs = slices.DeleteFunc(v.subs, func(o *subscriber) bool { return o == sub })
	if len(v.subs) > 0 {
		return
	}
	if len(one.views) > 1 {
		one.views = slices.DeleteFunc(one.views, func(o *view) bool { return o == v })
		return
	}
	is := func(o *source) bool { return o == one }
	s.all = slices.DeleteFunc(s.all, is)
	s.byID[one.id] = slices.DeleteFunc(s.byID[one.id], is)
	if len(s.byID[one.id]) == 0 {
		delete(s.byID, one.id)
	}
	if cached := s.cached[one.id.gvk]; slices.Contains(cached, one) {
		s.cached[one.id.gvk] = slices.DeleteFunc(slices.Clone(cached), is) // readers have the old one
	}
	s.host.unfollow(one)
}

// current returns all watches.
func (s *sources) current() []*source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// of returns the watches of a kind.
func (s *sources) of(gvk schema.GroupVersionKind) []*source {
	return slices.DeleteFunc(s.current(), func(one *source) bool { return one.id.gvk != gvk })
}

// wrote takes in an object as a write of this process stored it.
func (s *sources) wrote(u *unstructured.Unstructured) {
	if u == nil {
		return
	}
	for _, one := range s.of(u.GroupVersionKind()) {
		// The caller owns what it got.
		one.wrote(clusterapi.KeyOf(u), clusterapi.NewObject(u.DeepCopy()))
	}
}

// gone takes in what became of an object that this process deleted.
func (s *sources) gone(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) {
	interested := s.of(gvk)
	if len(interested) == 0 {
		return
	}
	o, err := clusterapi.GetShared(ctx, s.api, gvk, key)
	if err != nil && !apierrors.IsNotFound(err) {
		return // the next list shows it
	}
	for _, one := range interested {
		one.wrote(key, o)
	}
}

// list reads all objects once.
func (s *source) list(ctx context.Context) error {
	s.beginList()
	objects, err := clusterapi.ListShared(ctx, s.sources.api, s.id.gvk, s.options)
	if err != nil && !notServed(err) {
		return err
	}
	for _, o := range objects {
		s.set(o.Key(), o)
	}
	if err == nil {
		s.endList()
		s.recovered(true)
	}
	return err
}

// notServed reports whether an error reports that there are no (more) objects of a
// kind to be had, rather than that a call failed.
func notServed(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}

// failed reports an error of the watch, and returns when to start it again.
func (s *source) failed(err error) time.Duration {
	if notServed(err) {
		s.endList() // what is not served has been listed: there is none
	}
	now := s.host.now()
	s.mu.Lock()
	f := &s.failing
	if !s.synced.IsZero() && !s.listing && !notServed(err) && now.Sub(s.synced) > maxBackoff {
		*f = failing{} // a watch that lasted
	}
	report := f.fail(now)
	delay, busy := f.wait(err)
	what, about := EventWatchFailed, Attempt{Watch: s.id.gvk.Kind, Failures: f.count}
	switch {
	case notServed(err):
		what, delay = EventNotServed, lookAgain
		report, f.absent = !f.absent, true
	case busy:
		what = EventServerBusy
		report, f.busy = report || !f.busy, true
	}
	f.reported = f.reported || report
	s.mu.Unlock()
	about.Retry = now.Add(delay)
	if report {
		s.host.observe(eventAbout(what, about, err))
	}
	return delay
}

// state reports whether the watch was listed, and whether a list is under way.
func (s *source) state() (listed, listing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed, s.listing
}

// version is the resourceVersion of an object as the watch showed it, "" for
// one that it does not know.
func (s *source) version(key types.NamespacedName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.views[0].known[key].version
}

// recovered reports that the watch has been listed after it failed. If that is
// all there is to a watch, failures are counted from zero again.
func (s *source) recovered(whole bool) {
	s.mu.Lock()
	about := Attempt{Watch: s.id.gvk.Kind, Failures: s.failing.count}
	report := s.failing.reported
	s.failing.reported, s.failing.absent = false, false
	if whole {
		s.failing = failing{}
	}
	s.mu.Unlock()
	if report {
		s.host.observe(eventAbout(EventWatchRecovered, about, nil))
	}
}

func (s *source) beginList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := len(s.views[0].known)
	s.listing, s.empty = true, known == 0
	s.seen, s.written = nil, nil
	if !s.empty {
		s.seen = make(map[types.NamespacedName]bool, known)
	}
}

// endList takes a list for complete: what was known and is not on it is gone.
func (s *source) endList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.empty {
		for _, key := range s.keys() {
			if !s.seen[key] && !s.written[key] {
				s.put(key, nil)
			}
		}
	}
	s.listing, s.empty = false, false
	s.seen, s.written = nil, nil
	s.synced = s.host.now()
	if s.listed {
		return
	}
	s.listed = true
	for _, v := range s.views {
		for _, sub := range v.subs {
			if sub.initial {
				sub.c.list()
			}
		}
	}
}

// keys returns the names of all known objects, in order.
func (s *source) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(s.views[0].known), compareNames)
}

// set takes in what the cluster shows of an object; nil: it was deleted.
func (s *source) set(key types.NamespacedName, o *clusterapi.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil {
		s.seen[key] = true
	}
	if s.written[key] {
		return // the list may be older
	}
	s.put(key, o)
}

// wrote takes in an object as this process stored it; nil: it was deleted.
func (s *source) wrote(key types.NamespacedName, o *clusterapi.Object) {
	if o != nil && !s.options.Selects(o.Unstructured()) {
		o = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.views[0].known[key]; o != nil && old.uid == o.UID() && newer(old.version, o.ResourceVersion()) {
		return
	}
	if s.listing {
		if s.written == nil {
			s.written = make(map[types.NamespacedName]bool)
		}
		s.written[key] = true
	}
	// The next list shows what a Trim that panics keeps from being shown.
	_ = s.host.isolate(func() error { s.put(key, o); return nil })
}

// repeat shows the subscribers the present state of an object a second time.
func (s *source) repeat(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		v.old, v.state = v.known[key], v.known[key]
		v.fresh = v.state.object != nil
	}
	s.show(key)
}

// keep is what the view keeps of an object.
func (v *view) keep(o *clusterapi.Object) stored {
	if o == nil {
		return stored{}
	}
	state := stored{o, o.UID(), o.ResourceVersion()}
	if v.trim != nil {
		state.object = clusterapi.NewObject(v.trim(o.Unstructured()))
	}
	return state
}

// newer reports whether a resourceVersion is known to be later than another.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// put makes a state of an object known, nil: it was deleted, and shows it to the
// subscribers if it is another.
func (s *source) put(key types.NamespacedName, o *clusterapi.Object) {
	for _, v := range s.views {
		v.old, v.state = v.known[key], v.keep(o)
		v.fresh = v.old.object != nil || o != nil
		if v.state.version != "" && v.state.version == v.old.version && v.state.uid == v.old.uid {
			v.fresh = false
		}
	}
	for _, v := range s.views {
		switch {
		case !v.fresh && o == nil:
			s.fill(v.subs, key, v.old, v.state) // it may have come and gone
		case !v.fresh:
		case o == nil:
			delete(v.known, key)
		default:
			v.known[key] = v.state
		}
	}
	s.show(key)
}

// show hands a change to subscribers: to all Objects, to all Caches, then to the
// controllers.
func (s *source) show(key types.NamespacedName) {
	for _, v := range s.views {
		if v.fresh {
			s.fill(v.subs, key, v.old, v.state)
		}
	}
	for _, v := range s.views {
		if v.fresh {
			s.cache(v.subs, v.old, v.state)
		}
	}
	for _, v := range s.views {
		if v.fresh {
			s.changed(v.subs, key, v.old, v.state)
		}
		v.old, v.state = stored{}, stored{}
	}
}

// fill hands a change to all Objects.
func (s *source) fill(subs []*subscriber, key types.NamespacedName, old, state stored) {
	var last *Objects
	for _, sub := range subs {
		if o := sub.watch.Objects; o != nil && o != last {
			last = o
			s.guard(sub, func() error { o.show(key, old, state); return nil })
		}
	}
}

// cache hands a change to all Caches.
func (s *source) cache(subs []*subscriber, old, state stored) {
	for _, sub := range subs {
		if sub.watch.Cache != nil {
			now := s.host.now().Add(s.host.skew(sub.c.process))
			s.guard(sub, func() error { sub.watch.Cache(now, old.object, state.object); return nil })
		}
	}
}

// changed hands a change to the controllers.
func (s *source) changed(subs []*subscriber, key types.NamespacedName, old, state stored) {
	for _, sub := range subs {
		if sub.watch.Changed != nil {
			sub.c.changed(sub, key, old.object, state.object)
		}
	}
}

// read takes a state that a call returned into the Objects of the watch.
func (s *source) read(object *clusterapi.Object) {
	if !s.options.Selects(object.Unstructured()) {
		return // the event takes it out
	}
	key, version := object.Key(), object.ResourceVersion()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		for _, sub := range v.subs {
			if o := sub.watch.Objects; o != nil && !o.has(key, version) {
				s.guard(sub, func() error { o.put(key, v.keep(object)); return nil })
			}
		}
	}
}

// guard calls a function for a subscriber.
func (s *source) guard(sub *subscriber, f func() error) {
	if err := s.host.isolate(f); err != nil {
		sub.c.fault(Key{}, err)
	}
}

// compareNames orders objects by namespace, then name.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
