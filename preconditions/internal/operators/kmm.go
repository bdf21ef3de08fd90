package operators

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// KMMGroup is the group of the API of the operator for out-of-tree kernel modules.
const KMMGroup = "kmm.sigs.x-k8s.io"

// KernelModule is a Module: an out-of-tree kernel module.
type KernelModule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// APIKind implements [clusterapi.Kinder].
func (*KernelModule) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: KMMGroup, Version: "v1beta1", Kind: "Module"}
}

// PreflightValidation is a PreflightValidationOCP: it asks the operator to build and
// verify all modules for a release. It has the fields of both generations of the API.
type PreflightValidation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PreflightSpec   `json:"spec"`
	Status            PreflightStatus `json:"status,omitzero"`
}

// APIKind implements [clusterapi.Kinder].
func (*PreflightValidation) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: KMMGroup, Version: "v1beta2", Kind: "PreflightValidationOCP"}
}

// PreflightV1beta1 is the same in the older version of the API.
type PreflightV1beta1 struct{ PreflightValidation }

// APIKind implements [clusterapi.Kinder].
func (*PreflightV1beta1) APIKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: KMMGroup, Version: "v1beta1", Kind: "PreflightValidationOCP"}
}

// PreflightSpec describes what the modules are verified for: a release image, or
// since KMM of 4.19 a kernel and the driver toolkit that has it.
type PreflightSpec struct {
	ReleaseImage   string `json:"releaseImage,omitempty"`
	KernelVersion  string `json:"kernelVersion,omitempty"`
	DTKImage       string `json:"dtkImage,omitempty"`
	PushBuiltImage bool   `json:"pushBuiltImage,omitempty"`
	UseRTKernel    bool   `json:"useRTKernel,omitempty"`
}

// PreflightStatus describes how far the modules are: as a list, or in v1beta1 as a
// map by namespace/name or name.
type PreflightStatus struct {
	Modules    []PreflightModule          `json:"modules,omitempty"`
	CRStatuses map[string]PreflightModule `json:"crStatuses,omitempty"`
}

// PreflightModule is how far one Module is.
type PreflightModule struct {
	Name      string      `json:"name,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Stage     string      `json:"verificationStage,omitempty"`
	Status    string      `json:"verificationStatus,omitempty"`
	Reason    string      `json:"statusReason,omitempty"`
	Since     metav1.Time `json:"lastTransitionTime,omitzero"`
}

// PreflightState is what a [PreflightModule] comes to.
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

// Result returns what is reported of a Module; ok is false if nothing is.
func (s PreflightStatus) Result(namespace, name string) (m PreflightModule, ok bool) {
	for _, m := range s.Modules {
		if m.Name == name && (m.Namespace == namespace || m.Namespace == "") {
			return m, true
		}
	}
	for _, key := range []string{namespace + "/" + name, name} {
		if m, ok := s.CRStatuses[key]; ok {
			return m, true
		}
	}
	return m, false
}

// Preflights reads all preflight validations in the newest version of the API that is
// served, and returns that. Errors are those of reading; if none is served it is one that
// meta.IsNoMatchError recognises.
func Preflights(ctx context.Context, r clusterapi.Reader) (schema.GroupVersionKind, []*PreflightValidation, error) {
	all, err := facts.List[PreflightValidation](ctx, r, clusterapi.ListOptions{})
	if !meta.IsNoMatchError(err) {
		return new(PreflightValidation).APIKind(), all, err
	}
	older, err := facts.List[PreflightV1beta1](ctx, r, clusterapi.ListOptions{})
	for _, p := range older {
		all = append(all, &p.PreflightValidation)
	}
	return new(PreflightV1beta1).APIKind(), all, err
}

// PreflightOf returns the newest preflight validation for a release, by its image or by
// its kernel. Nil if absent.
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
