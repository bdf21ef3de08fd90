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

// sources are the watches of a core, one for each kind and options.
type sources struct {
	host host
	api  clusterapi.ClusterAPI // for lists; nil: nothing can be watched

	mu      sync.Mutex
	started bool
	all     []*source
	byID    map[watchID]*source // without those that trim
	// cached are those that fill Objects, by kind.
	cached map[schema.GroupVersionKind][]*source
}

// source is one watch, with what it knows of its objects.
type source struct {
	sources *sources
	host    host
	id      watchID
	watch   Watch              // of the first subscriber: kind, options and Trim
	cancel  context.CancelFunc // a live host's

	mu      sync.Mutex
	subs    []*subscriber
	known   map[types.NamespacedName]stored
	listed  bool // once
	listing bool // a list is under way
	empty   bool // nothing was known when it began
	// seen are the objects of the list under way, written those that this
	// process wrote meanwhile.
	seen, written map[types.NamespacedName]bool
	synced        time.Time // when the last list was complete
	failing       failing
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
	initial bool // one of those that the reconciler waits for
	ended   bool // the dispatcher's
	on      *source
}

// watchID tells which watches are the same.
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

// start begins all watches.
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

// attach returns the watch that is to be begun for a subscriber, or nil.
func (s *sources) attach(sub *subscriber) *source {
	id := idOf(sub.watch)
	s.mu.Lock()
	defer s.mu.Unlock()
	one, begin := s.find(id, sub.watch), false
	if one == nil {
		one = &source{sources: s, host: s.host, id: id, watch: sub.watch, known: make(map[types.NamespacedName]stored)}
		one.watch.Options.Limit = 0
		s.all = append(s.all, one)
		if sub.watch.Trim == nil {
			s.byID[id] = one
		}
		begin = s.started
	}
	if sub.watch.Objects != nil && !slices.Contains(s.cached[id.gvk], one) {
		if s.cached == nil {
			s.cached = make(map[schema.GroupVersionKind][]*source)
		}
		s.cached[id.gvk] = append(s.cached[id.gvk], one)
	}
	sub.on = one
	one.mu.Lock()
	defer one.mu.Unlock()
	one.subs = append(one.subs, sub)
	for _, key := range one.keys() {
		one.show([]*subscriber{sub}, key, stored{}, one.known[key])
	}
	if one.listed && sub.initial {
		sub.c.list()
	}
	if begin {
		return one
	}
	return nil
}

// find returns the watch that has what w asks for, nil if none has. Those that
// trim are shared by watches with the same Objects alone.
func (s *sources) find(id watchID, w Watch) *source {
	if w.Trim == nil {
		return s.byID[id]
	}
	if w.Objects == nil {
		return nil
	}
	for _, one := range s.cached[id.gvk] {
		if one.id == id && one.watch.Objects == w.Objects {
			return one
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
	if clusterapi.ShareResult(ctx, o) {
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
	one.subs = slices.DeleteFunc(one.subs, func(o *subscriber) bool { return o == sub })
	if len(one.subs) > 0 {
		return
	}
	s.all = slices.DeleteFunc(s.all, func(o *source) bool { return o == one })
	if s.byID[one.id] == one {
		delete(s.byID, one.id)
	}
	if cached := s.cached[one.id.gvk]; slices.Contains(cached, one) {
		cached = slices.Clone(cached) // readers have the old one
		s.cached[one.id.gvk] = slices.DeleteFunc(cached, func(o *source) bool { return o == one })
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
	objects, err := clusterapi.ListShared(ctx, s.sources.api, s.id.gvk, s.watch.Options)
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

// notServed reports whether an error says that there are no (more) objects of
// a kind to be had, rather than that a call failed.
func notServed(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}

// failed reports an error of the watch, and returns when to begin it again.
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
	return s.known[key].version
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
	s.listing, s.empty = true, len(s.known) == 0
	s.seen, s.written = nil, nil
	if !s.empty {
		s.seen = make(map[types.NamespacedName]bool, len(s.known))
	}
}

// endList takes a list for complete: what was known and is not on it is gone.
func (s *source) endList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.empty {
		for _, key := range s.keys() {
			if !s.seen[key] && !s.written[key] {
				s.put(key, stored{})
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
	for _, sub := range s.subs {
		if sub.initial {
			sub.c.list()
		}
	}
}

// keys returns the names of all known objects, in order.
func (s *source) keys() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(s.known), compareNames)
}

// set takes in what the cluster shows of an object; nil: it went.
func (s *source) set(key types.NamespacedName, o *clusterapi.Object) {
	state := s.keep(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil {
		s.seen[key] = true
	}
	if s.written[key] {
		return // the list may be older
	}
	s.put(key, state)
}

// wrote takes in an object as this process stored it; nil: it went.
func (s *source) wrote(key types.NamespacedName, o *clusterapi.Object) {
	if o != nil && !s.watch.Options.Selects(o.Unstructured()) {
		o = nil
	}
	var state stored
	if err := s.host.isolate(func() error { state = s.keep(o); return nil }); err != nil {
		return // the next list shows it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.known[key]; o != nil && old.uid == state.uid && newer(old.version, state.version) {
		return
	}
	if s.listing {
		if s.written == nil {
			s.written = make(map[types.NamespacedName]bool)
		}
		s.written[key] = true
	}
	s.put(key, state)
}

// repeat shows the subscribers the present state of an object a second time.
func (s *source) repeat(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.known[key]; state.object != nil {
		s.show(s.subs, key, state, state)
	}
}

// keep is what the watch keeps of an object.
func (s *source) keep(o *clusterapi.Object) stored {
	if o == nil {
		return stored{}
	}
	state := stored{o, o.UID(), o.ResourceVersion()}
	if s.watch.Trim != nil {
		state.object = clusterapi.NewObject(s.watch.Trim(o.Unstructured()))
	}
	return state
}

// newer reports whether a resourceVersion is known to be later than another.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// put makes a state known, and shows it to the subscribers if it is another one.
func (s *source) put(key types.NamespacedName, state stored) {
	old := s.known[key]
	if state.object == nil && old.object == nil {
		s.fill(s.subs, key, old, state) // it may have come and gone
		return
	}
	if state.version != "" && state.version == old.version && state.uid == old.uid {
		return
	}
	if state.object == nil {
		delete(s.known, key)
	} else {
		s.known[key] = state
	}
	s.show(s.subs, key, old, state)
}

// show hands a change to subscribers: to all Objects, to all Caches, then to the
// controllers.
func (s *source) show(subs []*subscriber, key types.NamespacedName, old, state stored) {
	s.fill(subs, key, old, state)
	for _, sub := range subs {
		if sub.watch.Cache != nil {
			now := s.host.now().Add(s.host.skew(sub.c.process))
			s.guard(sub, func() error { sub.watch.Cache(now, old.object, state.object); return nil })
		}
	}
	for _, sub := range subs {
		if sub.watch.Changed != nil {
			sub.c.changed(sub, key, old.object, state.object)
		}
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

// read takes a state that a call returned into the Objects of the watch.
func (s *source) read(object *clusterapi.Object) {
	if !s.watch.Options.Selects(object.Unstructured()) {
		return // the event takes it out
	}
	key, version := object.Key(), object.ResourceVersion()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		if o := sub.watch.Objects; o != nil && !o.has(key, version) {
			s.guard(sub, func() error { o.put(key, s.keep(object)); return nil })
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
