package preconditions

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recommendedUpdate warns where the update service does not recommend the
// target. Versions are compared as text; images are not compared.
func recommendedUpdate(cv *configv1.ClusterVersion, target string) *Finding {
	for _, release := range cv.Status.AvailableUpdates {
		if release.Version == target {
			return nil
		}
	}
	from := fmt.Sprintf("from %s to %s", cv.Status.Desired.Version, target)
	warn := func(reason, format string, args ...any) *Finding {
		return &Finding{Severity: Warning, Reason: reason, Message: fmt.Sprintf(format, args...), Remedy: recommendedRemedy(cv, target)}
	}
	for _, update := range cv.Status.ConditionalUpdates {
		if update.Release.Version == target {
			return judgeConditional(update, from, warn)
		}
	}
	if cv.Spec.Channel == "" {
		return warn("NoChannel", "Configured channel is unset, so the recommended status of updating %s is unknown.", from)
	}
	retrieved := condition(cv.Status.Conditions, configv1.RetrievedUpdates)
	switch {
	case retrieved == nil:
		return warn("UnknownUpdate", "No RetrievedUpdates, so the recommended status of updating %s is unknown.", from)
	case retrieved.Status == configv1.ConditionTrue:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the update %s is probably neither recommended nor supported.", retrieved.Status, retrieved.Reason, from)
	default:
		return warn("UnknownUpdate", "RetrievedUpdates=%s (%s), so the recommended status of updating %s is unknown.", retrieved.Status, retrieved.Reason, from)
	}
}

func judgeConditional(update configv1.ConditionalUpdate, from string, warn func(string, string, ...any) *Finding) *Finding {
	c := meta.FindStatusCondition(update.Conditions, "Recommended")
	switch {
	case c == nil:
		return warn("UnknownConditionType", "Update %s has a status.conditionalUpdates entry, but no Recommended condition.", from)
	case c.Status == metav1.ConditionTrue:
		return nil
	case c.Status == metav1.ConditionFalse:
		f := warn(c.Reason, "Update %s is not recommended:\n\n%s", from, c.Message)
		for _, risk := range update.Risks {
			if risk.Name == c.Reason {
				f.Risk = risk.Name
			}
		}
		return f
	default:
		return warn(c.Reason, "Update %s is Recommended=%s: %s: %s", from, c.Status, c.Reason, c.Message)
	}
}
