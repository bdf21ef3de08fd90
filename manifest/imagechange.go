package manifest

import (
	"maps"
	"slices"
)

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
