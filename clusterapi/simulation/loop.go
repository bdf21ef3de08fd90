package simulation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// A reaction is one behaviour of the cluster: what to look at after an event,
// and what to do about it. It keeps no state that it could not derive again
// from the objects, apart from when a wait began.
type reaction struct {
	name string
	// kinds are the kinds whose events matter.
	kinds func() []schema.GroupVersionKind
	// keys says what to look at after an event of an object.
	keys func(obj *unstructured.Unstructured) []string
	// delay is how long after an event to look.
	delay time.Duration
	// react does what is due for a key, and returns after how long to look
	// again if nothing happens before; zero means never.
	react func(ctx context.Context, key string) (time.Duration, error)
}

// loop is a reaction as a reconciler.
type loop struct {
	reaction
	c *Cluster
}

func (l *loop) Name() string { return l.name }

// Watches implements [reconcile.Reconciler]. Beside the objects of the reaction
// it watches the one by which the program tells the cluster something.
func (l *loop) Watches() []reconcile.Watch {
	watches := []reconcile.Watch{{
		GVK: kindConfigMap, Options: clusterapi.ListOptions{Namespace: tellNamespace},
		Changed: func(_ time.Time, _, _ *clusterapi.Object) []reconcile.Wake { return l.c.told(l.name) },
	}}
	return append(watches, l.watches()...)
}

// watches are those of the reaction's objects.
func (l *loop) watches() []reconcile.Watch {
	var watches []reconcile.Watch
	for _, gvk := range l.kinds() {
		watches = append(watches, reconcile.Watch{GVK: gvk, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			o := new
			if o == nil {
				o = old
			}
			var wakes []reconcile.Wake
			for _, key := range l.keys(o.Unstructured()) {
				wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Name: key}, After: l.delay})
			}
			return wakes
		}})
	}
	return watches
}

// Reconcile implements [reconcile.Reconciler].
func (l *loop) Reconcile(ctx context.Context, r reconcile.Request) (res reconcile.Result, err error) {
	if l.name == loopOperators && r.Key.Name == everyRelease {
		return reconcile.Result{Watches: l.watches()}, nil // of kinds that releases brought since
	}
	look := &looking{now: r.Now}
	again, err := l.react(context.WithValue(internal(ctx), lookKey{}, look), r.Key.Name)
	res.Wake = look.wakes
	if again > 0 {
		res.At = r.Now.Add(again)
	}
	return res, err
}

// everyRelease is the key of the operators' reaction under which it watches the
// kinds that releases brought later.
const everyRelease = "*"

// looking is what goes with a look of a reaction.
type looking struct {
	now   time.Time
	wakes []reconcile.Wake
}

type lookKey struct{}

// wake makes the reaction of ctx look at a further key.
func wake(ctx context.Context, key string) {
	look := ctx.Value(lookKey{}).(*looking)
	look.wakes = append(look.wakes, reconcile.Wake{Key: reconcile.Key{Name: key}})
}

// tellNamespace has a ConfigMap that changes when the program tells the cluster
// something: of a fault, or of a release to expect.
const tellNamespace = "clusterupdate-simulation"

// tell makes reactions look at a key.
func (c *Cluster) tell(name, key string) {
	c.mu.Lock()
	if c.tellings == nil {
		c.tellings = make(map[string][]string)
	}
	c.tellings[name] = append(c.tellings[name], key)
	c.tells++
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"told": time.Duration(c.tells).String()}}}
	c.mu.Unlock()
	u.SetGroupVersionKind(kindConfigMap)
	u.SetNamespace(tellNamespace)
	u.SetName("told")
	if _, err := c.Cluster.Apply(internal(context.Background()), u, clusterapi.ApplyOptions{FieldManager: FieldManager}); err != nil {
		c.logger.Warn("the simulated cluster could not be told", "error", err)
	}
}

// told returns what a reaction is to look at.
func (c *Cluster) told(name string) []reconcile.Wake {
	c.mu.Lock()
	defer c.mu.Unlock()
	var wakes []reconcile.Wake
	for _, key := range c.tellings[name] {
		wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Name: key}})
	}
	delete(c.tellings, name)
	return wakes
}
