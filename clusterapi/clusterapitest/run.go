package clusterapitest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// differential is one call of [Differential].
type differential struct {
	o     DifferentialOptions
	apis  [2]clusterapi.ClusterAPI
	kinds []*parsed
	used  []bool // by index into o.Meant
	id    string // a random part of all names
	group string // of the custom kinds
	runs  int
}

// patience is how long to wait for what a server does on its own, and for a
// watch to tell what it must.
const patience = 20 * time.Second

func newDifferential(a, b clusterapi.ClusterAPI, o DifferentialOptions) (*differential, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Sequences == 0 {
		o.Sequences = 50
	}
	if o.Length == 0 {
		o.Length = 25
	}
	if o.Failures == 0 {
		o.Failures = 3
	}
	if o.Tries == 0 {
		o.Tries = 150
	}
	for i, m := range o.Meant {
		if m.Reason == "" {
			return nil, fmt.Errorf("difference %d that is meant has no reason: %+v", i, m)
		}
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	d := &differential{o: o, apis: [2]clusterapi.ClusterAPI{a, b}, used: make([]bool, len(o.Meant)), id: hex.EncodeToString(random[:])}
	d.group = "d" + d.id + ".clusterupdate.github.io"
	for _, k := range parsedKinds() {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, k.name) {
			continue
		}
		if k.custom {
			k.gvk.Group = d.group
		}
		d.kinds = append(d.kinds, &k)
	}
	for _, name := range o.Kinds {
		if !slices.Contains(DifferentialKinds(), name) {
			return nil, fmt.Errorf("there is no kind %q: want some of %v", name, DifferentialKinds())
		}
	}
	return d, nil
}

// prepare defines the custom kinds on both backends.
func (d *differential) prepare(ctx context.Context) error {
	for i, api := range d.apis {
		list, _ := parse(strings.ReplaceAll(definitionsOfSequences, "GROUP", d.group)).([]any)
		for _, item := range list {
			content, _ := item.(map[string]any)
			u := &unstructured.Unstructured{Object: content}
			if _, err := api.Create(ctx, u, clusterapi.CreateOptions{}); err != nil {
				return fmt.Errorf("backend %s: creating %s: %w", sideNames[i], u.GetName(), err)
			}
			if err := established(ctx, api, u.GetName()); err != nil {
				return fmt.Errorf("backend %s: %w", sideNames[i], err)
			}
		}
		for _, k := range d.kinds {
			if !k.custom {
				continue
			}
			err := await(ctx, "the kind "+k.name+" to be served", func(ctx context.Context) (bool, error) {
				_, err := api.List(ctx, k.gvk, clusterapi.ListOptions{})
				return err == nil, err
			})
			if err != nil {
				return fmt.Errorf("backend %s: %w", sideNames[i], err)
			}
		}
	}
	return nil
}

// cleanUp deletes what prepare made. What remains is not a fault.
func (d *differential) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, api := range d.apis {
		for _, plural := range []string{"widgets.", "gadgets."} {
			_ = api.Delete(ctx, definitions, clusterapi.Key("", plural+d.group), clusterapi.DeleteOptions{})
		}
	}
}

// read is Get by a backend that may be wrong.
func read(ctx context.Context, api clusterapi.Reader, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := api.Get(ctx, gvk, key)
	if err == nil && (u == nil || u.Object == nil) {
		return nil, errors.New("neither an object nor an error")
	}
	return u, err
}

// established waits for a definition.
func established(ctx context.Context, api clusterapi.Reader, name string) error {
	return await(ctx, name+" to be Established", func(ctx context.Context) (bool, error) {
		crd, err := read(ctx, api, definitions, clusterapi.Key("", name))
		if err != nil {
			return apierrors.IsNotFound(err), err
		}
		return isTrue(crd, "Established") && isTrue(crd, "NamesAccepted") || crd.GetDeletionTimestamp() != nil, nil
	})
}

// await polls until done says so.
func await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s (last error: %w)", what, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// objectKey names an object of a run.
type objectKey struct {
	kind string
	types.NamespacedName
}

var sideNames = [2]string{"a", "b"}

// run is one pass of a sequence over both backends, with names of its own.
type run struct {
	d     *differential
	id    string
	ctx   context.Context
	sides [2]*side
	// retired are objects that the backends may differ in from now on.
	retired map[objectKey]bool
	keys    []objectKey // all that were written, in order
	kinds   []*parsed   // likewise
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), patience)
	defer cancel()
	for _, s := range r.sides {
		for _, w := range s.watches {
			w.cancel()
		}
		for i, key := range r.keys {
			k := r.kinds[i]
			if u, err := read(ctx, s.api, k.gvk, key.NamespacedName); err == nil && len(u.GetFinalizers()) > 0 {
				u.SetFinalizers(nil)
				_, _ = s.api.Update(ctx, u, clusterapi.UpdateOptions{})
			}
			if !k.namespaced {
				_ = s.api.Delete(ctx, k.gvk, key.NamespacedName, clusterapi.DeleteOptions{})
			}
		}
		for _, name := range []string{"one", "two"} {
			_ = s.api.Delete(ctx, namespaces, clusterapi.Key("", r.id+"-"+name), clusterapi.DeleteOptions{})
		}
	}
}

// key gives the symbols of a step the names of the run.
func (r *run) key(s step) types.NamespacedName {
	key := types.NamespacedName{Name: s.name}
	switch {
	case s.kind.namespaced:
		key.Namespace = r.namespace(s.namespace)
	case s.kind.name == "CustomResourceDefinition" && s.name != "":
		key.Name = "things" + s.name + "." + r.id + ".clusterupdate.github.io"
	case s.name != "":
		key.Name = r.id + "-" + s.name
	}
	return key
}

func (r *run) namespace(symbol string) string {
	if symbol == "" {
		return ""
	}
	return r.id + "-" + symbol
}

// fill puts the run's names into a value.
func (r *run) fill(name string, v any) any {
	fill := strings.NewReplacer("RUN", r.id, "NS-x", r.id+"-one", "PLURAL", "things"+name, "SINGULAR", "thing"+name, "KIND", "Thing"+strings.ToUpper(name))
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				v[name] = walk(e)
			}
		case []any:
			for i, e := range v {
				v[i] = walk(e)
			}
		case string:
			return fill.Replace(v)
		}
		return v
	}
	return walk(v)
}

// object makes an object of a step: content with an identity, and the label
// by which the run selects.
func (r *run) object(s step, content map[string]any) *unstructured.Unstructured {
	content, _ = r.fill(s.name, runtime.DeepCopyJSON(content)).(map[string]any)
	u := &unstructured.Unstructured{Object: content}
	r.identify(s, u)
	return u
}

func (r *run) identify(s step, u *unstructured.Unstructured) {
	key := r.key(s)
	u.SetGroupVersionKind(s.kind.gvk)
	m, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		u.Object["metadata"] = m
	}
	for name, v := range map[string]string{"name": key.Name, "namespace": key.Namespace} {
		if v != "" {
			m[name] = v
		} else {
			delete(m, name)
		}
	}
	if m["labels"] == nil {
		m["labels"] = map[string]any{}
	}
	if l, ok := m["labels"].(map[string]any); ok {
		l["run"] = r.id
	}
}

// step makes one call on both sides and compares the answers.
func (r *run) step(i int, s step) []found {
	key := objectKey{s.kind.name, r.key(s)}
	switch s.verb {
	case "List", "Watch":
		if s.verb == "Watch" && s.kind.name == "CustomResourceDefinition" {
			return nil // its controllers write, too, when they come to it
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
	out := diff(i, s.verb, s.kind.name, answers[0], answers[1])
	if (errs[0] == nil) != (errs[1] == nil) {
		r.retire(key)
	}
	if s.verb == "Delete" && errs[0] == nil && s.kind.name == "Namespace" {
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
	// What the call depends on is read before, unless there is no such name.
	var stored *unstructured.Unstructured
	if key.Name != "" && (key.Namespace != "" || !s.kind.namespaced) {
		if u, err := read(r.ctx, api, gvk, key.NamespacedName); err == nil {
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
		uid = "00000000-aaaa-bbbb-cccc-000000000000"
	case s.uid == "right" && stored != nil:
		uid = stored.GetUID()
	}
	var in, out *unstructured.Unstructured
	var before map[string]any
	var err error
	f := fields{}
	switch s.verb {
	case "Create", "Apply":
		in = r.object(s, s.body)
	case "Update", "UpdateStatus":
		if stored != nil {
			in = stored.DeepCopy()
		} else {
			in = r.object(s, s.kind.object)
		}
		for _, e := range s.edits {
			e.value = r.fill(s.name, runtime.DeepCopyJSONValue(e.value))
			e.do(in.Object)
		}
		r.identify(s, in)
		unstructured.RemoveNestedField(in.Object, "metadata", "resourceVersion")
	}
	if in != nil {
		if version != "" {
			put(in.Object, []string{"metadata", "resourceVersion"}, version)
		}
		if uid != "" {
			put(in.Object, []string{"metadata", "uid"}, string(uid))
		}
		before = in.DeepCopy().Object
	}
	switch s.verb {
	case "Get":
		out, err = api.Get(ctx, gvk, key.NamespacedName)
	case "Create":
		out, err = api.Create(ctx, in, clusterapi.CreateOptions{FieldManager: s.manager})
	case "Apply":
		out, err = api.Apply(ctx, in, clusterapi.ApplyOptions{FieldManager: s.manager})
	case "Update":
		out, err = api.Update(ctx, in, clusterapi.UpdateOptions{FieldManager: s.manager})
	case "UpdateStatus":
		out, err = api.UpdateStatus(ctx, in, clusterapi.UpdateOptions{FieldManager: s.manager})
	case "Delete":
		err = api.Delete(ctx, gvk, key.NamespacedName, clusterapi.DeleteOptions{UID: uid, ResourceVersion: version, Propagation: s.propagation})
	case "Evict":
		err = api.Evict(ctx, key.NamespacedName, clusterapi.EvictOptions{UID: uid, GracePeriodSeconds: s.grace})
	}
	f.addError(r, err)
	if s.verb != "Delete" && s.verb != "Evict" && err == nil {
		f.addObject(r, side, s.kind, out)
	}
	if in != nil && !reflect.DeepEqual(in.Object, before) {
		f["argument"] = "changed"
	}
	if err == nil {
		if late := r.settle(side, s, key); late != nil {
			f["settled"] = late.Error()
		}
	}
	spoil(in)
	spoil(out)
	return f, err
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

// spoil changes an object, which must not matter to anybody else.
func spoil(u *unstructured.Unstructured) {
	if u == nil || u.Object == nil {
		return
	}
	for _, v := range u.Object {
		if m, ok := v.(map[string]any); ok {
			m["spoilt"] = "spoilt"
			for _, below := range m {
				if m, ok := below.(map[string]any); ok {
					m["spoilt"] = "spoilt"
				}
			}
		}
	}
}

// settle waits for what a server does by itself after a write, and does what a
// garbage collector would.
func (r *run) settle(side *side, s step, key objectKey) error {
	if key.kind == "CustomResourceDefinition" {
		switch s.verb {
		case "Create", "Apply", "Update", "UpdateStatus":
			if err := established(r.ctx, side.api, key.Name); err != nil {
				return err
			}
		}
	}
	if s.verb != "Delete" {
		return nil
	}
	if key.kind == "CustomResourceDefinition" {
		err := await(r.ctx, key.Name+" to be cleaned up", func(ctx context.Context) (bool, error) {
			u, err := read(ctx, side.api, definitions, key.NamespacedName)
			if err != nil {
				return apierrors.IsNotFound(err), err
			}
			return !slices.Contains(u.GetFinalizers(), definitionFinalizer), nil
		})
		if err != nil {
			return err
		}
	}
	for range 5 {
		u, err := read(r.ctx, side.api, s.kind.gvk, key.NamespacedName)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return err
		}
		finalizers := u.GetFinalizers()
		rest := slices.DeleteFunc(slices.Clone(finalizers), isCollectors)
		if len(rest) == len(finalizers) {
			return nil
		}
		u.SetFinalizers(rest)
		_, err = side.api.Update(r.ctx, u, clusterapi.UpdateOptions{FieldManager: "first"})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("finalizers of %s cannot be removed", key.Name)
}

// isCollectors tells whether a finalizer is the garbage collector's to remove.
func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// selection makes the options of a list or a watch.
func (r *run) selection(s step) clusterapi.ListOptions {
	text := "run=" + r.id
	if s.selector != "" {
		text += "," + s.selector
	}
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err) // selectors are constants of the generator
	}
	return clusterapi.ListOptions{Namespace: r.namespace(s.namespace), Labels: selector, NodeName: s.node, Limit: s.limit}
}

// list compares two lists: the order, and each object that both have.
func (r *run) list(i int, s step) []found {
	var answers [2]fields
	var items [2]map[string]fields
	for n, side := range r.sides {
		ctx, cancel := context.WithCancel(r.ctx)
		if s.ended {
			cancel()
		}
		answers[n], items[n] = r.listOne(ctx, side, s)
		cancel()
	}
	out := diff(i, s.verb, s.kind.name, answers[0], answers[1])
	if len(out) > 0 {
		return out
	}
	for name := range items[0] {
		out = append(out, diff(i, s.verb, s.kind.name, items[0][name], items[1][name])...)
	}
	return out
}

func (r *run) listOne(ctx context.Context, side *side, s step) (fields, map[string]fields) {
	opts := r.selection(s)
	if r.anyRetired(s.kind.name) {
		opts.Limit = 0 // the retired ones would count
	}
	l, err := side.api.List(ctx, s.kind.gvk, opts)
	f, items := fields{}, map[string]fields{}
	f.addError(r, err)
	if err != nil {
		return f, items
	}
	if l == nil {
		f["list"] = "nil"
		return f, items
	}
	var order []string
	for i := range l.Items {
		u := &l.Items[i]
		if r.retired[objectKey{s.kind.name, clusterapi.KeyOf(u)}] {
			continue
		}
		name := r.plain(clusterapi.KeyOf(u).String())
		order = append(order, name)
		items[name] = fields{}
		items[name].addObject(r, side, s.kind, u)
		spoil(u)
	}
	f["order"] = strings.Join(order, " ")
	return f, items
}

func (r *run) anyRetired(kind string) bool {
	for key := range r.retired {
		if key.kind == kind {
			return true
		}
	}
	return false
}

// final compares all objects that the run has written.
func (r *run) final(i int) []found {
	var out []found
	for n, key := range r.keys {
		if r.retired[key] || key.Name == "" || r.kinds[n].namespaced && key.Namespace == "" {
			continue
		}
		var answers [2]fields
		for m, side := range r.sides {
			u, err := side.api.Get(r.ctx, r.kinds[n].gvk, key.NamespacedName)
			f := fields{}
			f.addError(r, err)
			if err == nil {
				f.addObject(r, side, r.kinds[n], u)
				if key.kind == "CustomResourceDefinition" {
					f.addDefinitionStatus(r, u)
				}
			}
			answers[m] = f
		}
		out = append(out, diff(i, "Final", key.kind, answers[0], answers[1])...)
	}
	return out
}

// addDefinitionStatus adds what of a definition's status does not depend on
// when its controllers came to it.
func (f fields) addDefinitionStatus(r *run, u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	for _, condition := range []string{"Established", "NamesAccepted"} {
		f["status."+condition] = fmt.Sprint(isTrue(u, condition))
	}
	for _, name := range []string{"acceptedNames", "storedVersions"} {
		if v := at(u, "status", name); v != nil {
			f.add("status."+name, r.hide(v))
		}
	}
}
