package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
)

// Finding is something about a payload that its makers hardly meant. It is plain
// data: safe to copy.
type Finding struct {
	// Rule is the name of the rule: see [LintRules].
	Rule string `json:"rule"`
	// Severity is Error, if something is not applied, or not as it is meant, or
	// Warning, if it is applied late, or not always as it is meant.
	Severity string `json:"severity"`
	// File is the base name of the file, or the path within the payload where
	// no object of it was read.
	File string `json:"file"`
	// Document is the object's place in its file, from 1; 0: the whole file.
	Document int `json:"document,omitempty"`
	// Identity is the object's; zero where the finding is about a file.
	Identity Identity `json:"identity,omitzero"`
	Message  string   `json:"message"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	at := fieldchange.Plain(f.File)
	if f.Document > 0 {
		at = fmt.Sprintf("%s, document %d", at, f.Document)
	}
	if f.Identity != (Identity{}) {
		at += ": " + objectText(f.Identity)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", f.Severity, at, fieldchange.Plain(f.Message), f.Rule)
}

// LintRule is a rule of [Lint]. It is plain data: safe to copy.
type LintRule struct {
	// Name is in lower case, with hyphens.
	Name     string `json:"name"`
	Severity string `json:"severity"` // as in a [Finding]
	// Doc describes what the rule finds, and why that matters.
	Doc string `json:"doc"`
}

// String returns the rule in one line.
func (r LintRule) String() string { return fmt.Sprintf("%s (%s): %s", r.Name, r.Severity, r.Doc) }

// LintRules returns the rules of [Lint], sorted by name.
func LintRules() []LintRule {
	var rules []LintRule
	for _, c := range lintChecks {
		rules = append(rules, c.rule)
	}
	slices.SortFunc(rules, func(a, b LintRule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// Lint looks for what is wrong with a payload as a cluster with the filter sees
// it: some rules are about what is included, some about all manifests, as
// [LintRules] says. The findings are sorted by file, document, rule and message;
// nil for none, and for a nil payload.
func Lint(p *Payload, f Filter) []Finding {
	if p == nil {
		return nil
	}
	l := newLinter(p, f)
	for _, c := range lintChecks {
		l.rule = c.rule
		c.check(l)
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return l.findings
}

// linter is a payload while rules look at it.
type linter struct {
	payload  *Payload
	filter   Filter
	applied  []*Manifest // included, in order
	deletes  []*Manifest // included, and asking for a deletion
	excluded []Exclusion // by the load and by the pass
	all      []*Manifest // also what is excluded
	order    places      // nil until it is asked for

	rule     LintRule // that is being checked
	findings []Finding
}

func newLinter(p *Payload, f Filter) *linter {
	l := &linter{payload: p, filter: f}
	included, excluded := p.Included(f)
	for _, m := range included {
		if m.Deletes() {
			l.deletes = append(l.deletes, m)
		} else {
			l.applied = append(l.applied, m)
		}
	}
	l.excluded = slices.Concat(p.Excluded, excluded)
	l.all = slices.Clone(p.Manifests)
	for _, e := range p.Excluded {
		l.all = append(l.all, e.Manifest)
	}
	return l
}

// report adds a finding about a manifest.
func (l *linter) report(m *Manifest, format string, args ...any) {
	l.findings = append(l.findings, Finding{
		Rule: l.rule.Name, Severity: l.rule.Severity,
		File: m.Filename, Document: m.Document, Identity: m.Identity(), Message: fmt.Sprintf(format, args...),
	})
}

// reportFile adds a finding about a file.
func (l *linter) reportFile(file, message string) {
	l.findings = append(l.findings, Finding{Rule: l.rule.Name, Severity: l.rule.Severity, File: file, Message: message})
}
