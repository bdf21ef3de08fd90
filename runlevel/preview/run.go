package preview

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// run is a preview under way. It is what the applier of the pass writes to: a fork
// of the cluster, and notes on the outcome for each object.
type run struct {
	*memory.Cluster
	o          Options
	hider      fieldchange.Hider
	base       *base
	objects    map[ref]*note
	configs    map[ref]bool // configuration that was read
	failures   []failure    // of tasks
	schemas    map[schema.GroupVersionKind]map[string]any
	groups     []*group
	plurals    map[schema.GroupKind]string // of custom resources
	namespaces map[string]bool             // that are taken to exist
	made       []string                    // namespaces that operators make once they run
}

// note is what is known of an object.
type note struct {
	gvk     schema.GroupVersionKind
	key     types.NamespacedName
	old     *clusterapi.Object // before the first task about it; nil if absent
	unknown error              // whether there was one is unknown
	fault   error              // of a task
	refused int                // the index of that task
	deletes []Dependents       // what went with it
	adopted bool               // fields of others became ours
	answer  *Answer            // of Options.Server
}

func newRun(o Options) *run {
	b := &base{reader: o.Reader, states: make(map[ref]*clusterapi.Object)}
	return &run{
		Cluster: memory.New(memory.Options{Base: b, Clock: o.Clock, CheckNamespaces: true}),
		o:       o, hider: fieldchange.NewHider(o.Key), base: b, objects: make(map[ref]*note), configs: make(map[ref]bool),
	}
}

// pass runs the tasks. Every node ends at once, since nothing is awaited.
func (r *run) pass(ctx context.Context, tasks []*manifest.Task) error {
	pass, err := runlevel.NewPass(tasks, runlevel.Options{
		API: r, Mode: r.o.Mode, Adopt: r.o.Adopt, State: runlevel.Updating, Workers: 1, Filter: r.o.Filter, Owner: r.o.Owner, Clock: r.o.Clock,
		Backoff: &runlevel.Backoff{Steps: 1}, SkipChecks: true,
		Wrap: func(a runlevel.Applier) runlevel.Applier { return noting{r, a}.apply },
	})
	if err != nil {
		return err
	}
	for keys := pass.Keys(); len(keys) > 0 && r.base.failure() == nil && ctx.Err() == nil; keys = keys[1:] {
		step, err := pass.Reconcile(ctx, reconcile.Request{Key: keys[0], Now: r.o.Clock.Now()})
		if err != nil {
			return fmt.Errorf("preview: %w", err)
		}
		for _, ready := range step.Wake {
			keys = append(keys, ready.Key)
		}
	}
	if err := errors.Join(ctx.Err(), r.base.failure()); err != nil {
		return fmt.Errorf("preview: %w", err)
	}
	_, err = pass.Result()
	if err != nil {
		return err
	}
	return r.retry(ctx)
}

// failure is a task that has failed, and how to try it again.
type failure struct {
	note *note
	try  func(context.Context) error
}

// retry tries again what has failed, as the next passes of an update do, until
// nothing more succeeds: a custom resource may come before its definition, from
// another component.
func (r *run) retry(ctx context.Context) error {
	for left := -1; len(r.failures) != left; {
		left = len(r.failures)
		failures := r.failures
		r.failures = nil
		for _, f := range failures {
			err := f.try(ctx)
			if err := errors.Join(ctx.Err(), r.base.failure()); err != nil {
				return fmt.Errorf("preview: %w", err)
			}
			f.note.fault = err
			if err != nil {
				r.failures = append(r.failures, f)
			}
		}
	}
	return nil
}

// noting is the applier of the pass: what fails is noted, and the pass continues.
type noting struct {
	run   *run
	inner runlevel.Applier
}

func (n noting) apply(ctx context.Context, t *manifest.Task, state runlevel.State) error {
	note := n.run.note(ctx, t.Manifest.GVK(), clusterapi.KeyOf(t.Manifest.Object()))
	err := n.inner(ctx, t, state)
	if failed := n.run.base.failure(); failed != nil {
		return &runlevel.TaskError{Message: failed.Error(), Err: failed}
	}
	if ctx.Err() != nil {
		return err
	}
	if err != nil && note.fault == nil {
		note.fault, note.refused = err, t.Index
		n.run.failures = append(n.run.failures, failure{note, func(ctx context.Context) error { return n.inner(ctx, t, state) }})
	}
	return nil
}

// note starts, or continues with, the notes of an object.
func (r *run) note(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) *note {
	at := refOf(gvk, key)
	if n := r.objects[at]; n != nil {
		return n
	}
	n := &note{gvk: gvk, key: key}
	r.objects[at] = n
	old, err := r.GetShared(ctx, gvk, key)
	if err != nil {
		// The fork knows kinds as wholes: other objects of this one may be missing,
		// and this one not. And it assumes that there are no objects of a kind that
		// the release has just defined, while the cluster may have had the kind
		// before.
		_, asked := r.base.GetShared(ctx, gvk, key)
		if clusterapi.IsAbsent(asked) {
			err = asked
		}
	}
	switch {
	case err == nil:
		n.old = old
	case !clusterapi.IsMissing(err):
		n.unknown = err
	}
	return n
}

// Get notes what is read to be put into other objects.
func (r *run) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	r.looksAt(gvk, key)
	u, err := r.Cluster.Get(ctx, gvk, key)
	return u, r.asNew(gvk, key, err)
}

// GetShared notes as Get does.
func (r *run) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	r.looksAt(gvk, key)
	o, err := r.Cluster.GetShared(ctx, gvk, key)
	return o, r.asNew(gvk, key, err)
}

// asNew makes the error of an object of the release that was not collected one that
// reports that there is none, for a mode that reads before it writes: it is to be
// stored as if it were new.
func (r *run) asNew(gvk schema.GroupVersionKind, key types.NamespacedName, err error) error {
	n := r.objects[refOf(gvk, key)]
	if r.o.Mode != runlevel.ApplyMerge || !errors.Is(err, clusterapi.ErrNotCollected) || n == nil || n.unknown == nil || gvk.GroupKind() == operatorGroup {
		return err
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// Shares reports that the methods here are the ones to call.
func (r *run) Shares(reader clusterapi.Reader) bool { return reader == clusterapi.Reader(r) }

func (r *run) looksAt(gvk schema.GroupVersionKind, key types.NamespacedName) {
	if at := refOf(gvk, key); r.objects[at] == nil {
		r.configs[at] = true
	}
}

func (r *run) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	stored, err := r.Cluster.Create(ctx, obj, o)
	r.ask(ctx, obj, stored, err, func(s Server) (*unstructured.Unstructured, error) { return s.Create(ctx, obj, o) })
	return stored, err
}

func (r *run) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	stored, err := r.Cluster.Apply(ctx, obj, o)
	r.ask(ctx, obj, stored, err, func(s Server) (*unstructured.Unstructured, error) {
		if state := r.base.state(refOf(obj.GroupVersionKind(), clusterapi.KeyOf(obj))); state != nil && err == nil && r.note(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj)).adopted {
			return r.askUpdate(ctx, s, stored, o.FieldManager) // the server has not stored what the apply is based on
		}
		return s.Apply(ctx, obj, o)
	})
	return stored, err
}

func (r *run) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	stored, err := r.Cluster.Update(ctx, obj, o)
	if r.o.Mode == runlevel.ApplyServerSide { // which updates an object to adopt its fields alone
		n := r.note(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
		n.adopted = n.adopted || err == nil
		return stored, err
	}
	r.ask(ctx, obj, stored, err, func(s Server) (*unstructured.Unstructured, error) { return r.askUpdate(ctx, s, obj, o.FieldManager) })
	return stored, err
}

// askUpdate asks for an update of the object that the server has.
func (r *run) askUpdate(ctx context.Context, s Server, obj *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	asked := obj.DeepCopy()
	if state := r.base.state(refOf(obj.GroupVersionKind(), clusterapi.KeyOf(obj))); state != nil {
		asked.SetResourceVersion(state.ResourceVersion()) // the fork has its own
	}
	return s.Update(ctx, asked, clusterapi.UpdateOptions{FieldManager: manager})
}

func (r *run) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	dependents, err := r.dependents(ctx, gvk, key)
	if err != nil {
		return err
	}
	err = r.Cluster.Delete(ctx, gvk, key, o)
	n := r.note(ctx, gvk, key)
	n.deletes = nil
	if err == nil {
		n.deletes = dependents
	}
	if r.o.Server != nil && n.answer == nil {
		asked := r.o.Server.Delete(ctx, gvk, key, o)
		if refusal(asked) != refusal(err) {
			n.answer = &Answer{Error: refusal(asked), Accepts: asked == nil}
		}
	}
	return err
}

// refusal is the text of an error; of an object that is not there, none.
func refusal(err error) string {
	if err == nil || apierrors.IsNotFound(err) {
		return ""
	}
	return err.Error()
}
