package schema

import (
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The sizes of things as JSON, names of fields included. A bound is quicker
// and never less.

const (
	sizeRelease   = 80
	sizeRisk      = 120 // with its place in an update
	sizeRule      = 50
	sizeCondition = 120
	escaped       = 6 // bytes that one becomes at most
)

func sizeOfText(s string) int {
	n := 3 // quotes and a comma
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n += 2
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += escaped
		case c < utf8.RuneSelf:
			n++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				n += escaped
			} else {
				n += size
			}
			i += size
			continue
		}
		i++
	}
	return n
}

func SizeOfRelease(r *configv1.Release) int {
	n := sizeRelease + sizeOfText(r.Version) + sizeOfText(r.Image) + sizeOfText(string(r.URL))
	for _, c := range r.Channels {
		n += sizeOfText(c)
	}
	return n
}

func BoundOfRelease(r *configv1.Release) int {
	n := len(r.Version) + len(r.Image) + len(r.URL)
	for _, c := range r.Channels {
		n += len(c) + 1
	}
	return sizeRelease + escaped*n
}

func SizeOfRisks(risks []configv1.ConditionalUpdateRisk) int {
	n := sizeRisk
	for i := range risks {
		n += sizeOfRisk(&risks[i])
	}
	return n
}

func sizeOfRisk(r *configv1.ConditionalUpdateRisk) int {
	n := sizeRisk + sizeOfText(r.URL) + sizeOfText(r.Name) + sizeOfText(r.Message)
	for i := range r.MatchingRules {
		n += sizeRule + sizeOfText(r.MatchingRules[i].Type)
		if p := r.MatchingRules[i].PromQL; p != nil {
			n += sizeOfText(p.PromQL)
		}
	}
	return n
}

func BoundOfRisks(risks []configv1.ConditionalUpdateRisk) int {
	n := sizeRisk
	for i := range risks {
		r := &risks[i]
		n += sizeRisk + escaped*(len(r.URL)+len(r.Name)+len(r.Message))
		for j := range r.MatchingRules {
			n += sizeRule + escaped*len(r.MatchingRules[j].Type)
			if p := r.MatchingRules[j].PromQL; p != nil {
				n += escaped * len(p.PromQL)
			}
		}
	}
	return n
}

func sizeOfCondition(c *metav1.Condition) int {
	return sizeCondition + sizeOfText(c.Type) + sizeOfText(c.Reason) + sizeOfText(c.Message)
}

// sizer fits lists into a size. It looks no further than that.
type Sizer struct {
	Left   int
	Listed bool // each risk is in status.conditionalUpdateRisks as well
	risks  map[string]bool
}

// available takes releases in if they fit.
func (s *Sizer) Available(releases []configv1.Release) bool {
	left := s.Left
	for i := range releases {
		left -= SizeOfRelease(&releases[i])
		if left < 0 {
			return false
		}
	}
	s.Left = left
	return true
}

// conditional takes an update in if it fits.
func (s *Sizer) Conditional(c *configv1.ConditionalUpdate) bool {
	left := s.Left - SizeOfRelease(&c.Release) - sizeRisk
	for i := range c.Conditions {
		left -= sizeOfCondition(&c.Conditions[i])
	}
	for i := range c.Risks {
		if left < 0 {
			return false
		}
		risk := &c.Risks[i]
		size := sizeOfRisk(risk)
		for j := range risk.Conditions {
			size += sizeOfCondition(&risk.Conditions[j])
		}
		if s.Listed {
			left -= sizeOfText(risk.Name) // in riskNames
			if !s.risks[risk.Name] {
				left -= size
			}
		}
		left -= size
	}
	if left < 0 {
		return false
	}
	s.Left = left
	if s.Listed {
		if s.risks == nil {
			s.risks = map[string]bool{}
		}
		for i := range c.Risks {
			s.risks[c.Risks[i].Name] = true
		}
	}
	return true
}
