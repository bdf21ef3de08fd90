package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// FormatVersion is the version of the JSON form that this package writes, and the
// only one that it reads.
const FormatVersion = 1

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
	w := wireTimeline{FormatVersion: FormatVersion, Title: t.Title, Start: wireTime(t.Start), End: wireTime(t.End), Phases: t.Phases,
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

// UnmarshalJSON reads a timeline as [Decode] does without options.
func (t *Timeline) UnmarshalJSON(data []byte) error {
	read, err := Decode(bytes.NewReader(data), DecodeOptions{})
	if err != nil {
		return err
	}
	*t = *read
	return nil
}

// DecodeOptions are the options of [Decode].
type DecodeOptions struct {
	// MaxBytes is the most bytes of JSON; zero means 32 MiB.
	MaxBytes int64
	// MaxEntries is the most entries; zero means 100,000.
	MaxEntries int
}

// Decode reads a timeline from JSON as [Timeline.MarshalJSON] writes it. It is
// strict: another formatVersion, unknown and repeated keys, a duration that is not
// that from start to end, and what [Timeline.Validate] refuses are errors. Past
// a limit the error is a [*LimitError].
func Decode(r io.Reader, o DecodeOptions) (*Timeline, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.MaxBytes, o.MaxEntries = cmp.Or(o.MaxBytes, 32<<20), cmp.Or(o.MaxEntries, defaultEntries)
	data, err := io.ReadAll(io.LimitReader(r, o.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > o.MaxBytes {
		return nil, &LimitError{Where: "timeline", Limit: "DecodeOptions.MaxBytes", Max: o.MaxBytes, What: "bytes of JSON"}
	}
	// The version decides what the rest means.
	var version struct {
		FormatVersion *int `json:"formatVersion"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &version); err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	switch v := version.FormatVersion; {
	case v == nil:
		return nil, errors.New("timeline: formatVersion is missing")
	case *v != FormatVersion:
		return nil, fmt.Errorf("timeline: formatVersion %d is not known, only %d", *v, FormatVersion)
	}
	var w wireTimeline
	if err := limit.JSON(data, &w); err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	strict, err := kjson.UnmarshalStrict(data, &w)
	if err := bounded.Errors(append([]error{err}, strict...)...); err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	if len(w.Entries) > o.MaxEntries {
		return nil, &LimitError{Where: "timeline", Limit: "DecodeOptions.MaxEntries", Max: int64(o.MaxEntries), What: "entries"}
	}
	t := &Timeline{Title: w.Title, Start: readTime(w.Start), End: readTime(w.End), Phases: w.Phases, Omitted: w.Omitted}
	t.Entries = slices.Grow(t.Entries, len(w.Entries))
	for i := range w.Entries {
		e, err := w.Entries[i].entry()
		if err != nil {
			return nil, fmt.Errorf("timeline: entry %d: %w", i, err)
		}
		t.Entries = append(t.Entries, e)
	}
	return t, t.Validate()
}

func (w *wireEntry) entry() (Entry, error) {
	e := Entry{Lane: Lane{w.Group, w.Lane}, Start: w.Start.UTC(), End: readTime(w.End), Phase: w.Phase, Text: w.Text, Trouble: w.Trouble}
	switch {
	case w.End != nil && e.End.IsZero():
		return e, errors.New("its end is in the year 1")
	case w.Duration == "":
		return e, nil
	case e.Open():
		return e, errors.New("it has a duration and no end")
	}
	d, err := time.ParseDuration(w.Duration)
	if err != nil {
		return e, err
	}
	if d != e.Duration() {
		return e, fmt.Errorf("its duration is %s, and from start to end it is %s", d, e.Duration())
	}
	return e, nil
}

// wireTime is nil for the zero time.
func wireTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func readTime(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
