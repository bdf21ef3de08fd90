package schema

import (
	"bytes"
	"encoding/json"

	configv1 "github.com/openshift/api/config/v1"
)

// JSON is the JSON of a value as it is served: without escapes for HTML.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// size is how many bytes a value takes as JSON in a list.
func size(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return MaxListBytes // cannot happen: texts and times
	}
	return len(text) + len(",")
}

// SizeOfRelease is how many bytes a release takes as JSON in a list.
func SizeOfRelease(r *configv1.Release) int { return size(r) }

// SizeOfRisks is how many bytes risks take as JSON in a conditional update.
func SizeOfRisks(risks []configv1.ConditionalUpdateRisk) int {
	return size(configv1.ConditionalUpdate{Risks: risks})
}

// The sizes of things as JSON, names of fields included.
const (
	sizeRelease = 80
	sizeRisk    = 120 // with its place in an update
	sizeRule    = 50
	escaped     = 6 // bytes that one becomes at most
)

// BoundOfRelease is never less than [SizeOfRelease], and quicker.
func BoundOfRelease(r *configv1.Release) int {
	n := len(r.Version) + len(r.Image) + len(r.URL)
	for _, c := range r.Channels {
		n += len(c) + 1
	}
	return sizeRelease + escaped*n
}

// BoundOfRisks is never less than [SizeOfRisks], and quicker.
func BoundOfRisks(risks []configv1.ConditionalUpdateRisk) int {
	n := sizeRelease + sizeRisk
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

// Sizer fits lists into a size. It looks no further than that.
type Sizer struct {
	Left   int
	Listed bool // each risk is in status.conditionalUpdateRisks as well
	risks  map[string]bool
}

// Available takes releases in if they fit.
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

// Conditional takes an update in if it fits.
func (s *Sizer) Conditional(c *configv1.ConditionalUpdate) bool {
	left := s.Left - size(c)
	if s.Listed && s.risks == nil {
		s.risks = map[string]bool{}
	}
	for i := range c.Risks {
		if s.Listed && left >= 0 && !s.risks[c.Risks[i].Name] {
			left -= size(c.Risks[i])
		}
	}
	if left < 0 {
		return false
	}
	s.Left = left
	for i := range c.Risks {
		if s.Listed {
			s.risks[c.Risks[i].Name] = true
		}
	}
	return true
}
