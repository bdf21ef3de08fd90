package runlevel

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

const (
	annotationCreateOnly = "release.openshift.io/create-only"
	annotationDelete     = "release.openshift.io/delete"
)

// Kinds with rules of their own. Other versions of them have none.
var (
	clusterOperatorKind = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"}
	deploymentKind      = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	daemonSetKind       = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	jobKind             = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	crdKind             = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	configMapKind       = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// applier is the [Applier] that works on a cluster: by one forced server-side
// apply per object, then a look at what came back.
type applier struct {
	api       API
	owner     *metav1.OwnerReference
	tracker   *Tracker
	clock     clock.WithTicker
	log       *slog.Logger
	awaitJobs bool
	tell      func(*manifest.Task, Event)
	// managers has the field managers of tasks that have not the usual one.
	managers map[*manifest.Task]string
}

// extraManagers gives every further manifest of the same resource a field
// manager of its own. By the same one, each apply would take back what the
// other one set, in every pass; so both hold.
func extraManagers(tasks []*manifest.Task, included func(*manifest.Manifest) bool) map[*manifest.Task]string {
	first := make(map[manifest.Identity]*manifest.Task, len(tasks))
	doubles := make(map[manifest.Identity][]*manifest.Task)
	for _, t := range tasks {
		id := t.Manifest.Identity()
		if one, ok := first[id]; !ok {
			first[id] = t
		} else if len(doubles[id]) == 0 {
			doubles[id] = []*manifest.Task{one, t}
		} else {
			doubles[id] = append(doubles[id], t)
		}
	}
	managers := make(map[*manifest.Task]string)
	for _, list := range doubles {
		n := 0
		for _, t := range list {
			if !included(t.Manifest) {
				continue
			}
			if n++; n > 1 {
				managers[t] = fmt.Sprintf("%s-%d", clusterapi.ManagerPayload, n)
			}
		}
	}
	return managers
}

// manager returns the field manager of a task.
func (a *applier) manager(t *manifest.Task) string {
	if name, ok := a.managers[t]; ok {
		return name
	}
	return clusterapi.ManagerPayload
}

func (a *applier) Apply(ctx context.Context, t *manifest.Task, state State) error {
	m := t.Manifest
	if isClusterOperator(m) {
		return a.clusterOperator(ctx, m, state)
	}
	if state == Precreating {
		return nil
	}
	if value, ok := m.Annotations()[annotationDelete]; ok {
		if value != "true" {
			return fmt.Errorf("invalid delete annotation %q value: %q", annotationDelete, value)
		}
		return a.delete(ctx, t, state)
	}
	obj, err := a.prepare(ctx, t)
	if err != nil {
		return err
	}
	stored, err := a.write(ctx, obj, a.manager(t))
	if err != nil || stored == nil || state == Initializing {
		return err
	}
	return a.check(ctx, t, stored)
}

// write makes obj true. It returns the object as stored, or nil when it was
// to be created only and exists.
func (a *applier) write(ctx context.Context, obj *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	if strings.EqualFold(obj.GetAnnotations()[annotationCreateOnly], "true") {
		stored, err := a.api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: manager})
		if apierrors.IsAlreadyExists(err) {
			return nil, nil
		}
		return stored, err
	}
	return a.api.Apply(ctx, obj, clusterapi.ApplyOptions{FieldManager: manager})
}

// prepare returns the object to apply: the manifest's, with owners and what
// the cluster's configuration adds, without status and fields that the schema
// lacks.
func (a *applier) prepare(ctx context.Context, t *manifest.Task) (*unstructured.Unstructured, error) {
	obj := bare(t.Manifest.Object)
	a.setOwners(obj)
	if err := a.inject(ctx, obj); err != nil {
		return nil, err
	}
	removed, err := removeUnknown(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Manifest, err)
	}
	if len(removed) > 0 {
		text := fmt.Sprintf("%s: not applied, since the schema lacks them: %s", t.Manifest, strings.Join(removed, ", "))
		if a.tracker.warnOnce(text) {
			a.tell(t, Event{Type: Warning, Message: text})
		}
	}
	return obj, nil
}

// bare returns a copy of a manifest's object without status and without the
// metadata that only a server sets.
func bare(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	unstructured.RemoveNestedField(obj.Object, "status")
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return obj
}

// setOwners makes the ClusterVersion the owner, unless the manifest names
// owners of another kind: then these alone.
func (a *applier) setOwners(obj *unstructured.Unstructured) {
	if a.owner == nil {
		return
	}
	var others []metav1.OwnerReference
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind != "ClusterVersion" {
			others = append(others, ref)
		}
	}
	if len(others) > 0 {
		obj.SetOwnerReferences(others)
		return
	}
	ref := metav1.OwnerReference{
		APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion",
		Name: a.owner.Name, UID: a.owner.UID,
	}
	if obj.GetAnnotations()[annotationCreateOnly] != "true" {
		controller := true
		ref.Controller = &controller
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{ref})
}
