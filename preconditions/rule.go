package preconditions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	return r.Crossing == "" || t.crosses(r.Crossing)
}

// crosses reports whether the step may lead from below a minor version to it, or
// beyond: pre-releases of it count as it.
func (t Transition) crosses(minor string) bool {
	edge := versionOrNil(minor + ".0")
	return edge != nil && (t.Current == nil || minorOf(t.Current) < minorOf(edge)) && (t.Target == nil || minorOf(t.Target) >= minorOf(edge))
}

// Described is an optional ability of a [Check]: it says of itself, as data, what
// it concerns and reads. The checks of this package have it. It must be safe for
// concurrent use.
type Described interface {
	// Rule returns the description; it is always the same.
	Rule() Rule
}

// judgeFunc judges an input by a rule. Its results are those of Run of a [Check].
type judgeFunc func(context.Context, *Input) ([]Finding, error)

// check is a rule with what judges by it. Its findings come from where its rule comes
// from.
type check struct {
	rule  Rule
	judge judgeFunc
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

// findings are what a check finds.
type findings []Finding

// add adds a finding about objects, if there are any, which it sorts. The message is
// what it means, every object, and the remedy.
func (f *findings) add(s Severity, reason, meaning string, objects []Object, remedy string) {
	if len(objects) > 0 {
		sortObjects(objects)
		*f = append(*f, newFinding(s, reason, meaning, objects, remedy))
	}
}

// addAt adds a finding whose message does not name its objects.
func (f *findings) addAt(s Severity, reason, meaning, remedy string, objects ...Object) {
	*f = append(*f, findingAt(s, reason, meaning, remedy, objects...))
}

// newFinding words a finding: what it means, every object at fault, the remedy.
func newFinding(s Severity, reason, meaning string, objects []Object, remedy string) Finding {
	message := meaning
	if len(objects) > 0 {
		names := make([]string, len(objects))
		for i, o := range objects {
			names[i] = o.fullName()
			if o.Note != "" {
				names[i] += " (" + o.Note + ")"
			}
		}
		if !strings.HasSuffix(message, ".") {
			message += ":"
		}
		message += " " + strings.Join(names, ", ")
	}
	return Finding{Severity: s, Reason: reason, Message: strings.TrimSuffix(message, ".") + ". " + remedy, Remedy: remedy, Objects: objects}
}

// findingAt is newFinding for objects that the meaning names, or that go without saying.
func findingAt(s Severity, reason, meaning, remedy string, objects ...Object) Finding {
	f := newFinding(s, reason, meaning, nil, remedy)
	f.Objects = objects
	return f
}

// fullName is the name with the namespace, if there is one.
func (o Object) fullName() string {
	return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// sortObjects orders objects by namespace and name; what is noted tells several
// places of one object apart.
func sortObjects(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Note, b.Note))
	})
}

// object points at an object of type T.
func object[T any](namespace, name, field, value, note string) Object {
	return Object{GVK: gvkOf[T](), Namespace: namespace, Name: name, FieldPath: field, Value: value, Note: note}
}

// blockMinor is the severity of what stops other minor and major versions only.
func blockMinor(t Transition) Severity {
	if t.leavesMinor() {
		return Blocking
	}
	return Warning
}
