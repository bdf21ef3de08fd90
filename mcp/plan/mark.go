package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Annotations of objects that a plan changes, written together with the change
// and removed when the plan has ended. [Uninstall] removes them all.
const (
	// annotationPlan is the plan's ID.
	annotationPlan = clusterapi.AnnotationPrefix + "plan"
	// annotationBefore is JSON with a format version: of each field, by JSON
	// pointer, the value before the plan's first change, what the plan wrote
	// last, and which step was the first; null stands for an absent field.
	annotationBefore = clusterapi.AnnotationPrefix + "before"
)

// markFormat is the version of the format of clusterupdate.github.io/before.
const markFormat = 1

// mark is what a plan notes on an object that it changed.
type mark struct {
	Version int `json:"version"`
	// Created reports that the plan made the object.
	Created bool                 `json:"created,omitempty"`
	Step    int                  `json:"step"` // that created it
	Fields  map[string]markField `json:"fields,omitempty"`
}

// markField is a field that a plan changed.
type markField struct {
	Before any `json:"before"`
	Set    any `json:"set"`
	Step   int `json:"step"` // the first one that wrote it
}

// markOf returns the ID of the plan that marked an object, "" if none did,
// and its mark.
func markOf(u *unstructured.Unstructured) (string, mark, error) {
	id := u.GetAnnotations()[annotationPlan]
	if id == "" {
		return "", mark{}, nil
	}
	var m mark
	if err := utiljson.Unmarshal([]byte(u.GetAnnotations()[annotationBefore]), &m); err != nil {
		return id, m, fmt.Errorf("%s: annotation %s: %w", objectName(u), annotationBefore, err)
	}
	if err := checkFormat("annotation "+annotationBefore, m.Version, markFormat); err != nil {
		return id, m, fmt.Errorf("%s: %w", objectName(u), err)
	}
	for k, f := range m.Fields { // integers, as in objects
		f.Before, f.Set = integers(f.Before), integers(f.Set)
		m.Fields[k] = f
	}
	return id, m, nil
}

// remembered returns, by the names of objects, the marks that somebody may have removed, as
// far as the record has them: of the fields of steps that are done. What a step that is not
// done has recorded, it may not have written. Labels of nodes are not in the record.
func (x *pass) remembered() map[string]mark {
	marks := map[string]mark{}
	if x.r.rec == nil {
		return marks
	}
	for i := range x.r.plan.Steps {
		s := &x.r.plan.Steps[i]
		sp := x.r.rec.Progress.Steps[s.ID]
		if sp.State != stepDone {
			continue
		}
		for name, before := range sp.Before {
			for p, value := range before {
				set, known := s.sets(p, x.r.plan.ID)
				if known {
					marks[name] = marks[name].with(p, markField{Before: integers(value), Set: set, Step: i})
				}
			}
		}
	}
	return marks
}

// with returns a mark with a field that was changed, perhaps once more: what the field was
// before the plan stays, also to the letter if it has that again.
func (m mark) with(pointer string, f markField) mark {
	if noted, again := m.Fields[pointer]; again {
		noted.Set = f.Set
		f = noted
	}
	if same(f.Before, f.Set) {
		f.Set = f.Before
	}
	m.Fields = maps.Clone(m.Fields)
	if m.Fields == nil {
		m.Fields = map[string]markField{}
	}
	m.Fields[pointer] = f
	return m
}

// sets is the value that a step gives a field that it has changed.
func (s *Step) sets(p, plan string) (value any, known bool) {
	var fields []field
	switch s.Kind {
	case SetPaused, SetMaxUnavailable, SetChannel, Uncordon:
		_, _, f := s.fieldsOf()
		fields = []field{f}
	case SetHealthChecksPaused:
		if *s.Args.Paused {
			fields = healthCheckFields(plan)
		}
	case ApplyObject:
		fields = leaves(s.Args.Object)
	default: // those that keep a node cordoned
		fields = []field{{pathUnschedulable, true}}
	}
	for _, f := range fields {
		if pointer(f.path) == p {
			return f.value, true
		}
	}
	return nil, false
}

// integers turns the numbers of a JSON value that have no fraction into int64.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	case map[string]any:
		for k, e := range v {
			v[k] = integers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	}
	return v
}

// put writes the mark on an object.
func (m mark) put(u *unstructured.Unstructured, id string) error {
	m.Version = markFormat
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	a := maps.Clone(u.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	a[annotationPlan], a[annotationBefore] = id, string(text)
	u.SetAnnotations(a)
	return nil
}

// unmark removes the mark of an object.
func unmark(u *unstructured.Unstructured) {
	a := maps.Clone(u.GetAnnotations())
	delete(a, annotationPlan)
	delete(a, annotationBefore)
	if len(a) == 0 {
		a = nil
	}
	u.SetAnnotations(a)
}

// field is a field of an object and the value that it is to have; nil: none.
type field struct {
	path  []string
	value any
}

var (
	pathPaused         = []string{"spec", "paused"}
	pathMaxUnavailable = []string{"spec", "maxUnavailable"}
	pathChannel        = []string{"spec", "channel"}
	pathUnschedulable  = []string{"spec", "unschedulable"}
)

func labelPath(name string) []string { return []string{"metadata", "labels", name} }

// pointer is a path as a JSON pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// parsePointer is the opposite of pointer.
func parsePointer(s string) []string {
	var out []string
	for p := range strings.SplitSeq(strings.TrimPrefix(s, "/"), "/") {
		out = append(out, strings.NewReplacer("~1", "/", "~0", "~").Replace(p))
	}
	return out
}

// valueAt returns a field's value, nil if absent.
func valueAt(u *unstructured.Unstructured, path []string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// setAt sets or, with nil, removes a field. u is the caller's own.
func setAt(u *unstructured.Unstructured, path []string, value any) error {
	if value != nil {
		return unstructured.SetNestedField(u.Object, deepCopy(value), path...)
	}
	unstructured.RemoveNestedField(u.Object, path...)
	// A map that is empty now would differ from one that was never there.
	for n := len(path) - 1; n > 1; n-- {
		if m, ok := valueAt(u, path[:n]).(map[string]any); !ok || len(m) > 0 {
			break
		}
		unstructured.RemoveNestedField(u.Object, path[:n]...)
	}
	return nil
}

func deepCopy(v any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"v": v}}).DeepCopy().Object["v"]
}

// same reports whether two values of a field mean the same: false and an absent
// field do.
func same(a, b any) bool {
	if a == false {
		a = nil
	}
	if b == false {
		b = nil
	}
	return equality.Semantic.DeepEqual(a, b)
}

// covers reports whether a field has a value, perhaps with more in it: servers
// set defaults inside of lists.
func covers(has, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		has, ok := has.(map[string]any)
		for k, v := range want {
			ok = ok && covers(has[k], v)
		}
		return ok
	case []any:
		has, ok := has.([]any)
		ok = ok && len(has) == len(want)
		for i, v := range want {
			ok = ok && covers(has[i], v)
		}
		return ok
	}
	return same(has, want)
}

// due are the fields whose value is not as it is to be.
func due(u *unstructured.Unstructured, fields []field) []field {
	return slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return covers(valueAt(u, f.path), f.value) })
}

// write lays fields onto a copy of an object, with the mark of a plan.
func (m mark) write(
	u *unstructured.Unstructured, id string, step int, fields []field,
) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	for _, f := range fields {
		p := pointer(f.path)
		m = m.with(p, markField{Before: deepCopy(valueAt(u, f.path)), Set: f.value, Step: step})
		if err := setAt(u, f.path, m.Fields[p].Set); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", objectName(u), p, err)
		}
	}
	return u, m.put(u, id)
}

// leaves are the fields that an object of a plan names, without its identity.
func leaves(object map[string]any) []field {
	var out []field
	var walk func(path []string, v any)
	walk = func(path []string, v any) {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				walk(append(slices.Clone(path), k), m[k])
			}
			return
		}
		out = append(out, field{path, v})
	}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		switch k {
		case "apiVersion", "kind":
		case "metadata":
			meta, _ := object[k].(map[string]any)
			for _, part := range []string{"annotations", "labels"} {
				if m, ok := meta[part].(map[string]any); ok {
					walk([]string{"metadata", part}, m)
				}
			}
		default:
			walk([]string{k}, object[k])
		}
	}
	return out
}
