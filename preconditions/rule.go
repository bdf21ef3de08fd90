package preconditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule is what a check says of itself, as data: for permissions, for what a
// recording must contain, for documentation.
type Rule struct {
	Name  string
	Scope Scope
	// Severities are those that its findings can have, ascending.
	Severities []Severity
	// Reads are the kinds that it reads from the cluster.
	Reads []schema.GroupVersionKind
	// Needs are the fields of [Input] that it uses besides Reader and Transition.
	Needs []string
	// Source is the document and its section that the rule comes from, and Link
	// where to read it.
	Source, Link string
}

// Scope says which steps a check concerns. The zero value: any. It is safe for
// concurrent use.
type Scope struct {
	// Kinds are the kinds of steps. Nil: any.
	Kinds []Kind
	// Crossing is a minor version such as 4.17: only steps from below it to it
	// or beyond. Empty: any.
	Crossing string
	// ArchitectureChange: only steps between a release for one architecture and
	// one for several.
	ArchitectureChange bool
}

// Covers reports whether the check concerns a step. Where a version of the step
// is not known it does, as far as this hangs on it.
func (s Scope) Covers(t Transition) bool {
	if s.Kinds != nil && t.Kind != "" && !slices.Contains(s.Kinds, t.Kind) {
		return false
	}
	// A cluster can leave out the architecture: only Multi is certain.
	if s.ArchitectureChange && t.CurrentArchitecture == multi && t.TargetArchitecture == multi {
		return false
	}
	return s.Crossing == "" || t.crosses(s.Crossing)
}

// crosses reports whether the step may lead from below a minor version to it, or
// beyond: pre-releases of it count as it.
func (t Transition) crosses(minor string) bool {
	edge := versionOrNil(minor + ".0")
	if edge == nil {
		return false
	}
	below := func(major, minor uint64) bool {
		return major < edge.Major() || major == edge.Major() && minor < edge.Minor()
	}
	return (t.Current == nil || below(t.Current.Major(), t.Current.Minor())) &&
		(t.Target == nil || !below(t.Target.Major(), t.Target.Minor()))
}

// Described is an optional ability of a [Check]: it says of itself, as data, what
// it concerns and reads. The checks of [Documented] have it. It must be safe for
// concurrent use.
type Described interface {
	// Rule returns the description; it is always the same.
	Rule() Rule
}
