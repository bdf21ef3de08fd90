package manifest

import (
	"maps"
	"slices"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
)

// PayloadDiff is what changes from one release to another for a cluster. It is
// plain data: safe to copy, and to marshal. Credentials are hidden in it as
// (redacted-12 digits), the same for equal ones: see [clusterapi.FieldChange] for the rest of a field. The
// manifests it points to are the payloads' own, with all that they hold, and
// JSON leaves them out.
//
// What a release applies are the manifests that the cluster includes and that do
// not ask for a deletion. Those of the new release are those of the old one
// without Removed and Excluded, with Added and Included, and with Changed in
// their new form. Each list is in the order of the payload it is about.
type PayloadDiff struct {
	// Old and New are the versions.
	Old string `json:"old"`
	New string `json:"new"`
	// Added are applied by the new release, and not mentioned by the old one as
	// anything but an object to delete.
	Added []DiffObject `json:"added,omitempty"`
	// Included are applied by the new release, and excluded from the old one.
	Included []DiffObject `json:"included,omitempty"`
	// Removed are applied by the old release, and not any more.
	Removed []DiffObject `json:"removed,omitempty"`
	// Excluded are applied by the old release, and excluded from the new one:
	// they stay in the cluster as they are, with nobody to look after them.
	Excluded []DiffObject `json:"excluded,omitempty"`
	// Changed are applied by both, with other fields.
	Changed []DiffObject `json:"changed,omitempty"`
	// Moved are applied by both, in another runlevel or component. Those that
	// changed as well are in both lists.
	Moved []MovedObject `json:"moved,omitempty"`
	// Unchanged counts what both apply with the same fields in the same place.
	Unchanged int `json:"unchanged"`
	// DeletesAdded are objects that the new release deletes and the old one did
	// not, DeletesRemoved those that it does not delete any more.
	DeletesAdded   []DiffObject `json:"deletesAdded,omitempty"`
	DeletesRemoved []DiffObject `json:"deletesRemoved,omitempty"`
	// Images are the component images that differ, by name.
	Images []ImageChange `json:"images,omitempty"`
}

// DiffObject is an object that differs and its place in a release: in the old
// one for Removed, Excluded and DeletesRemoved, else in the new one. It is plain
// data.
type DiffObject struct {
	Identity Identity `json:"identity"`
	File     string   `json:"file"`
	Document int      `json:"document"`
	// Level and Component are those of the file's name: see [ParseName].
	Level     string `json:"level,omitempty"`
	Component string `json:"component,omitempty"`
	// Duplicate, in Added, reports that both releases apply this object by another
	// manifest.
	Duplicate bool `json:"duplicate,omitempty"`
	// Fate, in Removed, is what becomes of the object: Deleted by the new release,
	// Orphaned, since that neither mentions nor deletes it, or Duplicate, which
	// another manifest still applies.
	Fate string `json:"fate,omitempty"`
	// Reasons, in Included and Excluded, are why each manifest of the object is
	// excluded from the other release, at least one.
	Reasons []ExclusionReason `json:"reasons,omitempty"`
	// Fields, in Changed, are those that differ, but for the schemas of a
	// CustomResourceDefinition.
	Fields []clusterapi.FieldChange `json:"fields,omitempty"`
	// Schemas, in Changed, are the schemas that differ, by version, of a
	// CustomResourceDefinition. A version that was added or removed is among
	// Fields.
	Schemas []fieldchange.SchemaChange `json:"schemas,omitempty"`
	// Manifest is the payload's; Old, in Changed, the old release's.
	Manifest *Manifest `json:"-"`
	Old      *Manifest `json:"-"`
}

// What becomes of an object that a release does not apply any more.
const (
	fateDeleted   = "Deleted"
	fateOrphaned  = "Orphaned"
	fateDuplicate = "Duplicate"
)

// ExclusionReason explains why a manifest is excluded. It is plain data.
type ExclusionReason struct {
	File     string `json:"file"`
	Document int    `json:"document"`
	Rule     Rule   `json:"rule"`
	Reason   string `json:"reason"`
}

// MovedObject is an object that is applied in another runlevel or component. It
// is plain data.
type MovedObject struct {
	From DiffObject `json:"from"`
	To   DiffObject `json:"to"`
}

// DiffOptions are the options of [Diff].
type DiffOptions struct {
	// Filter decides, as in a pass, which manifests of both payloads apply to
	// the cluster, beyond what each was loaded with. The zero value includes all.
	Filter Filter
	// Descriptions takes up the descriptions of the schemas of
	// CustomResourceDefinitions. Default: they are counted.
	Descriptions bool
	// Key makes the digits that stand for credentials, of whatever length: with
	// one key, equal differences have equal texts. nil is a random one.
	Key []byte
}

// Diff compares two releases as a cluster sees them. Both should be loaded with
// the same filter. A nil payload holds nothing.
//
// Fields are compared by meaning: see [clusterapi.Compare]. Where several
// manifests of an object are included, those that are equal belong together,
// then those of the same file, then the rest in their order.
func Diff(old, new *Payload, o DiffOptions) *PayloadDiff {
	a, b := sideOf(old, o.Filter), sideOf(new, o.Filter)
	d := &PayloadDiff{Old: a.version, New: b.version, Images: ImageChanges(old, new)}
	c := differ{a: a, b: b, descriptions: o.Descriptions, hider: fieldchange.NewHider(o.Key), schemas: schemasOf(b, a)}
	paired := make(map[*Manifest]*Manifest) // of the new payload to the old one
	left := make(map[*Manifest]bool)        // of the old payload
	for _, id := range a.order {
		for _, m := range pair(a.applied[id], b.applied[id], paired) {
			left[m] = true
		}
	}
	for _, id := range b.order {
		for _, m := range b.applied[id] {
			if was, ok := paired[m]; ok {
				c.compare(d, was, m)
			} else {
				c.added(d, m)
			}
		}
	}
	for _, id := range a.order {
		for _, m := range a.applied[id] {
			if left[m] {
				c.removed(d, m)
			}
		}
	}
	for _, list := range [][]DiffObject{d.Added, d.Included, d.Changed} {
		slices.SortFunc(list, b.compare)
	}
	for _, list := range [][]DiffObject{d.Removed, d.Excluded} {
		slices.SortFunc(list, a.compare)
	}
	slices.SortFunc(d.Moved, func(x, y MovedObject) int { return b.compare(x.To, y.To) })
	d.DeletesAdded = missingFrom(a, b.deletes)
	d.DeletesRemoved = missingFrom(b, a.deletes)
	return d
}

// Orphans returns those of Removed that stay in the cluster although no release
// manages them any more: each needs a manifest that deletes it, or somebody who
// does. It is nil for none.
func (d *PayloadDiff) Orphans() []DiffObject {
	return slices.DeleteFunc(slices.Clone(d.Removed), func(r DiffObject) bool { return r.Fate != fateOrphaned })
}

// Empty reports whether the releases are alike for the cluster, whatever their
// versions.
func (d *PayloadDiff) Empty() bool {
	return len(d.Added) == 0 && len(d.Included) == 0 && len(d.Removed) == 0 && len(d.Excluded) == 0 && len(d.Changed) == 0 &&
		len(d.Moved) == 0 && len(d.DeletesAdded) == 0 && len(d.DeletesRemoved) == 0 && len(d.Images) == 0
}

// ImageChange is a component image that differs. It is plain data.
type ImageChange struct {
	Name string `json:"name"`
	// Old and New are the pull specs; empty where the release has none.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// ImageChanges returns the component images that differ between two releases, by
// name; nil for none. A nil payload has no images.
func ImageChanges(old, new *Payload) []ImageChange {
	before, after := imagesOf(old), imagesOf(new)
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	var out []ImageChange
	for _, name := range slices.Compact(names) {
		if before[name] != after[name] {
			out = append(out, ImageChange{Name: name, Old: before[name], New: after[name]})
		}
	}
	return out
}

func imagesOf(p *Payload) map[string]string {
	if p == nil {
		return nil
	}
	return p.Images
}
