package risk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// riskNamePattern is what the name of a risk from the cluster must match.
var riskNamePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)

// Set are risks that come from the cluster itself, and the target
// versions that each applies to, by name.
type Set struct {
	Risks    []configv1.ConditionalUpdateRisk
	Versions map[string][]string
}

// Targeter is an optional ability of a [RiskSource]: to say itself which
// versions its risks apply to. Find it by type assertion. Without it, they
// apply to targets of a greater minor or major version. It must be as safe for
// concurrent use as the source that it is.
type Targeter interface {
	// Targets returns the risks with the given versions that each applies to.
	// Errors are as those of [RiskSource].
	Targets(ctx context.Context, versions []string) (Set, error)
}

// targeted asks a source for its risks, given the current version and those
// of all targets. What comes with an error counts; the error is the source's.
func targeted(ctx context.Context, s RiskSource, current string, versions []string) (Set, error) {
	if t, ok := s.(Targeter); ok {
		return t.Targets(ctx, versions)
	}
	risks, err := s.Risks(ctx, versions)
	r := Set{Risks: risks, Versions: map[string][]string{}}
	targets := minorTargets(current, versions)
	for _, risk := range risks {
		r.Versions[risk.Name] = targets
	}
	return r, err
}

// minorTargets keeps the versions of a greater minor or major than the current
// one. Those that do not parse count too, as do all where the current one does
// not parse.
func minorTargets(current string, versions []string) []string {
	from, err := graph.ParseVersion(current)
	var targets []string
	for _, text := range versions {
		to, errTo := graph.ParseVersion(text)
		if err != nil || errTo != nil || openshift.MinorOf(to).Above(openshift.MinorOf(from)) {
			targets = append(targets, text)
		}
	}
	return targets
}

// Aggregate asks sources in their order and unites what they say. A risk
// that was seen before is dropped, with an error if it has another content;
// versions are united in the order in which they were first seen. Errors, and
// panics of sources, are joined; the result counts regardless.
func Aggregate(ctx context.Context, sources []RiskSource, current string, versions []string) (Set, error) {
	all := Set{Versions: map[string][]string{}}
	first := map[string]int{}            // name → risk
	seen := map[string]map[string]bool{} // name → versions
	var errs []error
	for _, s := range sources {
		var r Set
		err := panics.Catch(func() (err error) {
			r, err = targeted(ctx, s, current, versions)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name(), err))
		}
		for _, risk := range r.Risks {
			if i, ok := first[risk.Name]; !ok {
				first[risk.Name] = len(all.Risks)
				all.Risks = append(all.Risks, risk)
			} else if !schema.EqualRisks(all.Risks[i], risk) {
				errs = append(errs, fmt.Errorf("divergent definitions of risk %q from %q:\n%s", risk.Name, s.Name(), riskDiff(all.Risks[i], risk)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
			if seen[name] == nil {
				seen[name] = map[string]bool{}
				all.Versions[name] = nil
			}
			for _, v := range r.Versions[name] {
				if !seen[name][v] {
					seen[name][v] = true
					all.Versions[name] = append(all.Versions[name], v)
				}
			}
		}
	}
	return all, bounded.Errors(errs...)
}

// riskDiff shows the fields in which two risks of one name differ.
func riskDiff(a, b configv1.ConditionalUpdateRisk) string {
	var lines []string
	field := func(name, x, y string) {
		if x != y {
			lines = append(lines, fmt.Sprintf("- %s: %q\n+ %s: %q", name, x, name, y))
		}
	}
	rules := func(rules []configv1.ClusterCondition) string {
		var all []string
		for _, r := range rules {
			text := r.Type
			if r.PromQL != nil {
				text += " " + r.PromQL.PromQL
			}
			all = append(all, text)
		}
		return strings.Join(all, "; ")
	}
	field("url", a.URL, b.URL)
	field("message", a.Message, b.Message)
	field("matchingRules", rules(a.MatchingRules), rules(b.MatchingRules))
	return strings.Join(lines, "\n")
}

// Merge puts risks from the cluster onto updates as retrieved. A target without
// conditions becomes conditional; one that is conditional gains the risk. The
// conditional updates come in ascending order of versions, their risks by name,
// also if there is nothing to merge. Errors are joined; the result is to be used
// regardless. The inputs are not changed.
func Merge(available []configv1.Release, conditional []configv1.ConditionalUpdate, r Set) ([]configv1.Release, []configv1.ConditionalUpdate, error) {
	var errs []error
	known := map[string]configv1.ConditionalUpdateRisk{}
	invalid := map[string]bool{}
	for _, risk := range r.Risks {
		if invalid[risk.Name] {
			continue
		}
		first, twice := known[risk.Name]
		switch {
		case !riskNamePattern.MatchString(risk.Name):
			invalid[risk.Name] = true
			errs = append(errs, fmt.Errorf("invalid risk name %s does not match %q", bounded.Quote(risk.Name), riskNamePattern))
		case utf8.RuneCountInString(risk.Name) > schema.MaxRiskName:
			invalid[risk.Name] = true
			errs = append(errs, fmt.Errorf("the risk name %s has more than %d characters", bounded.Quote(risk.Name), schema.MaxRiskName))
		case !twice:
			known[risk.Name] = complete(risk)
		case !schema.EqualRisks(first, complete(risk)):
			errs = append(errs, fmt.Errorf("divergent definitions of risk %q from the merging source:\n%s", risk.Name, riskDiff(first, risk)))
		}
	}

	m := newMerger(available, conditional)
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		risk, ok := known[name]
		if !ok {
			if !invalid[name] {
				unknown = append(unknown, name)
			}
			continue
		}
		for _, version := range r.Versions[name] {
			if err := m.add(risk, version); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("merge versions referenced unknown risks: %s", strings.Join(unknown, ", ")))
	}
	available, merged := m.result()
	return available, merged, bounded.Errors(errs...)
}

// complete fills in what the API wants of a risk and a source may lack: to leave
// the risk out would make its targets look safe, and to leave it as it is would
// make the API server refuse all of them.
func complete(risk configv1.ConditionalUpdateRisk) configv1.ConditionalUpdateRisk {
	risk.Message = cmp.Or(risk.Message, risk.Name+" says no more.")
	if !schema.IsURI(risk.URL) {
		risk.URL = noRunbookURL
	}
	if len(risk.MatchingRules) == 0 {
		risk.MatchingRules = []configv1.ClusterCondition{{Type: graph.RuleAlways}}
	}
	return risk
}

// merger puts risks onto updates.
type merger struct {
	available   []configv1.Release
	moved       []bool // of available: is conditional now
	conditional []configv1.ConditionalUpdate
	first       map[string]int   // version → first available
	targets     map[string][]int // version → conditional
	has         []map[string]int // of conditional: name → risk
}

func newMerger(available []configv1.Release, conditional []configv1.ConditionalUpdate) *merger {
	m := &merger{
		available: available, moved: make([]bool, len(available)),
		first: make(map[string]int, len(available)), targets: make(map[string][]int, len(conditional)),
	}
	for i := range available {
		if _, ok := m.first[available[i].Version]; !ok {
			m.first[available[i].Version] = i
		}
	}
	for i := range conditional {
		m.target(*conditional[i].DeepCopy())
	}
	return m
}

func (m *merger) target(c configv1.ConditionalUpdate) {
	names := make(map[string]int, len(c.Risks))
	for i := range c.Risks {
		if _, ok := names[c.Risks[i].Name]; !ok {
			names[c.Risks[i].Name] = i
		}
	}
	m.targets[c.Release.Version] = append(m.targets[c.Release.Version], len(m.conditional))
	m.conditional, m.has = append(m.conditional, c), append(m.has, names)
}

// add puts one risk onto one version: onto each conditional update, and onto
// the first available one, which becomes conditional.
func (m *merger) add(risk configv1.ConditionalUpdateRisk, version string) error {
	var errs []error
	targets := m.targets[version]
	for _, i := range targets {
		c := &m.conditional[i]
		if at, ok := m.has[i][risk.Name]; !ok {
			m.has[i][risk.Name] = len(c.Risks)
			c.Risks = append(c.Risks, *risk.DeepCopy())
		} else if !schema.EqualRisks(c.Risks[at], risk) {
			errs = append(errs, fmt.Errorf("divergent definitions of risk %q:\n%s", risk.Name, riskDiff(c.Risks[at], risk)))
		}
	}
	at, ok := m.first[version]
	ok = ok && !m.moved[at]
	if ok {
		m.moved[at] = true
		m.target(configv1.ConditionalUpdate{Release: *m.available[at].DeepCopy(), Risks: []configv1.ConditionalUpdateRisk{*risk.DeepCopy()}})
	}
	if !ok && len(targets) == 0 {
		errs = append(errs, fmt.Errorf("cannot merge risk %q into unknown release version %q", risk.Name, version))
	}
	return bounded.Errors(errs...)
}

// result returns the result, sorted and nil when empty.
func (m *merger) result() (available []configv1.Release, conditional []configv1.ConditionalUpdate) {
	for i := range m.available {
		if !m.moved[i] {
			available = append(available, m.available[i])
		}
	}
	order := versionOrder{}
	slices.SortStableFunc(m.conditional, func(a, b configv1.ConditionalUpdate) int {
		return order.compare(a.Release.Version, b.Release.Version)
	})
	for i := range m.conditional {
		slices.SortStableFunc(m.conditional[i].Risks, func(a, b configv1.ConditionalUpdateRisk) int { return cmp.Compare(a.Name, b.Name) })
	}
	return available, m.conditional
}

// TargetVersions lists the versions of both lists, each once, in their order.
func TargetVersions(available []configv1.Release, conditional []configv1.ConditionalUpdate) []string {
	var versions []string
	seen := map[string]bool{}
	add := func(v string) {
		if !seen[v] {
			seen[v] = true
			versions = append(versions, v)
		}
	}
	for i := range available {
		add(available[i].Version)
	}
	for i := range conditional {
		add(conditional[i].Release.Version)
	}
	return versions
}

// ConditionalUpdateRisks lists the risks of all updates for
// status.conditionalUpdateRisks: one per name, the first, sorted by name. If there
// are more than the 500 that it can hold, those of the first updates stay.
func ConditionalUpdateRisks(conditional []configv1.ConditionalUpdate) []configv1.ConditionalUpdateRisk {
	var all []configv1.ConditionalUpdateRisk
	seen := map[string]bool{}
	for i := range conditional {
		for j := range conditional[i].Risks {
			if risk := &conditional[i].Risks[j]; !seen[risk.Name] && len(all) < schema.MaxListedRisks {
				seen[risk.Name] = true
				all = append(all, *risk.DeepCopy())
			}
		}
	}
	slices.SortFunc(all, func(a, b configv1.ConditionalUpdateRisk) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// AcceptedNote words, for the history, that a target's risks were accepted; it
// is appended to the note that there is. Without names the note stays.
func AcceptedNote(note, image string, risks []string) string {
	names := strings.Join(risks, ",")
	switch {
	case len(risks) == 0:
		return note
	case note == "":
		return fmt.Sprintf("The target release %s is exposed to the risks [%s] which were all explicitly accepted by the cluster administrator.", image, names)
	}
	return note + fmt.Sprintf("; It is exposed to the risks [%s] which were all explicitly accepted by the cluster administrator.", names)
}
