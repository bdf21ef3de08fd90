package clusterapi

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Event is a step of something that this module does, as its observers see it.
type Event struct {
	// Time is the time of the step, by the clock of the sender.
	Time time.Time
	// Type is one of the constants of the sender's package.
	Type EventType
	// Subject names what the event is about as "kind/name", such as
	// "node/worker-0", or as "release 4.21.1". Empty means all that the sender
	// works on.
	Subject string
	// Message is a text for people. It may be empty.
	Message string
	// Err is what failed, or nil.
	Err error
	// Data is a struct that the sender's package documents for each Type, or nil.
	// It is shared between observers and must not be changed.
	Data any
}

// EventType names the kind of an [Event].
type EventType string

// String returns "Type subject: message: error", without what is not set.
func (e Event) String() string {
	text := string(e.Type)
	if e.Subject != "" {
		text += " " + e.Subject
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// MarshalJSON writes the fields that are set, in lower case. Err becomes its
// text.
func (e Event) MarshalJSON() ([]byte, error) {
	out := struct {
		Time    *time.Time `json:"time,omitempty"`
		Type    EventType  `json:"type"`
		Subject string     `json:"subject,omitempty"`
		Message string     `json:"message,omitempty"`
		Error   string     `json:"error,omitempty"`
		Data    any        `json:"data,omitempty"`
	}{Type: e.Type, Subject: e.Subject, Message: e.Message, Data: e.Data}
	if !e.Time.IsZero() {
		out.Time = &e.Time
	}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	return json.Marshal(out)
}

// LogValue returns the fields that are set as a group. It leaves out the time,
// which a log record has itself.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("type", string(e.Type))}
	if e.Subject != "" {
		attrs = append(attrs, slog.String("subject", e.Subject))
	}
	if e.Message != "" {
		attrs = append(attrs, slog.String("message", e.Message))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	if e.Data != nil {
		attrs = append(attrs, slog.Any("data", e.Data))
	}
	return slog.GroupValue(attrs...)
}
