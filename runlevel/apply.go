package runlevel

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// applier is the [Applier] that works on a cluster: it writes an object as its mode
// says, then looks at the server's answer.
type applier struct {
	api       API
	mode      Mode
	managers  []string                   // whose fields are adopted
	created   map[manifest.Identity]bool // objects that a manifest only creates
	owner     *metav1.OwnerReference
	tracker   *Tracker
	log       *slog.Logger
	awaitJobs bool
	// skipChecks takes what was written as done
	skipChecks  bool
	tell        func(t *manifest.Task, kind clusterapi.EventType, message string, drift *Drift)
	doubles     map[*manifest.Task]*double
	deletes     map[deletionKey]bool // objects that the release deletes
	definitions definitions
	trusts      bool // relies on what watches show
	reports     bool // reports what has drifted
}

func (a *applier) Apply(ctx context.Context, t *manifest.Task, state State) error {
	m := t.Manifest
	if isClusterOperator(m) {
		return a.clusterOperator(ctx, t, state)
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
	var stored *clusterapi.Object
	var err error
	if m.CreatesOnly() {
		stored, err = a.create(ctx, t)
	} else {
		stored, err = a.applyOnce(ctx, t, state != Initializing)
	}
	if err != nil {
		return err
	}
	a.applied(m)
	if stored == nil || state == Initializing || a.skipChecks {
		return nil
	}
	return a.check(t, stored)
}

// create creates an object that does not exist. It returns nil for one that
// does.
func (a *applier) create(ctx context.Context, t *manifest.Task) (*clusterapi.Object, error) {
	if a.exists(t) {
		return nil, nil
	}
	obj, err := a.prepare(ctx, []*manifest.Task{t})
	if err != nil {
		return nil, err
	}
	if a.mode == ApplyMerge { // reads before it writes, always
		_, err := clusterapi.GetShared(ctx, a.api, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	a.reportGone(t, a.drifted(t))
	stored, err := a.createNew(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return nil, nil
	}
	return stored, err
}

// prepare returns the object to apply: the manifests', which are about the same
// one, with owners and what the cluster's configuration adds, without status and
// fields that the schema lacks. It must not be changed.
func (a *applier) prepare(ctx context.Context, tasks []*manifest.Task) (*unstructured.Unstructured, error) {
	if len(tasks) == 1 {
		obj, err := a.statement(tasks[0], tasks[0].Manifest.Object().GetAPIVersion())
		if err != nil {
			return nil, err
		}
		return a.inject(ctx, obj)
	}
	version := tasks[len(tasks)-1].Manifest.Object().GetAPIVersion()
	objs := make([]*unstructured.Unstructured, 0, len(tasks))
	for _, t := range tasks {
		obj, err := a.statement(t, version)
		if err != nil {
			return nil, err
		}
		objs = append(objs, obj.DeepCopy())
	}
	return a.inject(ctx, a.merge(tasks, objs))
}

// statement is what one manifest says of its object on every cluster, before owners and
// the cluster's configuration are looked at.
type statement struct {
	obj     *unstructured.Unstructured // never changed
	unknown []string                   // fields that were left out
}

// statementKey is what a statement depends on besides its manifest.
type statementKey struct {
	version string
	defined *manifest.Manifest // the definition of the kind that the payload has, or nil
}

// statement returns what a manifest says. It must not be changed.
func (a *applier) statement(t *manifest.Task, version string) (*unstructured.Unstructured, error) {
	defined := a.definitions[t.Manifest.GVK().GroupKind()]
	made := func() (statement, error) { return newStatement(t.Manifest, version, defined) }
	var s statement
	var err error
	switch len(defined) {
	case 0:
		s, err = manifest.Derived(t.Manifest, statementKey{version: version}, made)
	case 1:
		s, err = manifest.Derived(t.Manifest, statementKey{version, defined[0]}, made)
	default:
		s, err = made()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Manifest, err)
	}
	if len(s.unknown) > 0 {
		a.warnUnknown(t, s.unknown)
	}
	return a.owned(s.obj), nil
}

// newStatement works out what a manifest says.
func newStatement(m *manifest.Manifest, version string, defined []*manifest.Manifest) (statement, error) {
	obj := bare(m.Object())
	if isClusterOperator(m) {
		unstructured.RemoveNestedField(obj.Object, "spec") // the operator's own
	}
	obj.SetAPIVersion(version)
	removed, err := removeUnknown(obj)
	if err == nil && len(defined) > 0 {
		removed, err = removeUndefined(obj, merged(defined))
	}
	return statement{obj: obj, unknown: removed}, err
}

// warnUnknown reports which fields of a manifest are not applied.
func (a *applier) warnUnknown(t *manifest.Task, paths []string) {
	a.warn(t, fmt.Sprintf("%s: not applied, since the schema lacks them: %s", t.Manifest, list(paths)))
}

// warn reports something odd about a manifest, once.
func (a *applier) warn(t *manifest.Task, text string) {
	if a.tracker.warnOnce(text) {
		a.tell(t, EventWarning, text, nil)
	}
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

// owned returns an object with the ClusterVersion as its owner, unless the manifest names
// owners of another kind: then these alone. It shares all else with obj.
func (a *applier) owned(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if a.owner == nil {
		return obj
	}
	owners := slices.DeleteFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.Kind == "ClusterVersion"
	})
	if len(owners) == 0 {
		ref := metav1.OwnerReference{
			APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion",
			Name: a.owner.Name, UID: a.owner.UID,
		}
		if obj.GetAnnotations()[annotationCreateOnly] != "true" {
			controller := true
			ref.Controller = &controller
		}
		owners = []metav1.OwnerReference{ref}
	}
	out := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	out.Object["metadata"] = maps.Clone(metadata)
	out.SetOwnerReferences(owners)
	return out
}
