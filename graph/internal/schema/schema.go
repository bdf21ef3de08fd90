package schema

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
	MaxConditionalUpdates = 500
	MaxRisks              = 200   // of one update
	MaxListedRisks        = 500   // in status.conditionalUpdateRisks
	MaxRiskName           = 256   // characters
	MaxMessage            = 32768 // characters of a condition
	MaxReason             = 1024  // characters
	maxType               = 316   // characters
)

// MaxListBytes is how many bytes of JSON the lists of updates may have together,
// unless a caller says otherwise: an API server takes no object of more than
// 1.5 MiB.
const MaxListBytes = 1 << 20

// The limits of a ClusterVersion, as errors name them.
const (
	LimitList        = "bytes of updates in a ClusterVersion"
	LimitConditional = "conditional updates in a ClusterVersion"
)

// The patterns of a condition's reason and type.
var (
	ReasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	typePattern   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
)

// RefusedRisks explains why a ClusterVersion cannot hold an update with these
// risks, nil if it can. The types of rules are for others to judge.
func RefusedRisks(risks []configv1.ConditionalUpdateRisk) error {
	switch {
	case len(risks) == 0:
		return errors.New("no risks")
	case len(risks) > MaxRisks:
		return fmt.Errorf("%d risks, of which a ClusterVersion can hold %d", len(risks), MaxRisks)
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
			return fmt.Errorf("risks[%d]: the name %s comes twice", i, bounded.Quote(risk.Name))
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
	case utf8.RuneCountInString(risk.Name) > MaxRiskName:
		return fmt.Errorf("the name has %d characters, of which a ClusterVersion can hold %d", utf8.RuneCountInString(risk.Name), MaxRiskName)
	case risk.Message == "":
		return errors.New("the message is empty")
	case risk.URL == "":
		return errors.New("the url is empty")
	case !IsURI(risk.URL):
		return fmt.Errorf("the url %s is not a URI", bounded.Quote(risk.URL))
	case len(risk.MatchingRules) == 0:
		return errors.New("no matching rules")
	}
	return nil
}

// IsURI is what the API server makes of the format "uri".
func IsURI(s string) bool {
	_, err := url.ParseRequestURI(s)
	return err == nil
}

// CutMessage brings a text to the length that a condition can have.
func CutMessage(text string) string {
	if len(text) <= MaxMessage || len(text) <= utf8.UTFMax*MaxMessage && utf8.RuneCountInString(text) <= MaxMessage {
		return text
	}
	return bounded.Text(text, MaxMessage)
}

// JoinMessages joins the parts of a condition's message. If they are too long
// together, it leaves some out and reports how many.
func JoinMessages(parts []string, sep string) string {
	size := 0
	for _, part := range parts {
		size += len(part) + len(sep)
	}
	if size <= utf8.UTFMax*MaxMessage {
		if text := strings.Join(parts, sep); utf8.RuneCountInString(text) <= MaxMessage {
			return text
		}
	}
	parts = slices.Clone(parts)
	parts[0] = bounded.Text(parts[0], MaxMessage/2) // its beginning says more than a number
	return bounded.Join(parts, sep, MaxMessage)
}

// Accepted brings a condition into a form that the API accepts; ok is false
// where its type or status leave nothing to bring.
func Accepted(c metav1.Condition, now time.Time) (_ metav1.Condition, ok bool) {
	if len(c.Type) > maxType || !typePattern.MatchString(c.Type) {
		return c, false
	}
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		return c, false
	}
	if len(c.Reason) > MaxReason || !ReasonPattern.MatchString(c.Reason) {
		c.Reason = reasonOther
	}
	c.Message = CutMessage(c.Message)
	if !IsDate(c.LastTransitionTime) {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	c.ObservedGeneration = max(c.ObservedGeneration, 0)
	return c, true
}

// IsDate reports whether a time can be written down: not if it is zero, which
// becomes null, or in a year of five digits.
func IsDate(t metav1.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && year >= 0 && year <= 9999
}

// reasonOther stands for a reason that the API refuses.
const reasonOther = "InvalidReason"

// EqualRisks compares the content of two risks, their conditions apart.
func EqualRisks(a, b configv1.ConditionalUpdateRisk) bool {
	return a.Name == b.Name && a.URL == b.URL && a.Message == b.Message &&
		slices.EqualFunc(a.MatchingRules, b.MatchingRules, equalRules)
}

func equalRules(a, b configv1.ClusterCondition) bool {
	if a.Type != b.Type || (a.PromQL == nil) != (b.PromQL == nil) {
		return false
	}
	return a.PromQL == nil || a.PromQL.PromQL == b.PromQL.PromQL
}

// CheckPromQL returns an error for a rule that has no PromQL query.
func CheckPromQL(rule configv1.ClusterCondition) error {
	if rule.PromQL == nil {
		return errors.New("the 'promql' property is required for 'type: PromQL' conditions")
	}
	if rule.PromQL.PromQL == "" {
		return errors.New("the 'promql.promql' query string must be non-empty for 'type: PromQL' conditions")
	}
	return nil
}
