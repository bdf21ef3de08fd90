package preconditions

import (
	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// Kind describes what sort of step an update is.
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

// Plan describes how the pools follow the control plane.
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
	// (status.desired); Target the one asked for; Completed the version of the
	// newest Completed history entry. Nil: not known or not a semantic version.
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
		Target: facts.VersionOrNil(target.Version), TargetImage: target.Image, targetText: target.Version,
		TargetArchitecture: target.Architecture, Force: force, Plan: plan,
	}
	if cv != nil {
		current := cv.Status.Desired
		t.Current, t.CurrentImage, t.currentText = facts.VersionOrNil(current.Version), current.Image, current.Version
		if text, ok := facts.CompletedVersion(cv.Status.History); ok {
			t.Completed = facts.VersionOrNil(text)
		}
		t.CurrentArchitecture = current.Architecture
	}
	t.Kind = t.kind()
	return t
}

// kind compares the versions of the step by precedence and, where they are equal, the
// architectures. A nil version gives the empty Kind.
func (t Transition) kind() Kind {
	current, target := t.Current, t.Target
	switch {
	case current == nil || target == nil:
		return ""
	case target.LessThan(current):
		return Rollback
	case target.Equal(current) && t.TargetArchitecture == multi && t.CurrentArchitecture != multi:
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

// targetVersion is the text of the version asked for: the payload's if there is
// one, since a request may name an image alone.
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
