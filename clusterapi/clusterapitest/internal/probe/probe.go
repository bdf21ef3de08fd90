// Package probe calls backends that may be wrong. It is what Conformance and
// Differential share.
package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// The kinds that both make for themselves.
var (
	Namespaces  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	Definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// OtherUID is one that no object has.
const OtherUID types.UID = "00000000-aaaa-bbbb-cccc-000000000000"

// Patience is how long to wait for what a server does on its own, and for a
// watch to tell what it must.
const Patience = time.Minute

// Call is a call of one verb, by name.
type Call struct {
	Verb   string
	Kind   schema.GroupVersionKind
	Key    types.NamespacedName
	Object *unstructured.Unstructured // of Create, Apply, Update and UpdateStatus
	// Manager is the probes' field manager.
	Manager string
	List    clusterapi.ListOptions
	// The rest is for Delete and Evict.
	UID             types.UID
	ResourceVersion string
	Propagation     metav1.DeletionPropagation
	Grace           *int64
}

// Of is a call on an object.
func Of(verb string, u *unstructured.Unstructured) Call {
	return Call{Verb: verb, Kind: u.GroupVersionKind(), Key: clusterapi.KeyOf(u), Object: u, List: clusterapi.ListOptions{Namespace: u.GetNamespace()}}
}

// By is a call on an object by a field manager.
func By(manager, verb string, u *unstructured.Unstructured) Call {
	c := Of(verb, u)
	c.Manager = manager
	return c
}

// Do makes the call. The object is what the verb returns; of List, the items
// are below "items".
func (c Call) Do(ctx context.Context, api clusterapi.ClusterAPI) (*unstructured.Unstructured, error) {
	switch c.Verb {
	case "Get":
		return api.Get(ctx, c.Kind, c.Key)
	case "List":
		l, err := api.List(ctx, c.Kind, c.List)
		if l == nil {
			return nil, err
		}
		items := make([]any, len(l.Items))
		for i := range l.Items {
			items[i] = l.Items[i].Object
		}
		return &unstructured.Unstructured{Object: map[string]any{"items": items}}, err
	case "Create":
		return api.Create(ctx, c.Object, clusterapi.CreateOptions{FieldManager: c.Manager})
	case "Apply":
		return api.Apply(ctx, c.Object, clusterapi.ApplyOptions{FieldManager: c.Manager})
	case "Update":
		return api.Update(ctx, c.Object, clusterapi.UpdateOptions{FieldManager: c.Manager})
	case "UpdateStatus":
		return api.UpdateStatus(ctx, c.Object, clusterapi.UpdateOptions{FieldManager: c.Manager})
	case "Delete":
		return nil, api.Delete(ctx, c.Kind, c.Key, clusterapi.DeleteOptions{
			UID: c.UID, ResourceVersion: c.ResourceVersion, Propagation: c.Propagation, GracePeriodSeconds: c.Grace,
		})
	case "Evict":
		return nil, api.Evict(ctx, c.Key, clusterapi.EvictOptions{UID: c.UID, GracePeriodSeconds: c.Grace})
	}
	panic("no verb " + c.Verb)
}

// Get reads an object. Neither an object nor an error is an error.
func Get(ctx context.Context, api clusterapi.Reader, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := api.Get(ctx, kind, key)
	if err == nil && (u == nil || u.Object == nil) {
		return nil, errors.New("neither an object nor an error")
	}
	return u, err
}

// Class names the class of an error: "none", "Canceled", "DeadlineExceeded",
// "Limit", "NotCollected", "NoMatch", a reason of apierrors, or "other".
func Class(err error) string {
	var limit *clusterapi.LimitError
	switch reason := apierrors.ReasonForError(err); {
	case err == nil:
		return "none"
	case errors.Is(err, context.Canceled):
		return "Canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "DeadlineExceeded"
	case errors.As(err, &limit):
		return "Limit"
	case errors.Is(err, clusterapi.ErrNotCollected):
		return "NotCollected"
	case meta.IsNoMatchError(err):
		return "NoMatch"
	case apierrors.IsNotFound(err): // some have a code and no reason
		return "NotFound"
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	}
	return "other"
}

// Await polls until done says so; its error is the last one of done.
func Await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s (last error: %w)", what, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Define creates a CustomResourceDefinition and waits until it is established
// and serves its first version.
func Define(ctx context.Context, api clusterapi.ClusterAPI, definition *unstructured.Unstructured) error {
	if _, err := api.Create(ctx, definition, clusterapi.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s: %w", definition.GetName(), err)
	}
	if err := Established(ctx, api, definition.GetName()); err != nil {
		return err
	}
	versions, _ := At(definition, "spec", "versions").([]any)
	first, _ := versions[0].(map[string]any)
	kind := schema.GroupVersionKind{
		Group: fmt.Sprint(At(definition, "spec", "group")), Version: fmt.Sprint(first["name"]), Kind: fmt.Sprint(At(definition, "spec", "names", "kind")),
	}
	return Await(ctx, "the kind "+kind.Kind+" to be served", func(ctx context.Context) (bool, error) {
		_, err := api.List(ctx, kind, clusterapi.ListOptions{})
		return err == nil, err
	})
}

// Established waits for a definition that is there and not being deleted.
func Established(ctx context.Context, api clusterapi.Reader, name string) error {
	return Await(ctx, name+" to be Established", func(ctx context.Context) (bool, error) {
		crd, err := Get(ctx, api, Definitions, clusterapi.Key("", name))
		if err != nil {
			return apierrors.IsNotFound(err), err
		}
		return IsTrue(crd, "Established") && IsTrue(crd, "NamesAccepted") || crd.GetDeletionTimestamp() != nil, nil
	})
}

// Release takes the finalizers from an object for which drop returns true, if
// it is there.
func Release(ctx context.Context, api clusterapi.ClusterAPI, kind schema.GroupVersionKind, key types.NamespacedName, drop func(finalizer string) bool) error {
	for range 5 { // a garbage collector may write at the same time
		u, err := Get(ctx, api, kind, key)
		if clusterapi.IsMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		before := u.GetFinalizers()
		rest := slices.DeleteFunc(slices.Clone(before), drop)
		if len(rest) == len(before) {
			return nil
		}
		u.SetFinalizers(rest)
		_, err = api.Update(ctx, u, clusterapi.UpdateOptions{FieldManager: "first"})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("finalizers of %s cannot be removed", key.Name)
}

// IsTrue reports whether a condition of an object is True.
func IsTrue(u *unstructured.Unstructured, condition string) bool {
	list, _ := At(u, "status", "conditions").([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == condition {
			return m["status"] == "True"
		}
	}
	return false
}

// At returns a copy of the value at a path of fields, nil for nothing.
func At(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldCopy(u.Object, path...)
	return v
}

// Parse reads YAML into a value as JSON does, its integers into int64.
func Parse(text string, into any) error {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(data, into)
}
