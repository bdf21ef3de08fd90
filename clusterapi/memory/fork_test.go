package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/differential"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// origin is a base that counts its Lists and fails as it is told.
type origin struct {
	clusterapi.Reader
	mu    sync.Mutex
	lists map[string]int
	fail  func(gvk schema.GroupVersionKind, nth int) error // nil with what is there
	wait  func(ctx context.Context, gvk schema.GroupVersionKind) error
	none  map[string]bool // kinds of which an error comes without a list
}

func (o *origin) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	o.mu.Lock()
	if o.lists == nil {
		o.lists = map[string]int{}
	}
	o.lists[gvk.Kind]++
	nth := o.lists[gvk.Kind]
	o.mu.Unlock()
	if o.wait != nil {
		if err := o.wait(ctx, gvk); err != nil {
			return nil, err
		}
	}
	var fault error
	if o.fail != nil {
		fault = o.fail(gvk, nth)
	}
	if fault != nil && (!errors.Is(fault, clusterapi.ErrNotCollected) || o.none[gvk.Kind]) {
		return nil, fault
	}
	list, err := o.Reader.List(ctx, gvk, opts)
	if fault != nil {
		if list == nil {
			list = &unstructured.UnstructuredList{Object: map[string]any{}}
		}
		return list, fault
	}
	return list, err
}

func (o *origin) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	return nil, errors.New("a fork reads lists alone")
}

func baseCluster(t *testing.T, texts ...string) *memory.Cluster {
	t.Helper()
	c := memory.New(memory.Options{})
	for _, text := range texts {
		checktest.OK(t, c.Load(object(t, text)))
	}
	return c
}

func named(name, more string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: ns, name: " + name + more + "}\ndata: {a: b}\n"
}

// notWhole says that a kind was not collected whole.
func notWhole(kind string) func(schema.GroupVersionKind, int) error {
	return func(gvk schema.GroupVersionKind, _ int) error {
		if gvk.Kind == kind {
			return fmt.Errorf("some %ss: %w", kind, clusterapi.ErrNotCollected)
		}
		return nil
	}
}

// Each verb reads the kind first, once, after definitions and namespaces.
func TestForkTouch(t *testing.T) {
	key := clusterapi.Key("ns", "one")
	for name, verb := range map[string]func(c *memory.Cluster) error{
		"Get":    func(c *memory.Cluster) error { _, err := c.Get(t.Context(), cms, key); return err },
		"Shared": func(c *memory.Cluster) error { _, err := c.GetShared(t.Context(), cms, key); return err },
		"List": func(c *memory.Cluster) error {
			list, err := c.List(t.Context(), cms, clusterapi.ListOptions{})
			if err == nil && len(list.Items) != 1 {
				return errors.New("not one")
			}
			return err
		},
		"Watch": func(c *memory.Cluster) error {
			n := 0
			for e, err := range c.Watch(t.Context(), cms, clusterapi.ListOptions{}) {
				if err != nil || e.Type == clusterapi.Synced {
					if err == nil && n != 1 {
						err = errors.New("not one")
					}
					return err
				}
				n++
			}
			return nil
		},
		"Create": func(c *memory.Cluster) error {
			_, err := c.Create(t.Context(), object(t, named("one", "")), clusterapi.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return fmt.Errorf("it exists: %w", err)
		},
		"Apply": func(c *memory.Cluster) error {
			u, err := c.Apply(t.Context(), object(t, named("one", "")), manager)
			if err == nil && u.GetUID() != "u-1" {
				return errors.New("another one")
			}
			return err
		},
		"Delete": func(c *memory.Cluster) error { return c.Delete(t.Context(), cms, key, clusterapi.DeleteOptions{}) },
		"Remove": func(c *memory.Cluster) error { return c.Remove(cms, key) },
	} {
		t.Run(name, func(t *testing.T) {
			base := &origin{Reader: baseCluster(t, named("one", ", uid: u-1"))}
			want := checktest.Must(base.Reader.Get(t.Context(), cms, key))
			c := memory.New(memory.Options{Base: base})
			checktest.OK(t, verb(c))
			_, _ = c.List(t.Context(), cms, clusterapi.ListOptions{})
			checktest.Same(t, map[string]int{"CustomResourceDefinition": 1, "Namespace": 1, "ConfigMap": 1}, base.lists)
			if got, err := base.Reader.Get(t.Context(), cms, key); err != nil || !cmp.Equal(got, want) {
				t.Errorf("the base changed: %v", err)
			}
		})
	}
}

// Versions of a kind are read together, in whichever version a verb names.
func TestForkVersions(t *testing.T) {
	base := &origin{Reader: baseCluster(t, benchDefinition, benchWidget)}
	c := memory.New(memory.Options{Base: base})
	gk := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	_, err := c.Get(t.Context(), gk.WithVersion("v9"), clusterapi.Key("example", "widget"))
	checktest.FailIf(t, !meta.IsNoMatchError(err), "v9: %v", err)
	checktest.Good(t, checktest.Err(c.Get(t.Context(), gk.WithVersion("v1"), clusterapi.Key("example", "widget"))))
	if base.lists["Widget"] != 2 { // v9, v1
		t.Error(base.lists)
	}
}

func TestForkErrors(t *testing.T) {
	down := errors.New("down")
	for _, kind := range []string{"CustomResourceDefinition", "Namespace", "ConfigMap"} {
		base := &origin{Reader: baseCluster(t, named("one", "")), fail: func(gvk schema.GroupVersionKind, nth int) error {
			if gvk.Kind == kind && nth <= 2 {
				return down
			}
			return nil
		}}
		c := memory.New(memory.Options{Base: base})
		for range 2 {
			checktest.ErrorIs(t, down, checktest.Err(c.Get(t.Context(), cms, clusterapi.Key("ns", "one"))))
		}
		_, err := c.Get(t.Context(), cms, clusterapi.Key("ns", "one"))
		checktest.FailIf(t, err != nil, "%s: %v", kind, err)
	}
}

func TestForkNotCollected(t *testing.T) {
	get := func(c *memory.Cluster, name string) error {
		_, err := c.Get(t.Context(), cms, clusterapi.Key("ns", name))
		return err
	}
	t.Run("some", func(t *testing.T) {
		c := memory.New(memory.Options{Base: &origin{Reader: baseCluster(t, named("one", "")), fail: notWhole("ConfigMap")}})
		checktest.Good(t, get(c, "one"))
		checktest.ErrorIs(t, clusterapi.ErrNotCollected, get(c, "two"))
		for _, limit := range []int{0, 1} {
			list, err := c.List(t.Context(), cms, clusterapi.ListOptions{Limit: limit})
			if !errors.Is(err, clusterapi.ErrNotCollected) || list == nil || len(list.Items) != 1 {
				t.Error(list, err)
			}
		}
		mustApply(t, c, named("two", ""))
		checktest.Good(t, get(c, "two"))
		checktest.ErrorIs(t, clusterapi.ErrNotCollected,
			c.Delete(t.Context(), cms, clusterapi.Key("ns", "three"), clusterapi.DeleteOptions{}))
		checktest.Good(t, c.Delete(t.Context(), cms, clusterapi.Key("ns", "one"), clusterapi.DeleteOptions{}))
		checktest.ErrorBy(t, apierrors.IsNotFound, get(c, "one"))
		for e, err := range c.Watch(t.Context(), cms, clusterapi.ListOptions{}) {
			checktest.FailIf(t, e.Type == clusterapi.Synced, "synced")
			checktest.FailIf(t, err != nil && !errors.Is(err, clusterapi.ErrNotCollected), "%v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		base := &origin{Reader: baseCluster(t), fail: notWhole("ConfigMap"), none: map[string]bool{"ConfigMap": true}}
		c := memory.New(memory.Options{Base: base})
		for range 2 {
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, get(c, "one"))
		}
		checktest.FailIf(t, base.lists["ConfigMap"] != 2, "%v", base.lists)
	})
	t.Run("definitions", func(t *testing.T) { // which a recording may lack
		base := &origin{Reader: baseCluster(t, named("one", "")), fail: notWhole("CustomResourceDefinition"), none: map[string]bool{"CustomResourceDefinition": true}}
		c := memory.New(memory.Options{Base: base})
		checktest.Good(t, get(c, "one"))
	})
	for name, none := range map[string]bool{"defined here, empty list": false, "defined here, no list": true} {
		t.Run(name, func(t *testing.T) {
			base := &origin{Reader: baseCluster(t), fail: notWhole("Widget"), none: map[string]bool{"Widget": none}}
			c := memory.New(memory.Options{Base: base})
			widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, checktest.Err(
				c.List(t.Context(), widgets, clusterapi.ListOptions{})))
			mustApply(t, c, benchDefinition)
			if list, err := c.List(t.Context(), widgets, clusterapi.ListOptions{}); err != nil || len(list.Items) != 0 {
				t.Error(err)
			}
			mustApply(t, c, benchWidget)
		})
	}
}

// A kind that the base serves is served without a definition, and one that it
// does not serve is empty once it has one.
func TestForkServed(t *testing.T) {
	lenient := memory.New(memory.Options{Lenient: true})
	checktest.OK(t, lenient.Load(object(t, benchWidget)))
	c := memory.New(memory.Options{Base: lenient})
	widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	checktest.Good(t, checktest.Err(c.Get(t.Context(), widgets, clusterapi.Key("example", "widget"))))
	c = memory.New(memory.Options{Base: memory.New(memory.Options{})})
	checktest.ErrorBy(t, meta.IsNoMatchError, checktest.Err(c.List(t.Context(), widgets, clusterapi.ListOptions{})))
	mustApply(t, c, benchDefinition)
	mustApply(t, c, benchWidget)
}

// What was deleted takes with it what is read later, and is held by finalizers.
func TestForkDeletes(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns, uid: u-ns}\n"
	owner := "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: owner, uid: u-o}\n"
	const held, owned = ", finalizers: [a/b]", ", ownerReferences: [{apiVersion: v1, kind: Secret, name: owner, uid: u-o}]"
	secrets := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	for _, tc := range []struct {
		name   string
		base   []string
		gvk    schema.GroupVersionKind
		key    types.NamespacedName
		opts   clusterapi.DeleteOptions
		want   []string // what is there, with a "-" where it is being deleted
		before func(*testing.T, *memory.Cluster)
	}{
		{name: "namespace", base: []string{namespace, named("a", ""), named("b", held)}, gvk: namespaceGVK, key: clusterapi.Key("", "ns"), want: []string{"b-"}},
		{name: "owner", base: []string{owner, named("a", owned), named("b", "")}, gvk: secrets, key: clusterapi.Key("ns", "owner"), want: []string{"b"}},
		{name: "owner, orphaning", base: []string{owner, named("a", owned)}, gvk: secrets, key: clusterapi.Key("ns", "owner"), opts: clusterapi.DeleteOptions{Propagation: "Orphan"}, want: []string{"a"}},
		{name: "owner, held", base: []string{owner, named("a", owned+held)}, gvk: secrets, key: clusterapi.Key("ns", "owner"), opts: clusterapi.DeleteOptions{Propagation: "Foreground"}, want: []string{"a-"}},
		{name: "another owner of a kind not read", base: []string{owner, named("a", ", ownerReferences: [{apiVersion: v1, kind: Secret, name: owner, uid: u-o}, {apiVersion: apps/v1, kind: Deployment, name: d, uid: u-d}]")},
			gvk: secrets, key: clusterapi.Key("ns", "owner"), want: []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{Base: baseCluster(t, tc.base...)})
			checktest.OK(t, c.Delete(t.Context(), tc.gvk, tc.key, tc.opts))
			list := checktest.Must(c.List(t.Context(), cms, clusterapi.ListOptions{}))
			var got []string
			for _, u := range list.Items {
				name := u.GetName()
				if u.GetDeletionTimestamp() != nil {
					name += "-"
				}
				got = append(got, name)
			}
			checktest.FailIf(t, !slices.Equal(got, tc.want), "got %v, want %v", got, tc.want)
		})
	}
	t.Run("definition", func(t *testing.T) {
		c := memory.New(memory.Options{Base: baseCluster(t, benchDefinition, benchWidget)})
		widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
		checktest.OK(t,
			c.Delete(t.Context(), crdGVK, clusterapi.Key("", "widgets.example.com"), clusterapi.DeleteOptions{}))
		if _, err := c.List(t.Context(), widgets, clusterapi.ListOptions{}); !meta.IsNoMatchError(err) {
			t.Error(err)
		}
		mustApply(t, c, benchDefinition)
		if list, err := c.List(t.Context(), widgets, clusterapi.ListOptions{}); err != nil || len(list.Items) != 0 {
			t.Error(list, err)
		}
	})
}

var (
	namespaceGVK = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	crdGVK       = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// Many touch a kind at once; the context of the one that reads ends.
func TestForkConcurrent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	base := &origin{Reader: baseCluster(t, named("one", ""))}
	var once sync.Once
	base.wait = func(ctx context.Context, gvk schema.GroupVersionKind) error {
		var err error
		if gvk.Kind == "ConfigMap" {
			once.Do(func() { // the first waits until its context ends
				close(began)
				<-ctx.Done()
				err = ctx.Err()
			})
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	c := memory.New(memory.Options{Base: base})
	first := make(chan error)
	go func() {
		_, err := c.Get(ctx, cms, clusterapi.Key("ns", "one"))
		first <- err
	}()
	<-began
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			checktest.Good(t, checktest.Err(c.Get(t.Context(), cms, clusterapi.Key("ns", "one"))))
		})
	}
	time.Sleep(20 * time.Millisecond)
	cancel()
	checktest.ErrorIs(t, context.Canceled, <-first)
	all.Wait()
	checktest.Equal(t, 2, base.lists["ConfigMap"], "lists")
}

// New UIDs and resourceVersions are not those of objects that are read later.
func TestForkIdentity(t *testing.T) {
	base := memory.New(memory.Options{})
	for range 3 { // forks of forks
		mustApply(t, base, named("one", ""))
		c := memory.New(memory.Options{Base: base})
		secret := mustApply(t, c, "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: s}\n")
		got, err := c.Get(t.Context(), cms, clusterapi.Key("ns", "one"))
		if err != nil || got.GetUID() == secret.GetUID() {
			t.Fatal(got, err)
		}
		base = c
	}
}

// A fork answers as a cluster into which the same objects were loaded.
func TestForkDifferential(t *testing.T) {
	base, plain := memory.New(memory.Options{}), memory.New(memory.Options{CheckNamespaces: true, GracefulPods: true})
	for _, text := range []string{named("one", ""), "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n", benchDefinition, benchWidget, benchDeployment} {
		checktest.OK(t, errors.Join(base.Load(object(t, text)), plain.Load(object(t, text))))
	}
	fork := memory.New(memory.Options{Base: base, CheckNamespaces: true, GracefulPods: true})
	differential.Run(t, plain, fork, differential.Options{Seed: 15, Sequences: 40})
}

// An eviction reads pods and budgets; budgets that are not known may refuse.
func TestForkEvict(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: ns, name: p, labels: {a: b}}\nspec: {nodeName: node-1, containers: [{name: c, image: i}]}\nstatus: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}\n"
	const budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: ns, name: b}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}\nstatus: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1}\n"
	for _, tc := range []struct {
		name   string
		base   []string
		absent string
		want   func(error) bool
	}{
		{"free", []string{pod}, "", func(err error) bool { return err == nil }},
		{"a budget", []string{pod, budget}, "", apierrors.IsTooManyRequests},
		{"a budget among others", []string{pod, budget}, "PodDisruptionBudget", apierrors.IsTooManyRequests},
		{"budgets that are not known", []string{pod}, "PodDisruptionBudget", func(err error) bool { return errors.Is(err, clusterapi.ErrNotCollected) }},
		{"a pod that is not known", nil, "Pod", func(err error) bool { return errors.Is(err, clusterapi.ErrNotCollected) }},
		{"no pod", nil, "", apierrors.IsNotFound},
	} {
		base := &origin{Reader: baseCluster(t, tc.base...), fail: notWhole(tc.absent)}
		c := memory.New(memory.Options{Base: base})
		checktest.ErrorBy(t, tc.want, c.Evict(t.Context(), clusterapi.Key("ns", "p"), clusterapi.EvictOptions{}))
	}
}
