package runlevel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// FieldOwner is a field manager that owns a field.
type FieldOwner struct {
	Manager string `json:"manager"`
	// Operation is Apply or Update, Subresource such as status or scale.
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Time is when the manager changed its fields last; zero: not known.
	Time time.Time `json:"time,omitzero"`
}

// String returns the owner as a text: manager (operation).
func (o FieldOwner) String() string {
	if o.Subresource != "" {
		return fmt.Sprintf("%s (%s of %s)", o.Manager, o.Operation, o.Subresource)
	}
	return fmt.Sprintf("%s (%s)", o.Manager, o.Operation)
}

// FieldOwners returns the managers that own a field of an object, by its
// managedFields, in their order; nil for none. path is one that
// [clusterapi.Compare] writes. A field within a list that is one value is not
// found: the list is.
func FieldOwners(obj *unstructured.Unstructured, path string) []FieldOwner {
	return ownershipOf(obj).of(path)
}

// managedEntry is one entry of metadata.managedFields.
type managedEntry struct {
	manager, operation, subresource, time string
	fields                                map[string]any // in the form FieldsV1
}

// managedEntries returns the entries of an object, without malformed ones. They
// must not be changed.
func managedEntries(obj *unstructured.Unstructured) []managedEntry {
	list, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	values, _ := list.([]any)
	out := make([]managedEntry, 0, len(values))
	for _, v := range values {
		if e, ok := managedEntryOf(v); ok {
			out = append(out, e)
		}
	}
	return out
}

// managedEntryOf reads one entry; ok is false if it is malformed.
func managedEntryOf(v any) (e managedEntry, ok bool) {
	m, _ := v.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	fields, ok := m["fieldsV1"].(map[string]any)
	return managedEntry{text("manager"), text("operation"), text("subresource"), text("time"), fields}, ok
}

// isOurs reports whether it is the entry of our own applies.
func (e managedEntry) isOurs() bool {
	return e.manager == clusterapi.ManagerPayload && e.operation == "Apply" && e.subresource == ""
}

// set returns the fields of the entry. It fails if they are malformed.
func (e managedEntry) set() (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	raw, err := json.Marshal(e.fields)
	if err == nil {
		err = set.FromJSON(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", quote(e.manager), err)
	}
	return set, nil
}

// appliedFields returns the fields of an object that our own applies own.
func appliedFields(obj *unstructured.Unstructured) *fieldpath.Set {
	for _, e := range managedEntries(obj) {
		if set, err := e.set(); err == nil && e.isOurs() {
			return set
		}
	}
	return fieldpath.NewSet()
}

// ownership is who owns which fields of an object.
type ownership []ownedFields

type ownedFields struct {
	owner FieldOwner
	ours  bool     // the owner is this package, in either mode
	paths []string // canonical
}

func ownershipOf(obj *unstructured.Unstructured) ownership {
	var out ownership
	for _, e := range managedEntries(obj) {
		set, err := e.set()
		if err != nil {
			continue
		}
		at, _ := time.Parse(time.RFC3339, e.time)
		fields := ownedFields{
			owner: FieldOwner{Manager: quote(e.manager), Operation: e.operation, Subresource: e.subresource, Time: at},
			ours:  e.manager == clusterapi.ManagerPayload && e.subresource == "",
		}
		for path := range set.All() {
			fields.paths = append(fields.paths, canonical(pathText(path)))
		}
		out = append(out, fields)
	}
	return out
}

// has reports whether a field, or one below it, is among those owned.
func (f ownedFields) has(path string) bool {
	return slices.ContainsFunc(f.paths, func(owned string) bool { return isWithin(owned, path) })
}

// of returns the owners of a field.
func (o ownership) of(path string) []FieldOwner {
	path = canonical(path)
	var out []FieldOwner
	for _, f := range o {
		if f.has(path) {
			out = append(out, f.owner)
		}
	}
	return out
}

// isOurs reports whether this package owns a field, and nobody else does.
func (o ownership) isOurs(path string) bool {
	path = canonical(path)
	ours := false
	for _, f := range o {
		if f.has(path) {
			if !f.ours {
				return false
			}
			ours = true
		}
	}
	return ours
}

// isWithin reports whether a path is another, or below it.
func isWithin(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// canonical returns a path with the keys of elements in one order.
func canonical(path string) string {
	steps := redact.Split(path)
	for i, step := range steps {
		if inner, ok := strings.CutPrefix(step, "["); ok && strings.Contains(inner, ",") {
			keys := strings.Split(strings.TrimSuffix(inner, "]"), ",")
			slices.Sort(keys)
			steps[i] = "[" + strings.Join(keys, ",") + "]"
		}
	}
	return strings.Join(steps, "")
}

// pathText words a path of managedFields as [clusterapi.Compare] does.
func pathText(path fieldpath.Path) string {
	text := ""
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			text = objects.JoinPath(text, *e.FieldName)
		case e.Key != nil:
			element := make(map[string]any)
			var keys []string
			for _, key := range *e.Key {
				element[key.Name] = key.Value.Unstructured()
				keys = append(keys, key.Name)
			}
			text += objects.ElementPath(element, keys)
		case e.Value != nil:
			text += "[=" + jsonOf((*e.Value).Unstructured()) + "]"
		case e.Index != nil:
			text += fmt.Sprintf("[%d]", *e.Index)
		}
	}
	return text
}

// fieldAt returns the value at a path of managedFields; nil if absent.
func fieldAt(v any, path fieldpath.Path) any {
	for _, e := range path {
		switch in := v.(type) {
		case map[string]any:
			v = nil
			if e.FieldName != nil {
				v = in[*e.FieldName]
			}
		case []any:
			i := slices.IndexFunc(in, func(element any) bool { return leadsTo(e, element) })
			v = nil
			if i >= 0 {
				v = in[i]
			}
		default:
			return nil
		}
	}
	return v
}

// leadsTo reports whether a step of a path selects an element of a list. A key that
// the element lacks has been filled in by a default, such as a port's protocol.
func leadsTo(step fieldpath.PathElement, element any) bool {
	if step.Value != nil {
		return value.Equals(*step.Value, value.NewValueInterface(element))
	}
	m, _ := element.(map[string]any)
	if step.Key == nil || m == nil {
		return false
	}
	found := false
	for _, key := range *step.Key {
		v, ok := m[key.Name]
		if ok && !value.Equals(key.Value, value.NewValueInterface(v)) {
			return false
		}
		found = found || ok
	}
	return found
}

// jsonOf is a value of an object as JSON, which sorts the keys of maps.
func jsonOf(v any) string {
	var sb strings.Builder
	e := json.NewEncoder(&sb)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(sb.String(), "\n")
}
