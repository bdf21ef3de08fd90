package remedy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// AnnotationPreflightFor on a PreflightValidationOCP says that [Preflight] created it,
// and for which release; its value is JSON with a format version.
const AnnotationPreflightFor = clusterapi.AnnotationPrefix + "preflight-for"

// Preflight has the operator for out-of-tree kernel modules (KMM) build and verify all
// modules for a release, and reads how far it is. It waits for nothing: ask again.
type Preflight struct {
	// Image is the release. KMM before 4.19 is told of it.
	Image string
	// Kernel is the kernel version of the release, and DTKImage the driver toolkit
	// for it. KMM of 4.19 and later is told of these.
	Kernel, DTKImage string
	// PushBuiltImage has images that were built pushed to their registry.
	PushBuiltImage bool
}

// PreflightProgress is how far a [Preflight] is. It is plain data.
type PreflightProgress struct {
	Name string
	// Created says that this package created the object, which may be deleted.
	Created bool
	// Modules are all Modules of the cluster, by namespace and name. The status of
	// one that is not reported is empty.
	Modules []preconditions.PreflightModule
}

// Done reports whether every module is verified or has failed.
func (p *PreflightProgress) Done() bool { return !p.has(preconditions.PreflightPending) }

// Failed reports whether a module has failed.
func (p *PreflightProgress) Failed() bool { return p.has(preconditions.PreflightFailed) }

func (p *PreflightProgress) has(s preconditions.PreflightState) bool {
	return slices.ContainsFunc(p.Modules, func(m preconditions.PreflightModule) bool { return m.State() == s })
}

// ErrNoPreflight says that no preflight validation was asked for the release.
var ErrNoPreflight = errors.New("no preflight validation was asked for")

// Start asks for the preflight, unless it was asked for already, and returns how far it
// is. Errors are those of reading and writing; a cluster without KMM is one that
// meta.IsNoMatchError recognises.
func (p Preflight) Start(ctx context.Context, api clusterapi.ClusterAPI) (*PreflightProgress, error) {
	gvk, objects, err := p.list(ctx, api)
	if err != nil {
		return nil, err
	}
	if p.find(objects) == nil {
		if err := p.create(ctx, api, gvk); err != nil {
			return nil, err
		}
	}
	return p.Look(ctx, api)
}

// Look reads how far the preflight is. The error is [ErrNoPreflight], or one of reading.
func (p Preflight) Look(ctx context.Context, r clusterapi.Reader) (*PreflightProgress, error) {
	_, objects, err := p.list(ctx, r)
	if err != nil {
		return nil, err
	}
	mine := p.find(objects)
	if mine == nil {
		return nil, ErrNoPreflight
	}
	modules, err := modulesOf(ctx, r, mine)
	if err != nil {
		return nil, err
	}
	_, created, err := readMark(mine.Annotations, AnnotationPreflightFor)
	return &PreflightProgress{Name: mine.Name, Created: created, Modules: modules}, err
}

// Finish deletes the preflight validation of the release if this package created it;
// the documentation advises that. One that reports a module as failed stays: without it
// nothing would block the update any more. If there is none Finish does nothing. Errors
// are a [*BlockedError], which names the modules that failed, and those of reading and
// writing.
func (p Preflight) Finish(ctx context.Context, api clusterapi.ClusterAPI) error {
	gvk, objects, err := p.list(ctx, api)
	if err != nil {
		return err
	}
	for _, o := range objects {
		m, ok, err := readMark(o.Annotations, AnnotationPreflightFor)
		if err != nil {
			return fmt.Errorf("PreflightValidationOCP %s: %w", o.Name, err)
		}
		if !ok || m.For != p.target() {
			continue
		}
		failed, err := failedModules(ctx, api, o)
		if err != nil {
			return err
		}
		if len(failed) > 0 {
			return &BlockedError{Summary: fmt.Sprintf("PreflightValidationOCP %s: modules have failed: %s", o.Name, strings.Join(failed, ", "))}
		}
		err = api.Delete(ctx, gvk, clusterapi.Key("", o.Name), clusterapi.DeleteOptions{UID: o.UID})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("PreflightValidationOCP %s: %w", o.Name, err)
		}
	}
	return nil
}

// failedModules are the Modules that a preflight validation reports as failed, sorted.
func failedModules(ctx context.Context, r clusterapi.Reader, o *preconditions.PreflightValidation) ([]string, error) {
	modules, err := modulesOf(ctx, r, o)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	var failed []string
	for _, m := range modules {
		if m.State() == preconditions.PreflightFailed {
			failed = append(failed, m.Namespace+"/"+m.Name)
		}
	}
	slices.Sort(failed)
	return failed, err
}

// modulesOf are all Modules of the cluster, with what a preflight validation reports.
func modulesOf(ctx context.Context, r clusterapi.Reader, o *preconditions.PreflightValidation) ([]preconditions.PreflightModule, error) {
	modules, err := r.List(ctx, moduleKind, clusterapi.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("kernel modules: %w", err)
	}
	var out []preconditions.PreflightModule
	for _, m := range modules.Items {
		result, _ := o.Status.Result(m.GetNamespace(), m.GetName())
		result.Namespace, result.Name = m.GetNamespace(), m.GetName()
		out = append(out, result)
	}
	return out, nil
}

var (
	preflightKinds = []schema.GroupVersionKind{
		{Group: "kmm.sigs.x-k8s.io", Version: "v1beta2", Kind: "PreflightValidationOCP"},
		{Group: "kmm.sigs.x-k8s.io", Version: "v1beta1", Kind: "PreflightValidationOCP"},
	}
	moduleKind        = schema.GroupVersionKind{Group: "kmm.sigs.x-k8s.io", Version: "v1beta1", Kind: "Module"}
	crdKind           = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	preflightResource = "preflightvalidationsocp.kmm.sigs.x-k8s.io"
)

// list reads all preflight validations in the newest version that is served.
func (p Preflight) list(ctx context.Context, r clusterapi.Reader) (schema.GroupVersionKind, []*preconditions.PreflightValidation, error) {
	var err error
	for _, gvk := range preflightKinds {
		var items []*clusterapi.Object
		if items, err = clusterapi.ListShared(ctx, r, gvk, clusterapi.ListOptions{}); meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			break
		}
		var out []*preconditions.PreflightValidation
		for _, o := range items {
			typed, err := clusterapi.As[preconditions.PreflightValidation](o)
			if err != nil {
				return gvk, nil, err
			}
			out = append(out, typed)
		}
		return gvk, out, nil
	}
	return schema.GroupVersionKind{}, nil, fmt.Errorf("preflight validations: %w", err)
}

// find returns the newest of the release, whoever created it.
func (p Preflight) find(all []*preconditions.PreflightValidation) *preconditions.PreflightValidation {
	return preconditions.PreflightOf(all, p.Image, p.Kernel)
}

// target is what the preflight is for, and what its name is made of.
func (p Preflight) target() string { return cmp.Or(p.Image, p.Kernel) }

func (p Preflight) create(ctx context.Context, api clusterapi.ClusterAPI, gvk schema.GroupVersionKind) error {
	byKernel, err := p.byKernel(ctx, api)
	if err != nil {
		return err
	}
	spec := preconditions.PreflightValidationSpec{PushBuiltImage: p.PushBuiltImage}
	switch {
	case byKernel && p.Kernel == "":
		return errors.New("preflight validation: the kernel version of the release is needed here")
	case byKernel:
		spec.KernelVersion, spec.DTKImage = p.Kernel, p.DTKImage
	case p.Image == "":
		return errors.New("preflight validation: the image of the release is needed here")
	default:
		spec.ReleaseImage = p.Image
	}
	sum := sha256.Sum256([]byte(p.target()))
	o := &preconditions.PreflightValidation{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: "clusterupdate-" + hex.EncodeToString(sum[:6]), Annotations: map[string]string{AnnotationPreflightFor: mark{For: p.target()}.String()},
	}}
	u, err := clusterapi.ToUnstructured(o)
	if err != nil {
		return err
	}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	if _, err := api.Create(ctx, u, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("preflight validation: %w", err)
	}
	return nil
}

// byKernel reports whether KMM wants to be told of a kernel: its definition says so, or
// where that cannot be found, what is known of the release.
func (p Preflight) byKernel(ctx context.Context, r clusterapi.Reader) (bool, error) {
	crd, err := r.Get(ctx, crdKind, clusterapi.Key("", preflightResource))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return p.Image == "", nil
	case err != nil:
		return false, fmt.Errorf("preflight validation: %w", err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if _, ok, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "kernelVersion"); ok {
			return true, nil
		}
	}
	return false, nil
}
