package mcp

import (
	"context"
	"errors"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// source is one kind of object that a rollout follows.
type source struct {
	gvk    schema.GroupVersionKind
	opts   clusterapi.ListOptions
	decode func(*unstructured.Unstructured) (any, error)
}

func sources() ([]source, error) {
	var all []source
	var errs []error
	add := func(s source, err error) {
		all = append(all, s)
		errs = append(errs, err)
	}
	// Pools first: nodes that come before them would be placed twice.
	add(sourceOf[mcfgv1.MachineConfigPool](clusterapi.ListOptions{}))
	add(sourceOf[corev1.Node](clusterapi.ListOptions{}))
	add(sourceOf[mcfgv1.ControllerConfig](clusterapi.ListOptions{}))
	add(sourceOf[mcfgv1.MachineConfigNode](clusterapi.ListOptions{}))
	add(sourceOf[mcfgv1.MachineOSConfig](clusterapi.ListOptions{}))
	add(sourceOf[mcfgv1.MachineOSBuild](clusterapi.ListOptions{}))
	add(sourceOf[corev1.Pod](clusterapi.ListOptions{
		Namespace: OperatorNamespace, Labels: labels.SelectorFromSet(labels.Set{LabelApp: AppOperator}),
	}))
	gvk, err := clusterapi.KindOf[mcfgv1.MachineConfig]()
	// Configs are large, and only their owner matters.
	add(source{gvk: gvk, decode: func(u *unstructured.Unstructured) (any, error) {
		c := &mcfgv1.MachineConfig{}
		c.Name, c.OwnerReferences = u.GetName(), u.GetOwnerReferences()
		return c, nil
	}}, err)
	return all, errors.Join(errs...)
}

func sourceOf[T any](opts clusterapi.ListOptions) (source, error) {
	gvk, err := clusterapi.KindOf[T]()
	return source{gvk: gvk, opts: opts, decode: func(u *unstructured.Unstructured) (any, error) {
		return clusterapi.FromUnstructured[T](u)
	}}, err
}

// message is what a source tells the loop.
type message struct {
	source int
	// reset says that a new list begins: what it does not yield until Synced
	// is gone.
	reset bool
	event clusterapi.Event
	// seq is the number of writes that were over when the list began: later
	// ones it may not show.
	seq int64
	// live says that the event came after the list.
	live bool
	err  error
}

// inform sends all objects of a source and their changes until ctx ends.
func (x *run) inform(ctx context.Context, index int, out chan<- message) {
	src, delays := x.sources[index], x.o.Options.Delays
	send := func(m message) bool {
		m.source = index
		select {
		case out <- m:
			return true
		case <-ctx.Done():
			return false
		}
	}
	watcher, canWatch := x.o.API.(clusterapi.Watcher)
	for failures := 0; ctx.Err() == nil; {
		began := x.o.Clock.Now()
		err := panics.Isolate(func() error {
			if canWatch {
				return x.watch(ctx, watcher, src, send)
			}
			return x.list(ctx, src, send)
		})
		if x.o.Clock.Since(began) > delays.RetryMax {
			failures = 0 // a watch that lasted
		}
		wait := delays.Poll
		switch {
		case ctx.Err() != nil:
			return
		case unknownKind(err):
			// None now; perhaps the kind comes later.
			if !send(message{reset: true}) || !send(message{event: clusterapi.Event{Type: clusterapi.Synced}}) {
				return
			}
			wait = delays.RetryMax
		case err != nil:
			failures++
			send(message{err: err})
			wait = delays.backoff(failures)
		default:
			failures = 0
		}
		if sleep(ctx, x.o.Clock, max(wait, time.Millisecond)) != nil {
			return
		}
	}
}

func (x *run) watch(ctx context.Context, w clusterapi.Watcher, src source, send func(message) bool) error {
	seq := x.writes.Load()
	if !send(message{reset: true, seq: seq}) {
		return nil
	}
	synced := false
	for e, err := range w.Watch(ctx, src.gvk, src.opts) {
		if err != nil {
			return err
		}
		if !send(message{event: e, seq: seq, live: synced}) {
			return nil
		}
		synced = synced || e.Type == clusterapi.Synced
	}
	return nil
}

func (x *run) list(ctx context.Context, src source, send func(message) bool) error {
	seq := x.writes.Load()
	objects, err := x.o.API.List(ctx, src.gvk, src.opts)
	if err != nil {
		return err
	}
	if !send(message{reset: true, seq: seq}) {
		return nil
	}
	for i := range objects.Items {
		if !send(message{event: clusterapi.Event{Type: clusterapi.Added, Object: &objects.Items[i]}, seq: seq}) {
			return nil
		}
	}
	send(message{event: clusterapi.Event{Type: clusterapi.Synced}, seq: seq})
	return nil
}

// follow keeps which objects of a source are known, so that a new list tells
// which are gone.
type follow struct {
	synced bool
	known  map[string]any // the last decoded object; of a node its name
	listed map[string]bool
	rvs    map[string]string
}

// receive takes in one message.
func (x *run) receive(m message) {
	f := &x.follows[m.source]
	src := x.sources[m.source]
	switch {
	case m.err != nil:
		x.fail("", "", m.err)
	case m.reset:
		f.listed = map[string]bool{}
	case m.event.Type == clusterapi.Synced:
		for key, o := range f.known {
			if f.listed != nil && !f.listed[key] {
				x.forget(f, key, o)
			}
		}
		f.listed = nil
		f.synced = true
	default:
		key := clusterapi.KeyOf(m.event.Object).String()
		if m.event.Type == clusterapi.Deleted {
			if o, ok := f.known[key]; ok {
				x.forget(f, key, o)
			}
			return
		}
		if f.listed != nil {
			f.listed[key] = true
		}
		rv := m.event.Object.GetResourceVersion()
		if rv != "" && f.rvs[key] == rv && !m.live {
			return // a poll that shows nothing new
		}
		o, err := src.decode(m.event.Object)
		if err != nil {
			x.fail("", "", err)
			return
		}
		f.known[key], f.rvs[key] = o, rv
		if n, ok := o.(*corev1.Node); ok {
			f.known[key] = n.Name // nodes are many and large
			if x.outdated(n, m) {
				delete(f.rvs, key) // to be looked at again in the next list
				return
			}
			x.applyNode(n)
			return
		}
		x.apply(o, false)
	}
}

func (x *run) forget(f *follow, key string, o any) {
	delete(f.known, key)
	delete(f.rvs, key)
	if name, ok := o.(string); ok {
		x.dropNode(name)
		return
	}
	x.apply(o, true)
}
