package graph

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// What ClusterVersion's schema in config.openshift.io/v1 accepts. One field that
// it refuses makes the API server refuse the whole status.
const (
	maxConditionalUpdates = 500
	maxRisks              = 200   // of one update
	maxListedRisks        = 500   // in status.conditionalUpdateRisks
	maxRiskName           = 256   // characters
	maxMessage            = 32768 // characters of a condition
	maxReason             = 1024  // characters
	maxType               = 316   // characters
)

// The patterns of a condition's reason and type.
var (
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	typePattern   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
)

// DefaultMaxList is how many bytes of JSON the lists of updates have at most:
// an API server takes no object of more than 1.5 MiB.
const DefaultMaxList = 1 << 20

// The limits on lists of updates, as errors name them.
const (
	limitList               = "bytes of updates in a ClusterVersion"
	limitConditionalUpdates = "conditional updates in a ClusterVersion"
)

// refusedRisks says why a ClusterVersion cannot hold an update with these risks,
// nil if it can. The types of rules are for others to judge.
func refusedRisks(risks []configv1.ConditionalUpdateRisk) error {
	switch {
	case len(risks) == 0:
		return errors.New("no risks")
	case len(risks) > maxRisks:
		return fmt.Errorf("%d risks, of which a ClusterVersion can hold %d", len(risks), maxRisks)
	}
	var seen map[string]bool
	if len(risks) > 1 {
		seen = make(map[string]bool, len(risks))
	}
	for i := range risks {
		risk := &risks[i]
		if err := refusedRisk(risk); err != nil {
			return fmt.Errorf("risks[%d]: %w", i, err)
		}
		if seen[risk.Name] {
			return fmt.Errorf("risks[%d]: the name %s comes twice", i, shown(risk.Name))
		}
		if seen != nil {
			seen[risk.Name] = true
		}
	}
	return nil
}

func refusedRisk(risk *configv1.ConditionalUpdateRisk) error {
	switch {
	case risk.Name == "":
		return errors.New("the name is empty")
	case utf8.RuneCountInString(risk.Name) > maxRiskName:
		return fmt.Errorf("the name has %d characters, of which a ClusterVersion can hold %d", utf8.RuneCountInString(risk.Name), maxRiskName)
	case risk.Message == "":
		return errors.New("the message is empty")
	case risk.URL == "":
		return errors.New("the url is empty")
	case !isURI(risk.URL):
		return fmt.Errorf("the url %s is not a URI", shown(risk.URL))
	case len(risk.MatchingRules) == 0:
		return errors.New("no matching rules")
	}
	return nil
}

// isURI is what the API server makes of the format "uri".
func isURI(s string) bool {
	_, err := url.ParseRequestURI(s)
	return err == nil
}

// publicRules returns the rules of the types that the API has.
func publicRules(rules []configv1.ClusterCondition) []configv1.ClusterCondition {
	var public []configv1.ClusterCondition
	for i := range rules {
		if rules[i].Type == RuleAlways || rules[i].Type == RulePromQL {
			public = append(public, rules[i])
		}
	}
	return public
}

// cutMessage brings a text to the length that a condition can have.
func cutMessage(text string) string {
	if len(text) <= maxMessage || len(text) <= utf8.UTFMax*maxMessage && utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return bounded.Text(text, maxMessage)
}

// joinMessages joins the parts of a condition's message. Of those that are too
// long together, it says how many are left out.
func joinMessages(parts []string, sep string) string {
	size := 0
	for _, part := range parts {
		size += len(part) + len(sep)
	}
	if size <= utf8.UTFMax*maxMessage {
		if text := strings.Join(parts, sep); utf8.RuneCountInString(text) <= maxMessage {
			return text
		}
	}
	parts = slices.Clone(parts)
	parts[0] = bounded.Text(parts[0], maxMessage/2) // its beginning says more than a number
	return bounded.Join(parts, sep, maxMessage)
}

// accepted brings a condition into a form that the API accepts; ok is false
// where its type or status leave nothing to bring.
func accepted(c metav1.Condition, now time.Time) (_ metav1.Condition, ok bool) {
	if len(c.Type) > maxType || !typePattern.MatchString(c.Type) {
		return c, false
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		return c, false
	}
	if len(c.Reason) > maxReason || !reasonPattern.MatchString(c.Reason) {
		c.Reason = reasonOther
	}
	c.Message = cutMessage(c.Message)
	if !isDate(c.LastTransitionTime) {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	c.ObservedGeneration = max(c.ObservedGeneration, 0)
	return c, true
}

// isDate says whether a time can be written down: not if it is zero, which
// becomes null, or in a year of five digits.
func isDate(t metav1.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && year >= 0 && year <= 9999
}

// reasonOther stands for a reason that the API refuses.
const reasonOther = "InvalidReason"
