package remedy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// annotationPreflightFor on a PreflightValidationOCP marks what [Preflight] created, and
// has the release that it is for.
const annotationPreflightFor = clusterapi.AnnotationPrefix + "preflight-for"

// Preflight has the operator for out-of-tree kernel modules (KMM) build and verify all
// modules for a release, and reads how far it is. It waits for nothing: ask again.
type Preflight struct {
	// Image is the release. KMM before 4.19 takes it.
	Image string
	// Kernel is the kernel version of the release, and DTKImage the driver toolkit
	// for it. KMM of 4.19 and later takes these.
	Kernel, DTKImage string
	// PushBuiltImage has images that were built pushed to their registry.
	PushBuiltImage bool
}

// PreflightProgress is how far a [Preflight] is. It is plain data.
type PreflightProgress struct {
	Name string
	// Created reports that this package created the object, which may be deleted.
	Created bool
	// Verified, Failed and Pending are the Modules of the cluster as the operator reports
	// them. Those that it does not report are pending.
	Verified, Failed, Pending []preconditions.Object
}

// Done reports whether every module is verified or has failed.
func (p *PreflightProgress) Done() bool { return len(p.Pending) == 0 }

// ErrNoPreflight is the error if no preflight validation was asked for the release.
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
	_, all, err := p.list(ctx, r)
	if err != nil {
		return nil, err
	}
	mine := p.find(all)
	if mine == nil {
		return nil, ErrNoPreflight
	}
	return progressOf(ctx, r, mine)
}

// progressOf reads how far the Modules of the cluster are.
func progressOf(ctx context.Context, r clusterapi.Reader, o *operators.PreflightValidation) (*PreflightProgress, error) {
	modules, err := clusterapi.ReadAll[operators.KernelModule](ctx, r, clusterapi.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("kernel modules: %w", err)
	}
	_, created := o.Annotations[annotationPreflightFor]
	p := &PreflightProgress{Name: o.Name, Created: created}
	for _, m := range modules {
		result, _ := o.Status.Result(m.Namespace, m.Name)
		module := preconditions.Object{GVK: m.APIKind(), Namespace: m.Namespace, Name: m.Name, Value: result.Status, Note: result.Reason}
		switch result.State() {
		case operators.PreflightVerified:
			p.Verified = append(p.Verified, module)
		case operators.PreflightFailed:
			p.Failed = append(p.Failed, module)
		default:
			p.Pending = append(p.Pending, module)
		}
	}
	return p, nil
}

// Finish deletes the preflight validation of the release if this package created it;
// the documentation advises that. One that reports a module as failed stays: without it
// nothing would block the update any more. If there is none Finish does nothing. Errors
// are a [*BlockedError], which names the modules that failed, and those of reading and
// writing.
func (p Preflight) Finish(ctx context.Context, api clusterapi.ClusterAPI) error {
	gvk, all, err := p.list(ctx, api)
	if err != nil {
		return err
	}
	for _, o := range all {
		target, err := readMark(o, annotationPreflightFor)
		if err != nil {
			return fmt.Errorf("PreflightValidationOCP %s: %w", o.Name, err)
		}
		if target != p.target() {
			continue
		}
		if err := p.delete(ctx, api, gvk, o); err != nil {
			return fmt.Errorf("PreflightValidationOCP %s: %w", o.Name, err)
		}
	}
	return nil
}

func (p Preflight) delete(ctx context.Context, api clusterapi.ClusterAPI, gvk schema.GroupVersionKind, o *operators.PreflightValidation) error {
	progress, err := progressOf(ctx, api, o)
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	if progress != nil && len(progress.Failed) > 0 {
		var failed []string
		for _, m := range progress.Failed {
			failed = append(failed, m.Namespace+"/"+m.Name)
		}
		return &BlockedError{Summary: "modules have failed: " + strings.Join(failed, ", ")}
	}
	err = api.Delete(ctx, gvk, clusterapi.Key("", o.Name), clusterapi.DeleteOptions{UID: o.UID})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// list reads all preflight validations in the newest version that is served.
func (p Preflight) list(ctx context.Context, r clusterapi.Reader) (schema.GroupVersionKind, []*operators.PreflightValidation, error) {
	gvk, all, err := operators.Preflights(ctx, r)
	return gvk, all, wrap("preflight validations", err)
}

// find returns the newest of the release, whoever created it.
func (p Preflight) find(all []*operators.PreflightValidation) *operators.PreflightValidation {
	return operators.PreflightOf(all, p.Image, p.Kernel)
}

// target is what the preflight is for, and what its name is made of.
func (p Preflight) target() string { return cmp.Or(p.Image, p.Kernel) }

func (p Preflight) create(ctx context.Context, api clusterapi.ClusterAPI, gvk schema.GroupVersionKind) error {
	byKernel, err := p.byKernel(ctx, api)
	if err != nil {
		return err
	}
	spec := operators.PreflightSpec{PushBuiltImage: p.PushBuiltImage}
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
	o := &operators.PreflightValidation{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: "clusterupdate-" + hex.EncodeToString(sum[:6]),
	}}
	annotate(o, annotationPreflightFor, markFor(p.target()))
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

// byKernel reports whether KMM must be given a kernel: its definition says so or, if
// that cannot be found, what is known of the release.
func (p Preflight) byKernel(ctx context.Context, r clusterapi.Reader) (bool, error) {
	crd, err := r.Get(ctx, crdKind, clusterapi.Key("", "preflightvalidationsocp."+operators.KMMGroup))
	switch {
	case clusterapi.IsMissing(err):
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
