package runlevel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// fieldTree is a set of fields as metadata.managedFields has it (FieldsV1):
// "f:x" leads to a field, `k:{"name":"x"}` to an element of a keyed list, "v:x"
// to one of a set, "i:0" to one by its index. "." is the thing itself, besides
// what it holds, and what leads to nothing more is owned as a whole.
type fieldTree = map[string]any

// managedEntry is one entry of metadata.managedFields.
type managedEntry struct {
	manager, operation, subresource, time string
	fields                                fieldTree
}

// managedEntries returns the entries of an object. What is not as it should be
// is left out. They must not be changed.
func managedEntries(obj *unstructured.Unstructured) []managedEntry {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	list, _ := value.([]any)
	out := make([]managedEntry, 0, len(list))
	for _, v := range list {
		if e, ok := managedEntryOf(v); ok {
			out = append(out, e)
		}
	}
	return out
}

// managedEntryOf reads one entry; ok is false if it is not as it should be.
func managedEntryOf(v any) (e managedEntry, ok bool) {
	m, _ := v.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	fields, ok := m["fieldsV1"].(map[string]any)
	return managedEntry{text("manager"), text("operation"), text("subresource"), text("time"), fields}, ok
}

// isOurs reports the entry of our own applies.
func (e managedEntry) isOurs() bool {
	return e.manager == clusterapi.ManagerPayload && e.operation == "Apply" && e.subresource == ""
}

// ownedBy splits the entries of an object into the fields that were applied as
// [clusterapi.ManagerPayload], and those of everybody else.
func ownedBy(obj *unstructured.Unstructured) (ours fieldTree, others []fieldTree) {
	for _, e := range managedEntries(obj) {
		if e.isOurs() {
			ours = e.fields
		} else {
			others = append(others, e.fields)
		}
	}
	return ours, others
}

// ownedDigest is a hash of what we own of an object: which fields, and their
// values. It is empty where we own nothing. What others add or own does not
// matter to it.
func ownedDigest(obj *unstructured.Unstructured) string {
	ours, others := ownedBy(obj)
	if len(ours) == 0 {
		return ""
	}
	h := sha256.New()
	var text []byte
	walkOwned(ours, others, []place{{obj.Object, true}}, func(o owned) bool {
		if (!o.at[0].ok || isEmpty(o.at[0].value)) && (o.path == "metadata.labels" || o.path == "metadata.annotations") {
			return true // who adds the first one owns them
		}
		text = text[:0]
		for _, step := range o.steps {
			text = append(append(text, step...), 0)
		}
		switch at := o.at[0]; {
		case !at.ok:
			text = append(text, "\x01-"...)
		case o.self:
			text = append(text, "\x01+"...)
		default:
			text = appendValue(append(text, "\x01="...), at.value)
		}
		_, _ = h.Write(append(text, 2))
		return true
	})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// appendValue appends a value of an object in a form that tells values apart. It is
// for digests: encoding/json makes a copy of each key and value of a map.
func appendValue(text []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		text = append(strconv.AppendInt(append(text, '{'), int64(len(v)), 10), ':')
		for _, key := range sortedKeys(v) {
			text = appendValue(appendValue(text, key), v[key])
		}
		return text
	case []any:
		text = append(strconv.AppendInt(append(text, '['), int64(len(v)), 10), ':')
		for _, e := range v {
			text = appendValue(text, e)
		}
		return text
	case string:
		return append(append(strconv.AppendInt(append(text, '"'), int64(len(v)), 10), ':'), v...)
	case int64:
		return append(strconv.AppendInt(text, v, 10), ',')
	}
	return append(append(text, jsonOf(v)...), ',')
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// place is a value in an object, or that there is none.
type place struct {
	value any
	ok    bool
}

// owned is one field that we own, and what stands there in the objects that are
// looked at.
type owned struct {
	steps []string // of the tree; valid during the call
	path  string
	self  bool // the thing itself, whatever it holds
	at    []place
}

// walkOwned visits the fields of a tree, in order. others are the trees of other
// managers: what they own of a thing that is ours as a whole is left out of its
// value, for we own it empty then. Where visit returns false for a thing itself,
// what it holds is passed over.
func walkOwned(tree fieldTree, others []fieldTree, at []place, visit func(owned) bool) {
	(&ownedWalk{visit: visit}).node(tree, others, at, "")
}

type ownedWalk struct {
	steps []string
	visit func(owned) bool
}

func (w *ownedWalk) node(tree fieldTree, others []fieldTree, at []place, path string) {
	if len(tree) == 0 {
		kept := make([]place, len(at))
		for i := range at {
			kept[i] = place{withoutOthers(at[i].value, others), at[i].ok}
		}
		w.visit(owned{w.steps, path, false, kept})
		return
	}
	for _, step := range sortedKeys(tree) {
		if step == "." {
			if !w.visit(owned{w.steps, path, true, at}) {
				return
			}
			continue
		}
		next := parseStep(step)
		below := make([]place, len(at))
		for i := range at {
			below[i] = next.from(at[i])
		}
		var theirs []fieldTree
		for _, o := range others {
			if t, ok := o[step].(map[string]any); ok {
				theirs = append(theirs, t)
			}
		}
		child, _ := tree[step].(map[string]any)
		w.steps = append(w.steps, step)
		w.node(child, theirs, below, next.join(path))
		w.steps = w.steps[:len(w.steps)-1]
	}
}

// withoutOthers returns a map or list without the parts that others own.
func withoutOthers(value any, others []fieldTree) any {
	for _, tree := range others {
		for name := range tree {
			if name == "." {
				continue
			}
			step := parseStep(name)
			switch v := value.(type) {
			case map[string]any:
				if _, ok := v[step.field]; ok && step.kind == 'f' {
					v = maps.Clone(v)
					delete(v, step.field)
					value = v
				}
			case []any:
				if step.kind == 'k' || step.kind == 'v' {
					value = slices.DeleteFunc(slices.Clone(v), step.is)
				}
			}
		}
	}
	return value
}

// isEmpty reports a map or list without anything in it.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// holds reports whether a tree has the field to which steps lead.
func holds(tree fieldTree, steps []string) bool {
	for _, step := range steps {
		next, ok := tree[step].(map[string]any)
		if !ok {
			return false
		}
		tree = next
	}
	return true
}

// fieldStep is one step of a tree.
type fieldStep struct {
	kind  byte   // f, k, v, i, or 0: of no known kind
	field string // f
	value any    // v, and the map of k
	index int    // i
	text  string
}

func parseStep(text string) fieldStep {
	s := fieldStep{text: text}
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || len(kind) != 1 {
		return s
	}
	var err error
	switch kind {
	case "f":
		s.field = rest
	case "k", "v":
		err = kjson.UnmarshalCaseSensitivePreserveInts([]byte(rest), &s.value)
	case "i":
		s.index, err = strconv.Atoi(rest)
	default:
		return s
	}
	if err == nil {
		s.kind = kind[0]
	}
	return s
}

// from is what the step leads to.
func (s fieldStep) from(p place) place {
	switch v := p.value.(type) {
	case map[string]any:
		if s.kind == 'f' {
			value, ok := v[s.field]
			return place{value, ok}
		}
	case []any:
		if s.kind == 'i' && s.index >= 0 && s.index < len(v) {
			return place{v[s.index], true}
		}
		if s.kind == 'k' || s.kind == 'v' {
			if i := slices.IndexFunc(v, s.is); i >= 0 {
				return place{v[i], true}
			}
		}
	}
	return place{}
}

// is reports whether the step leads to an element of a list. A key that the
// element lacks has been filled in by a default, such as a port's protocol.
func (s fieldStep) is(element any) bool {
	if s.kind == 'v' {
		return reflect.DeepEqual(element, s.value)
	}
	keys, _ := s.value.(map[string]any)
	e, _ := element.(map[string]any)
	found := false
	for name, want := range keys {
		value, ok := e[name]
		if ok && !reflect.DeepEqual(value, want) {
			return false
		}
		found = found || ok
	}
	return found
}

// join words the step as a part of a path, as clusterapi.Compare does.
func (s fieldStep) join(path string) string {
	switch s.kind {
	case 'f':
		return clusterapi.JoinPath(path, s.field)
	case 'k':
		keys, _ := s.value.(map[string]any)
		return path + clusterapi.ElementPath(keys, slices.Sorted(maps.Keys(keys)))
	case 'v':
		return path + "[=" + jsonOf(s.value) + "]"
	}
	return path + "[" + strings.TrimPrefix(s.text, "i:") + "]"
}

// jsonOf is a value of an object as JSON, which sorts the keys of maps.
func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// FieldOwners returns the managers that own a field of an object, by its
// managedFields, in their order; nil for none. path is one that
// [clusterapi.Compare] writes. A field within a list that is one value is not
// found: the list is.
func FieldOwners(obj *unstructured.Unstructured, path string) []FieldOwner {
	steps := redact.Split(path)
	return ownersWhere(managedEntries(obj), func(fields fieldTree) bool { return ownsPath(fields, steps) })
}

func ownsPath(tree fieldTree, steps []string) bool {
	for _, step := range steps {
		next, ok := tree[treeKey(tree, step)].(map[string]any)
		if !ok {
			return false
		}
		tree = next
	}
	return true
}

// treeKey finds the key of a tree that is a step of a path, or "".
func treeKey(tree fieldTree, step string) string {
	if name := redact.Name(step); name != "" {
		return "f:" + name
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(step, "["), "]")
	if value, set := strings.CutPrefix(inner, "="); set {
		return "v:" + value
	}
	for key := range tree {
		if text, ok := strings.CutPrefix(key, "k:"); ok && isElement(text, inner) {
			return key
		}
	}
	return ""
}

// isElement reports that the keys of an element, as managedFields have them, are
// those of a path, in whatever order.
func isElement(text, inner string) bool {
	var keys map[string]any
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return false
	}
	length := len(keys) - 1 // commas
	for name := range keys {
		part := strings.Trim(clusterapi.ElementPath(keys, []string{name}), "[]")
		length += len(part)
		if !strings.Contains(inner, part) {
			return false
		}
	}
	return length == len(inner)
}
