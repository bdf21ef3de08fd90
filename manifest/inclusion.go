package manifest

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Inclusion says of each manifest of a release whether it applies to a cluster.
// It is plain data.
type Inclusion struct {
	// Version is the release's.
	Version string `json:"version"`
	// Manifests are all, sorted by file and document.
	Manifests []JudgedManifest `json:"manifests"`
}

// JudgedManifest is a manifest of a release and its verdict. It is plain data.
type JudgedManifest struct {
	Identity Identity `json:"identity"`
	File     string   `json:"file"`
	Document int      `json:"document"`
	Included bool     `json:"included"`
	// Rule and Reason are those of the [Verdict]; empty if it is included.
	Rule   Rule   `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Deletes reports that the manifest asks for its object to be deleted.
	Deletes bool `json:"deletes,omitempty"`
	// Manifest is the payload's.
	Manifest *Manifest `json:"-"`
}

// Inclusion judges every manifest of the payload: those that loading has excluded,
// and the others by a filter, as in a pass. The result of a nil payload is empty.
func (p *Payload) Inclusion(f Filter) *Inclusion {
	if p == nil {
		return &Inclusion{}
	}
	out := &Inclusion{Version: p.Release.Version}
	add := func(m *Manifest, v Verdict) {
		out.Manifests = append(out.Manifests, JudgedManifest{
			Identity: m.Identity(), File: m.Filename, Document: m.Document,
			Included: v.Included, Rule: v.Rule, Reason: v.Reason, Deletes: m.Deletes(), Manifest: m,
		})
	}
	included, excluded := p.Included(f)
	for _, m := range included {
		add(m, Verdict{Included: true})
	}
	for _, e := range slices.Concat(p.Excluded, excluded) {
		add(e.Manifest, e.Verdict)
	}
	slices.SortStableFunc(out.Manifests, func(a, b JudgedManifest) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document))
	})
	return out
}

// Count counts the included manifests, and the excluded ones by rule.
func (i *Inclusion) Count() (included int, excluded map[Rule]int) {
	excluded = make(map[Rule]int)
	for _, m := range i.Manifests {
		if m.Included {
			included++
		} else {
			excluded[m.Rule]++
		}
	}
	return included, excluded
}

// InclusionTextOptions are the options of [Inclusion.WriteText]. They are plain
// data; the zero value shows every manifest.
type InclusionTextOptions struct {
	// Component and Kind restrict the manifests to those of a component, and of a
	// kind. Empty: all. The counts are of everything.
	Component, Kind string
	// Excluded leaves out those that are included.
	Excluded bool
}

func (o InclusionTextOptions) shows(m JudgedManifest) bool {
	_, component, _ := ParseName(m.File)
	return (o.Component == "" || o.Component == component) && (o.Kind == "" || o.Kind == m.Identity.Kind) && !(o.Excluded && m.Included)
}

// WriteText writes a table for people, a line for each manifest: the rule that
// excludes it or "included", the object, the file and the reason. Below are the
// counts, the rules in the order in which they are checked. An error is w's.
func (i *Inclusion) WriteText(w io.Writer, o InclusionTextOptions) error {
	var table, out strings.Builder
	t := text.NewTable(&table, 0, 2)
	t.Row("VERDICT", "OBJECT", "FILE", "REASON")
	shown := false
	for _, m := range i.Manifests {
		if !o.shows(m) {
			continue
		}
		verdict, object := string(m.Rule), objectText(m.Identity)
		if m.Included {
			verdict = "included"
		}
		if m.Deletes {
			object += " (deletes it)"
		}
		t.Row(verdict, object, fieldchange.Plain(m.File), fieldchange.Plain(m.Reason))
		shown = true
	}
	t.Flush() // to memory
	if shown {
		for line := range strings.Lines(table.String()) {
			out.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		out.WriteString("\n")
	}
	out.WriteString(i.summary() + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// ruleOrder has the rules as they are checked.
var ruleOrder = [...]Rule{
	ruleAnnotations, ruleExcludeIdentifier, ruleFeatures, ruleFeatureSet, ruleFeatureGate, ruleMajorVersion, ruleProfile, ruleCapability, RuleOverride,
}

// summary counts in a line.
func (i *Inclusion) summary() string {
	included, excluded := i.Count()
	var rules []string
	for _, r := range ruleOrder {
		if excluded[r] > 0 {
			rules = append(rules, fmt.Sprintf("%s %d", r, excluded[r]))
		}
	}
	text := fmt.Sprintf("%s of %s: %d included, %d excluded", text.Plural(len(i.Manifests), "manifest"), fieldchange.Plain(i.Version), included, len(i.Manifests)-included)
	if len(rules) > 0 {
		text += ": " + strings.Join(rules, ", ")
	}
	return text
}
