package clusterapi

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Definitions knows what the cluster accepts as the status of custom resources, whose
// definitions differ from release to release. It reads a CustomResourceDefinition when
// it first needs it, and again after [Definitions.Forget] and when the server refuses
// what fits it. The zero value is ready to use; it is safe for concurrent use, and not
// to be copied.
type Definitions struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*definedStatus
}

// definedStatus is what a definition says of a status.
type definedStatus struct {
	uid, version string            // of the definition that it is from
	schema       *apiserver.Schema // nil: the definition cannot be read, or says nothing
	stale        bool
}

// Forget makes d read definitions again when it next needs them.
func (d *Definitions) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.kinds {
		k.stale = true
	}
}

// FitStatus cuts the status of a typed object, to which o points, to what the cluster
// accepts: without fields that the definition of its kind lacks, and without values that
// it refuses. A list loses the elements that do not fit, and texts for people are cut. If
// the definition cannot be read, *o stays as it is, and known is false. What *o leads to
// is not changed. The error is one of converting *o.
func (d *Definitions) FitStatus(ctx context.Context, r Reader, o any) (known bool, err error) {
	u, err := ToUnstructured(o)
	if err != nil {
		return false, err
	}
	if !d.fit(ctx, r, u) {
		return false, nil
	}
	fitting := reflect.New(reflect.TypeOf(o).Elem())
	if err := objects.Convert(u, fitting.Interface()); err != nil {
		return false, err
	}
	reflect.ValueOf(o).Elem().Set(fitting.Elem())
	return true, nil
}

// fit cuts the status of an object and reports whether its definition is known. It
// replaces u.Object, and does not change what that holds.
func (d *Definitions) fit(ctx context.Context, r Reader, u *unstructured.Unstructured) bool {
	s := d.read(ctx, r, u.GroupVersionKind())
	if s == nil {
		return false
	}
	if status, ok := u.Object["status"]; ok {
		u.Object = maps.Clone(u.Object)
		u.Object["status"], _ = s.Fit(status)
	}
	return true
}

// read returns the schema of the status of a kind, nil if it is not known.
func (d *Definitions) read(ctx context.Context, r Reader, gvk schema.GroupVersionKind) *apiserver.Schema {
	d.mu.Lock()
	k := d.kinds[gvk]
	if k != nil && !k.stale {
		defer d.mu.Unlock()
		return k.schema
	}
	d.mu.Unlock()
	next, err := readDefinition(ctx, r, gvk, k)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil { // it may be there the next time
		if k == nil {
			return nil
		}
		return k.schema
	}
	if d.kinds == nil {
		d.kinds = make(map[schema.GroupVersionKind]*definedStatus)
	}
	d.kinds[gvk] = next
	return next.schema
}

// changed reads the definition of a kind again, and reports whether it has changed.
func (d *Definitions) changed(ctx context.Context, r Reader, gvk schema.GroupVersionKind) bool {
	d.mu.Lock()
	before := d.kinds[gvk]
	if before != nil {
		before.stale = true
	}
	d.mu.Unlock()
	d.read(ctx, r, gvk)
	d.mu.Lock()
	defer d.mu.Unlock()
	after := d.kinds[gvk]
	if after == nil || before == nil {
		return after != nil && after.schema != nil
	}
	return before.uid != after.uid || before.version != after.version
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// readDefinition reads what the definition of a kind says now. before is what it was
// known to say; nil: nothing. What is not there, and what may not be read, is not an error.
func readDefinition(ctx context.Context, r Reader, gvk schema.GroupVersionKind, before *definedStatus) (*definedStatus, error) {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	o, err := GetShared(ctx, r, definitionKind, Key("", plural.GroupResource().String()))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err), errors.Is(err, ErrNotCollected):
		return &definedStatus{}, nil
	case err != nil:
		return nil, err
	}
	if before != nil && before.uid == string(o.UID()) && before.version == o.ResourceVersion() {
		return &definedStatus{uid: before.uid, version: before.version, schema: before.schema}, nil
	}
	k := &definedStatus{uid: string(o.UID()), version: o.ResourceVersion()}
	if tree := statusSchema(o.Unstructured(), gvk); tree != nil {
		k.schema, _ = apiserver.Compile(tree) // one that cannot be read says nothing
	}
	return k, nil
}

// statusSchema returns the part about the status of a definition's schema, nil if it
// has none.
func statusSchema(definition *unstructured.Unstructured, gvk schema.GroupVersionKind) map[string]any {
	if apiserver.Kind(definition.Object) != gvk.GroupKind() {
		return nil
	}
	properties, _ := apiserver.Of(definition.Object, gvk.Version)["properties"].(map[string]any)
	status, _ := properties["status"].(map[string]any)
	return status
}
