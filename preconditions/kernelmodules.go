package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
)

func kernelModulesCheck() Check {
	return documented{Rule{
		Name: "KernelModules", Severities: []Severity{Info, Warning, Blocking},
		Source: "Preflight validation for Kernel Module Management (KMM) Modules", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[kernelModule](), gvkOf[PreflightValidation](), gvkOf[preflightV1beta1]()},
		Needs: []string{"TargetKernel"},
	}, kernelModules}
}

const kmmGroup = "kmm.sigs.x-k8s.io"

// kernelModule is a Module: an out-of-tree kernel module.
type kernelModule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// APIKind implements [clusterapi.Kinder].
func (*kernelModule) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kmmGroup, Version: "v1beta1", Kind: "Module"}
}

// PreflightValidation is a PreflightValidationOCP: it asks the operator for kernel
// modules (KMM) to build and verify all modules for a release. It has the fields of
// both generations of the API; see [PreflightValidation.Results]. It is plain data.
type PreflightValidation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PreflightValidationSpec   `json:"spec"`
	Status            PreflightValidationStatus `json:"status,omitzero"`
}

// APIKind implements [clusterapi.Kinder].
func (*PreflightValidation) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kmmGroup, Version: "v1beta2", Kind: "PreflightValidationOCP"}
}

// PreflightValidationSpec says what the modules are verified for: a release image, or
// since KMM of 4.19 a kernel and the driver toolkit that has it. It is plain data.
type PreflightValidationSpec struct {
	ReleaseImage   string `json:"releaseImage,omitempty"`
	KernelVersion  string `json:"kernelVersion,omitempty"`
	DTKImage       string `json:"dtkImage,omitempty"`
	PushBuiltImage bool   `json:"pushBuiltImage,omitempty"`
	UseRTKernel    bool   `json:"useRTKernel,omitempty"`
}

// PreflightValidationStatus says how far the modules are: as a list, or in v1beta1 as
// a map by namespace/name or name. It is plain data.
type PreflightValidationStatus struct {
	Modules    []PreflightModule          `json:"modules,omitempty"`
	CRStatuses map[string]PreflightModule `json:"crStatuses,omitempty"`
}

// PreflightModule is how far one Module is. It is plain data.
type PreflightModule struct {
	Name      string      `json:"name,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Stage     string      `json:"verificationStage,omitempty"`
	Status    string      `json:"verificationStatus,omitempty"`
	Reason    string      `json:"statusReason,omitempty"`
	Since     metav1.Time `json:"lastTransitionTime,omitzero"`
}

// PreflightState is what a PreflightModule comes to.
type PreflightState string

// The states of a [PreflightModule].
const (
	PreflightVerified PreflightState = "Verified"
	PreflightFailed   PreflightState = "Failed"
	PreflightPending  PreflightState = "Pending" // or a word that is not known
)

// State reads the words of both generations, whatever their case.
func (m PreflightModule) State() PreflightState {
	switch strings.ToLower(m.Status) {
	case "true", "success":
		return PreflightVerified
	case "false", "error", "failure":
		return PreflightFailed
	}
	return PreflightPending
}

// Result returns what is reported of a Module; ok is false where nothing is.
func (s PreflightValidationStatus) Result(namespace, name string) (m PreflightModule, ok bool) {
	for _, m := range s.Modules {
		if m.Name == name && (m.Namespace == namespace || m.Namespace == "") {
			return m, true
		}
	}
	if m, ok = s.CRStatuses[namespace+"/"+name]; !ok {
		m, ok = s.CRStatuses[name]
	}
	return m, ok
}

// preflightV1beta1 is the same in the older version of the API.
type preflightV1beta1 struct{ PreflightValidation }

// APIKind implements [clusterapi.Kinder].
func (*preflightV1beta1) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kmmGroup, Version: "v1beta1", Kind: "PreflightValidationOCP"}
}

// kernelModules: out-of-tree kernel modules have been built and verified for the
// kernel of the target.
func kernelModules(ctx context.Context, in *Input) ([]Finding, error) {
	modules, err := list[kernelModule](ctx, in, clusterapi.ListOptions{})
	if err = optionalAPI(err, "out-of-tree kernel modules"); err != nil && len(modules) == 0 {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, &NotApplicableError{Why: "the cluster has no out-of-tree kernel modules"}
	}
	preflights, preflightErr := readPreflights(ctx, in)
	mine := PreflightOf(preflights, in.TargetImage, in.TargetKernel)
	if mine == nil {
		if preflightErr != nil {
			return nil, joinErrors(err, preflightErr)
		}
		if in.TargetKernel == "" && slices.ContainsFunc(preflights, func(p *PreflightValidation) bool { return p.Spec.KernelVersion != "" }) {
			return nil, joinErrors(err, &UnknownError{Reason: "KernelVersionUnknown", Why: "the kernel version of the target is not given, by which preflight validations are told apart here"})
		}
		var objects []Object
		for _, m := range modules {
			objects = append(objects, Object{GVK: gvkOf[kernelModule](), Namespace: m.Namespace, Name: m.Name})
		}
		sortObjects(objects)
		return []Finding{newFinding(Warning, "PreflightNotRun", "Out-of-tree kernel modules have not been verified for the target", objects,
			"Verify them with:\n"+preflightManifest(in))}, err
	}
	var failed []Object
	var pending []string
	for _, m := range modules {
		r, ok := mine.Status.Result(m.Namespace, m.Name)
		o := Object{GVK: gvkOf[kernelModule](), Namespace: m.Namespace, Name: m.Name, Value: r.Status, Note: strings.TrimSuffix(fmt.Sprintf("stage %s: %s", r.Stage, r.Reason), ": ")}
		switch {
		case !ok:
			pending = append(pending, o.fullName()+" (not reported)")
		case r.State() == PreflightFailed:
			failed = append(failed, o)
		case r.State() == PreflightPending:
			pending = append(pending, fmt.Sprintf("%s (%s, stage %s)", o.fullName(), cmp.Or(r.Status, "no status"), r.Stage))
		}
	}
	if len(pending) > 0 {
		err = joinErrors(err, &UnknownError{Reason: "PreflightPending", Why: fmt.Sprintf("preflight validation %s has not verified yet: %s", mine.Name, strings.Join(pending, ", "))})
	}
	if len(failed) > 0 {
		sortObjects(failed)
		return []Finding{newFinding(Blocking, "ModuleNotVerified", "Out-of-tree kernel modules failed to verify for the target", failed,
			"Correct these modules, and run the preflight validation "+mine.Name+" again")}, err
	}
	f := newFinding(Info, "PreflightDone", "Out-of-tree kernel modules are verified for the target", nil, "Delete the preflight validation after use: oc delete preflightvalidationocp "+mine.Name)
	f.Objects = []Object{{GVK: mine.GroupVersionKind(), Name: mine.Name}}
	return []Finding{f}, err
}

// readPreflights reads the preflight validations, in whichever version is served.
func readPreflights(ctx context.Context, in *Input) ([]*PreflightValidation, error) {
	all, err := list[PreflightValidation](ctx, in, clusterapi.ListOptions{})
	if !meta.IsNoMatchError(err) {
		return all, err
	}
	older, err := list[preflightV1beta1](ctx, in, clusterapi.ListOptions{})
	for _, p := range older {
		all = append(all, &p.PreflightValidation)
	}
	if meta.IsNoMatchError(err) {
		err = nil
	}
	return all, err
}

// PreflightOf returns the newest preflight validation for a release, by its image or by
// its kernel. Nil: there is none.
func PreflightOf(all []*PreflightValidation, image, kernel string) *PreflightValidation {
	var found *PreflightValidation
	for _, p := range all {
		s := p.Spec
		of := image != "" && s.ReleaseImage != "" && graph.SameDigest(s.ReleaseImage, image) || kernel != "" && s.KernelVersion == kernel
		if of && (found == nil || found.CreationTimestamp.Before(&p.CreationTimestamp)) {
			found = p
		}
	}
	return found
}

// preflightManifest is what to create.
func preflightManifest(in *Input) string {
	target := "releaseImage: " + cmp.Or(in.TargetImage, "IMAGE")
	if in.TargetKernel != "" {
		target = "kernelVersion: " + in.TargetKernel
	}
	return fmt.Sprintf("apiVersion: %s/v1beta2\nkind: PreflightValidationOCP\nmetadata:\n  name: preflight\nspec:\n  %s\n", kmmGroup, target)
}
