package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
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
// nobody else's kinds.
type kinds struct {
	rest rest.Interface

	mu     sync.Mutex
	groups map[schema.GroupVersion]*groupVersion
}

type groupVersion struct {
	fetch sync.Mutex // held by the one that asks the server

	mu    sync.Mutex
	kinds map[string]kind
	count int // fetches so far
}

func newKinds(client rest.Interface) *kinds {
	return &kinds{rest: client, groups: make(map[schema.GroupVersion]*groupVersion)}
}

// find returns a kind, or an error that meta.IsNoMatchError recognises.
func (c *kinds) find(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	g := c.group(gvk.GroupVersion())
	k, ok, count := g.get(gvk.Kind)
	if ok {
		return k, nil
	}
	return c.load(ctx, g, gvk, count)
}

// refresh asks the server again, unless somebody else did so since stale was
// found.
func (c *kinds) refresh(ctx context.Context, gvk schema.GroupVersionKind, stale kind) (kind, error) {
	g := c.group(gvk.GroupVersion())
	k, ok, count := g.get(gvk.Kind)
	if ok && k != stale {
		return k, nil
	}
	return c.load(ctx, g, gvk, count)
}

func (c *kinds) group(gv schema.GroupVersion) *groupVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.groups[gv]
	if !ok {
		g = &groupVersion{}
		c.groups[gv] = g
	}
	return g
}

func (g *groupVersion) get(name string) (k kind, ok bool, count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k, ok = g.kinds[name]
	return k, ok, g.count
}

// load asks the server for a group version, once for all that wait for it.
func (c *kinds) load(ctx context.Context, g *groupVersion, gvk schema.GroupVersionKind, seen int) (kind, error) {
	g.fetch.Lock()
	defer g.fetch.Unlock()
	k, ok, count := g.get(gvk.Kind)
	if count == seen {
		found, err := c.ask(ctx, gvk.GroupVersion())
		if err != nil {
			return kind{}, err
		}
		g.mu.Lock()
		g.kinds, g.count = found, g.count+1
		k, ok = found[gvk.Kind]
		g.mu.Unlock()
	}
	if !ok {
		return kind{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return k, nil
}

func (c *kinds) ask(ctx context.Context, gv schema.GroupVersion) (map[string]kind, error) {
	path := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		path = []string{"/api", gv.Version}
	}
	raw, err := c.rest.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("resources of %s: %w", gv, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
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
