package preconditions

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// legacyCondition words the condition as older releases did: one reason per
// source, all ClusterOperators and all admin gates taken together.
func legacyCondition(risks []Risk) *configv1.ClusterOperatorStatusCondition {
	var reasons, messages []string
	for _, group := range bySource(risks) {
		reason, message := legacyReason(group)
		reasons = append(reasons, reason)
		messages = append(messages, message)
	}
	if len(reasons) == 1 {
		return upgradeableCondition(configv1.ConditionFalse, reasons[0], messages[0])
	}
	return upgradeableCondition(configv1.ConditionFalse, ReasonMultiple,
		fmt.Sprintf("Cluster should not be upgraded between minor versions for multiple reasons: %s\n* %s",
			strings.Join(reasons, ","), strings.Join(messages, "\n* ")))
}

// bySource groups the risks of each source, in order of first appearance.
func bySource(risks []Risk) [][]Risk {
	var groups [][]Risk
	at := make(map[string]int)
	for _, r := range risks {
		i, ok := at[r.Source]
		if !ok {
			i = len(groups)
			at[r.Source] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// legacyReason returns reason and message of the risks of one source.
func legacyReason(risks []Risk) (reason, message string) {
	messages := make([]string, len(risks))
	for i, r := range risks {
		messages[i] = r.Message
	}
	message = strings.Join(messages, " ")
	switch first := risks[0]; first.Source {
	case SourceOperators:
		return legacyOperators(risks)
	case SourceAdminAck:
		if strings.HasPrefix(first.Name, SourceAdminAck+"-") {
			return "AdminAckRequired", message
		}
		return first.Name, message
	case SourceOverrides:
		return "ClusterVersionOverridesSet", message
	case SourceUpdating:
		return "UpdateInProgress", message
	case SourceDeletions:
		if first.Name == SourceDeletions {
			return "ResourceDeletesInProgress", message
		}
		return first.Name, message
	default:
		if len(risks) > 1 {
			return ReasonMultiple, message
		}
		return loneReason(first, SourceName), message
	}
}

func legacyOperators(risks []Risk) (reason, message string) {
	const plural = "ClusterOperatorsNotUpgradeable"
	first := risks[0]
	switch {
	case len(risks) == 1 && first.Operator == "":
		return first.Name, first.Message // the operators could not be read
	case len(risks) == 1:
		reason = first.OperatorReason
		if reason == "" {
			reason = plural
		}
		return reason, fmt.Sprintf("Cluster operator %s should not be upgraded between minor versions: %s", first.Operator, first.Message)
	}
	message = "Multiple cluster operators should not be upgraded between minor versions:"
	for _, r := range risks {
		why := r.Message
		if r.OperatorReason != "" {
			why = r.OperatorReason + ": " + why
		}
		message += fmt.Sprintf("\n* Cluster operator %s should not be upgraded between minor versions: %s", r.Operator, why)
	}
	return plural, message
}
