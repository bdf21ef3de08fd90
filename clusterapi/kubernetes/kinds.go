package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// kind is how an API server serves a kind.
type kind struct {
	resource   schema.GroupVersionResource
	namespaced bool
	status     bool // it has that subresource
}

// kinds maps kinds to resources. It asks the server for one group version at a
// time, when a kind is needed that it does not know: so a definition that has
// just been applied is found, and an API service that does not answer hides
// nobody else's kinds. That a kind is not served is never remembered.
type kinds struct {
	rest rest.Interface
	life context.Context // of the cluster

	mu      sync.Mutex // held for moments, never during a request
	served  map[schema.GroupVersion]map[string]kind
	flights map[schema.GroupVersion]*flight
}

// flight is one request for the resources of a group version, for all callers
// that need them. Each may leave when its context ends; the request ends when
// all have left.
type flight struct {
	cancel  context.CancelFunc
	callers int           // that wait
	done    chan struct{} // closed when it has landed
	found   map[string]kind
	err     error
}

func newKinds(client rest.Interface, life context.Context) *kinds {
	return &kinds{
		rest:    client,
		life:    life,
		served:  make(map[schema.GroupVersion]map[string]kind),
		flights: make(map[schema.GroupVersion]*flight),
	}
}

// find returns a kind, or an error that meta.IsNoMatchError recognises.
func (c *kinds) find(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	return c.lookup(ctx, gvk, func(kind) bool { return true })
}

// refresh asks the server again, unless somebody else did so since stale was
// found.
func (c *kinds) refresh(ctx context.Context, gvk schema.GroupVersionKind, stale kind) (kind, error) {
	return c.lookup(ctx, gvk, func(k kind) bool { return k != stale })
}

// lookup returns a kind that is good, or else what a request reports that began
// after the call of lookup: one that is on its way already may have been answered
// before the kind was there.
func (c *kinds) lookup(ctx context.Context, gvk schema.GroupVersionKind, good func(kind) bool) (kind, error) {
	if k, ok := c.known(gvk); ok && good(k) {
		return k, nil
	}
	f, joined := c.join(ctx, gvk.GroupVersion())
	k, err := c.await(ctx, f, gvk)
	if !joined || ctx.Err() != nil || err == nil && good(k) {
		return k, err
	}
	f, _ = c.join(ctx, gvk.GroupVersion())
	return c.await(ctx, f, gvk)
}

func (c *kinds) known(gvk schema.GroupVersionKind) (kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.served[gvk.GroupVersion()][gvk.Kind]
	return k, ok
}

// join returns the request that is on its way, or starts one.
func (c *kinds) join(ctx context.Context, gv schema.GroupVersion) (f *flight, joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[gv]; ok {
		f.callers++
		return f, true
	}
	// The request outlives the caller that began it while others wait.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f = &flight{cancel: cancel, callers: 1, done: make(chan struct{}), err: &panics.Error{}}
	c.flights[gv] = f
	go func() {
		defer cancel()
		defer c.land(gv, f)
		defer context.AfterFunc(c.life, cancel)()
		f.err = panics.Catch(func() (err error) {
			f.found, err = c.ask(ctx, gv)
			return err
		})
	}()
	return f, false
}

// land keeps what a request has found.
func (c *kinds) land(gv schema.GroupVersion, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[gv] == f { // else all have left
		delete(c.flights, gv)
		switch {
		case f.err != nil:
		case len(f.found) == 0:
			delete(c.served, gv)
		default:
			c.served[gv] = f.found
		}
	}
	close(f.done)
}

// await returns what a request says of a kind.
func (c *kinds) await(ctx context.Context, f *flight, gvk schema.GroupVersionKind) (kind, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(gvk.GroupVersion(), f)
		return kind{}, fmt.Errorf("resources of %s: %w", gvk.GroupVersion(), context.Cause(ctx))
	}
	if f.err != nil {
		return kind{}, f.err
	}
	k, ok := f.found[gvk.Kind]
	if !ok {
		return kind{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return k, nil
}

// leave stops waiting. A request that nobody waits for ends.
func (c *kinds) leave(gv schema.GroupVersion, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.callers--; f.callers == 0 {
		f.cancel()
		if c.flights[gv] == f {
			delete(c.flights, gv)
		}
	}
}

// ask gets the kinds of a group version. None is what a server reports that does
// not serve it.
func (c *kinds) ask(ctx context.Context, gv schema.GroupVersion) (map[string]kind, error) {
	path := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"/api", gv.Version}
	}
	raw, err := send(ctx, c.rest.Get().AbsPath(path...))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var list metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err == nil && (list.Kind != "APIResourceList" || list.GroupVersion != "" && list.GroupVersion != gv.String()) {
		err = fmt.Errorf("%w: %q of %q", ErrAnswer, bounded.Text(list.Kind, 100), bounded.Text(list.GroupVersion, 100))
	}
	if err != nil {
		return nil, fmt.Errorf("resources of %s: %w", gv, err)
	}
	found := make(map[string]kind)
	names := make(map[string]string) // of resources, to their kinds
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		if _, ok := found[r.Kind]; !ok { // the first one is the kind's own
			found[r.Kind] = kind{resource: gv.WithResource(r.Name), namespaced: r.Namespaced}
			names[r.Name] = r.Kind
		}
	}
	for _, r := range list.APIResources {
		if name, ok := strings.CutSuffix(r.Name, "/status"); ok {
			if of, ok := names[name]; ok {
				k := found[of]
				k.status = true
				found[of] = k
			}
		}
	}
	return found, nil
}
