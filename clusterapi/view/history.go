package view

import (
	"io"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

// History are the releases that a cluster has run, newest first. It is plain
// data.
type History struct {
	Entries []HistoryEntry `json:"entries"`
}

// HistoryEntry is an update of a cluster, or its installation. It is plain data.
type HistoryEntry struct {
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	State   string `json:"state,omitempty"` // Completed or Partial
	// Started and Completed are zero where they are not known; Completed is also
	// when an update was given up for another.
	Started   time.Time `json:"started,omitzero"`
	Completed time.Time `json:"completed,omitzero"`
	// Duration is the time in between, in whole seconds; for the update that runs,
	// until now. It is nil if it is not known.
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Running is for the newest update, as long as it is not completed.
	Running       bool   `json:"running,omitempty"`
	Verified      bool   `json:"verified"`
	AcceptedRisks string `json:"acceptedRisks,omitempty"`
}

// AssessHistory copies the history of a cluster and adds how long each update took,
// at a time. It fails without a ClusterVersion. It can be called concurrently.
func AssessHistory(cv *configv1.ClusterVersion, now time.Time) (*History, error) {
	if cv == nil {
		return nil, errNoClusterVersion
	}
	h := &History{Entries: []HistoryEntry{}}
	for i, update := range cv.Status.History {
		e := HistoryEntry{
			Version:       update.Version,
			Image:         update.Image,
			State:         string(update.State),
			Started:       update.StartedTime.Time,
			Verified:      update.Verified,
			AcceptedRisks: update.AcceptedRisks,
		}
		if t := update.CompletionTime; t != nil {
			e.Completed = t.Time
		}
		end := e.Completed
		if i == 0 && end.IsZero() && update.State != configv1.CompletedUpdate {
			e.Running = true
			end = now
			if end.Before(e.Started) { // a recording may have several clocks
				end = e.Started
			}
		}
		if !e.Started.IsZero() && !end.IsZero() {
			e.Duration = &metav1.Duration{Duration: end.Sub(e.Started).Round(time.Second)}
		}
		h.Entries = append(h.Entries, e)
	}
	return h, nil
}

// HistoryText are the options of [History.WriteText]. The zero value works. They
// are plain data.
type HistoryText struct {
	WithoutImages bool // leave out the column of images, which is wide
}

// WriteText writes the history as a table. Times are those of UTC, and "-" is what
// is not known. It fails when writing does. It can be called concurrently on one
// history.
func (h *History) WriteText(out io.Writer, o HistoryText) error {
	t := text.NewTable(text.NewWriter(out), 0, 3)
	row := func(texts ...string) {
		if o.WithoutImages {
			texts = texts[:len(texts)-1]
		}
		t.Row(texts...)
	}
	row("VERSION", "STATE", "STARTED", "COMPLETED", "DURATION", "VERIFIED", "IMAGE")
	for _, e := range h.Entries {
		duration := "-"
		if e.Duration != nil {
			duration = text.Short(e.Duration.Duration)
		}
		row(orDash(e.Version), orDash(e.State), timeText(e.Started), timeText(e.Completed), duration, strconv.FormatBool(e.Verified), orDash(e.Image))
	}
	return t.Flush()
}

// orDash stands for a text that is not set.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
