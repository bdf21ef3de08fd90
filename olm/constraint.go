package olm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of constraints.
const (
	constraintGVK     = "gvk"
	constraintPackage = "package"
	constraintLabel   = "label"
	constraintAll     = "all"
	constraintAny     = "any"
	constraintNot     = "not"
	constraintCEL     = "cel"
)

// Constraint is a test of one bundle. Compound constraints test the same
// bundle with all their parts: two operators cannot satisfy one constraint
// between them.
type Constraint struct {
	Kind    string                  // gvk, package, label, all, any, not or cel
	GVK     schema.GroupVersionKind // gvk: the API that it must own
	Package string                  // package: its package
	Range   Range                   // package: its version
	Label   string                  // label: a label that it must have
	Parts   []Constraint            // all of them, any (none given: false), not (none of them)
	Rule    string                  // cel: the expression

	FailureMessage string   // as the author of the constraint wrote it
	Ignored        []string // further keys of the element, which lost against Kind
}

// Requirement is what a bundle needs from one bundle, which may be itself.
type Requirement struct {
	Owner      string   // name of the bundle that requires it
	Property   Property // as written
	Constraint Constraint
}

// CELEvaluator evaluates the rules of cel constraints. Package
// github.com/clusterupdate/clusterupdate/olm/cel has one, a module of its own.
// It must be safe for concurrent use.
type CELEvaluator interface {
	// Compile returns the test of a rule, or an error if the rule is not a boolean
	// expression. The test sees all properties of a bundle; a failure while it
	// runs (a missing key, a text that is not a version) means false. Compile is
	// called for each bundle that a rule is tested against, so it should remember
	// what it compiled.
	Compile(rule string) (func(properties []Property) bool, error)
}

// CELError reports that a cel rule could not be evaluated: it does not compile, or
// there is nothing to evaluate it with.
type CELError struct {
	Bundle string // name of the bundle that requires it, empty if not known
	Rule   string
	Err    error // what Compile returned, or [ErrNoCELEvaluator]
}

// Error names the bundle and the rule.
func (e *CELError) Error() string {
	text := fmt.Sprintf("convert olm.constraint to resolver predicate: cel rule %q: %v", e.Rule, e.Err)
	if e.Bundle != "" {
		text = fmt.Sprintf("bundle %s: %s", e.Bundle, text)
	}
	return text
}

// Unwrap returns the cause.
func (e *CELError) Unwrap() error { return e.Err }

// String is the requirement in the words of OLM's messages, such as "with
// package: etcd and with version in range: >=1.0.0".
func (r *Requirement) String() string { return r.Constraint.String() }

// Check compiles all cel rules of the requirement, whichever a test would
// reach. The error is a [*CELError].
func (r *Requirement) Check(eval CELEvaluator) error {
	return r.named(r.Constraint.check(eval))
}

// Matches reports whether the bundle satisfies the requirement alone. eval may
// be nil if the test meets no cel rule; the error is a [*CELError].
func (r *Requirement) Matches(b *Bundle, eval CELEvaluator) (bool, error) {
	ok, err := r.Constraint.Matches(b, eval)
	return ok, r.named(err)
}

// named writes the owner into an error.
func (r *Requirement) named(err error) error {
	if err == nil {
		return nil // the common case, without the allocation below
	}
	if fault := (*CELError)(nil); errors.As(err, &fault) {
		fault.Bundle = r.Owner
	}
	return err
}

func (c *Constraint) check(eval CELEvaluator) error {
	if c.Kind == constraintCEL {
		_, err := c.compile(eval)
		return err
	}
	for i := range c.Parts {
		if err := c.Parts[i].check(eval); err != nil {
			return err
		}
	}
	return nil
}

// Matches reports whether the bundle satisfies the constraint. eval may be nil
// if the test meets no cel rule; the error is a [*CELError].
func (c *Constraint) Matches(b *Bundle, eval CELEvaluator) (bool, error) {
	switch c.Kind {
	case constraintGVK:
		return slices.Contains(b.Provides, c.GVK), nil
	case constraintPackage:
		return b.inPackage(c.Package) && b.inRange(c.Range), nil
	case constraintLabel:
		return slices.Contains(b.Labels, c.Label), nil
	case constraintCEL:
		test, err := c.compile(eval)
		if err != nil {
			return false, err
		}
		return test(b.Properties), nil
	case constraintAll, constraintAny, constraintNot:
		for i := range c.Parts {
			ok, err := c.Parts[i].Matches(b, eval)
			if err != nil {
				return false, err
			}
			if ok != (c.Kind == constraintAll) {
				return c.Kind == constraintAny, nil
			}
		}
		return c.Kind != constraintAny, nil
	}
	return false, nil
}

func (c *Constraint) compile(eval CELEvaluator) (func([]Property) bool, error) {
	if eval == nil {
		return nil, &CELError{Rule: c.Rule, Err: ErrNoCELEvaluator}
	}
	test, err := eval.Compile(c.Rule)
	if err != nil {
		return nil, &CELError{Rule: c.Rule, Err: err}
	}
	return test, nil
}

// inPackage: a property olm.package says so, or the catalog does.
func (b *Bundle) inPackage(name string) bool {
	return b.Package != "" && b.Package == name ||
		slices.ContainsFunc(b.Identities, func(id Identity) bool { return id.Package == name })
}

func (b *Bundle) inRange(r Range) bool {
	return b.Version != nil && r.Contains(*b.Version) ||
		slices.ContainsFunc(b.Identities, func(id Identity) bool { return id.Version != nil && r.Contains(*id.Version) })
}

// String is the constraint in the words of OLM's messages. Compound ones are
// joined without parentheses, as OLM does; an empty one is an empty text.
func (c *Constraint) String() string {
	var text string
	switch c.Kind {
	case constraintGVK:
		text = fmt.Sprintf("providing an API with group: %s, version: %s, kind: %s", c.GVK.Group, c.GVK.Version, c.GVK.Kind)
	case constraintPackage:
		text = fmt.Sprintf("with package: %s and with version in range: %s", c.Package, c.Range)
	case constraintLabel:
		text = "with label: " + c.Label
	case constraintCEL:
		return fmt.Sprintf("with constraint: %q and message: %q", c.Rule, c.FailureMessage)
	case constraintAll:
		text = c.joined(" and ")
	case constraintAny:
		text = c.joined(" or ")
	case constraintNot:
		text = c.joined(" and not ")
	}
	switch {
	case c.FailureMessage == "":
		return text
	case text == "":
		return fmt.Sprintf("with message: %q", c.FailureMessage)
	}
	return fmt.Sprintf("%s and message: %q", text, c.FailureMessage)
}

func (c *Constraint) joined(separator string) string {
	parts := make([]string, len(c.Parts))
	for i := range c.Parts {
		parts[i] = c.Parts[i].String()
	}
	return strings.Join(parts, separator)
}

// maxConstraint is the largest olm.constraint in bytes. It bounds the nesting.
const maxConstraint = 2 << 16

// parseConstraint reads the value of a property olm.constraint. Unknown keys
// are errors, text after the JSON value is passed over.
func parseConstraint(value json.RawMessage) (Constraint, error) {
	w, err := decodeConstraint(value)
	if err != nil {
		return Constraint{}, fmt.Errorf("parse %s: %w", PropertyConstraint, err)
	}
	c, err := w.constraint()
	if err != nil {
		return Constraint{}, fmt.Errorf("convert %s to resolver predicate: %w", PropertyConstraint, err)
	}
	return c, nil
}

func decodeConstraint(value json.RawMessage) (*wireConstraint, error) {
	if len(value) > maxConstraint {
		return nil, fmt.Errorf("%s value is greater than max constraint size %d bytes", PropertyConstraint, maxConstraint)
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	w := new(wireConstraint)
	if err := d.Decode(w); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return w, nil
}

// wireConstraint is an element of a constraint as written.
type wireConstraint struct {
	FailureMessage string `json:"failureMessage,omitempty"`

	GVK     *wireGVK             `json:"gvk,omitempty"`
	Package *wirePackageRequired `json:"package,omitempty"`
	All     *wireCompound        `json:"all,omitempty"`
	Any     *wireCompound        `json:"any,omitempty"`
	Not     *wireCompound        `json:"not,omitempty"`
	CEL     *wireRule            `json:"cel,omitempty"`
}

type wireCompound struct {
	Constraints []wireConstraint `json:"constraints"`
}

type wireRule struct {
	Rule string `json:"rule"`
}

// constraint takes the first key of an element and notes the rest.
func (w *wireConstraint) constraint() (Constraint, error) {
	c := Constraint{FailureMessage: w.FailureMessage}
	take := func(kind string, present bool) bool {
		switch {
		case !present:
			return false
		case c.Kind != "":
			c.Ignored = append(c.Ignored, string(kind))
			return false
		}
		c.Kind = kind
		return true
	}
	if take(constraintGVK, w.GVK != nil) {
		c.GVK = w.GVK.gvk()
	}
	if take(constraintPackage, w.Package != nil) {
		r, err := ParseRange(w.Package.VersionRange)
		if err != nil {
			return Constraint{}, err
		}
		c.Package, c.Range = w.Package.PackageName, r
	}
	for _, compound := range []struct {
		kind string
		wire *wireCompound
	}{{constraintAll, w.All}, {constraintAny, w.Any}, {constraintNot, w.Not}} {
		if !take(compound.kind, compound.wire != nil) {
			continue
		}
		for i := range compound.wire.Constraints {
			part, err := compound.wire.Constraints[i].constraint()
			if err != nil {
				return Constraint{}, err
			}
			c.Parts = append(c.Parts, part)
		}
	}
	if take(constraintCEL, w.CEL != nil) {
		c.Rule = w.CEL.Rule
	}
	if c.Kind == "" {
		return Constraint{}, errors.New("constraint is empty")
	}
	return c, nil
}
