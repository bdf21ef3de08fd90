package preconditions

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
)

// Policy describes how a report becomes a decision. The zero value decides as the
// cluster-version operator does.
type Policy struct {
	// UnknownBlocks names checks that block where they could not be evaluated, or not
	// wholly. Without it such a check is a warning, except for the checks of [Operator],
	// of which the first three block.
	UnknownBlocks []string

	// Severities raises or lowers findings. A key that is the name of a check
	// replaces the severity of all its warnings and blocking findings; a key
	// NAME/REASON replaces the severity of its findings with this reason, whatever
	// it is, and takes precedence. Lowering to Info drops them from the summary.
	// What counts for something that is not known is not changed here: see
	// UnknownBlocks, or bypass the check.
	Severities map[string]Severity

	// Bypasses sets whole checks aside.
	Bypasses []Bypass

	// AcceptedRisks are the names in spec.desiredUpdate.acceptRisks. Each sets
	// aside the findings that report the risk of exactly this name.
	AcceptedRisks []string
}

// Bypass sets one check aside, for one target. It is recorded with who and why.
type Bypass struct {
	Check, By, Why string
	// Image is the pull spec of the target that the bypass was given for; for
	// any other target it is void. Empty: given for this report; set it in a
	// Bypass that is stored.
	Image string
}

// Decision reports whether an update may start.
type Decision struct {
	// Blocked: the target must not be taken.
	Blocked bool
	// Forced: something would have blocked without the force flag.
	Forced bool
	// Summary is the text for the refusal, or for the warning event if nothing
	// blocks; empty if there is nothing to say.
	Summary string
	// AcceptedRisks is the text for the history entry of a target that is
	// taken: the summary, then one line for everything bypassed. Empty if
	// Blocked.
	AcceptedRisks string
	// Results are those of the report, with the state Bypassed and the
	// severities of the policy where these apply.
	Results []Result
	// Assumed is the report's.
	Assumed []string
	// Void are the bypasses that were given for another target.
	Void []Bypass
	// Err describes what is wrong with the policy itself: an unknown check, a
	// bypass without who or why. It blocks, whatever else holds, force included,
	// and is the Summary then.
	Err error
}

// Decide applies a policy to a report. Force (Transition.Force) is all or
// nothing: with it nothing in the report blocks.
func (r *Report) Decide(p Policy) Decision {
	d := Decision{Results: slices.Clone(r.Results), Assumed: r.Assumed}
	bypasses, void, err := r.bypasses(p)
	d.Void = void
	if err := errors.Join(err, r.checkNames(p)); err != nil {
		d.Blocked, d.Err, d.Summary = true, err, err.Error()
		return d
	}
	type repeat struct{ of, line string } // of: empty if it is none
	var operator, bypassed []string
	var others []repeat
	blocking := false
	for i := range d.Results {
		result := &d.Results[i]
		result.Findings = p.adjust(*result)
		if result.State == Passed && result.warns() {
			result.State = Failed // raised by the policy
		}
		shown := 0
		for j, f := range result.Findings {
			if f.Severity < Warning {
				continue
			}
			if b, ok := p.bypassFor(*result, f, bypasses); ok {
				bypassed = append(bypassed, fmt.Sprintf("Bypassed precondition %q (%s: %s): %s: %s", result.Check, b.By, b.Why, f.Reason, f.Message))
				continue
			}
			shown++
			blocking = blocking || f.Severity >= Blocking
			if isOperatorCheck(result.Check) {
				operator = append(operator, line(*result, j))
			} else {
				others = append(others, repeat{f.RepeatOf, line(*result, j)})
			}
		}
		result.State = stateAfter(*result, shown)
	}
	lines := operator
	for _, o := range others {
		if o.of == "" || !d.reports(o.of) {
			lines = append(lines, o.line)
		}
	}
	d.Summary = summary(lines)
	switch {
	case blocking && r.Transition.Force:
		d.Forced = true
		d.Summary = "Forced through blocking failures: " + d.Summary
	case blocking:
		d.Blocked = true
		return d
	}
	accepted := bypassed
	if d.Summary != "" {
		accepted = append([]string{d.Summary}, bypassed...)
	}
	d.AcceptedRisks = strings.Join(accepted, "\n")
	return d
}

// stateAfter returns the state of a result of which some findings count.
func stateAfter(r Result, counting int) State {
	if r.State != Failed && r.State != Unknown || counting > 0 {
		return r.State
	}
	if r.warns() {
		return Bypassed
	}
	return Passed // lowered to Info by the policy
}

// line words one failure as the operator does, which has one reason for every
// failed read of its four checks.
func line(r Result, i int) string {
	reason, message := r.Findings[i].Reason, r.Findings[i].Message
	if r.saysUnknown(i) && isOperatorCheck(r.Check) && reason != reasonTimedOut && reason != reasonPanicked && reason != reasonCancelled {
		reason, message = reasonUnknownError, r.Err.Error()
	}
	return fmt.Sprintf("Precondition %q failed because of %q: %v", r.Check, reason, message)
}

func summary(lines []string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	default:
		return "Multiple precondition checks failed:\n* " + strings.Join(lines, "\n* ")
	}
}

func unknownSeverity(check string, p Policy) Severity {
	if slices.Contains(p.UnknownBlocks, check) || isOperatorCheck(check) && check != checkRecommended {
		return Blocking
	}
	return Warning
}

// adjust returns the findings with the severities of the policy. That a
// question does not arise has no severity to change.
func (p Policy) adjust(r Result) []Finding {
	if r.State == NotApplicable {
		return r.Findings
	}
	findings := slices.Clone(r.Findings)
	for i, f := range findings {
		if r.saysUnknown(i) {
			findings[i].Severity = unknownSeverity(r.Check, p)
		} else if s, ok := p.Severities[r.Check+"/"+f.Reason]; ok {
			findings[i].Severity = s
		} else if s, ok := p.Severities[r.Check]; ok && f.Severity >= Warning {
			findings[i].Severity = s
		}
	}
	return findings
}

// bypassFor returns what sets the finding aside: a bypass of its check, or the
// acceptance of the risk that it reports.
func (p Policy) bypassFor(r Result, f Finding, bypasses map[string]Bypass) (Bypass, bool) {
	if b, ok := bypasses[r.Check]; ok {
		return b, true
	}
	if f.Risk != "" && slices.Contains(p.AcceptedRisks, f.Risk) {
		return Bypass{By: "acceptRisks", Why: "risk " + f.Risk + " accepted"}, true
	}
	return Bypass{}, false
}

// bypasses returns the valid ones by check and those for other targets.
func (r *Report) bypasses(p Policy) (map[string]Bypass, []Bypass, error) {
	valid := make(map[string]Bypass)
	var void []Bypass
	var errs []error
	for _, b := range p.Bypasses {
		switch {
		case !r.has(b.Check):
			errs = append(errs, fmt.Errorf("bypass of unknown check %q", b.Check))
		case b.By == "" || b.Why == "":
			errs = append(errs, fmt.Errorf("bypass of check %q does not say who bypasses it and why", b.Check))
		case b.Image != "" && !graph.SameDigest(b.Image, r.Transition.TargetImage):
			void = append(void, b)
		default:
			if _, ok := valid[b.Check]; !ok {
				valid[b.Check] = b
			}
		}
	}
	return valid, void, errors.Join(errs...)
}

// checkNames finds names in the policy that are not checks of the report.
func (r *Report) checkNames(p Policy) error {
	var errs []error
	for _, name := range p.UnknownBlocks {
		if !r.has(name) {
			errs = append(errs, fmt.Errorf("UnknownBlocks: unknown check %q", name))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Severities)) {
		name, _, _ := strings.Cut(key, "/")
		if !r.has(name) {
			errs = append(errs, fmt.Errorf("Severities: unknown check %q", name))
		}
	}
	return errors.Join(errs...)
}

func (r *Report) has(check string) bool {
	_, ok := r.Result(check)
	return ok
}

// markRepeats marks findings whose cause another finding reports already: the condition
// Upgradeable of the ClusterVersion repeats ClusterOperators, gates, overrides and an
// update in progress, and ClusterOperators repeat what has a check of its own.
func markRepeats(results []Result) {
	var version, operators Finding // those that repeat others; zero: there is none
	for _, r := range results {
		for i, f := range r.Findings {
			switch {
			case r.saysUnknown(i) || f.Severity < Blocking:
			case r.Check == checkUpgradeable:
				version = f
			case r.Check == checkOperators && f.Reason == reasonNotUpgradeable:
				operators = f
			}
		}
	}
	for _, r := range results {
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Severity >= Warning && !r.saysUnknown(i) {
				f.RepeatOf = reporterOf(r.Check, *f, version, operators)
			}
		}
	}
}

// The documented check of ClusterOperators, and the reason of its finding about those
// that are not upgradeable.
const (
	checkOperators       = "ClusterOperators"
	reasonNotUpgradeable = "ClusterOperatorNotUpgradeable"
)

// reporterOf returns the check whose finding reports the cause of a finding; empty: none
// does.
func reporterOf(check string, f, version, operators Finding) string {
	reason := operatorReason(check)
	byOperators := reason != "" && f.Reason != "CredentialsSecretMissing" && strings.Contains(operators.Message, reason)
	switch {
	case isRepeated(check, f, version.Message):
		return checkUpgradeable
	case !byOperators:
		return ""
	case strings.Contains(version.Message, reason) || areRepeated(operators, version.Message):
		return checkUpgradeable
	}
	return checkOperators
}

// isRepeated reports whether the message of the condition Upgradeable has the cause of a
// finding.
func isRepeated(check string, f Finding, message string) bool {
	switch check {
	case checkOperators:
		return f.Reason == reasonNotUpgradeable && areRepeated(f, message)
	case "AdminAcks":
		return len(f.Objects) == 1 && f.Objects[0].Value != "" && strings.Contains(message, f.Objects[0].Value)
	case "VersionOverrides":
		return strings.Contains(message, "Disabling ownership via cluster version overrides")
	case "UpdateInProgress":
		return strings.Contains(message, "An update is already in progress")
	}
	return false
}

// areRepeated reports whether a message has that of every ClusterOperator of a finding,
// which names some.
func areRepeated(operators Finding, message string) bool {
	return len(operators.Objects) > 0 && !slices.ContainsFunc(operators.Objects, func(o Object) bool {
		_, own, _ := strings.Cut(o.Note, ": ")
		return own == "" || !strings.Contains(message, own)
	})
}

// operatorReason is what the reason of a ClusterOperator that is not upgradeable contains
// for the cause that a check finds.
func operatorReason(check string) string {
	switch check {
	case "PoolsDegraded":
		return "DegradedPool"
	case "PoolsUpdating":
		return "PoolUpdating"
	case "KubeletSkew":
		return "KubeletMinorVersionUnsupported"
	case "UnsupportedOverrides":
		return "UnsupportedConfigOverridesSet"
	case "CgroupV1":
		return "ClusterOnCgroupV1"
	case "OperatorCompatibility":
		return "IncompatibleOperatorsInstalled"
	}
	return ""
}

// reports is true if a finding of a check counts in a decision, so that the findings whose
// cause it reports need not be repeated.
func (d Decision) reports(check string) bool {
	isReporting := func(f Finding) bool { return isReporter(check, f) }
	return slices.ContainsFunc(d.Results, func(r Result) bool {
		return r.Check == check && r.State == Failed && slices.ContainsFunc(r.Findings, isReporting)
	})
}

func isReporter(check string, f Finding) bool {
	return f.Severity >= Blocking && (check == checkUpgradeable || f.Reason == reasonNotUpgradeable)
}
