package memory

import (
	"bytes"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// ownedFields is what a FieldsV1 says, in the forms that writes need. FieldsV1
// are never changed, so entries share them and this.
type ownedFields struct {
	tree map[string]any // as in an object
	set  atomic.Pointer[fieldpath.Set]
}

// ownership says of each FieldsV1 of an entry what it says.
type ownership []owning

type owning struct {
	encoded *metav1.FieldsV1
	fields  *ownedFields
}

// of returns what a FieldsV1 says, nil if that is not known.
func (o ownership) of(f *metav1.FieldsV1) *ownedFields {
	for _, w := range o {
		if w.encoded == f {
			return w.fields
		}
	}
	return nil
}

// setOf decodes a FieldsV1, once; nil if that fails.
func (o ownership) setOf(f *metav1.FieldsV1) *fieldpath.Set {
	known := o.of(f)
	if known == nil {
		return nil
	}
	if s := known.set.Load(); s != nil {
		return s
	}
	s := &fieldpath.Set{}
	if err := s.FromJSON(bytes.NewReader(f.GetRawBytes())); err != nil {
		return nil
	}
	known.set.Store(s)
	return s
}

// notOwned is what nobody owns.
var notOwned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// maxManagers is how many entries may be there before the field manager has to
// merge the oldest.
const maxManagers = 10

// owners finds out who owns what after an object was replaced, as
// managedfields.FieldManager.Update does, but looks at no more than what differs
// and decodes nothing twice. It returns false for what only the field manager
// can tell: objects that were stored under another schema, managers of other
// versions, and errors.
func (k *kind) owners(live *entry, from, next map[string]any, who actor) ([]metav1.ManagedFieldsEntry, ownership, bool) {
	return k.ownersAfter(live, from, next, who, nil)
}

// ownersAfter is owners; applied is what a manager owns after an Apply, nil if the
// write is not one.
func (k *kind) ownersAfter(live *entry, from, next map[string]any, who actor, applied *fieldpath.Set) ([]metav1.ManagedFieldsEntry, ownership, bool) {
	var managed []metav1.ManagedFieldsEntry
	var known ownership
	if live != nil {
		if !live.isOf(k) || len(live.managed) == 0 || len(live.managed) >= maxManagers {
			return nil, nil, false
		}
		managed, known = live.managed, live.owned
	}
	before, after := differing(from, next)
	a, err := k.typedValue(before)
	if err != nil {
		return nil, nil, false
	}
	b, err := k.typedValue(after)
	if err != nil {
		return nil, nil, false
	}
	compared, err := a.Compare(b)
	if err != nil {
		return nil, nil, false
	}
	taken := compared.Modified.Union(compared.Added)
	own := taken
	if applied != nil {
		own = applied
	}
	own = own.Difference(notOwned)

	version := k.gvk.GroupVersion().String()
	out := make([]metav1.ManagedFieldsEntry, 0, len(managed)+1)
	var fresh ownership
	add := func(e metav1.ManagedFieldsEntry, old, set *fieldpath.Set) bool {
		switch {
		case set.Empty():
			return true
		case old == nil || old != set && !old.Equals(set):
			text, err := set.ToJSON()
			if err != nil {
				return false
			}
			e.FieldsType, e.FieldsV1 = "FieldsV1", metav1.NewFieldsV1(string(text))
			f := &ownedFields{tree: fieldsTree(set)}
			f.set.Store(set)
			fresh = append(fresh, owning{e.FieldsV1, f})
		}
		out = append(out, e)
		return true
	}
	found := false
	for _, e := range managed {
		old := known.setOf(e.FieldsV1)
		if old == nil || e.APIVersion != version {
			return nil, nil, false
		}
		set := old
		if !set.Intersection(taken).Empty() {
			set = set.Difference(taken)
		}
		if !compared.Removed.Empty() {
			set = set.Difference(compared.Removed)
		}
		if (actor{e.Manager, e.Operation, e.Subresource}) == who && !found && !own.Empty() {
			found = true
			set = set.Union(own)
			if applied != nil {
				set = own
			}
		}
		if !add(e, old, set) {
			return nil, nil, false
		}
	}
	if !found && !own.Empty() {
		e := metav1.ManagedFieldsEntry{Manager: who.manager, Operation: who.operation, APIVersion: version, Subresource: who.subresource}
		if !add(e, nil, own) {
			return nil, nil, false
		}
	}
	return out, fresh, true
}

// merge does what managedfields.FieldManager.Apply does with force, if nothing that
// the manager applied before is left out now, so that no field goes. It returns
// false for all else, and for errors.
func (k *kind) merge(live *entry, from *record, given map[string]any, manager string) (*record, bool) {
	if live != nil && !live.isOf(k) || manager == "kubectl" { // which has its own annotation
		return nil, false
	}
	var managed []metav1.ManagedFieldsEntry
	var known ownership
	if live != nil {
		managed, known = live.managed, live.owned
	}
	who := actor{manager, metav1.ManagedFieldsOperationApply, ""}
	patch, err := k.parseable().FromUnstructured(given)
	if err != nil {
		return nil, false
	}
	applied, err := patch.ToFieldSet()
	if err != nil {
		return nil, false
	}
	for _, e := range managed {
		if (actor{e.Manager, e.Operation, e.Subresource}) == who {
			if before := known.setOf(e.FieldsV1); before == nil || !before.Difference(applied).Empty() {
				return nil, false
			}
		}
	}
	stored, err := k.parseable().FromUnstructured(from.Object, typed.AllowDuplicates)
	if err != nil {
		return nil, false
	}
	merged, err := stored.Merge(patch)
	if err != nil {
		return nil, false
	}
	content, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, false
	}
	managed, owned, ok := k.ownersAfter(live, from.Object, content, who, applied)
	return &record{Unstructured: &unstructured.Unstructured{Object: content}, managed: managed, owned: owned}, ok
}

// parseable is the type of the kind; without a schema one is deduced.
func (k *kind) parseable() typed.ParseableType {
	if k.types == nil {
		return typed.DeducedParseableType
	}
	return *k.types
}

// typedValue presents a tree to the comparison.
func (k *kind) typedValue(v map[string]any) (*typed.TypedValue, error) {
	return k.parseable().FromUnstructured(v, typed.AllowDuplicates)
}

// differing returns two objects without the fields that are the same in both,
// and without managedFields. What is left differs as the objects do.
func differing(a, b map[string]any) (map[string]any, map[string]any) {
	before, after := differingFields(a, b)
	bm, bok := before["metadata"].(map[string]any)
	am, aok := after["metadata"].(map[string]any)
	if aok && bok {
		delete(bm, "managedFields")
		delete(am, "managedFields")
	}
	return before, after
}

// differingFields returns new maps, also for those below.
func differingFields(a, b map[string]any) (map[string]any, map[string]any) {
	before, after := make(map[string]any), make(map[string]any)
	for name, bv := range b {
		av, both := a[name]
		if !both {
			after[name] = bv
			continue
		}
		am, aok := av.(map[string]any)
		bm, bok := bv.(map[string]any)
		switch {
		case aok && bok && objects.SameMap(am, bm):
		case aok && bok && len(am) > 0 && len(bm) > 0:
			if av, bv := differingFields(am, bm); len(av) > 0 || len(bv) > 0 {
				before[name], after[name] = av, bv
			}
		case !objects.Equal(av, bv):
			before[name], after[name] = av, bv
		}
	}
	for name, av := range a {
		if _, both := b[name]; !both {
			before[name] = av
		}
	}
	return before, after
}

// fieldsTree is the form that a set of fields has in an object.
func fieldsTree(s *fieldpath.Set) map[string]any {
	out := make(map[string]any)
	s.Children.Iterate(func(pe fieldpath.PathElement) {
		if child, ok := s.Children.Get(pe); ok {
			if name, err := fieldpath.SerializePathElement(pe); err == nil {
				out[name] = fieldsTree(child)
			}
		}
	})
	s.Members.Iterate(func(pe fieldpath.PathElement) {
		name, err := fieldpath.SerializePathElement(pe)
		if err != nil {
			return
		}
		if child, ok := out[name].(map[string]any); ok {
			child["."] = map[string]any{}
		} else {
			out[name] = map[string]any{}
		}
	})
	return out
}
