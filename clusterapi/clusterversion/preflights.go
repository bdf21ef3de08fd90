package clusterversion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// PreflightState is how far a preflight is.
type PreflightState string

// The states of a [Preflight].
const (
	PreflightRunning   PreflightState = "Running"
	PreflightCompleted PreflightState = "Completed"
	PreflightFailed    PreflightState = "Failed" // the release could not be checked, or not wholly
)

// Names of findings. All others are those of a check or a preview, with what it found.
const (
	PreflightIncomplete = "PreflightIncomplete" // of state Failed, or not all findings have a place
	PreflightUnknown    = "Unknown"             // the end of a name: it could not be decided

	preflightPassed     = "PreflightPassed"     // nothing was found
	preflightInProgress = "PreflightInProgress" // of state Running
)

// The limits of the results of preflights.
const (
	maxPreflightFindings = 64        // of one release
	maxPreflightRisks    = 250       // of all releases
	maxReleaseBytes      = 32 << 10  // of the messages of one release, or 256 each
	maxPreflightBytes    = 128 << 10 // of all messages, each of which a ClusterVersion has twice
	maxUpdateRisks       = 200       // of one update in the API
	maxListedRisks       = 500       // in status.conditionalUpdateRisks
	maxUpdates           = 500       // in status.conditionalUpdates
	maxRiskName          = 256       // characters
)

// Preflight is what the check of a release found. A ClusterVersion has it as risks of the
// update to that release, see [Preflights] and [ShowPreflights]. It is plain data.
type Preflight struct {
	Release configv1.Release `json:"release"` // without a version if that is not known yet
	State   PreflightState   `json:"state"`
	// Findings are what an update would meet, each name once. Without any, a preflight
	// that is Completed has passed.
	Findings []PreflightFinding `json:"findings,omitempty"`
	// Message is how far a preflight is that is Running.
	Message string `json:"message,omitempty"`
	// Ended is when the findings were made, in seconds. Zero: not known.
	Ended time.Time `json:"ended,omitzero"`
}

// PreflightFinding is something that an update would meet. It is plain data.
type PreflightFinding struct {
	Name    string `json:"name"` // in CamelCase, without the target
	Message string `json:"message"`
	URL     string `json:"url,omitempty"` // of the documentation; empty: the page about updates
}

// preflightURL is the documentation of a finding that has no other.
const preflightURL = "https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/" +
	"updating_clusters/"

// target names the release in messages.
func (p *Preflight) target() string {
	if p.Release.Version != "" {
		return p.Release.Version
	}
	if _, digest, found := strings.Cut(p.Release.Image, "@"); found {
		return digest[:min(len(digest), len("sha256:")+12)]
	}
	return p.Release.Image
}

// suffix is what a target adds to the names of its risks.
func suffix(target string) string {
	return "For" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, target)
}

// riskName is the name of the risk that a finding is, as spec.desiredUpdate.acceptRisks
// accepts it: the finding's, and the target's.
func (p *Preflight) riskName(finding string) string {
	end := suffix(p.target())
	return finding[:max(0, min(len(finding), maxRiskName-len(end)))] + end
}

// Risks are the names of the risks that apply to an update to the release.
func (p *Preflight) Risks() []string {
	var names []string
	for _, f := range p.Findings {
		names = append(names, p.riskName(f.Name))
	}
	return names
}

const (
	preflightMessage = "Preflight=" // how the message of a risk begins
	conditionApplies = "Applies"
	recommended      = "Recommended"

	reasonValidation = "PreflightValidation" // also of Recommended: risks of a preflight apply
	reasonPartial    = "PreflightPartial"
	reasonFailed     = "PreflightFailed"
	reasonRunning    = "PreflightRunning"
	reasonAccepted   = "PreflightRisksAccepted"
)

// risks are those that the API has of a preflight.
func (p *Preflight) risks(most, bytes int, now metav1.Time) []configv1.ConditionalUpdateRisk {
	findings := slices.Clone(p.Findings)
	switch {
	case p.State == PreflightRunning:
		findings = append(findings, PreflightFinding{preflightInProgress, cmp.Or(p.Message, "the checks begin"), ""})
	case len(findings) == 0:
		const nothing = "the checks found nothing against an update to the target version"
		findings = []PreflightFinding{{Name: preflightPassed, Message: nothing}}
	}
	if most = min(most, maxPreflightFindings); len(findings) > most {
		left := len(findings) - most + 1
		findings = findings[:max(0, most-1)]
		findings = slices.DeleteFunc(findings, func(f PreflightFinding) bool { return f.Name == PreflightIncomplete })
		if most > 0 {
			text := fmt.Sprintf("%d findings are left out: there are too many", left)
			findings = append(findings, PreflightFinding{Name: PreflightIncomplete, Message: text})
		}
	}
	begin := preflightMessage + p.target() + ": "
	longest := longestMessage(findings, len(begin), bytes)
	var out []configv1.ConditionalUpdateRisk
	for _, f := range findings {
		out = append(out, configv1.ConditionalUpdateRisk{
			Name: p.riskName(f.Name), Message: bounded.Text(begin+f.Message, longest), URL: cmp.Or(f.URL, preflightURL),
			MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
			Conditions:    []metav1.Condition{applies(f.Name, now, p.Ended)},
		})
	}
	return out
}

// longestMessage is the length of a message with which all of them have so many bytes.
func longestMessage(findings []PreflightFinding, begin, bytes int) int {
	longest := MaxMessage
	for ; longest > 256; longest /= 2 {
		sum := 0
		for _, f := range findings {
			sum += min(longest, begin+len(f.Message))
		}
		if sum <= bytes {
			break
		}
	}
	return longest
}

// lastChecked ends the message of a condition; the time follows.
const lastChecked = " Last checked: "

// applies is the condition of the risk that a finding of a preflight is, which ended then.
func applies(name string, now metav1.Time, ended time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: conditionApplies, Status: metav1.ConditionTrue, Reason: reasonValidation, LastTransitionTime: now,
		Message: "The preflight found it in an update to the target version.",
	}
	switch {
	case name == preflightPassed:
		c.Status, c.Message = metav1.ConditionFalse, "The preflight found nothing."
	case name == preflightInProgress:
		c.Reason, c.Message = reasonRunning, "The preflight is not complete."
	case name == PreflightIncomplete:
		c.Reason, c.Message = reasonFailed, "The preflight did not decide all checks."
	case strings.HasSuffix(name, PreflightUnknown):
		c.Reason, c.Message = reasonPartial, "The preflight could not decide it."
	}
	if name != preflightInProgress && !ended.IsZero() {
		c.Message += lastChecked + ended.UTC().Format(time.RFC3339)
	}
	return c
}

// endOf is when the preflight ended that found a risk; zero if that is not known.
func endOf(risk *configv1.ConditionalUpdateRisk) time.Time {
	c := meta.FindStatusCondition(risk.Conditions, conditionApplies)
	if c == nil {
		return time.Time{}
	}
	_, text, _ := strings.Cut(c.Message, lastChecked)
	ended, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return ended
}

// finding is the finding that a risk is, and the target that it names. It is not ok for
// risks of the update service and of the cluster.
func finding(risk *configv1.ConditionalUpdateRisk) (f PreflightFinding, target string, ok bool) {
	text, ok := strings.CutPrefix(risk.Message, preflightMessage)
	if !ok {
		return f, "", false
	}
	target, text, ok = strings.Cut(text, ": ")
	if !ok {
		return f, "", false
	}
	name, ok := strings.CutSuffix(risk.Name, suffix(target))
	if !ok {
		return f, "", false
	}
	f = PreflightFinding{Name: name, Message: text, URL: risk.URL}
	if risk.URL == preflightURL {
		f.URL = ""
	}
	return f, target, true
}

func isPreflight(risk configv1.ConditionalUpdateRisk) bool {
	_, _, ok := finding(&risk)
	return ok
}

// Preflights returns what preflights found, as the risks of the conditional updates have it,
// in their order. It returns nil if none ran. It only reads s.
func Preflights(s *configv1.ClusterVersionStatus) []Preflight {
	var all []Preflight
	for i := range s.ConditionalUpdates {
		c := &s.ConditionalUpdates[i]
		p := Preflight{Release: c.Release, State: PreflightCompleted}
		ran := false
		for j := range c.Risks {
			f, target, ok := finding(&c.Risks[j])
			if !ok {
				continue
			}
			ran = true
			if ended := endOf(&c.Risks[j]); ended.After(p.Ended) {
				p.Ended = ended
			}
			switch {
			case f.Name == preflightPassed:
				continue
			case f.Name == preflightInProgress:
				p.State, p.Message = PreflightRunning, f.Message
				continue
			case f.Name == PreflightIncomplete && p.State == PreflightCompleted:
				p.State = PreflightFailed
			}
			if target != p.Release.Version {
				p.Release.Version = "" // was not known
			}
			p.Findings = append(p.Findings, f)
		}
		if ran {
			all = append(all, p)
		}
	}
	return all
}

// RemovePreflights removes what preflights found from a status, and the updates that have
// no other risk. An update that is not recommended because of it is recommended then.
func RemovePreflights(s *configv1.ClusterVersionStatus) {
	s.ConditionalUpdateRisks = slices.DeleteFunc(s.ConditionalUpdateRisks, isPreflight)
	isOther := func(r configv1.ConditionalUpdateRisk) bool { return !isPreflight(r) }
	s.ConditionalUpdates = slices.DeleteFunc(s.ConditionalUpdates, func(c configv1.ConditionalUpdate) bool {
		return len(c.Risks) > 0 && !slices.ContainsFunc(c.Risks, isOther)
	})
	if len(s.ConditionalUpdateRisks) == 0 {
		s.ConditionalUpdateRisks = nil
	}
	if len(s.ConditionalUpdates) == 0 {
		s.ConditionalUpdates = nil
	}
	for i := range s.ConditionalUpdates {
		c := &s.ConditionalUpdates[i]
		if !slices.ContainsFunc(c.Risks, isPreflight) {
			continue
		}
		c.Risks = slices.DeleteFunc(c.Risks, isPreflight)
		if c.RiskNames != nil {
			c.RiskNames = riskNames(c.Risks)
		}
		if r := meta.FindStatusCondition(c.Conditions, recommended); r != nil && strings.HasPrefix(r.Reason, "Preflight") {
			r.Status, r.Reason = metav1.ConditionTrue, "NotExposedToRisks"
			r.Message = "No risk of the update service applies to the cluster."
		}
	}
}

func riskNames(risks []configv1.ConditionalUpdateRisk) []string {
	var names []string
	for i := range risks {
		names = append(names, risks[i].Name)
	}
	return names
}

// PreflightDisplay describes how [ShowPreflights] shows what preflights found. It is plain
// data.
type PreflightDisplay struct {
	// Before is the status as published before, so that a condition keeps its time while
	// its status stays.
	Before *configv1.ClusterVersionStatus
	// Blocks reports that risks block an update unless they are among Accepted: an update
	// that has some is not an available one then.
	Blocks   bool
	Accepted []string
	Now      metav1.Time
}

// ShowPreflights adds what preflights found to a status without it (see
// [RemovePreflights]), as risks of the updates: of one that s has, else of a new one behind
// these. All that does not fit into 64 risks of a release and 250 of all is left out, of the
// first in found before the last, and a risk reports how much.
func ShowPreflights(s *configv1.ClusterVersionStatus, found []Preflight, o PreflightDisplay) {
	listed := len(s.ConditionalUpdates)
	room := room{risks: maxPreflightRisks, bytes: maxPreflightBytes}
	for _, p := range slices.Backward(found) { // the last one ran last
		o.show(s, &p, &room)
	}
	version := func(c configv1.ConditionalUpdate) string { return c.Release.Version }
	own := openshift.NewestFirst(s.ConditionalUpdates[listed:], version)
	s.ConditionalUpdates = append(s.ConditionalUpdates[:listed:listed], own...)
	slices.SortStableFunc(s.ConditionalUpdateRisks, func(a, b configv1.ConditionalUpdateRisk) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// room is what there is left for risks of preflights.
type room struct{ risks, bytes int }

// show adds what one preflight found.
func (o *PreflightDisplay) show(s *configv1.ClusterVersionStatus, p *Preflight, left *room) {
	isOf := func(c configv1.ConditionalUpdate) bool { return c.Release.Image == p.Release.Image }
	c := &configv1.ConditionalUpdate{Release: p.Release}
	at := slices.IndexFunc(s.ConditionalUpdates, isOf)
	if at >= 0 {
		c = &s.ConditionalUpdates[at]
	} else if len(s.ConditionalUpdates) >= maxUpdates {
		return
	}
	risks := p.risks(min(left.risks, maxUpdateRisks-len(c.Risks)), min(left.bytes, maxReleaseBytes), o.Now)
	if len(risks) == 0 {
		return
	}
	left.risks -= len(risks)
	for i := range risks {
		left.bytes -= len(risks[i].Message)
	}
	own := len(c.Risks)
	c.Risks = append(c.Risks, risks...)
	c.RiskNames = riskNames(c.Risks)
	o.recommend(c, p)
	keepTimes(o.Before, c)
	more := c.Risks[own:min(len(c.Risks), own+max(0, maxListedRisks-len(s.ConditionalUpdateRisks)))]
	s.ConditionalUpdateRisks = append(s.ConditionalUpdateRisks, more...)
	if o.Blocks && meta.IsStatusConditionFalse(c.Conditions, recommended) {
		s.AvailableUpdates = slices.DeleteFunc(s.AvailableUpdates, func(r configv1.Release) bool {
			return r.Image == p.Release.Image
		})
	}
	if at < 0 {
		s.ConditionalUpdates = append(s.ConditionalUpdates, *c)
	}
}

// recommend reports whether an update is recommended, unless it is not because of other
// risks.
func (o *PreflightDisplay) recommend(c *configv1.ConditionalUpdate, p *Preflight) {
	if r := meta.FindStatusCondition(c.Conditions, recommended); r != nil && r.Status != metav1.ConditionTrue {
		return
	}
	next := metav1.Condition{
		Type: recommended, Status: metav1.ConditionTrue, Reason: preflightPassed, LastTransitionTime: o.Now,
		Message: "The preflight found nothing against the update.",
	}
	var open []string
	for _, f := range p.Findings {
		if name := p.riskName(f.Name); !slices.Contains(o.Accepted, name) {
			open = append(open, name)
		}
	}
	switch {
	case len(open) > 0:
		next.Status, next.Reason = metav1.ConditionFalse, reasonValidation
		if p.State == PreflightFailed {
			next.Reason = reasonFailed
		}
		next.Message = bounded.Join(slices.Insert(open, 0, "The preflight found risks:"), " ", MaxMessage)
	case p.State == PreflightRunning:
		next.Status, next.Reason, next.Message = metav1.ConditionUnknown, reasonRunning, "The preflight is not complete."
	case len(p.Findings) > 0:
		next.Reason, next.Message = reasonAccepted, "All risks that the preflight found are accepted."
	}
	meta.RemoveStatusCondition(&c.Conditions, recommended)
	c.Conditions = append(c.Conditions, next)
}

// keepTimes gives conditions the times that were published before with the same status.
func keepTimes(before *configv1.ClusterVersionStatus, c *configv1.ConditionalUpdate) {
	if before == nil {
		return
	}
	for i := range before.ConditionalUpdates {
		old := &before.ConditionalUpdates[i]
		if old.Release.Image != c.Release.Image {
			continue
		}
		keepTime(old.Conditions, c.Conditions)
		for j := range c.Risks {
			isSame := func(r configv1.ConditionalUpdateRisk) bool { return r.Name == c.Risks[j].Name }
			if of := slices.IndexFunc(old.Risks, isSame); of >= 0 {
				keepTime(old.Risks[of].Conditions, c.Risks[j].Conditions)
			}
		}
	}
}

func keepTime(old, next []metav1.Condition) {
	for i := range next {
		if c := meta.FindStatusCondition(old, next[i].Type); c != nil && c.Status == next[i].Status {
			next[i].LastTransitionTime = c.LastTransitionTime
		}
	}
}
