package manifest

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io/fs"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Payload is what [Load] reads from a release image. It is read-only, and so
// safe for concurrent use.
type Payload struct {
	// Release is the release: its version, the image given to Load, URL,
	// channels and architecture.
	Release configv1.Release
	// Previous are the versions that may update to the release, Next those
	// that it may update to, as release-metadata lists them.
	Previous, Next []string
	// Metadata is the free-form metadata of the release.
	Metadata map[string]any
	// Manifests are those that [LoadOptions.Filter] includes, in their order:
	// first those of manifests/, then those of release-manifests/. Which of
	// them apply with a cluster's capabilities and overrides is asked of
	// [Payload.Included].
	Manifests []*Manifest
	// Excluded are the excluded manifests, in the same order, each with its verdict.
	Excluded []Exclusion
	// Images maps the short names of component images to pull specs.
	Images map[string]string
	// Hash stands for Manifests. It becomes the ClusterVersion's
	// status.versionHash.
	Hash string
	// Warnings say what was skipped or not understood, in order.
	Warnings []Warning
}

// Exclusion is a manifest that does not apply to a cluster, and why.
type Exclusion struct {
	Manifest *Manifest
	Verdict
}

// Warning is something in a payload that does not keep it from being used.
type Warning struct {
	// File is the path within the payload.
	File string
	// Document is the object's place in its file, from 1; 0: the whole file.
	Document int
	Message  string
	// Rule is the rule of [Lint] that the warning is of; empty for none.
	Rule string
}

// String returns file, document and message in one line.
func (w Warning) String() string {
	if w.Document == 0 {
		return fmt.Sprintf("%s: %s", w.File, w.Message)
	}
	return fmt.Sprintf("%s, document %d: %s", w.File, w.Document, w.Message)
}

// Operator is a ClusterOperator of a payload and what makes it up.
type Operator struct {
	// Name is the ClusterOperator's name.
	Name string
	// Versions are those that the operator has to report.
	Versions []configv1.OperandVersion
	// Component is the component in the manifest's file name; empty if the name has
	// none.
	Component string
	// Manifest is the ClusterOperator itself.
	Manifest *Manifest
	// Workloads are the Deployments, DaemonSets, StatefulSets, Jobs
	// and CronJobs of the same component that come before the ClusterOperator,
	// in the payload's order: an update does not get to later ones before the
	// operator is done. Manifests that ask for their object to be deleted do
	// not count. The list is read-only: operators of one component share it.
	Workloads []*Manifest
}

// Image returns the pull spec of a component image. A name that the payload
// does not have is an error.
func (p *Payload) Image(name string) (string, error) {
	image, ok := p.Images[name]
	if !ok {
		return "", fmt.Errorf("error: Unknown name requested, could not find %s in UpdatePayload", name)
	}
	return image, nil
}

// Included returns which of p.Manifests a pass with the filter f applies, and
// excludes, each with its verdict; both in order. What p.Excluded holds is in
// neither.
func (p *Payload) Included(f Filter) (included []*Manifest, excluded []Exclusion) {
	for _, m := range p.Manifests {
		if v := f.Judge(m); v.Included {
			included = append(included, m)
		} else {
			excluded = append(excluded, Exclusion{Manifest: m, Verdict: v})
		}
	}
	return included, excluded
}

// Tasks returns one task for each of p.Manifests, in order; a pass skips those
// that its filter excludes.
func (p *Payload) Tasks() []*Task { return NewTasks(p.Manifests) }

// Operators returns the ClusterOperators among p.Manifests, in their order,
// whatever capabilities they need.
func (p *Payload) Operators() []Operator {
	var operators []Operator
	workloads := make(map[string][]*Manifest)
	for _, m := range p.Manifests {
		gk := m.GVK().GroupKind()
		_, component, _ := ParseName(m.Filename)
		switch {
		case gk == clusterOperatorKind:
			operators = append(operators, Operator{
				Name: m.Identity().Name, Versions: m.OperandVersions(), Component: component, Manifest: m,
				Workloads: slices.Clip(workloads[component]),
			})
		case component != "" && isWorkload(gk) && !m.Deletes():
			workloads[component] = append(workloads[component], m)
		}
	}
	return operators
}

var clusterOperatorKind = schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterOperator"}

func isWorkload(gk schema.GroupKind) bool {
	switch gk.Group {
	case "apps":
		return gk.Kind == "Deployment" || gk.Kind == "DaemonSet" || gk.Kind == "StatefulSet"
	case "batch":
		return gk.Kind == "Job" || gk.Kind == "CronJob"
	}
	return false
}

// hashOf returns what stands for a list of manifests: the 64-bit FNV-1 of their
// raw bytes one after another, big-endian, in base64 with the alphabet for
// URLs, padded to 12 characters.
func hashOf(manifests []*Manifest) string {
	h := fnv.New64()
	for _, m := range manifests {
		_, _ = h.Write(m.Raw) // never fails
	}
	return base64.URLEncoding.EncodeToString(h.Sum(nil))
}

// PayloadSource supplies the contents of release images. It must be safe for
// concurrent use.
//
// A source may also have the optional abilities [Discarder] and
// [InitialReleaser]; users of a source look for them by type assertion.
type PayloadSource interface {
	// Payload returns the contents of the release's image: a file system with
	// the directories manifests and release-manifests at its root. The release
	// has at least an image. Files must not change while they are read. A
	// source that returned another image's contents would have them applied,
	// since signatures are verified for the image's digest only.
	//
	// An error explains why the contents cannot be had; the update waits and tries
	// again. When ctx ends, Payload returns its error soon.
	Payload(ctx context.Context, r configv1.Release) (fs.FS, error)
}

// PayloadSourceFunc is a function as a [PayloadSource]. It must be safe for
// concurrent use and returns the errors of [PayloadSource].
type PayloadSourceFunc func(ctx context.Context, r configv1.Release) (fs.FS, error)

// Payload calls f and returns its error.
func (f PayloadSourceFunc) Payload(ctx context.Context, r configv1.Release) (fs.FS, error) {
	return f(ctx, r)
}

// Discarder is an optional ability of a [PayloadSource] that keeps copies. It
// must be safe for concurrent use.
type Discarder interface {
	// Discard drops the copy of a payload that was found to be invalid, so that
	// the next call of Payload retrieves it again. A release without a copy is
	// not an error; one whose copy cannot be dropped is.
	Discard(ctx context.Context, r configv1.Release) error
}

// InitialReleaser is an optional ability of a [PayloadSource]. It must be safe
// for concurrent use.
type InitialReleaser interface {
	// InitialRelease names the release that a cluster without any history runs. An
	// error explains why it is not known.
	InitialRelease(ctx context.Context) (configv1.Release, error)
}
