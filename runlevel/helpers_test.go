package runlevel

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// object decodes YAML and gives it annotations, without which every manifest
// is skipped.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw := checktest.Get(yaml.YAMLToJSON([]byte(text)))(t)
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return u
}

func newManifest(t testing.TB, file, text string) *manifest.Manifest {
	t.Helper()
	obj := object(t, text)
	if obj.GetAnnotations() == nil {
		obj.SetAnnotations(map[string]string{})
	}
	m := checktest.Get(manifest.New(file, obj))(t)
	return m
}

// tasksOf makes the tasks of YAML texts, all in one component.
func tasksOf(t testing.TB, texts ...string) []*manifest.Task {
	t.Helper()
	var ms []*manifest.Manifest
	for _, text := range texts {
		ms = append(ms, newManifest(t, "0000_10_a_x.yaml", text))
	}
	return manifest.NewTasks(ms)
}

// configMaps makes one ConfigMap task per file name, named like the file.
func configMaps(t testing.TB, files ...string) []*manifest.Task {
	t.Helper()
	var ms []*manifest.Manifest
	for _, f := range files {
		ms = append(ms, newManifest(t, f, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %q, namespace: ns, annotations: {}}}", f)))
	}
	return manifest.NewTasks(ms)
}

// fakeAPI is a cluster that takes objects which are not valid, and keeps those that are
// deleted, as finalizers do.
type fakeAPI struct {
	*memory.Cluster
	mu    sync.Mutex
	kinds map[string]schema.GroupVersionKind // by kind
	calls []string                           // "Verb Kind ns/name", without Get
	reads []string
	// before is asked before each verb; an error fails it.
	before func(ctx context.Context, verb, kind, name string) error
	// after may change what a write has stored.
	after func(verb string, stored *unstructured.Unstructured)
}

func newFake(objs ...*unstructured.Unstructured) *fakeAPI {
	f := &fakeAPI{kinds: make(map[string]schema.GroupVersionKind)}
	f.Cluster = memory.NewOpenShift(memory.Options{Lenient: true, Intercept: f.call})
	for _, o := range objs {
		f.kinds[o.GetKind()] = o.GroupVersionKind()
		f.load(o)
	}
	return f
}

// load stores an object, whole, in the place of the one that is there.
func (f *fakeAPI) load(o *unstructured.Unstructured) {
	_ = f.Remove(o.GroupVersionKind(), clusterapi.KeyOf(o)) // it may not be there
	if err := f.Load(o); err != nil {
		panic(err)
	}
}

func notFound(gvk schema.GroupVersionKind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
}

func shortName(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func (f *fakeAPI) call(ctx context.Context, c memory.Call, do func(context.Context) error) error {
	if c.Verb == "List" { // of get
		return do(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	f.kinds[c.GVK.Kind] = c.GVK
	text := c.Verb + " " + c.GVK.Kind + " " + shortName(c.Key)
	if c.Verb == "Get" {
		f.reads = append(f.reads, text)
	} else {
		f.calls = append(f.calls, text)
	}
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, c.Verb, c.GVK.Kind, shortName(c.Key)); err != nil {
			return err
		}
	}
	if c.Verb == "Delete" {
		return nil
	}
	return do(ctx)
}

func (f *fakeAPI) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// get returns an object without a call, nil if absent.
func (f *fakeAPI) get(kind, name string) *unstructured.Unstructured {
	f.mu.Lock()
	gvk := f.kinds[kind]
	f.mu.Unlock()
	list, err := f.List(context.Background(), gvk, clusterapi.ListOptions{})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		if shortName(clusterapi.KeyOf(&list.Items[i])) == name {
			return &list.Items[i]
		}
	}
	return nil
}

// changed lets after change what was stored.
func (f *fakeAPI) changed(
	verb string, stored *unstructured.Unstructured, err error,
) (*unstructured.Unstructured, error) {
	if err == nil && f.after != nil {
		f.after(verb, stored)
		f.load(stored)
	}
	return stored, err
}

func (f *fakeAPI) Create(
	ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions,
) (*unstructured.Unstructured, error) {
	stored, err := f.Cluster.Create(ctx, obj, o)
	return f.changed("Create", stored, err)
}

func (f *fakeAPI) Apply(
	ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions,
) (*unstructured.Unstructured, error) {
	stored, err := f.Cluster.Apply(ctx, obj, o)
	return f.changed("Apply", stored, err)
}

// progressOf is the progress of an event.
func progressOf(e clusterapi.Event) *Progress { return e.Data.(*Progress) }
