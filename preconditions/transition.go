package preconditions

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/versions"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Kind says what sort of step an update is.
type Kind string

// The kinds of a step. The empty Kind means that it is not known, because a
// version is missing or not a semantic version: checks that are bound to a kind
// then treat the step as the greatest that it could be.
const (
	Patch    Kind = "Patch"    // newer, same major and minor
	Minor    Kind = "Minor"    // newer minor, same major
	Major    Kind = "Major"    // newer major
	Rollback Kind = "Rollback" // older
	Multi    Kind = "Multi"    // same version, from a single architecture to the multi-architecture payload
	Same     Kind = "Same"     // same version otherwise
)

// Plan says how the pools follow the control plane.
type Plan int

// The plans. Full is the zero value.
const (
	Full             Plan = iota // all pools follow at once
	Canary                       // some pools are paused on purpose
	ControlPlaneOnly             // workers skip minor versions: from one with extended update support to the next
)

func (p Plan) String() string {
	switch p {
	case Canary:
		return "Canary"
	case ControlPlaneOnly:
		return "ControlPlaneOnly"
	default:
		return "Full"
	}
}

// MarshalText writes the plan's name.
func (p Plan) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Transition is the step from what a cluster runs to what is asked of it.
type Transition struct {
	// Current is the version that the cluster reconciles now, complete or not
	// (status.desired); Target the one asked for; Completed that of the newest
	// Completed history entry. Nil: not known or not a semantic version.
	Current   *semver.Version `json:"current,omitempty"`
	Target    *semver.Version `json:"target,omitempty"`
	Completed *semver.Version `json:"completed,omitempty"`

	CurrentImage string `json:"currentImage,omitempty"`
	TargetImage  string `json:"targetImage,omitempty"`

	// CurrentArchitecture and TargetArchitecture are Multi for releases for
	// several architectures. Empty: for one, or not known.
	CurrentArchitecture configv1.ClusterVersionArchitecture `json:"currentArchitecture,omitempty"`
	TargetArchitecture  configv1.ClusterVersionArchitecture `json:"targetArchitecture,omitempty"`

	Kind  Kind `json:"kind,omitempty"`
	Force bool `json:"force,omitempty"`
	Plan  Plan `json:"plan"`

	// PlanTarget is the version at which the Plan ends, after this and maybe more
	// steps. Nil: not known.
	PlanTarget *semver.Version `json:"planTarget,omitempty"`

	// The texts behind Current and Target, which may not be semantic versions.
	currentText, targetText string
}

// NewTransition computes the step from the state of a ClusterVersion to a
// release. cv may be nil (nothing is known of the cluster then); force is
// spec.desiredUpdate.force.
func NewTransition(cv *configv1.ClusterVersion, target configv1.Release, force bool, plan Plan) Transition {
	t := Transition{
		Target: versionOrNil(target.Version), TargetImage: target.Image, targetText: target.Version,
		TargetArchitecture: target.Architecture, Force: force, Plan: plan,
	}
	if cv != nil {
		current := cv.Status.Desired
		t.Current, t.CurrentImage, t.currentText = versionOrNil(current.Version), current.Image, current.Version
		if text, ok := completedVersion(cv.Status.History); ok {
			t.Completed = versionOrNil(text)
		}
		t.CurrentArchitecture = current.Architecture
	}
	toMulti := t.TargetArchitecture == multi && t.CurrentArchitecture != multi
	t.Kind = kindOf(t.Current, t.Target, toMulti)
	return t
}

// kindOf compares two versions by precedence. toMulti: the target is a
// multi-architecture release and the current one is not; it matters only where
// the versions are equal. A nil version gives the empty Kind.
func kindOf(current, target *semver.Version, toMulti bool) Kind {
	switch {
	case current == nil || target == nil:
		return ""
	case target.LessThan(current):
		return Rollback
	case target.Equal(current) && toMulti:
		return Multi
	case target.Equal(current):
		return Same
	case target.Major() != current.Major():
		return Major
	case target.Minor() != current.Minor():
		return Minor
	default:
		return Patch
	}
}

// leavesMinor reports whether the step goes, or could go as far as is known, to
// another minor or major version and is not a rollback: the steps that an
// Upgradeable=False condition stops.
func (t Transition) leavesMinor() bool {
	return t.Kind == Minor || t.Kind == Major || t.Kind == ""
}

// completedVersion returns the version of the newest Completed entry.
func completedVersion(history []configv1.UpdateHistory) (string, bool) {
	for _, entry := range history {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version, true
		}
	}
	return "", false
}

// targetVersion is the text of the version asked for: that of the payload
// where there is one, since a request may name an image alone.
func (in *Input) targetVersion() string {
	switch {
	case in.TargetPayload != nil && in.TargetPayload.Release.Version != "":
		return in.TargetPayload.Release.Version
	case in.targetText != "":
		return in.targetText
	case in.Target != nil:
		return in.Target.String()
	default:
		return ""
	}
}

// parseVersion parses a strict semantic version. Its errors are those of the parser
// of the cluster-version operator, whose conditions and summaries quote them.
//
// Build metadata does not count in comparisons (precedence).
func parseVersion(s string) (*semver.Version, error) {
	if _, err := blang.Parse(s); err != nil {
		return nil, err
	}
	return versions.Parse(s)
}

func versionOrNil(text string) *semver.Version {
	v, err := parseVersion(text)
	if err != nil {
		return nil
	}
	return v
}

// minorOf is major and minor as one number, which grows with them.
func minorOf(v *semver.Version) uint64 { return v.Major()<<32 | v.Minor()&(1<<32-1) }

// minorText is major and minor, such as 4.18.
func minorText(v *semver.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// sameMinor reports whether two versions have the same major and minor.
func sameMinor(a, b *semver.Version) bool {
	return a.Major() == b.Major() && a.Minor() == b.Minor()
}

// currentVersion is the version that the cluster reconciles.
func (in *Input) currentVersion(ctx context.Context) (*semver.Version, error) {
	if in.Current != nil {
		return in.Current, nil
	}
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := parseVersion(cv.Status.Desired.Version)
	if err != nil {
		return nil, fmt.Errorf("current version %q: %w", cv.Status.Desired.Version, err)
	}
	return v, nil
}

// kubernetesMinor returns the minor version of Kubernetes 1 that a release of
// OpenShift has: of 4.y it is y + 13; of others what the input's table or the
// release itself tells. payload may be nil, and a nil version is that of payload.
func (in *Input) kubernetesMinor(v *semver.Version, payload *manifest.Payload) (uint64, bool) {
	if v == nil && payload != nil {
		v = versionOrNil(payload.Release.Version)
	}
	if v != nil {
		if minor, ok := in.KubernetesMinors[minorText(v)]; ok {
			return minor, true
		}
		if v.Major() == 4 {
			return v.Minor() + 13, true
		}
	}
	if payload == nil {
		return 0, false
	}
	for _, m := range payload.Manifests {
		if id := m.Identity(); id.Kind != "ClusterOperator" || id.Name != apiServerOperator {
			continue
		}
		co, err := clusterapi.FromUnstructured[configv1.ClusterOperator](m.Object())
		if err != nil {
			continue
		}
		if minor, ok := apiServerMinor(co); ok {
			return minor, true
		}
	}
	return 0, false
}

const apiServerOperator = "kube-apiserver"

// apiServerMinor returns the minor version of the API server, as its operator
// reports or is to report it.
func apiServerMinor(co *configv1.ClusterOperator) (uint64, bool) {
	for _, v := range co.Status.Versions {
		if v.Name != "kube-apiserver" {
			continue
		}
		if version := versionOrNil(v.Version); version != nil && version.Major() == 1 {
			return version.Minor(), true
		}
	}
	return 0, false
}
