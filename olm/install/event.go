package install

import (
	"log/slog"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
)

// EventType says what an [Event] is about.
type EventType string

// The types of an [Event].
const (
	// EventResolutionFailed is the warning that OLM records on the Namespace;
	// Err is why. It comes when the reason changes.
	EventResolutionFailed EventType = "ResolutionFailed"
	// EventCatalogsChanged: a Subscription sees other catalogs, or others of
	// them answer. Text is the reason, such as CatalogSourcesAdded.
	EventCatalogsChanged EventType = "CatalogsChanged"
	// EventPlanCreated and the following speak of an InstallPlan.
	EventPlanCreated   EventType = "PlanCreated"
	EventPlanApproved  EventType = "PlanApproved"
	EventPlanCompleted EventType = "PlanCompleted"
	EventPlanFailed    EventType = "PlanFailed"
	EventPlanDeleted   EventType = "PlanDeleted"
	// EventPlanSuperseded: the resolution no longer asks for a plan.
	EventPlanSuperseded EventType = "PlanSuperseded"
	// EventPlanRefused: a plan holds what is not carried out. Err is a
	// [*Refusal]. It comes when the reason changes.
	EventPlanRefused EventType = "PlanRefused"
	// EventProgressing: a Subscription progresses to another operator, which
	// Text names.
	EventProgressing EventType = "Progressing"
	// EventError: a pass over a namespace, or a watch, failed and is tried
	// again. Only [Controller.Run] tells it.
	EventError EventType = "Error"
)

// Event is something that a [Controller] did or met. What took place just
// before a crash may be told again, or not at all.
type Event struct {
	Type         EventType
	Time         time.Time
	Namespace    string
	Subscription string // empty if it is about none
	Plan         string // empty if it is about none
	Text         string
	Err          error
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	f.Add("namespace", e.Namespace)
	f.Add("subscription", e.Subscription)
	f.Add("plan", e.Plan)
	f.Add("message", e.Text)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }
