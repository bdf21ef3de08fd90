package differential

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// objectKey names an object of a run.
type objectKey struct {
	kind string
	types.NamespacedName
}

var sideNames = [2]string{"a", "b"}

// run is one pass of a sequence over both backends, with its own names.
type run struct {
	d     *differential
	id    string
	ctx   context.Context
	sides [2]*side
	// retired are objects that the backends may differ in from now on.
	retired map[objectKey]bool
	keys    []objectKey // all that were written, in order
	kinds   []*kind     // likewise
	watches int
}

// side is what a run knows about one backend.
type side struct {
	api      clusterapi.ClusterAPI
	versions map[objectKey][]string
	uids     map[string]string
	watches  []*sideWatch
}

// moved compares a resourceVersion with the last one known.
func (s *side) moved(key objectKey, version string) string {
	known := s.versions[key]
	switch {
	case len(known) == 0:
		s.versions[key] = []string{version}
		return "new"
	case known[len(known)-1] == version:
		return "same"
	}
	s.versions[key] = append(known, version)
	return "moved"
}

// uid numbers the UIDs in the order in which they are seen.
func (s *side) uid(uid string) string {
	if _, ok := s.uids[uid]; !ok {
		s.uids[uid] = fmt.Sprintf("uid-%d", len(s.uids)+1)
	}
	return s.uids[uid]
}

// run carries a sequence out and returns the differences at the first step
// that had any that are not meant.
func (d *differential) run(ctx context.Context, steps []step) ([]found, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.runs++
	r := &run{d: d, ctx: ctx, id: fmt.Sprintf("d%s-%05d", d.id, d.runs), retired: make(map[objectKey]bool)}
	for i, api := range d.apis {
		r.sides[i] = &side{api: api, versions: make(map[objectKey][]string), uids: make(map[string]string)}
	}
	defer r.cleanUp()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	for i, s := range steps {
		if out := r.unmeant(r.step(i, s)); len(out) > 0 {
			return out, nil
		}
	}
	if out := r.unmeant(r.events(len(steps))); len(out) > 0 {
		return out, nil
	}
	return r.unmeant(r.final(len(steps))), nil
}

// unmeant leaves out what is meant.
func (r *run) unmeant(all []found) []found {
	return slices.DeleteFunc(all, r.d.meant)
}

// prepare makes the namespaces.
func (r *run) prepare() error {
	for i, s := range r.sides {
		for _, name := range []string{"one", "two"} {
			for _, u := range []*unstructured.Unstructured{
				{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.id + "-" + name}}},
				{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default", "namespace": r.id + "-" + name}}},
			} {
				if _, err := s.api.Create(r.ctx, u, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("backend %s: creating %s %s: %w", sideNames[i], u.GetKind(), u.GetName(), err)
				}
			}
		}
	}
	return nil
}

// cleanUp deletes what may go.
func (r *run) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), probe.Patience)
	defer cancel()
	for _, s := range r.sides {
		for _, w := range s.watches {
			w.cancel()
		}
		for i, key := range r.keys {
			k := r.kinds[i]
			_ = probe.Release(ctx, s.api, k.gvk, key.NamespacedName, func(string) bool { return true })
			if !k.Namespaced {
				_ = s.api.Delete(ctx, k.gvk, key.NamespacedName, clusterapi.DeleteOptions{})
			}
		}
		for _, name := range []string{"one", "two"} {
			_ = s.api.Delete(ctx, probe.Namespaces, clusterapi.Key("", r.id+"-"+name), clusterapi.DeleteOptions{})
		}
	}
}

// step makes one call on both sides and compares the answers.
func (r *run) step(i int, s step) []found {
	key := objectKey{s.kind.Name, r.key(s)}
	switch s.verb {
	case "List", "Watch":
		if s.verb == "Watch" && s.kind.Name == "CustomResourceDefinition" {
			return nil // its controllers write, too, when they get to it
		}
		if s.verb == "Watch" {
			return r.watch(i, s)
		}
		return r.list(i, s)
	}
	if r.retired[key] {
		return nil
	}
	if !slices.Contains(r.keys, key) {
		r.keys, r.kinds = append(r.keys, key), append(r.kinds, s.kind)
	}
	var answers [2]fields
	var errs [2]error
	for n, side := range r.sides {
		answers[n], errs[n] = r.call(side, s, key)
	}
	out := diff(i, s.verb, s.kind.Name, answers[0], answers[1])
	if (errs[0] == nil) != (errs[1] == nil) {
		r.retire(key)
	}
	if s.verb == "Delete" && errs[0] == nil && s.kind.Name == "Namespace" {
		r.retire(key) // nobody is there who ends it
	}
	return out
}

// retire leaves an object alone from now on. Where a pod was evicted on one
// side only, the budgets differ as well.
func (r *run) retire(key objectKey) {
	r.retired[key] = true
	if key.kind != "Pod" {
		return
	}
	for _, other := range r.keys {
		if other.kind == "PodDisruptionBudget" && other.Namespace == key.Namespace {
			r.retired[other] = true
		}
	}
}

// call makes one call on one side.
func (r *run) call(side *side, s step, key objectKey) (fields, error) {
	ctx := r.ctx
	if s.ended {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	api, gvk := side.api, s.kind.gvk
	// What the call depends on is read before, if it has a name.
	var stored *unstructured.Unstructured
	if key.Name != "" && (key.Namespace != "" || !s.kind.Namespaced) {
		if u, err := probe.Get(r.ctx, api, gvk, key.NamespacedName); err == nil {
			stored = u
		}
	}
	current := ""
	if stored != nil {
		current = stored.GetResourceVersion()
	}
	version := side.version(s.version, key, current)
	uid := types.UID("")
	switch {
	case s.uid == "wrong":
		uid = probe.OtherUID
	case s.uid == "right" && stored != nil:
		uid = stored.GetUID()
	}
	c := probe.Call{
		Verb: s.verb, Kind: gvk, Key: key.NamespacedName, Manager: s.manager,
		UID: uid, ResourceVersion: version, Propagation: s.propagation, Grace: s.grace,
	}
	var before map[string]any
	c.Object = r.argument(s, stored)
	if c.Object != nil {
		if version != "" {
			put(c.Object.Object, []string{"metadata", "resourceVersion"}, version)
		}
		if uid != "" {
			put(c.Object.Object, []string{"metadata", "uid"}, string(uid))
		}
		before = c.Object.DeepCopy().Object
	}
	out, err := c.Do(ctx, api)
	f := fields{}
	f.addError(r, err)
	if s.verb != "Delete" && s.verb != "Evict" && err == nil {
		f.addObject(r, side, s.kind, out)
	}
	if c.Object != nil && !reflect.DeepEqual(c.Object.Object, before) {
		f["argument"] = "changed"
	}
	if err == nil {
		if late := r.settle(side, s, key); late != nil {
			f["settled"] = late.Error()
		}
	}
	mutate(c.Object)
	mutate(out)
	return f, err
}

// argument is the object that a step passes, nil for verbs without one.
func (r *run) argument(s step, stored *unstructured.Unstructured) *unstructured.Unstructured {
	switch s.verb {
	case "Create", "Apply":
		return r.object(s, s.body)
	case "Update", "UpdateStatus":
		in := stored.DeepCopy()
		if in == nil {
			in = r.object(s, s.kind.Base)
		}
		for _, e := range s.edits {
			e.value = r.fill(s.name, runtime.DeepCopyJSONValue(e.value))
			e.do(in.Object)
		}
		r.identify(s, in)
		unstructured.RemoveNestedField(in.Object, "metadata", "resourceVersion")
		return in
	}
	return nil
}

// version gives a step's want for a resourceVersion its value.
func (s *side) version(want string, key objectKey, current string) string {
	known := s.versions[key]
	switch {
	case want == "none":
		return ""
	case want == "current" && current != "":
		return current
	case want == "current" && len(known) > 0:
		return known[len(known)-1]
	case want == "stale" && len(known) > 0 && known[0] != current:
		return known[0]
	case current == "1":
		return "999999999"
	}
	return "1"
}

// settle waits for what a server does by itself after a write, and does what a
// garbage collector would.
func (r *run) settle(side *side, s step, key objectKey) error {
	if key.kind == "CustomResourceDefinition" {
		switch s.verb {
		case "Create", "Apply", "Update", "UpdateStatus":
			if err := probe.Established(r.ctx, side.api, key.Name); err != nil {
				return err
			}
		}
	}
	if s.verb != "Delete" {
		return nil
	}
	if key.kind == "CustomResourceDefinition" {
		err := probe.Await(r.ctx, key.Name+" to be cleaned up", func(ctx context.Context) (bool, error) {
			u, err := probe.Get(ctx, side.api, probe.Definitions, key.NamespacedName)
			if err != nil {
				return apierrors.IsNotFound(err), err
			}
			return !slices.Contains(u.GetFinalizers(), definitionFinalizer), nil
		})
		if err != nil {
			return err
		}
	}
	return probe.Release(r.ctx, side.api, s.kind.gvk, key.NamespacedName, isCollectors)
}

// isCollectors reports whether a finalizer is the garbage collector's to remove.
func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}
