package preconditions

import (
	"slices"
	"strings"
)

// tellOnce marks findings whose cause another finding tells already: the condition
// Upgradeable of the ClusterVersion repeats ClusterOperators, gates, overrides and an
// update in progress, and ClusterOperators repeat what has a check of its own.
func tellOnce(results []Result) {
	byVersion, operators := "", ""
	operatorsTold := false // by the condition of the ClusterVersion
	for _, r := range results {
		for i, f := range r.Findings {
			switch {
			case r.saysUnknown(i) || f.Severity < Blocking:
			case r.Check == checkUpgradeable:
				byVersion = f.Message
			case r.Check == "ClusterOperators" && f.Reason == "ClusterOperatorNotUpgradeable":
				operators = f.Message
			}
		}
	}
	for i := range results {
		r := &results[i]
		for j := range r.Findings {
			if f := &r.Findings[j]; f.Severity >= Warning && !r.saysUnknown(j) {
				f.ToldBy = teller(r.Check, *f, byVersion, operators)
				operatorsTold = operatorsTold || r.Check == "ClusterOperators" && f.ToldBy != ""
			}
		}
	}
	if !operatorsTold {
		return
	}
	for i := range results {
		for j := range results[i].Findings {
			if f := &results[i].Findings[j]; f.ToldBy == "ClusterOperators" {
				f.ToldBy = checkUpgradeable
			}
		}
	}
}

// teller returns the check whose finding tells the cause of a finding; empty: none does.
func teller(check string, f Finding, byVersion, operators string) string {
	told := false
	switch check {
	case "ClusterOperators":
		told = f.Reason == "ClusterOperatorNotUpgradeable" && byVersion != "" && !slices.ContainsFunc(f.Objects, func(o Object) bool {
			_, message, found := strings.Cut(o.Note, ": ")
			return !found || message == "" || !strings.Contains(byVersion, message)
		})
	case "AdminAcks":
		told = len(f.Objects) == 1 && f.Objects[0].Value != "" && strings.Contains(byVersion, f.Objects[0].Value)
	case "VersionOverrides":
		told = strings.Contains(byVersion, "Disabling ownership via cluster version overrides")
	case "UpdateInProgress":
		told = strings.Contains(byVersion, "An update is already in progress")
	}
	if told {
		return checkUpgradeable
	}
	reason := operatorReason(check)
	switch {
	case reason == "" || f.Reason == "CredentialsSecretMissing" || !strings.Contains(operators, reason):
		return ""
	case strings.Contains(byVersion, reason):
		return checkUpgradeable
	}
	return "ClusterOperators"
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

// tells reports whether a finding of a check counts in a decision, so that the findings
// whose cause it tells need not be repeated.
func (d Decision) tells(check string) bool {
	return slices.ContainsFunc(d.Results, func(r Result) bool {
		return r.Check == check && r.State == Failed && slices.ContainsFunc(r.Findings, func(f Finding) bool { return isTeller(check, f) })
	})
}

func isTeller(check string, f Finding) bool {
	return f.Severity >= Blocking && (check == checkUpgradeable || f.Reason == "ClusterOperatorNotUpgradeable")
}
