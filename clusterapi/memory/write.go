package memory

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Create implements [clusterapi.Writer]. A kind with a status subresource is
// stored without status, as on an API server; of the built-in kinds nodes keep
// theirs. metadata.generateName is honoured.
func (c *Cluster) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.verb(ctx, "Create", obj, nil, func(k *kind, in *unstructured.Unstructured) (*entry, error) {
		if in.GetResourceVersion() != "" {
			return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
		}
		if in.GetName() == "" && in.GetGenerateName() != "" {
			in.SetName(in.GetGenerateName() + c.suffix())
		}
		if in.GetName() == "" {
			return nil, invalid(k, "", field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
		}
		return c.write(k, in, func(live *entry) (*record, error) {
			if live != nil {
				return nil, apierrors.NewAlreadyExists(k.resource(), in.GetName())
			}
			next, err := c.decode(k, in, nil)
			if err != nil {
				return nil, err
			}
			initialStatus(k, next)
			return c.replace(k, "", nil, next, opts.FieldManager)
		})
	})
}

// initialStatus leaves of a new object's status what an API server leaves.
func initialStatus(k *kind, obj *unstructured.Unstructured) {
	if !k.status {
		return
	}
	if k.gvk.Group == "" {
		switch k.gvk.Kind {
		case "Node":
			return
		case "Pod":
			obj.Object["status"] = map[string]any{"phase": "Pending"}
			return
		case "Namespace":
			obj.Object["status"] = map[string]any{"phase": "Active"}
			return
		}
	}
	delete(obj.Object, "status")
}

// Update implements [clusterapi.Writer].
func (c *Cluster) Update(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.verb(ctx, "Update", obj, nil, func(k *kind, in *unstructured.Unstructured) (*entry, error) {
		return c.write(k, in, func(live *entry) (*record, error) {
			if err := replaceable(k, live, in); err != nil {
				return nil, err
			}
			next, err := c.decode(k, in, live)
			if err != nil {
				return nil, err
			}
			if k.status {
				setOrDelete(next.Object, "status", k.record(live).Object)
			}
			return c.replace(k, "", live, next, opts.FieldManager)
		})
	})
}

// UpdateStatus implements [clusterapi.Writer]. A kind without that subresource
// is a NotFound error, as on an API server.
func (c *Cluster) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.verb(ctx, "UpdateStatus", obj, nil, func(k *kind, in *unstructured.Unstructured) (*entry, error) {
		if !k.status {
			return nil, apierrors.NewGenericServerResponse(404, "update", k.resource(), in.GetName(), "the kind has no status subresource", 0, true)
		}
		return c.write(k, in, func(live *entry) (*record, error) {
			if err := replaceable(k, live, in); err != nil {
				return nil, err
			}
			next := withMetadata(k.record(live).Unstructured, func(map[string]any) {})
			given, err := c.decode(k, in, live)
			if err != nil {
				return nil, err
			}
			setOrDelete(next.Object, "status", given.Object)
			return c.replace(k, "status", live, next, opts.FieldManager)
		})
	})
}

func setOrDelete(to map[string]any, name string, from map[string]any) {
	if v, ok := from[name]; ok {
		to[name] = v
	} else {
		delete(to, name)
	}
}

// replaceable explains why obj may not replace the stored object.
func replaceable(k *kind, live *entry, obj *unstructured.Unstructured) error {
	if obj.GetName() == "" {
		return invalid(k, "", field.Required(field.NewPath("metadata", "name"), "name is required"))
	}
	if obj.GetResourceVersion() == "" {
		return invalid(k, obj.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"))
	}
	if live == nil {
		return apierrors.NewNotFound(k.resource(), obj.GetName())
	}
	return preconditions(k, live, obj.GetUID(), obj.GetResourceVersion())
}

// Apply implements [clusterapi.Writer]: a server-side apply with force. A
// status in obj is left out where the kind has that subresource.
func (c *Cluster) Apply(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	again := func(k *kind, live *entry) bool {
		return live.isOf(k) && opts.FieldManager != "" && obj.GetUID() == "" && obj.GetResourceVersion() == "" &&
			live.isResultOf(application{opts.FieldManager, obj.Object})
	}
	return c.verb(ctx, "Apply", obj, again, func(k *kind, in *unstructured.Unstructured) (*entry, error) {
		if opts.FieldManager == "" {
			return nil, apierrors.NewBadRequest("a field manager is required to apply")
		}
		if in.GetName() == "" {
			return nil, invalid(k, "", field.Required(field.NewPath("metadata", "name"), "name is required"))
		}
		if m := metadata(in); m["managedFields"] != nil {
			return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
		}
		if k.status {
			delete(in.Object, "status")
		}
		this := application{opts.FieldManager, in.Object}
		e, err := c.write(k, in, func(live *entry) (*record, error) {
			from := newRecord(k.gvk)
			if live != nil {
				if err := preconditions(k, live, in.GetUID(), in.GetResourceVersion()); err != nil {
					return nil, err
				}
				if live.isOf(k) && live.isResultOf(this) {
					return nil, nil
				}
				from = k.record(live)
			} else if in.GetUID() != "" {
				return nil, conflict(k, in.GetName(), errNoSuchUID)
			}
			given, err := c.typed(k, in.Object, live, false)
			if err != nil {
				return nil, err
			}
			r, ok := k.merge(live, from, given, opts.FieldManager)
			if !ok {
				r, err = k.applyTo(from, given, opts.FieldManager)
				if err != nil {
					return nil, err
				}
			}
			r.Object, err = c.typed(k, k.withoutNulls(r.Object), live, true)
			if err != nil {
				return nil, err
			}
			r.Object = k.complete(r.Object)
			if live == nil {
				r.Unstructured = withMetadata(r.Unstructured, func(map[string]any) {})
				initialStatus(k, r.Unstructured)
			}
			stamp(r, live, c.clock.Now(), actor{opts.FieldManager, metav1.ManagedFieldsOperationApply, ""})
			return r, nil
		})
		if err == nil && e.isOf(k) {
			e.remember(this)
		}
		return e, err
	})
}

// applyTo has the field manager apply.
func (k *kind) applyTo(from *record, given map[string]any, manager string) (*record, error) {
	merged, err := k.main.Apply(from, &record{Unstructured: &unstructured.Unstructured{Object: given}}, manager, true)
	if err != nil {
		return nil, badRequest(err)
	}
	r, ok := merged.(*record)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", merged)
	}
	// If nothing changes, the field manager returns the stored object itself, which
	// watchers may be reading.
	return &record{Unstructured: &unstructured.Unstructured{Object: r.Object}, managed: slices.Clone(r.managed)}, nil
}

// badRequest gives errors of the field managers a type, where they have none:
// they are about objects that do not fit their schema.
func badRequest(err error) error {
	if apierrors.ReasonForError(err) != "" {
		return err
	}
	return apierrors.NewBadRequest(err.Error())
}

// decode leaves out what a typed decoder, or the pruning of custom resources,
// would not take, and adds defaults. The object is the cluster's own copy.
func (c *Cluster) decode(k *kind, in *unstructured.Unstructured, live *entry) (*unstructured.Unstructured, error) {
	rest, stored, managed := k.apart(in, live)
	content, err := c.typed(k, k.withoutNulls(k.prune(rest)), live, true)
	if err != nil {
		return nil, err
	}
	out := withMetadata(&unstructured.Unstructured{Object: k.complete(content)}, func(m map[string]any) {
		if managed != nil {
			m["managedFields"] = managed
		}
	})
	maps.Copy(out.Object, stored)
	return out, nil
}

// apart divides an object into what a writer may have changed, and fields and
// managedFields that are those of the stored object: they have been decoded
// when they were stored.
func (k *kind) apart(in *unstructured.Unstructured, live *entry) (rest, stored map[string]any, managed any) {
	rest = in.Object
	if live == nil || !live.isOf(k) || k.gvk.Kind == "Secret" { // whose fields depend on each other
		return rest, nil, nil
	}
	for name, v := range in.Object {
		switch v.(type) {
		case map[string]any, []any:
			if name != "metadata" && objects.Same(v, live.obj.Object[name]) {
				if stored == nil {
					rest, stored = maps.Clone(rest), make(map[string]any)
				}
				stored[name] = v
				delete(rest, name)
			}
		}
	}
	m, old := metadata(in), metadata(live.obj)
	if given, ok := m["managedFields"].([]any); ok && len(given) > 0 && objects.Same(given, old["managedFields"]) {
		managed = given
		rest = withMetadata(&unstructured.Unstructured{Object: rest}, func(m map[string]any) { delete(m, "managedFields") }).Object
	}
	return rest, stored, managed
}

// typed passes an object through the Go type of its kind.
func (c *Cluster) typed(k *kind, content map[string]any, live *entry, clean bool) (map[string]any, error) {
	if c.o.Lenient {
		return content, nil
	}
	var old map[string]any
	if live != nil {
		old = live.obj.Object
	}
	return k.typedForm(content, old, clean)
}

// complete adds what an API server adds to what it is given: the defaults of a
// definition, and the text that a Secret is given in plain.
func (k *kind) complete(content map[string]any) map[string]any {
	if k.builtin && k.gvk.Kind == "Secret" && k.gvk.Group == "" {
		return encodeSecret(content)
	}
	if k.gvk.Group == "security.openshift.io" && k.gvk.Kind == "SecurityContextConstraints" {
		return completeConstraints(content)
	}
	return k.defaulted(content)
}

// completeConstraints adds the fields that the definition of
// SecurityContextConstraints requires: an admission plugin of OpenShift's API
// server does so.
func completeConstraints(content map[string]any) map[string]any {
	content = maps.Clone(content)
	for _, name := range []string{"allowedCapabilities", "defaultAddCapabilities", "priority", "requiredDropCapabilities", "volumes"} {
		if !has(content, name) {
			content[name] = nil
		}
	}
	for _, name := range []string{"allowHostDirVolumePlugin", "allowHostIPC", "allowHostNetwork", "allowHostPID", "allowHostPorts", "allowPrivilegedContainer", "readOnlyRootFilesystem"} {
		if !has(content, name) {
			content[name] = false
		}
	}
	return content
}

// encodeSecret moves stringData to data.
func encodeSecret(content map[string]any) map[string]any {
	given, ok := content["stringData"].(map[string]any)
	if !ok {
		return content
	}
	content = maps.Clone(content)
	delete(content, "stringData")
	data, _ := content["data"].(map[string]any)
	data = maps.Clone(data)
	if data == nil {
		data = make(map[string]any, len(given))
	}
	for key, v := range given {
		if s, ok := v.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	if len(data) > 0 {
		content["data"] = data
	}
	return content
}

// withoutNulls leaves out the nulls that the kind does not store.
func (k *kind) withoutNulls(content map[string]any) map[string]any {
	var kept any = content
	switch {
	case k.builtin:
		kept = dropNulls(content)
	case k.openAPI != nil:
		kept = dropForbiddenNulls(k.openAPI, content)
	}
	out, _ := kept.(map[string]any)
	return out
}

// record presents an entry to the field managers in the version of k, without
// what the schema has lost since it was stored.
func (k *kind) record(e *entry) *record {
	u := inVersion(e.obj, k.gvk.GroupVersion())
	if !e.isOf(k) {
		u = &unstructured.Unstructured{Object: k.prune(u.Object)}
	}
	if k.defaults != nil {
		u = &unstructured.Unstructured{Object: k.defaulted(u.Object)}
	}
	return &record{Unstructured: u, managed: e.managed}
}

// verb runs one writing verb on a copy of the caller's object. done, if it is not
// nil, reports whether the stored object is what the verb would make it.
func (c *Cluster) verb(ctx context.Context, name string, obj *unstructured.Unstructured, done func(*kind, *entry) bool, do func(*kind, *unstructured.Unstructured) (*entry, error)) (*unstructured.Unstructured, error) {
	if obj == nil {
		return nil, apierrors.NewBadRequest("no object")
	}
	gvk := obj.GroupVersionKind()
	var out *unstructured.Unstructured
	call := Call{Verb: name, GVK: gvk, Key: clusterapi.KeyOf(obj), Object: obj}
	err := c.call(ctx, call, func(ctx context.Context) error {
		k, err := c.touch(ctx, gvk)
		if err != nil {
			return err
		}
		c.mu.RLock()
		live := c.find(k.ref(clusterapi.KeyOf(obj)))
		if live == nil && (name == "Update" || name == "UpdateStatus") {
			err = c.unknown(k.ref(clusterapi.KeyOf(obj)))
		}
		c.mu.RUnlock()
		if err != nil {
			return err
		}
		answer := func(e *entry) {
			o := c.shared(k, e)
			out = o.Unstructured()
			if !o.ShareResult(ctx) {
				out = out.DeepCopy()
			}
		}
		if live != nil && done != nil && done(k, live) {
			answer(live)
			return nil
		}
		if err := measure(obj.Object); err != nil && !c.o.Lenient {
			return err
		}
		var stored map[string]any
		if live != nil {
			stored = live.obj.Object
		}
		content, err := copyTree(obj.Object, stored, "")
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		in := &unstructured.Unstructured{}
		in.Object, _ = content.(map[string]any)
		if live != nil && metadata(in) != nil && objects.SameMap(metadata(in), metadata(live.obj)) {
			in = withMetadata(in, func(map[string]any) {}) // which the verbs change
		}
		if err := c.place(k, in); err != nil {
			return err
		}
		if k.scope == scopeNamespaced && in.GetNamespace() == "" && !c.o.Lenient {
			return apierrors.NewBadRequest("an empty namespace may not be set during creation")
		}
		e, err := do(k, in)
		if err != nil {
			return err
		}
		answer(e)
		return nil
	})
	if err == nil && out == nil {
		err = errIntercepted
	}
	return out, err
}
