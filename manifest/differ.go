package manifest

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// differ puts what it finds of two payloads into a diff.
type differ struct {
	a, b         *side
	schemas      map[schema.GroupVersionKind]map[string]any
	descriptions bool
	hider        fieldchange.Hider
}

// compare takes up an object that both payloads apply.
func (c *differ) compare(d *PayloadDiff, old, new *Manifest) {
	from, to := diffObject(old), diffObject(new)
	moved := from.Level != to.Level || from.Component != to.Component || to.Level == "" && from.File != to.File
	if moved {
		d.Moved = append(d.Moved, MovedObject{From: from, To: to})
	}
	changed := to
	changed.Old = old
	if !bytes.Equal(old.Raw, new.Raw) {
		changed.Fields, changed.Schemas = c.fields(old, new)
	}
	switch {
	case len(changed.Fields) > 0 || len(changed.Schemas) > 0:
		d.Changed = append(d.Changed, changed)
	case !moved:
		d.Unchanged++
	}
}

// added takes up a manifest that the new payload applies beyond the old one's.
func (c *differ) added(d *PayloadDiff, m *Manifest) {
	o := diffObject(m)
	reasons, was := c.a.excluded[o.Identity]
	switch {
	case len(c.a.applied[o.Identity]) > 0:
		o.Duplicate = true
	case was:
		o.Reasons = reasons
		d.Included = append(d.Included, o)
		return
	}
	d.Added = append(d.Added, o)
}

// removed takes up a manifest that the old payload applies beyond the new one's.
func (c *differ) removed(d *PayloadDiff, m *Manifest) {
	o := diffObject(m)
	reasons, is := c.b.excluded[o.Identity]
	switch {
	case len(c.b.applied[o.Identity]) > 0:
		o.Fate = fateDuplicate
	case c.b.deleted[o.Identity]:
		o.Fate = fateDeleted
	case is:
		o.Reasons = reasons
		d.Excluded = append(d.Excluded, o)
		return
	default:
		o.Fate = fateOrphaned
	}
	d.Removed = append(d.Removed, o)
}

// fields compares two manifests of an object.
func (c *differ) fields(old, new *Manifest) ([]clusterapi.FieldChange, []fieldchange.SchemaChange) {
	gk := new.GVK().GroupKind()
	if gk == crdKind {
		return c.hider.Definitions(old.Object(), new.Object(), c.descriptions)
	}
	var definition map[string]any
	if _, known := objects.TypeOf(new.GVK()); !known {
		definition = c.schemas[new.GVK()]
	}
	return c.hider.Shown(gk, clusterapi.Compare(old.Object(), new.Object(), definition)), nil
}

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// schemasOf are the schemas of the payloads' custom resources whose types are not
// known otherwise, from the first payload that has them.
func schemasOf(sides ...*side) map[schema.GroupVersionKind]map[string]any {
	groups := make(map[string]bool)
	for _, s := range sides {
		for id, manifests := range s.applied {
			if _, known := objects.TypeOf(manifests[0].GVK()); !known {
				groups[id.Group] = true
			}
		}
	}
	out := make(map[schema.GroupVersionKind]map[string]any)
	for _, s := range sides {
		for _, id := range s.order {
			// The name of a definition consists of the names of its resource and
			// its group.
			_, group, _ := strings.Cut(id.Name, ".")
			if (schema.GroupKind{Group: id.Group, Kind: id.Kind}) != crdKind || !groups[group] {
				continue
			}
			for _, m := range s.applied[id] {
				gk := apiserver.Kind(m.Object().Object)
				for _, v := range apiserver.Versions(m.Object().Object) {
					name, _ := v["name"].(string)
					tree, _, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema")
					if t, ok := tree.(map[string]any); ok && out[gk.WithVersion(name)] == nil {
						out[gk.WithVersion(name)] = t
					}
				}
			}
		}
	}
	return out
}
