package policyengine

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventChanged: another graph is served.
	EventChanged EventType = "GraphChanged"
	// EventUnchanged: the graph was loaded and is the one that is served.
	EventUnchanged EventType = "GraphUnchanged"
	// EventFailed: the graph could not be loaded, the last one stays. It is tried
	// again at Retry.
	EventFailed EventType = "LoadFailed"
	// EventRecovered: it could be loaded, after failures. EventChanged or
	// EventUnchanged follows.
	EventRecovered EventType = "LoadRecovered"
)

// Event is something that a [Refresher] met. It is plain data.
type Event struct {
	Type EventType
	Time time.Time
	// Revision names the graph that is served, Nodes is how many releases it has.
	Revision string
	Nodes    int
	// Failures counts those in a row.
	Failures int
	// Retry is when it is loaded next.
	Retry time.Time
	Err   error
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("revision", e.Revision)
	f.Add("nodes", e.Nodes)
	f.Add("failures", e.Failures)
	f.Add("retry", e.Retry)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
