package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// riskNamePattern is what the name of a risk from the cluster must match.
var riskNamePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)

// ClusterRisks are risks that come from the cluster itself, and the target
// versions that each applies to, by name.
type ClusterRisks struct {
	Risks    []configv1.ConditionalUpdateRisk
	Versions map[string][]string
}

// Targeter is an optional ability of a [RiskSource]: to say itself which
// versions its risks apply to. Find it by type assertion. Without it, they
// apply to targets of a greater minor or major version.
type Targeter interface {
	// Targets returns the risks with the versions, of those given, that each
	// applies to.
	Targets(ctx context.Context, versions []string) (ClusterRisks, error)
}

// TargetRisks asks a source for its risks, given the current version and those
// of all targets. What it returned beside an error counts.
func TargetRisks(ctx context.Context, s RiskSource, current string, versions []string) (ClusterRisks, error) {
	if t, ok := s.(Targeter); ok {
		return t.Targets(ctx, versions)
	}
	risks, err := s.Risks(ctx, versions)
	r := ClusterRisks{Risks: risks, Versions: map[string][]string{}}
	targets := MinorTargets(current, versions)
	for _, risk := range risks {
		r.Versions[risk.Name] = targets
	}
	return r, err
}

// MinorTargets keeps the versions of a greater minor or major than the current
// one. Those that do not parse count too, as do all where the current one does
// not parse.
func MinorTargets(current string, versions []string) []string {
	from, err := ParseVersion(current)
	var targets []string
	for _, text := range versions {
		to, errTo := ParseVersion(text)
		if err != nil || errTo != nil || minorOfVersion(to).above(minorOfVersion(from)) {
			targets = append(targets, text)
		}
	}
	return targets
}

// AggregateRisks asks sources in their order and unites what they say. A risk
// that was seen before is dropped, with an error if it has another content;
// versions are united in the order in which they were first seen. Errors are
// joined; the result counts regardless.
func AggregateRisks(ctx context.Context, sources []RiskSource, current string, versions []string) (ClusterRisks, error) {
	all := ClusterRisks{Versions: map[string][]string{}}
	var errs []error
	for _, s := range sources {
		r, err := TargetRisks(ctx, s, current, versions)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name(), err))
		}
		for _, risk := range r.Risks {
			i := slices.IndexFunc(all.Risks, func(o configv1.ConditionalUpdateRisk) bool { return o.Name == risk.Name })
			if i < 0 {
				all.Risks = append(all.Risks, risk)
			} else if !equalRisks(all.Risks[i], risk) {
				errs = append(errs, fmt.Errorf("divergent definitions of risk %q from %q:\n%s", risk.Name, s.Name(), riskDiff(all.Risks[i], risk)))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
			targets := r.Versions[name]
			if _, ok := all.Versions[name]; !ok {
				all.Versions[name] = nil
			}
			for _, v := range targets {
				if !slices.Contains(all.Versions[name], v) {
					all.Versions[name] = append(all.Versions[name], v)
				}
			}
		}
	}
	return all, errors.Join(errs...)
}

// AggregateName is the name of sources taken together.
func AggregateName(sources []RiskSource) string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name()
	}
	return "Aggregate(" + strings.Join(names, ", ") + ")"
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

// MergeRisks puts risks from the cluster onto updates as retrieved. A target
// without conditions becomes conditional; one that is conditional gains the
// risk. The conditional updates come in ascending order of versions, their
// risks by name, also where there is nothing to merge. Errors are joined; the
// result is to be used regardless. The inputs are not changed.
func MergeRisks(available []configv1.Release, conditional []configv1.ConditionalUpdate, r ClusterRisks) ([]configv1.Release, []configv1.ConditionalUpdate, error) {
	var errs []error
	known := map[string]configv1.ConditionalUpdateRisk{}
	invalid := map[string]bool{}
	for _, risk := range r.Risks {
		first, twice := known[risk.Name]
		switch {
		case !riskNamePattern.MatchString(risk.Name):
			if !invalid[risk.Name] {
				errs = append(errs, fmt.Errorf("invalid risk name %q does not match %q", risk.Name, riskNamePattern))
			}
			invalid[risk.Name] = true
		case !twice:
			known[risk.Name] = risk
		case !equalRisks(first, risk):
			errs = append(errs, fmt.Errorf("divergent definitions of risk %q from the merging source:\n%s", risk.Name, riskDiff(first, risk)))
		}
	}

	available = slices.Clone(available)
	merged := make([]configv1.ConditionalUpdate, len(conditional))
	for i := range conditional {
		merged[i] = *conditional[i].DeepCopy()
	}
	var unknown []string
	moved := map[string]bool{} // only the first entry of a version moves
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		risk, ok := known[name]
		if !ok {
			if !invalid[name] {
				unknown = append(unknown, name)
			}
			continue
		}
		for _, version := range r.Versions[name] {
			var err error
			if available, merged, err = mergeRisk(available, merged, risk, version, moved); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("merge versions referenced unknown risks: %s", strings.Join(unknown, ", ")))
	}
	slices.SortStableFunc(merged, func(a, b configv1.ConditionalUpdate) int {
		return CompareVersions(a.Release.Version, b.Release.Version)
	})
	for i := range merged {
		slices.SortStableFunc(merged[i].Risks, func(a, b configv1.ConditionalUpdateRisk) int { return cmp.Compare(a.Name, b.Name) })
	}
	if len(available) == 0 {
		available = nil
	}
	if len(merged) == 0 {
		merged = nil
	}
	return available, merged, errors.Join(errs...)
}

// mergeRisk puts one risk onto one version.
func mergeRisk(available []configv1.Release, conditional []configv1.ConditionalUpdate, risk configv1.ConditionalUpdateRisk, version string, moved map[string]bool) ([]configv1.Release, []configv1.ConditionalUpdate, error) {
	var errs []error
	found := false
	for i := range conditional {
		c := &conditional[i]
		if c.Release.Version != version {
			continue
		}
		found = true
		at := slices.IndexFunc(c.Risks, func(o configv1.ConditionalUpdateRisk) bool { return o.Name == risk.Name })
		if at < 0 {
			c.Risks = append(c.Risks, *risk.DeepCopy())
		} else if !equalRisks(c.Risks[at], risk) {
			errs = append(errs, fmt.Errorf("divergent definitions of risk %q:\n%s", risk.Name, riskDiff(c.Risks[at], risk)))
		}
	}
	if i := slices.IndexFunc(available, func(r configv1.Release) bool { return r.Version == version }); i >= 0 && !moved[version] {
		found, moved[version] = true, true
		conditional = append(conditional, configv1.ConditionalUpdate{Release: *available[i].DeepCopy(), Risks: []configv1.ConditionalUpdateRisk{*risk.DeepCopy()}})
		available = slices.Delete(available, i, i+1)
	}
	if !found {
		errs = append(errs, fmt.Errorf("cannot merge risk %q into unknown release version %q", risk.Name, version))
	}
	return available, conditional, errors.Join(errs...)
}

// TargetVersions lists the versions of both lists, each once, in their order.
func TargetVersions(available []configv1.Release, conditional []configv1.ConditionalUpdate) []string {
	var versions []string
	add := func(v string) {
		if !slices.Contains(versions, v) {
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
// status.conditionalUpdateRisks: one per name, the first, sorted by name.
func ConditionalUpdateRisks(conditional []configv1.ConditionalUpdate) []configv1.ConditionalUpdateRisk {
	var all []configv1.ConditionalUpdateRisk
	seen := map[string]bool{}
	for i := range conditional {
		for j := range conditional[i].Risks {
			if risk := &conditional[i].Risks[j]; !seen[risk.Name] {
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
