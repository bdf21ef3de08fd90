package preview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// readDefinitions finds the schemas of custom resources, as they are after the
// pass.
func (r *run) readDefinitions(ctx context.Context) error {
	list, err := clusterapi.ListShared(ctx, r.Cluster, definitionKind, clusterapi.ListOptions{})
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return err
	}
	r.schemas = make(map[schema.GroupVersionKind]map[string]any)
	r.plurals = make(map[schema.GroupKind]string)
	for _, o := range list {
		kind := apiserver.Kind(o.Unstructured().Object)
		r.plurals[kind], _, _ = unstructured.NestedString(o.Unstructured().Object, "spec", "names", "plural")
		for name, v := range versionsOf(o.Unstructured()) {
			if s, ok, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema"); ok {
				r.schemas[kind.WithVersion(name)], _ = s.(map[string]any)
			}
		}
	}
	return nil
}

// filled is an object without what only a server sets, and with all defaults.
func (r *run) filled(obj *unstructured.Unstructured) *unstructured.Unstructured {
	return r.fill(objects.WithoutServerFields(obj))
}

func (r *run) fill(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	if s := r.schemas[obj.GroupVersionKind()]; s != nil {
		return &unstructured.Unstructured{Object: apiserver.ReadDefaults(s).Fill(obj.Object).(map[string]any)}
	}
	return apiserver.Fill(obj)
}

// compare returns the fields in which two states of an object differ, after
// defaulting. What a recording hides of the old one counts as unchanged.
func (r *run) compare(old, new *unstructured.Unstructured) []clusterapi.FieldChange {
	if new == nil {
		return clusterapi.Compare(r.filled(old), nil, nil)
	}
	old, new = objects.WithoutServerFields(old), objects.WithoutServerFields(new)
	if reflect.DeepEqual(old, new) {
		return nil // as most are
	}
	changes := clusterapi.Compare(r.fill(old), r.fill(new), r.schemas[new.GroupVersionKind()])
	return slices.DeleteFunc(changes, func(f clusterapi.FieldChange) bool {
		was, isText := f.Old.(string)
		is, isStill := f.New.(string)
		return isText && isStill && redact.Matches(was, is)
	})
}

// lacks returns the fields that a manifest names and an object lacks, or has
// otherwise.
func (r *run) lacks(live *unstructured.Unstructured, m *manifest.Manifest) []clusterapi.FieldChange {
	var out []clusterapi.FieldChange
	byDefault := r.byDefault(m.Object())
	for _, f := range r.compare(live, m.Object()) {
		if f.New != nil && !byDefault[f.Path] {
			out = append(out, f)
		}
	}
	return out
}

// stale finds the fields that the manifest of the running release names, the
// target's does not, and the result still has. released are the changes from one to
// the other.
func (r *run) stale(c *Change, running, target *unstructured.Unstructured, released []clusterapi.FieldChange) {
	if !slices.ContainsFunc(released, func(f clusterapi.FieldChange) bool { return f.Old != nil }) {
		return
	}
	still, other := r.beyond(target, c.new)
	var removed func(path string) bool
	add := func(path string, v any) {
		shownPath, value := r.hide(c.new, path, v)
		c.Stale = append(c.Stale, StaleField{Path: shownPath, Value: value})
		if removed == nil {
			removed = r.removedByOperator(c, target)
		}
		if removed(path) {
			c.OperatorRemoves = append(c.OperatorRemoves, shownPath)
		}
	}
	for _, f := range released {
		if f.New == nil {
			parts(f, f.Old, func(path string, _ any) {
				if v, ok := still[path]; ok {
					add(path, v)
				}
			})
		} else if v, ok := other[f.Path]; ok && f.Old != nil && !r.byDefault(running)[f.Path] && r.byDefault(target)[f.Path] {
			add(f.Path, v)
		}
	}
	slices.SortFunc(c.Stale, func(a, b StaleField) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(c.OperatorRemoves)
}

// beyond are the fields that a state of an object has beyond a manifest, and those
// that it has otherwise than the manifest, or the manifest's defaults, say.
func (r *run) beyond(target, state *unstructured.Unstructured) (still, other map[string]any) {
	still, other = make(map[string]any), make(map[string]any)
	for _, f := range r.compare(target, state) {
		switch {
		case f.Old == nil:
			parts(f, f.New, func(path string, v any) { still[path] = v })
		case f.New != nil:
			other[f.Path] = f.New
		}
	}
	return still, other
}

// removedByOperator reports of a field that an apply leaves whether the version
// operator would remove it: a manifest that it cannot merge removes nothing.
func (r *run) removedByOperator(c *Change, target *unstructured.Unstructured) func(path string) bool {
	merged, _, err := merge.Merge(c.old, target)
	if r.o.Mode != runlevel.ApplyServerSide || err != nil {
		return func(string) bool { return false }
	}
	still, other := r.beyond(target, merged)
	return func(path string) bool {
		_, stays := still[path]
		_, differs := other[path]
		return !stays && !differs
	}
}

// byDefault are the fields that a manifest has by default alone.
func (r *run) byDefault(m *unstructured.Unstructured) map[string]bool {
	bare, out := objects.WithoutServerFields(m), make(map[string]bool)
	for _, f := range clusterapi.Compare(bare, r.fill(bare), r.schemas[m.GroupVersionKind()]) {
		if f.Old == nil {
			leaves(f.Path, f.New, func(path string, _ any) { out[path] = true })
		}
	}
	return out
}

// drift finds the changes that the release does not make: what it wants is what
// the running one wanted.
func (r *run) drift(c *Change, fields, released []clusterapi.FieldChange) []runlevel.DriftedField {
	byRelease := make(map[string]bool)
	for _, f := range released {
		byRelease[f.Path] = true
		leaves(f.Path, f.Old, func(path string, _ any) { byRelease[path] = true })
		leaves(f.Path, f.New, func(path string, _ any) { byRelease[path] = true })
	}
	var out []runlevel.DriftedField
	for _, f := range fields {
		value := f.New
		if value == nil && r.o.Mode == runlevel.ApplyMerge {
			value = f.Old // somebody else has added it
		}
		if value == nil || strings.HasPrefix(f.Path, "metadata.ownerReferences") || within(f.Path, byRelease) {
			continue // what only goes was not wanted before either
		}
		differs := false
		leaves(f.Path, value, func(path string, _ any) { differs = differs || byRelease[path] })
		if differs {
			continue
		}
		path, found := r.hide(c.old, f.Path, f.Old)
		_, wanted := r.hide(c.old, f.Path, f.New)
		out = append(out, runlevel.DriftedField{
			Path: path, Wanted: wanted, Found: found, Owners: runlevel.FieldOwners(c.old, f.Path),
		})
	}
	return out
}

// within reports that a path, or one above it, is among others.
func within(path string, others map[string]bool) bool {
	steps := redact.Split(path)
	for i := range steps {
		if others[strings.Join(steps[:i+1], "")] {
			return true
		}
	}
	return false
}

// parts visits what a field is made of: an element of a list as a whole, else the
// leaves.
func parts(f clusterapi.FieldChange, value any, visit func(path string, value any)) {
	steps := redact.Split(f.Path)
	if redact.Name(steps[len(steps)-1]) == "" {
		visit(f.Path, value)
		return
	}
	leaves(f.Path, value, visit)
}

// leaves visits the values of maps below a field; a list is one value.
func leaves(path string, value any, visit func(path string, value any)) {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		if value != nil {
			visit(path, value)
		}
		return
	}
	for key, v := range m {
		leaves(objects.JoinPath(path, key), v, visit)
	}
}

// shown returns changes with credentials hidden. obj is what they are about.
func (r *run) shown(obj *unstructured.Unstructured, fields []clusterapi.FieldChange) []clusterapi.FieldChange {
	return r.hider.Shown(obj.GroupVersionKind().GroupKind(), fields)
}

func (r *run) hide(obj *unstructured.Unstructured, path string, value any) (string, any) {
	return r.hider.Field(obj.GroupVersionKind().GroupKind(), path, value)
}

// seen is what a change is bound to.
func (r *run) seen(at ref, obj *unstructured.Unstructured) *Seen {
	state := r.base.state(at)
	if state == nil { // of a version that the fork has converted
		return &Seen{UID: obj.GetUID(), Digest: digest(obj)}
	}
	return &Seen{UID: state.UID(), ResourceVersion: state.ResourceVersion(), Digest: digest(state.Unstructured())}
}

// digest stands for an object without what only a server sets.
func digest(obj *unstructured.Unstructured) string {
	raw, err := json.Marshal(objects.WithoutServerFields(obj).Object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
