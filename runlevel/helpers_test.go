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

// fakeAPI is a small cluster: objects by kind and name. Apply replaces what
// the object names at the top and keeps the status.
type fakeAPI struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	calls   []string // "Verb Kind ns/name", without Get
	reads   []string
	// before is asked before each verb; an error fails it.
	before func(ctx context.Context, verb, kind, name string) error
	// after may change what a write stores.
	after func(verb string, stored *unstructured.Unstructured)
}

func newFake(objs ...*unstructured.Unstructured) *fakeAPI {
	f := &fakeAPI{objects: make(map[string]*unstructured.Unstructured)}
	for _, o := range objs {
		f.objects[fakeKey(o.GroupVersionKind(), clusterapi.KeyOf(o))] = o
	}
	return f
}

func fakeKey(gvk schema.GroupVersionKind, key types.NamespacedName) string {
	return gvk.GroupKind().String() + " " + key.String()
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

func (f *fakeAPI) call(ctx context.Context, verb string, gvk schema.GroupVersionKind, key types.NamespacedName) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	text := verb + " " + gvk.Kind + " " + shortName(key)
	if verb == "Get" {
		f.reads = append(f.reads, text)
	} else {
		f.calls = append(f.calls, text)
	}
	f.mu.Unlock()
	if f.before != nil {
		return f.before(ctx, verb, gvk.Kind, shortName(key))
	}
	return nil
}

func (f *fakeAPI) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fakeAPI) get(kind, name string) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		if o.GetKind() == kind && shortName(clusterapi.KeyOf(o)) == name {
			return o
		}
	}
	return nil
}

func (f *fakeAPI) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := f.call(ctx, "Get", gvk, key); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.objects[fakeKey(gvk, key)]; ok {
		return o.DeepCopy(), nil
	}
	return nil, notFound(gvk, key.Name)
}

func (f *fakeAPI) List(context.Context, schema.GroupVersionKind, clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, fmt.Errorf("nothing here lists")
}

func (f *fakeAPI) store(verb string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fakeKey(obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	old, exists := f.objects[key]
	if verb == "Create" && exists {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: obj.GetKind()}, obj.GetName())
	}
	stored := obj.DeepCopy()
	if exists {
		stored = old.DeepCopy()
		for k, v := range obj.DeepCopy().Object {
			stored.Object[k] = v
		}
	} else {
		stored.SetUID(types.UID("uid-" + obj.GetName()))
	}
	stored.SetResourceVersion("1")
	if f.after != nil {
		f.after(verb, stored)
	}
	f.objects[key] = stored
	return stored.DeepCopy(), nil
}

func (f *fakeAPI) Create(ctx context.Context, obj *unstructured.Unstructured, _ clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	if err := f.call(ctx, "Create", obj.GroupVersionKind(), clusterapi.KeyOf(obj)); err != nil {
		return nil, err
	}
	return f.store("Create", obj)
}

func (f *fakeAPI) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	if o.FieldManager != clusterapi.ManagerPayload {
		return nil, fmt.Errorf("applied by %q", o.FieldManager)
	}
	if err := f.call(ctx, "Apply", obj.GroupVersionKind(), clusterapi.KeyOf(obj)); err != nil {
		return nil, err
	}
	return f.store("Apply", obj)
}

func (f *fakeAPI) Update(context.Context, *unstructured.Unstructured, clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("nothing here updates")
}

func (f *fakeAPI) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, _ clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if err := f.call(ctx, "UpdateStatus", obj.GroupVersionKind(), clusterapi.KeyOf(obj)); err != nil {
		return nil, err
	}
	return f.store("UpdateStatus", obj)
}

func (f *fakeAPI) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, _ clusterapi.DeleteOptions) error {
	if err := f.call(ctx, "Delete", gvk, key); err != nil {
		return err
	}
	return nil // finalizers keep it until a test removes it
}

func (f *fakeAPI) remove(gvk schema.GroupVersionKind, key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, fakeKey(gvk, key))
}

// progressOf is the progress of an event.
func progressOf(e clusterapi.Event) *Progress { return e.Data.(*Progress) }
