package timeline

import (
	"encoding/json"
	"time"
)

// formatVersion is the version of the JSON form.
const formatVersion = 1

// wireTimeline is a timeline in JSON.
type wireTimeline struct {
	FormatVersion int         `json:"formatVersion"`
	Title         string      `json:"title,omitempty"`
	Start         *time.Time  `json:"start,omitempty"`
	End           *time.Time  `json:"end,omitempty"`
	Phases        []string    `json:"phases,omitempty"`
	Entries       []wireEntry `json:"entries"`
	Omitted       int         `json:"omitted,omitempty"`
}

// wireEntry is an entry in JSON. The duration is there for people.
type wireEntry struct {
	Start    time.Time  `json:"start"`
	End      *time.Time `json:"end,omitempty"`
	Duration string     `json:"duration,omitempty"`
	Group    string     `json:"group,omitempty"`
	Lane     string     `json:"lane,omitempty"`
	Phase    string     `json:"phase,omitempty"`
	Text     string     `json:"text,omitempty"`
	Trouble  bool       `json:"trouble,omitempty"`
}

// MarshalJSON writes the timeline as an object with formatVersion, its entries in the
// order that they have. Times are RFC 3339 in UTC, durations as in 1h2m3s.
func (t Timeline) MarshalJSON() ([]byte, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	w := wireTimeline{FormatVersion: formatVersion, Title: t.Title, Start: wireTime(t.Start), End: wireTime(t.End), Phases: t.Phases,
		Entries: make([]wireEntry, len(t.Entries)), Omitted: t.Omitted}
	for i, e := range t.Entries {
		w.Entries[i] = wireEntry{Start: e.Start.UTC(), End: wireTime(e.End), Group: e.Lane.Group, Lane: e.Lane.Name,
			Phase: e.Phase, Text: e.Text, Trouble: e.Trouble}
		if !e.Open() {
			w.Entries[i].Duration = e.Duration().String()
		}
	}
	return json.Marshal(w)
}

// wireTime is nil for the zero time.
func wireTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
