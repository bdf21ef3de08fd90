package preconditions

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// Rule is what a check says of itself, as data: for permissions, for what a
// recording must contain, for documentation.
type Rule struct {
	Name string
	// Kinds are the kinds of steps that it concerns. Nil: any.
	Kinds []Kind
	// Crossing is a minor version such as 4.17: the rule concerns only steps from
	// below it to it or beyond. Empty: any.
	Crossing string
	// ArchitectureChange: the rule concerns only steps between a release for one
	// architecture and one for several.
	ArchitectureChange bool
	// Severities are those that its findings can have, ascending.
	Severities []Severity
	// Reads are the kinds that it reads from the cluster.
	Reads []schema.GroupVersionKind
	// Needs are the fields of [Input] that it uses, but for Reader and Transition.
	Needs []string
	// Source is the document and its section that the rule comes from, and Link
	// where to read it.
	Source, Link string
}

// covers reports whether the rule concerns a step. If a version of the step is not
// known it does, as far as this hangs on it.
func (r Rule) covers(t Transition) bool {
	if r.Kinds != nil && t.Kind != "" && !slices.Contains(r.Kinds, t.Kind) {
		return false
	}
	// A cluster can leave out the architecture: only Multi is certain.
	if r.ArchitectureChange && t.CurrentArchitecture == multi && t.TargetArchitecture == multi {
		return false
	}
	return r.Crossing == "" || facts.Crosses(t.Current, t.Target, r.Crossing)
}

// Described is an optional ability of a [Check]: it says of itself, as data, what
// it concerns and reads. The checks of this package and of preconditions/rules have it. It must be safe for
// concurrent use.
type Described interface {
	// Rule returns the description; it is always the same.
	Rule() Rule
}

// check is a rule with what judges by it.
type check struct {
	rule  Rule
	judge func(context.Context, *Input) ([]Finding, error)
}

// NewCheck returns a check that judges by a rule; it is [Described]. The rule gives its
// name and the steps that it applies to, and the Source of findings without one. The
// errors of judge, which must not be nil, are those of Run of a [Check].
func NewCheck(rule Rule, judge func(context.Context, *Input) ([]Finding, error)) Check {
	return check{rule, judge}
}

func (c check) Name() string              { return c.rule.Name }
func (c check) Rule() Rule                { return c.rule }
func (c check) Applies(t Transition) bool { return c.rule.covers(t) }

func (c check) Run(ctx context.Context, in *Input) ([]Finding, error) {
	found, err := c.judge(ctx, in)
	for i := range found {
		if found[i].Source == "" {
			found[i].Source = c.rule.Source
		}
	}
	return found, err
}
