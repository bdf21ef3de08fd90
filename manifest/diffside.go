package manifest

import (
	"cmp"
	"slices"
)

// side is one of two payloads as [Diff] looks at it.
type side struct {
	version  string
	order    []Identity                     // of the applied objects, each once
	applied  map[Identity][]*Manifest       // in order
	place    map[*Manifest]int              // of the applied objects, in the payload
	deletes  []*Manifest                    // what is included and asks for a deletion
	deleted  map[Identity]bool              // by deletes
	excluded map[Identity][]ExclusionReason // by the load, then by the pass
}

func sideOf(p *Payload, f Filter) *side {
	s := &side{
		applied: make(map[Identity][]*Manifest), place: make(map[*Manifest]int),
		deleted: make(map[Identity]bool), excluded: make(map[Identity][]ExclusionReason),
	}
	if p == nil {
		return s
	}
	s.version = p.Release.Version
	included, excluded := p.Included(f)
	for i, m := range included {
		id := m.Identity()
		if m.Deletes() {
			s.deletes = append(s.deletes, m)
			s.deleted[id] = true
			continue
		}
		if len(s.applied[id]) == 0 {
			s.order = append(s.order, id)
		}
		s.applied[id] = append(s.applied[id], m)
		s.place[m] = i
	}
	for _, e := range slices.Concat(p.Excluded, excluded) {
		id := e.Manifest.Identity()
		s.excluded[id] = append(s.excluded[id], ExclusionReason{
			File: e.Manifest.Filename, Document: e.Manifest.Document, Rule: e.Rule, Reason: e.Reason,
		})
	}
	return s
}

// pair finds for the manifests of an object in one payload those in the other:
// equal ones first, then those of the same file, then the rest in order. It
// returns those of old that are left over.
func pair(old, new []*Manifest, paired map[*Manifest]*Manifest) (left []*Manifest) {
	by := func(key func(*Manifest) string) {
		waiting := make(map[string][]*Manifest, len(old))
		for _, m := range old {
			waiting[key(m)] = append(waiting[key(m)], m)
		}
		taken := make(map[*Manifest]bool)
		new = slices.DeleteFunc(slices.Clone(new), func(m *Manifest) bool {
			k := key(m)
			if len(waiting[k]) == 0 {
				return false
			}
			paired[m] = waiting[k][0]
			taken[waiting[k][0]] = true
			waiting[k] = waiting[k][1:]
			return true
		})
		old = slices.DeleteFunc(slices.Clone(old), func(m *Manifest) bool { return taken[m] })
	}
	if len(old) > 1 || len(new) > 1 {
		by(func(m *Manifest) string { return m.Filename + "\x00" + string(m.Raw) })
		by(func(m *Manifest) string { return string(m.Raw) })
		by(func(m *Manifest) string { return m.Filename })
	}
	for len(old) > 0 && len(new) > 0 {
		paired[new[0]] = old[0]
		old, new = old[1:], new[1:]
	}
	return old
}

// missingFrom are the manifests of objects that s does not delete.
func missingFrom(s *side, deletes []*Manifest) []DiffObject {
	var out []DiffObject
	for _, m := range deletes {
		if !s.deleted[m.Identity()] {
			out = append(out, diffObject(m))
		}
	}
	return out
}

func diffObject(m *Manifest) DiffObject {
	level, component, _ := ParseName(m.Filename)
	return DiffObject{Identity: m.Identity(), File: m.Filename, Document: m.Document, Level: level, Component: component, Manifest: m}
}

// compare orders what is applied as the payload does.
func (s *side) compare(x, y DiffObject) int {
	return cmp.Compare(s.place[x.Manifest], s.place[y.Manifest])
}
