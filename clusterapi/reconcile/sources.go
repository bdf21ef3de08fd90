package reconcile

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// lookAgain is the time after which a kind that was not served is looked for
// again.
const lookAgain = time.Minute

// sources are the watches of a live driver, one for each kind and options.
type sources struct {
	e       *engine
	api     clusterapi.ClusterAPI // with deadlines
	watcher clusterapi.Watcher    // nil: lists

	mu   sync.Mutex
	ctx  context.Context // nil before start
	all  []*source
	byID map[watchID]*source // without those that trim
}

// source is one watch, with what it knows of its objects.
type source struct {
	*sources
	id     watchID
	watch  Watch // of the first subscriber: kind, options and Trim
	cancel context.CancelFunc

	mu     sync.Mutex
	subs   []*subscriber
	known  map[types.NamespacedName]stored
	listed bool
	// seen are the objects of a list that is under way, written those that this
	// process wrote meanwhile; nil: none is.
	seen, written map[types.NamespacedName]bool
	synced        time.Time // when the last list was complete
	failing       failing
	round         int // the Sync in which it was listed last
}

// stored is a state of an object. Trim may have left nothing of its metadata.
type stored struct {
	object  *clusterapi.Object
	uid     types.UID
	version string
}

// subscriber is the interest of a reconciler, or of one of its keys.
type subscriber struct {
	l       *loop
	watch   Watch
	initial bool // one of those that the reconciler waits for
	ended   bool // the dispatcher's
	on      *source
}

// start begins all watches.
func (s *sources) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	for _, one := range s.all {
		s.begin(one)
	}
}

func (s *sources) begin(one *source) {
	var ctx context.Context
	ctx, one.cancel = context.WithCancel(s.ctx)
	s.e.group.Go(func() { one.run(ctx) })
}

// subscribe adds a subscriber, and tells it what is known.
func (s *sources) subscribe(sub *subscriber) {
	id := idOf(sub.watch)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[id]
	if one == nil || sub.watch.Trim != nil {
		one = &source{sources: s, id: id, watch: sub.watch, known: make(map[types.NamespacedName]stored)}
		one.watch.Options.Limit = 0
		s.all = append(s.all, one)
		if sub.watch.Trim == nil {
			s.byID[id] = one
		}
		if s.ctx != nil {
			s.begin(one)
		}
	}
	sub.on = one
	one.mu.Lock()
	defer one.mu.Unlock()
	one.subs = append(one.subs, sub)
	for _, key := range one.keys() {
		one.tell([]*subscriber{sub}, key, nil, one.known[key].object)
	}
	if one.listed && sub.initial {
		sub.l.listed()
	}
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
	if one.cancel != nil {
		one.cancel()
	}
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

// run keeps a watch going until ctx ends.
func (s *source) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := panics.Isolate(func() error {
			if s.watcher != nil {
				return s.follow(ctx)
			}
			return s.list(ctx)
		})
		if ctx.Err() != nil {
			return
		}
		delay := s.e.o.Poll
		if err != nil {
			delay = s.failed(err)
		}
		s.e.sleep(ctx, delay)
	}
}

// follow follows the events of the cluster until they break off. A list that
// does not come in time is broken off.
func (s *source) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if timeout := s.e.o.CallTimeout; timeout != Never {
		limit, stop := within(ctx, s.e.o.Clock, timeout)
		defer stop()
		defer context.AfterFunc(limit, func() {
			if timedOut(limit) && s.listing() {
				cancel(errTimedOut)
			}
		})()
	}
	s.beginList()
	for e, err := range s.watcher.Watch(ctx, s.id.gvk, s.watch.Options) {
		switch {
		case err != nil && timedOut(ctx):
			return s.noList(err)
		case err != nil:
			return err
		case e.Type == clusterapi.Synced:
			s.endList()
			s.recovered()
		case e.Object == nil:
			return fmt.Errorf("an event of type %q without an object", e.Type)
		case e.Type == clusterapi.Deleted:
			s.set(clusterapi.KeyOf(e.Object), nil)
		default:
			s.set(clusterapi.KeyOf(e.Object), clusterapi.NewObject(e.Object))
		}
	}
	if timedOut(ctx) {
		return s.noList(context.DeadlineExceeded)
	}
	return errors.New("the watch has ended")
}

func (s *source) noList(err error) error {
	return fmt.Errorf("no list within %s: %w", s.e.o.CallTimeout, deadlineOf(err))
}

// list reads all objects once.
func (s *source) list(ctx context.Context) error {
	s.beginList()
	objects, err := clusterapi.ListShared(ctx, s.api, s.id.gvk, s.watch.Options)
	if err != nil && !notServed(err) {
		return err
	}
	for _, o := range objects {
		s.set(o.Key(), o)
	}
	if err == nil {
		s.endList()
		s.recovered()
	}
	return err
}

// notServed reports whether an error says that there are no (more) objects of
// a kind to be had, rather than that a call failed.
func notServed(err error) bool {
	return meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected)
}

// failed tells of an error of the watch, and returns when to begin it again.
func (s *source) failed(err error) time.Duration {
	if notServed(err) {
		s.endList() // what is not served has been listed: there is none
	}
	now := s.e.now()
	s.mu.Lock()
	if !s.synced.IsZero() && s.seen == nil && !notServed(err) && now.Sub(s.synced) > maxBackoff {
		s.failing = failing{} // a watch that lasted
	}
	tell := s.failing.fail(now)
	delay, busy := s.failing.wait(err)
	what, about := EventWatchFailed, Attempt{Watch: s.id.gvk.Kind, Failures: s.failing.count}
	switch {
	case notServed(err):
		what, delay = EventNotServed, lookAgain
		tell, s.failing.absent = !s.failing.absent, true
	case busy:
		what = EventServerBusy
		tell, s.failing.busy = tell || !s.failing.busy, true
	}
	s.failing.told = s.failing.told || tell
	s.mu.Unlock()
	about.Retry = now.Add(delay)
	if tell {
		s.e.observe(eventAbout(what, about, err))
	}
	return delay
}

func (s *source) listing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen != nil
}

// recovered tells that the watch has been listed after it failed.
func (s *source) recovered() {
	s.mu.Lock()
	about := Attempt{Watch: s.id.gvk.Kind, Failures: s.failing.count}
	tell := s.failing.told
	s.failing.told, s.failing.absent = false, false
	if s.watcher == nil {
		s.failing = failing{}
	}
	s.mu.Unlock()
	if tell {
		s.e.observe(eventAbout(EventWatchRecovered, about, nil))
	}
}

func (s *source) beginList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.written = make(map[types.NamespacedName]bool), make(map[types.NamespacedName]bool)
}

// endList takes a list for complete: what was known and is not on it is gone.
func (s *source) endList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys() {
		if !s.seen[key] && !s.written[key] {
			s.put(key, stored{})
		}
	}
	s.seen, s.written = nil, nil
	s.synced = s.e.now()
	if !s.listed {
		s.listed = true
		for _, sub := range s.subs {
			if sub.initial {
				sub.l.listed()
			}
		}
	}
}

// keys returns the names of all known objects, in order.
func (s *source) keys() []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(s.known))
	for key := range s.known {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareNames)
	return keys
}

// set takes in what the cluster shows of an object; nil: it went.
func (s *source) set(key types.NamespacedName, o *clusterapi.Object) {
	state := s.keep(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil {
		s.seen[key] = true
		if s.written[key] {
			return // the list may be older
		}
	}
	s.put(key, state)
}

// wrote takes in an object as this process stored it; nil: it went.
func (s *source) wrote(key types.NamespacedName, o *clusterapi.Object) {
	if o != nil && !s.watch.Options.Selects(o.Unstructured()) {
		o = nil
	}
	var state stored
	if err := panics.Isolate(func() error { state = s.keep(o); return nil }); err != nil {
		return // the next list tells of it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.known[key]; o != nil && old.uid == state.uid && newer(old.version, state.version) {
		return
	}
	if s.seen != nil {
		s.written[key] = true
	}
	s.put(key, state)
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

// put makes a state known, and tells the subscribers if it is another one.
func (s *source) put(key types.NamespacedName, state stored) {
	old := s.known[key]
	if state.object == nil && old.object == nil || state.version != "" && state.version == old.version && state.uid == old.uid {
		return
	}
	if state.object == nil {
		delete(s.known, key)
	} else {
		s.known[key] = state
	}
	s.tell(s.subs, key, old.object, state.object)
}

// tell hands a change to subscribers: to all Caches, then to the loops.
func (s *source) tell(subs []*subscriber, key types.NamespacedName, old, new *clusterapi.Object) {
	var caches []*subscriber
	for _, sub := range subs {
		if sub.watch.Cache != nil {
			caches = append(caches, sub)
		}
	}
	if len(caches) > 0 {
		now, at := s.e.now(), 0
		isolated(len(caches), func(i int) {
			at = i
			caches[i].watch.Cache(now, old, new)
		}, func(err error) { caches[at].l.fault(Key{}, err) })
	}
	for _, sub := range subs {
		if sub.watch.Changed != nil {
			sub.l.changed(sub, key, old, new)
		}
	}
}
