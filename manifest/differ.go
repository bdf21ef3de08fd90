package manifest

import (
	"bytes"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
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
	changed := ChangedObject{DiffObject: to, Old: old}
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
	id := m.Identity()
	reasons, was := c.a.excluded[id]
	switch {
	case len(c.a.applied[id]) > 0:
		d.Added = append(d.Added, AddedObject{DiffObject: diffObject(m), Duplicate: true})
	case was:
		d.Included = append(d.Included, JudgedObject{DiffObject: diffObject(m), Reasons: reasons})
	default:
		d.Added = append(d.Added, AddedObject{DiffObject: diffObject(m)})
	}
}

// removed takes up a manifest that the old payload applies beyond the new one's.
func (c *differ) removed(d *PayloadDiff, m *Manifest) {
	id := m.Identity()
	reasons, is := c.b.excluded[id]
	r := RemovedObject{DiffObject: diffObject(m), Fate: FateOrphaned}
	switch {
	case len(c.b.applied[id]) > 0:
		r.Fate = FateDuplicate
	case c.b.deleted[id]:
		r.Fate = FateDeleted
	case is:
		d.Excluded = append(d.Excluded, JudgedObject{DiffObject: r.DiffObject, Reasons: reasons})
		return
	}
	d.Removed = append(d.Removed, r)
}

// fields compares two manifests of an object.
func (c *differ) fields(old, new *Manifest) ([]clusterapi.FieldChange, []clusterapi.SchemaChange) {
	gk := new.GVK().GroupKind()
	if gk == crdKind {
		return c.hider.Definitions(old.Object(), new.Object(), c.descriptions)
	}
	var definition map[string]any
	if _, known := clusterapi.TypeOf(new.GVK()); !known {
		definition = c.schemas[new.GVK()]
	}
	return c.hider.Shown(gk, clusterapi.Compare(old.Object(), new.Object(), definition)), nil
}
